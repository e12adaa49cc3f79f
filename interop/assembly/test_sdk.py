"""The released Agent Assembly package for Python against the released binary: its compiled client talks to `aa-runtime` and `aa-gateway`, and its
`aasm` judges the log. PROCTOR_RELEASE_BINARY names the binary, AASM the released program."""

import contextlib
import hashlib
import json
import os
import queue
import re
import signal
import socket
import struct
import subprocess
import threading
import time
import uuid
from concurrent import futures

import grpc
import pytest
from agent_assembly import OpTerminatedError, RuntimeClient
from agent_assembly._core import GovernanceEvent
from agent_assembly.op_control import OpControlSubscriber
from agent_assembly.proto import common_pb2

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

    def start_runtime(self, variables=None):
        common = {"AA_AGENT_ID": self.agent, "AA_GATEWAY_ENDPOINT": self.endpoint, "AA_METRICS_ADDR": "127.0.0.1:0"}
        runtime = Program(self.folder, "aa-runtime", [], {**common, **(variables or {})})
        self.programs.append(runtime)
        end = time.monotonic() + PATIENCE
        while not os.path.exists(self.socket):
            assert runtime.process.poll() is None, "".join(runtime.said)
            assert time.monotonic() < end, "".join(runtime.said)
            time.sleep(0.01)
        return runtime

    def client(self, agent=None, socket=None):
        return RuntimeClient.connect(socket or self.socket, agent or self.agent, "0.0.1rc7")

    def register(self, client, endpoint=None):
        return client.register(self.agent, "example", "interop", endpoint or self.endpoint, "platform")

    def order(self, *arguments):
        """What a command of an operator prints."""
        command = [os.environ["PROCTOR_RELEASE_BINARY"], *arguments, "--state", "gateway.proctor", "--policy", "policy.yaml"]
        done = subprocess.run(command, cwd=self.folder, env={"HOME": str(self.folder / "home")}, capture_output=True, text=True)
        assert done.returncode == 0, (command, done)
        return done.stdout

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
    assert place.ask(client, "http_post", '{"key":"AKIAIOSFODNN7EXAMPLE"}')["decision"] == "deny"
    client.close()
    place.end()
    code, said = verify_chain(place.log)
    assert code == 0, said
    assert "AKIAIOSFODNN7EXAMPLE" not in place.log.read_text()
    decisions = [json.loads(json.loads(line)["payload"]).get("decision") for line in place.log.read_text().splitlines()]
    assert len([decision for decision in decisions if decision]) >= 5, decisions


def test_a_stock_grpc_client_works_over_the_unix_socket(place):
    arguments = ["--policy", "policy.yaml", "--socket", "gateway.sock", "--audit-dir", "audit", "--db-path", "gateway.db"]
    gateway = Program(place.folder, "aa-gateway", arguments, {})
    place.programs.append(gateway)
    gateway.wait_for("listening on Unix socket")
    # The package names the socket's path, percent-encoded, as the authority.
    with grpc.insecure_channel(f"unix:{place.folder}/gateway.sock") as channel:
        check = channel.unary_unary("/grpc.health.v1.Health/Check")
        for _ in range(3):
            assert check(b"", timeout=PATIENCE) == b"\x08\x01"


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


def wait_until(holds):
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, "it does not come to hold"
        time.sleep(0.005)


