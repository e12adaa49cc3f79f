#!/usr/bin/env python3
"""A minimal agent of the Agent Test Protocol on standard input and output.

Reads one request line from standard input, reports events on standard error and writes the response to standard output.
Needs nothing but the standard library.

    echo '{"version":"1.0","task_id":"t-1","task":{"description":"say hello"}}' | python3 minimal.py
"""

import hashlib
import json
import sys
import time
from datetime import datetime, timezone
from pathlib import Path

VERSION = "1.0"
MAX_REQUEST = 4 * 1024 * 1024


class InvalidRequest(Exception):
    """A request that violates the protocol."""


class Events:
    """Numbers the events of one task and writes them, one line each."""

    def __init__(self, task_id):
        self.task_id = task_id
        self.sequence = 0

    def emit(self, event_type, payload):
        event = {
            "version": VERSION,
            "task_id": self.task_id,
            "timestamp": datetime.now(timezone.utc).isoformat(),
            "sequence": self.sequence,
            "event_type": event_type,
            "payload": payload,
        }
        self.sequence += 1
        print(json.dumps(event), file=sys.stderr, flush=True)


def read_request(line):
    """The request of a line, and its task id as far as it is known."""
    if len(line) > MAX_REQUEST:
        raise InvalidRequest(f"a request is at most {MAX_REQUEST} bytes long")
    try:
        request = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InvalidRequest(f"the request is no JSON: {error}") from error
    if not isinstance(request, dict):
        raise InvalidRequest("the request is no object")
    return request


def check(request):
    """Refuses a request that this agent cannot execute; members that it does not know are ignored."""
    version = request.get("version")
    if not isinstance(version, str) or version.split(".")[0] != "1":
        raise InvalidRequest(f"version {version!r} is not supported; this agent speaks {VERSION}")
    if not isinstance(request.get("task_id"), str) or not request["task_id"]:
        raise InvalidRequest("`task_id` is missing")
    task = request.get("task")
    if not isinstance(task, dict) or not isinstance(task.get("description"), str) or not task["description"]:
        raise InvalidRequest("`task.description` is missing")
    constraints = request.get("constraints") or {}
    if not isinstance(constraints, dict):
        raise InvalidRequest("`constraints` is no object")
    for name in ("max_steps", "max_tokens", "timeout_seconds"):
        limit = constraints.get(name)
        if limit is not None and (not isinstance(limit, int) or limit < 1):
            raise InvalidRequest(f"`constraints.{name}` is no positive integer")


def execute(request, events):
    """The work itself: the artifacts of the task. Replace this by an agent of your own."""
    events.emit("progress", {"current_step": 1, "total_steps": 1, "percentage": 0, "message": "started"})
    content = f"Task: {request['task']['description']}\n"
    raw = content.encode()
    artifact = {
        "type": "file",
        "path": "answer.txt",
        "content_type": "text/plain",
        "size_bytes": len(raw),
        "content_hash": "sha256:" + hashlib.sha256(raw).hexdigest(),
        "content": content,
    }
    workspace = (request.get("context") or {}).get("workspace_path")
    if workspace:
        (Path(workspace) / "answer.txt").write_bytes(raw)
        events.emit("artifact_created", {"artifact_type": "file", "path": "answer.txt", "size_bytes": len(raw)})
    events.emit("progress", {"current_step": 1, "total_steps": 1, "percentage": 100, "message": "done"})
    return [artifact]


def main():
    started = time.monotonic()
    response = {"version": VERSION, "task_id": "unknown", "status": "failed", "artifacts": [], "metrics": {}}
    try:
        request = read_request(sys.stdin.buffer.readline(MAX_REQUEST + 1))
        if isinstance(request.get("task_id"), str):
            response["task_id"] = request["task_id"]
        check(request)
        response["artifacts"] = execute(request, Events(request["task_id"]))
        response["status"] = "completed"
    except InvalidRequest as error:
        response.update(error=str(error), error_code="INVALID_REQUEST")
    except Exception as error:  # Whatever fails, the platform gets a response.
        response.update(error=f"{type(error).__name__}: {error}", error_code="INTERNAL_ERROR")
    response["metrics"] = {
        "total_tokens": 0,
        "total_steps": 1,
        "tool_calls": 0,
        "llm_calls": 0,
        "wall_time_seconds": round(time.monotonic() - started, 6),
    }
    print(json.dumps(response), flush=True)


if __name__ == "__main__":
    main()
