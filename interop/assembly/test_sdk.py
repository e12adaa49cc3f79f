"""The released Agent Assembly package for Python against the released binary: its compiled client talks to `aa-runtime` and `aa-gateway`, and its
`aasm` judges the log. PROCTOR_RELEASE_BINARY names the binary, AASM the released program."""

import contextlib
import hashlib
import json
import os
import queue
import re
import signal
import struct
import subprocess
import threading
import time
import uuid

import pytest
from agent_assembly import RuntimeClient
from agent_assembly._core import GovernanceEvent

PATIENCE = 30

POLICY = r"""
version: "1"
default: deny
tools:
  web_search: { allow: true }
  http_post: { allow: true }
  deploy: { allow: true, requires_approval_if: tool == "deploy" }
  shell: { allow: false }
"""


class Program:
    """The released binary under one of its names."""

    def __init__(self, folder, name, arguments, variables):
        link = folder / name
        if not link.is_symlink():
            link.symlink_to(os.environ["PROCTOR_RELEASE_BINARY"])
        (folder / "home").mkdir(exist_ok=True)
        environment = {"HOME": str(folder / "home"), **variables}
        self.process = subprocess.Popen(
            [str(link), *arguments], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )
        self.lines = queue.Queue()
        self.said = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stderr:
            self.said.append(line)
            self.lines.put(line)

    def wait_for(self, pattern):
        """The first match in what the program says."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            with contextlib.suppress(queue.Empty):
                found = re.search(pattern, self.lines.get(timeout=0.1))
                if found:
                    return found
            assert self.process.poll() is None, "".join(self.said)
        raise AssertionError(f"no {pattern!r} in " + "".join(self.said))

    def end(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE)


class Place:
    """A folder with a policy, a gateway, and the runtime of one agent."""

    def __init__(self, folder, policy=POLICY):
        self.folder = folder
        self.agent = f"interop-{uuid.uuid4()}"
        self.socket = f"/tmp/aa-runtime-{self.agent}.sock"
        (folder / "policy.yaml").write_text(policy)
        self.programs = []

    def start_gateway(self):
        arguments = ["--policy", "policy.yaml", "--listen", "127.0.0.1:0", "--audit-dir", "audit", "--db-path", "gateway.db"]
        gateway = Program(self.folder, "aa-gateway", arguments, {})
        self.programs.append(gateway)
        self.endpoint = "http://" + gateway.wait_for(r"listening on TCP.*?(127\.0\.0\.1:\d+)")[1]
        return gateway

    def start_runtime(self, endpoint=None):
        variables = {"AA_AGENT_ID": self.agent, "AA_GATEWAY_ENDPOINT": endpoint or self.endpoint, "AA_METRICS_ADDR": "127.0.0.1:0"}
        runtime = Program(self.folder, "aa-runtime", [], variables)
        self.programs.append(runtime)
        end = time.monotonic() + PATIENCE
        while not os.path.exists(self.socket):
            assert runtime.process.poll() is None, "".join(runtime.said)
            assert time.monotonic() < end, "".join(runtime.said)
            time.sleep(0.01)
        return runtime

    def client(self, agent=None):
        return RuntimeClient.connect(self.socket, agent or self.agent, "0.0.1rc7")

    def register(self, client):
        return client.register(self.agent, "example", "interop", self.endpoint, "platform")

    def ask(self, client, tool, arguments="{}"):
        return client.query_policy(self.agent, "tool_call", tool, arguments)

    @property
    def log(self):
        return self.folder / "audit" / "gateway-default.jsonl"

    def end(self):
        for program in reversed(self.programs):
            program.end()


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("AASM_STATE_DIR", str(tmp_path / "identity"))
    place = Place(tmp_path)
    yield place
    place.end()


def verify_chain(log):
    """What the released `aasm` says about a log: its exit code and its words."""
    done = subprocess.run([os.environ["AASM"], "audit", "verify-chain", str(log)], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def entry(payload):
    """A log entry as the client takes it, with the hash that belongs to it."""
    now = time.time_ns()
    agent, session, before = [1] * 16, [2] * 16, [0] * 32
    text = json.dumps(payload)
    fixed = struct.pack(">QQI", 0, now, 0) + bytes(agent) + bytes(session) + bytes(before)
    digest = hashlib.sha256(fixed + text.encode()).digest()
    return json.dumps({
        "seq": 0, "timestamp_ns": now, "event_type": "ToolCallIntercepted", "agent_id": agent, "session_id": session,
        "payload": text, "previous_hash": before, "entry_hash": list(digest),
    })


def test_every_outcome_reaches_the_client(place):
    place.start_gateway()
    place.start_runtime()
    client = place.client()
    assert isinstance(place.register(client), str)
    assert place.ask(client, "web_search")["decision"] == "allow"
    denied = place.ask(client, "shell")
    assert denied["decision"] == "deny"
    assert denied["reason"]
    assert place.ask(client, "unknown_tool")["decision"] == "deny"
    assert place.ask(client, "deploy")["decision"] == "pending"
    assert place.ask(client, "http_post", '{"key":"AKIAIOSFODNN7EXAMPLE"}')["decision"] == "redact"
    client.close()
    place.end()
    code, said = verify_chain(place.log)
    assert code == 0, said
    assert "AKIAIOSFODNN7EXAMPLE" not in place.log.read_text()
    decisions = [json.loads(json.loads(line)["payload"]).get("decision") for line in place.log.read_text().splitlines()]
    assert len([decision for decision in decisions if decision]) >= 5, decisions


def test_many_queries_are_answered_in_their_order(place):
    place.start_gateway()
    place.start_runtime()
    client = place.client()
    place.register(client)
    tools = ["web_search", "shell", "web_search", "unknown_tool"] * 50
    answers = [place.ask(client, tool)["decision"] for tool in tools]
    assert answers == ["allow", "deny", "allow", "deny"] * 50
    client.close()


def test_events_are_kept(place):
    place.start_gateway()
    place.start_runtime()
    client = place.client()
    place.register(client)
    assert place.ask(client, "web_search")["decision"] == "allow"
    client.send_event(GovernanceEvent(entry({"action": "marker-of-the-event", "event_type": "tool_call"})))
    # Frames are taken in order: once this is answered, the event has been read.
    assert place.ask(client, "web_search")["decision"] == "allow"
    client.close()
    place.end()
    assert "marker-of-the-event" in place.log.read_text()
    code, said = verify_chain(place.log)
    assert code == 0, said


def test_a_gateway_that_is_gone_denies(place):
    gateway = place.start_gateway()
    place.start_runtime()
    client = place.client()
    place.register(client)
    assert place.ask(client, "web_search")["decision"] == "allow"
    gateway.end()
    answer = place.ask(client, "web_search")
    assert answer["decision"] == "deny", answer
    assert answer["reason"]
    client.close()


def test_a_gateway_that_comes_back_knows_its_agents(place):
    gateway = place.start_gateway()
    address = place.endpoint.removeprefix("http://")
    place.start_runtime()
    client = place.client()
    place.register(client)
    gateway.end()
    arguments = ["--policy", "policy.yaml", "--listen", address, "--audit-dir", "audit", "--db-path", "gateway.db"]
    again = Program(place.folder, "aa-gateway", arguments, {})
    place.programs.append(again)
    again.wait_for("listening on TCP")
    assert place.ask(client, "web_search")["decision"] == "allow"
    client.close()


def test_a_client_of_another_agent_is_not_served(place):
    place.start_gateway()
    place.start_runtime()
    client = place.client(agent="somebody-else")
    assert place.ask(client, "web_search")["decision"] in ("query_failed", "channel_closed")
    client.close()


def test_the_socket_is_private_and_goes_with_the_runtime(place):
    place.start_gateway()
    runtime = place.start_runtime()
    assert os.stat(place.socket).st_mode & 0o777 == 0o600
    runtime.end()
    assert not os.path.exists(place.socket)


def test_the_judge_notices_a_change(place):
    place.start_gateway()
    place.start_runtime()
    client = place.client()
    place.register(client)
    for _ in range(3):
        place.ask(client, "web_search")
    client.close()
    place.end()
    changed = place.folder / "changed.jsonl"
    changed.write_text(place.log.read_text().replace("web_search", "web_seerch", 1))
    assert verify_chain(place.log)[0] == 0
    code, said = verify_chain(changed)
    assert code != 0, said