def read_varint(data, at):
    """A number and the place behind it, or None if more bytes are needed."""
    number = shift = 0
    while at < len(data):
        number |= (data[at] & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 0x80:
            return number, at
    return None


def first_field(message):
    """The bytes of field 1 of a message that begins with it."""
    assert message[0] == 0x0A, message
    length, at = read_varint(message, 1)
    return message[at:at + length]


class Registrar(grpc.GenericRpcHandler):
    """Between the client and the gateway when the client registers: it keeps the token, which the client does not give away."""

    def __init__(self, endpoint):
        self.gateway = grpc.insecure_channel(endpoint.removeprefix("http://"))
        self.server = grpc.server(futures.ThreadPoolExecutor(2), handlers=(self,))
        self.endpoint = f"http://127.0.0.1:{self.server.add_insecure_port('127.0.0.1:0')}"
        self.server.start()

    def service(self, details):
        call = self.gateway.unary_unary(details.method)

        def handle(request, context):
            try:
                response = call(request, timeout=PATIENCE)
            except grpc.RpcError as error:
                context.abort(error.code(), error.details())
            if details.method.endswith("/Register"):
                self.agent = common_pb2.AgentId.FromString(first_field(request))
                self.token = first_field(response).decode()
            return response

        return grpc.unary_unary_rpc_method_handler(handle)

    def close(self):
        self.server.stop(None).wait()
        self.gateway.close()


class Bearing(grpc.UnaryStreamClientInterceptor):
    """Shows a token with every call."""

    def __init__(self, token):
        self.token = token

    def intercept_unary_stream(self, continuation, details, request):
        metadata = [*(details.metadata or ()), ("x-aa-credential-token", self.token)]
        return continuation(details._replace(metadata=metadata), request)


@contextlib.contextmanager
def subscribed(place, agent, token):
    """The subscriber of the package, for an agent that has this token."""
    address = place.endpoint.removeprefix("http://")
    channel = grpc.intercept_channel(grpc.insecure_channel(address), Bearing(token))
    subscriber = OpControlSubscriber.connect(
        address, org_id=agent.org_id, team_id=agent.team_id, agent_id=agent.agent_id, channel_factory=channel
    )
    try:
        yield subscriber
    finally:
        subscriber.close()
        channel.close()


@pytest.fixture
def registered(place):
    """A client that is registered, and what its registration was."""
    place.start_gateway()
    place.start_runtime()
    registrar = Registrar(place.endpoint)
    client = place.client()
    place.register(client, registrar.endpoint)
    yield client, registrar
    client.close()
    registrar.close()


def test_orders_reach_the_subscriber(place, registered):
    client, registrar = registered
    with subscribed(place, registrar.agent, registrar.token) as subscriber:
        subscriber.await_op("t1:s1", timeout=PATIENCE)
        place.order("op", "pause", "t1:s1")
        wait_until(lambda: subscriber.is_paused("t1:s1"))
        assert not subscriber.is_paused("t2:s1")
        subscriber.await_op("t1:s1", timeout=0.05)
        assert subscriber.is_paused("t1:s1"), "it still waits"

        waiting = threading.Thread(target=subscriber.await_op, args=("t1:s1",), daemon=True)
        waiting.start()
        place.order("op", "resume", "t1:s1")
        waiting.join(PATIENCE)
        assert not waiting.is_alive(), "it goes on"
        assert not subscriber.is_paused("t1:s1")

        place.order("op", "terminate", "t1:s1", "--reason", "enough")
        wait_until(lambda: subscriber.is_terminated("t1:s1"))
        with pytest.raises(OpTerminatedError):
            subscriber.await_op("t1:s1", timeout=PATIENCE)
        assert subscriber.stream_alive()


def test_what_is_paused_for_the_subscriber_is_paused_for_the_client(place, registered):
    client, registrar = registered
    assert place.ask(client, "web_search")["decision"] == "allow"
    with subscribed(place, registrar.agent, registrar.token) as subscriber:
        for operation in (f"agent:{registrar.agent.agent_id}", "*"):
            place.order("op", "pause", operation)
            wait_until(lambda: subscriber.is_paused(operation))
            assert place.ask(client, "web_search")["decision"] == "deny"
            place.order("op", "resume", operation)
            wait_until(lambda: not subscriber.is_paused(operation))
            assert place.ask(client, "web_search")["decision"] == "allow"


def test_nobody_subscribes_without_the_agents_own_token(place, registered):
    _, registrar = registered
    for token in ("", "wrong"):
        with subscribed(place, registrar.agent, token) as subscriber:
            wait_until(lambda: not subscriber.stream_alive())
            place.order("op", "pause", "t1:s1")
            assert not subscriber.is_paused("t1:s1")
            place.order("op", "resume", "t1:s1")


class Tap:
    """Between the client and the runtime: it passes all bytes on, and keeps the frames that the runtime sends."""

    def __init__(self, runtime, path):
        self.runtime, self.path, self.frames = runtime, str(path), []
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen()

    def start(self):
        client, _ = self.listener.accept()
        runtime = socket.socket(socket.AF_UNIX)
        runtime.connect(self.runtime)
        threading.Thread(target=self._pass_on, args=(client, runtime, lambda _: None), daemon=True).start()
        self.pending = b""
        threading.Thread(target=self._pass_on, args=(runtime, client, self._keep), daemon=True).start()

    @staticmethod
    def _pass_on(source, target, keep):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
                keep(data)
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_WR)

    def _keep(self, data):
        self.pending += data
        while found := read_varint(self.pending, 1):
            length, at = found
            if len(self.pending) < at + length:
                return
            self.frames.append((self.pending[0], self.pending[at:at + length]))
            self.pending = self.pending[at + length:]

    def pushes(self):
        return [payload for tag, payload in list(self.frames) if tag == APPROVAL_DECISION]

    def close(self):
        self.listener.close()


