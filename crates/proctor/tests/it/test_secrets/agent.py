"""An agent that emits a secret in one way and one spelling."""

import json
import os
import sys
import urllib.parse
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from spell import spellings

request = json.loads(sys.stdin.readline())
way, spelling = request["task"]["input_data"]["way"], request["task"]["input_data"]["spelling"]
text = spellings()[spelling][1]
response = {"version": "1.0", "task_id": request["task_id"], "status": "completed", "metrics": {}, "artifacts": []}


def event(event_type, payload):
    print(json.dumps({"version": "1.0", "task_id": request["task_id"], "sequence": 0, "event_type": event_type,
        "timestamp": "2026-01-01T00:00:00Z", "payload": payload}), file=sys.stderr, flush=True)


def log(line):
    print(line, file=sys.stderr, flush=True)


def call(tool, body):
    url = request["context"]["tools_endpoint"] + "/" + urllib.parse.quote(tool, safe="")
    try:
        urllib.request.urlopen(urllib.request.Request(url, body, {"Content-Type": "application/json"})).read()
    except OSError:
        pass


if way == "event":
    event("reasoning", {"thought": "it is " + text})
elif way == "event_member":
    event("reasoning", {"thought": "x", text: 1})
elif way == "event_type":
    event(text, {})
elif way == "event_number":
    event("tool_call", {"tool": "t", "input": {"pin": int(text)} if text.isdigit() else text})
elif way == "log":
    log("log: " + text)
elif way == "log_before":
    log("log: " + text)
    for number in range(40):
        log("line %d" % number)
elif way == "log_long":
    log("x" * (2048 - len(text.encode()) // 2) + text)
elif way == "log_crash":
    log("log: " + text)
    sys.exit(3)
elif way == "stdout_log":
    print("log: " + text, flush=True)
elif way == "stdout_garbage":
    print("x" * (500 - len(text.encode()) // 2) + text)
    sys.exit(0)
elif way == "artifact":
    response["artifacts"] = [{"type": "file", "path": "a.txt", "content": "it is " + text}]
elif way == "artifact_data":
    response["artifacts"] = [{"type": "structured", "name": "a", "data": {"pin": int(text) if text.isdigit() else text}}]
elif way == "artifact_path":
    response["artifacts"] = [{"type": "file", "path": "../" + text, "content": ""}]
elif way == "artifact_file":
    open("a.txt", "w", newline="").write(text)
    response["artifacts"] = [{"type": "file", "path": "a.txt"}]
elif way == "checked_file":
    open("checked.txt", "w", newline="").write(text)
elif way == "error":
    response.update(status="failed", error=text)
elif way == "trace_id":
    response["trace_id"] = text
elif way == "status":
    response["status"] = text
elif way == "tool_input":
    call("search", json.dumps({"task_id": request["task_id"], "input": {"q": text}}).encode())
elif way == "tool_member":
    call("search", json.dumps({"task_id": request["task_id"], "input": {text: 1}}).encode())
elif way == "tool_name":
    call(text, json.dumps({"task_id": request["task_id"], "input": {}}).encode())
print(json.dumps(response))
