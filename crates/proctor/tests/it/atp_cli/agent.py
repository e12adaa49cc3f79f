"""An agent that does its duties, except for the one that its argument names.

    python3 agent.py FLAW          one request on standard input
    python3 agent.py FLAW serve    HTTP on a free port, whose URL is printed
"""

import json
import os
import sys
import time

FLAW = sys.argv[1]
last_task = "none"


class Refused(Exception):
    pass


def check(request):
    if not isinstance(request, dict):
        raise Refused("no object")
    version = str(request.get("version"))
    if FLAW == "higher_minor" and version != "1.0":
        raise Refused("not version 1.0")
    if FLAW != "other_major" and not version.startswith("1."):
        raise Refused("another major version")
    if FLAW == "unknown_members" and any(name.startswith("x_") for name in request):
        raise Refused("an unknown member")
    if not request.get("task_id"):
        raise Refused("no task id")
    if FLAW == "invalid_request":
        return
    task = request.get("task")
    if not isinstance(task, dict) or not isinstance(task.get("description"), str) or not task["description"]:
        raise Refused("no description")
    constraints = request.get("constraints")
    if not isinstance(constraints, dict) or constraints.get("max_steps") == 0:
        raise Refused("bad constraints")


def event(task_id, sequence, event_type="progress", payload=None):
    made = {
        "version": "1.0",
        "task_id": task_id,
        "timestamp": "2026-01-01T00:00:00Z",
        "sequence": sequence,
        "event_type": event_type,
        "payload": payload or {},
    }
    if FLAW == "events":
        del made["timestamp"]
    return made


def respond(request):
    """The events and the response."""
    global last_task
    task_id = last_task = request["task_id"]
    if FLAW == "canary":
        os.system(request["task"]["description"])
    if FLAW == "concurrent":
        # Long enough for requests at the same time to overwrite each other's task id.
        time.sleep(0.2)
        task_id = last_task
    events = [event(task_id, 0), event(task_id, 0 if FLAW == "event_order" else 1)]
    if FLAW == "allowed_tools":
        events.append(event(task_id, 2, "tool_call", {"tool": "shell"}))
    content = "ready"
    artifact = {"type": "file", "path": "answer.txt", "size_bytes": len(content), "content": content}
    if FLAW == "artifacts":
        artifact["path"] = "../answer.txt"
    if FLAW == "artifacts_size":
        artifact["size_bytes"] = 1
    response = {
        "version": "1.0",
        "task_id": "another" if FLAW == "task_id" else task_id,
        "status": "done" if FLAW == "status" else "completed",
        "artifacts": [artifact],
        "metrics": {"total_steps": -1 if FLAW == "metrics" else 1},
    }
    if FLAW == "version":
        del response["version"]
    return events, response


def answer(text):
    task_id = "unknown"
    try:
        if FLAW == "huge_input" and len(text) > 1_000_000:
            sys.exit(1)
        if FLAW == "hangs" and not text.strip().startswith("{"):
            time.sleep(60)
        try:
            request = json.loads(text)
        except (ValueError, RecursionError) as error:
            if FLAW == "malformed_input" and isinstance(error, ValueError):
                raise
            if FLAW == "recovers":
                os._exit(1)
            raise Refused("no JSON") from error
        if isinstance(request, dict):
            task_id = str(request.get("task_id") or task_id)
        check(request)
        return respond(request)
    except Refused as error:
        reason = str(error)
        if FLAW == "secrets_in_errors":
            reason += ": " + text
        response = {"version": "1.0", "task_id": task_id, "status": "failed", "artifacts": [], "metrics": {}}
        if FLAW != "error_text":
            response["error"] = reason
        return [], response


def main():
    events, response = answer(sys.stdin.readline())
    for one in events:
        print(json.dumps(one), file=sys.stderr)
    if FLAW == "secrets":
        print("using", os.environ["PROCTOR_CHECK_SECRET"], file=sys.stderr)
    if FLAW != "answers":
        print(json.dumps(response))
    if FLAW == "answers_twice":
        print(json.dumps(response))
    sys.stdout.flush()
    if FLAW == "exit":
        sys.exit(3)


def serve():
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            text = self.rfile.read(int(self.headers["content-length"] or 0)).decode()
            _, response = answer(text)
            body = json.dumps(response).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(f"http://127.0.0.1:{server.server_port}/execute", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    serve() if sys.argv[2:] == ["serve"] else main()
