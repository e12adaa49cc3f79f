"""Runs the sample suite on every agent of this folder. Arguments: the binary, the folder with the installed servers, the suite."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
BINARY, HOME, SUITE = sys.argv[1:]
PYTHON = f"{HOME}/bin/python"

# Name, command of the server, address ({} is its port), whether events are expected.
SERVERS = [
    ("FastAPI, events", [PYTHON, "fastapi_agent.py"], "http://127.0.0.1:{}", True),
    ("FastAPI, one body", [PYTHON, "fastapi_agent.py"], "http://127.0.0.1:{}/execute", False),
    ("websockets", [PYTHON, "websockets_agent.py"], "ws://127.0.0.1:{}", True),
    ("grpcio, stream", [PYTHON, "grpc_agent.py"], "grpc://127.0.0.1:{}", True),
    ("grpcio, unary", [PYTHON, "grpc_agent.py", "unary"], "grpc://127.0.0.1:{}", False),
    ("Express, events", ["node", "express_agent.js"], "http://127.0.0.1:{}", True),
    ("Express, one body", ["node", "express_agent.js"], "http://127.0.0.1:{}/execute", False),
    ("the document's HTTP agent, events", [PYTHON, "document_http.py"], "http://127.0.0.1:{}", True),
    ("the document's HTTP agent, one body", [PYTHON, "document_http.py"], "http://127.0.0.1:{}/execute", False),
]


def judge(name, agent, has_events):
    """Whether every test passes, with the events that the agent has sent and without any complaint about its messages."""
    command = [BINARY, "test", SUITE, "--agent", agent, "--runs", "2", "--parallel", "4", "--json"]
    with tempfile.TemporaryDirectory() as state:
        environment = {**os.environ, "PROCTOR_STATE": os.path.join(state, "state")}
        ended = subprocess.run(command, cwd=HERE, env=environment, capture_output=True, text=True, timeout=120)
    try:
        runs = [run for test in json.loads(ended.stdout)["tests"] for run in test["runs"]]
    except ValueError:
        runs = []
    is_right = (
        ended.returncode == 0
        and len(runs) == 4
        and all(run["verdict"] == "passed" and "flawed_events" not in run for run in runs)
        and all((run["events"] == 2) if has_events else (run["events"] == 0) for run in runs)
        and not any(run.get("warnings") for run in runs)
    )
    print(f"{'passed' if is_right else 'FAILED'}  {name}")
    if not is_right:
        print(ended.stdout, ended.stderr)
    return is_right


def main():
    with tempfile.TemporaryDirectory() as generated:
        proto = HERE.parent.parent / "schemas/atp/v1"
        compiler = [PYTHON, "-m", "grpc_tools.protoc", f"-I{proto}", f"--python_out={generated}"]
        subprocess.run([*compiler, f"--grpc_python_out={generated}", "agent.proto"], check=True)
        environment = {
            **os.environ,
            "PYTHONPATH": f"{generated}:{HERE}",
            "PYTHONDONTWRITEBYTECODE": "1",
            "NODE_PATH": f"{HOME}/node_modules",
        }
        # All servers start at once: most of the time is theirs.
        pipe = subprocess.PIPE
        started = [subprocess.Popen(server, cwd=HERE, env=environment, stdout=pipe, text=True) for _, server, _, _ in SERVERS]
        try:
            results = [judge("the document's stdio agent", f"stdio:{PYTHON} document_stdio.py", True)]
            for process, (name, _, address, has_events) in zip(started, SERVERS):
                port = process.stdout.readline().strip()
                results.append(judge(name, address.format(port), has_events))
        finally:
            for process in started:
                process.kill()
                process.wait()
    print(f"atp: {results.count(True)} passed, {results.count(False)} failed")
    return 0 if all(results) else 1


sys.exit(main())
