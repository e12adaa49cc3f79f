"""The work of all Python agents here: the tasks of examples/suites/greetings.yaml."""

import json
from datetime import datetime, timezone
from pathlib import Path


def event(request, sequence, event_type, payload):
    return {
        "version": "1.0",
        "task_id": request["task_id"],
        "timestamp": datetime.now(timezone.utc).isoformat(),
        "sequence": sequence,
        "event_type": event_type,
        "payload": payload,
    }


def steps(request):
    """Events, and the response as the last message."""
    yield event(request, 0, "progress", {"current_step": 1, "message": "grüße"})
    workspace = Path(request["context"]["workspace_path"])
    if "hello.txt" in request["task"]["description"]:
        path, content = "hello.txt", "Hello, world!\n"
    else:
        answer = {"question": request["task"]["input_data"]["question"], "answer": 42}
        path, content = "answer.json", json.dumps(answer)
    (workspace / path).write_text(content)
    yield event(request, 1, "artifact_created", {"artifact_type": "file", "path": path, "size_bytes": len(content)})
    yield {
        "version": "1.0",
        "task_id": request["task_id"],
        "status": "completed",
        "artifacts": [{"type": "file", "path": path, "content": content, "size_bytes": len(content)}],
        "metrics": {"total_steps": 1, "total_tokens": 0},
        "trace_id": "trace-" + request["task_id"],
    }