# The tag of a decided approval, which the runtime sends without being asked.
APPROVAL_DECISION = 2


def approver(place):
    """Names somebody who may approve; gives a function that decides in their name."""
    token = "alice-has-a-token-of-more-than-32-bytes"
    (place.folder / "alice.token").touch(0o600)
    (place.folder / "alice.token").write_text(token)
    (place.folder / "proctor.toml").write_text('[[token]]\nname = "alice"\nfile = "alice.token"\napprover = true\n')

    def decide(approval, approved):
        reason = b"a test"
        request = field(1, approval.encode()) + bytes([2 << 3, 1 if approved else 2]) + field(4, reason)
        with grpc.insecure_channel(place.endpoint.removeprefix("http://")) as channel:
            call = channel.unary_unary("/assembly.approval.v1.ApprovalService/Decide")
            response = call(request, metadata=[("x-aa-credential-token", token)], timeout=PATIENCE)
        assert response == b"\x08\x01", response

    return decide


def field(number, value):
    """A field of a message that holds few bytes."""
    return bytes([number << 3 | 2, len(value)]) + value


def test_decided_approvals_are_pushed_and_disturb_no_answer(place):
    decide = approver(place)
    place.start_gateway()
    registrar = Registrar(place.endpoint)
    tap = Tap(place.socket, place.folder / "tap.sock")
    client = place.client(socket=tap.path)
    place.register(client, registrar.endpoint)
    registrar.close()
    # The runtime hears of approvals with a token of its own; the client waits for it meanwhile.
    place.start_runtime({"AA_GATEWAY_CREDENTIAL_TOKEN": registrar.token, "AA_GATEWAY_AGENT_ID": registrar.agent.agent_id})
    tap.start()
    for number, (approved, decision) in enumerate([(True, "allow"), (False, "deny")] * 3):
        arguments = json.dumps({"number": number})
        assert place.ask(client, "deploy", arguments)["decision"] == "pending"
        waiting = [json.loads(line) for line in place.order("approve", "list", "--json").splitlines()]
        assert len(waiting) == 1, waiting
        decide(waiting[0]["approval_id"], approved)
        wait_until(lambda: len(tap.pushes()) > number)
        push = tap.pushes()[number]
        assert first_field(push).decode() == waiting[0]["approval_id"]
        assert (b"\x10\x01" in push) == approved, push
        # The client is not asked about the push, and goes on: every answer is that to its own question.
        answers = [place.ask(client, tool)["decision"] for tool in ("web_search", "shell", "web_search", "unknown_tool")]
        assert answers == ["allow", "deny", "allow", "deny"]
        assert place.ask(client, "deploy", arguments)["decision"] == decision
    client.close()
    tap.close()
