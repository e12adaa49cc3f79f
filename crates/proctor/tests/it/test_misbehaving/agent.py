"""An agent on standard streams that misbehaves in the way that the id of its test names."""

import hashlib
import json
import os
import signal
import sys
import time

MIB = 1 << 20


def write(data, stream=1):
    """Writes all bytes to a descriptor."""
    view = memoryview(data if isinstance(data, bytes) else data.encode())
    while view:
        view = view[os.write(stream, view) :]


def event(sequence=0, kind="progress", **members):
    message = {
        "version": "1.0",
        "task_id": TASK,
        "timestamp": "2026-01-01T00:00:00Z",
        "sequence": sequence,
        "event_type": kind,
        "payload": {"message": "working"},
    }
    message.update(members)
    return json.dumps(message) + "\n"


def response(**members):
    message = {"version": "1.0", "task_id": TASK, "status": "completed", "artifacts": [], "metrics": {}}
    message.update(members)
    return json.dumps(message) + "\n"


def file(content="hello", **claims):
    return {"type": "file", "path": "out.txt", "content": content, **claims}


def detach():
    """A process in a session of its own whose parent is gone; true in that process."""
    if os.fork():
        return False
    os.setsid()
    if os.fork():
        os._exit(0)
    return True


def forever():
    while True:
        time.sleep(1000)


def flood(data, stream):
    while True:
        write(data, stream)


def crash_before_the_response():
    write("out of luck\n", 2)
    sys.exit(3)


def crash_after_the_response():
    write(response())
    write("too late\n", 2)
    sys.exit(4)


def killed_by_a_signal():
    write(response())
    os.kill(os.getpid(), signal.SIGSEGV)


def silent_exit():
    write("nothing to say\n", 2)


def two_responses():
    write(response() + response())


def foreign_id():
    write(response(task_id="another"))


def foreign_event():
    write(event(task_id="another"), 2)
    write(response())


def bad_json():
    write('{"version": "1.0", "task_id": oops}\n')


def half_a_message():
    write(response()[:40])


def invalid_utf8():
    write(response(error="X").encode().replace(b"X", b"\xff\xfe"))


def not_a_number():
    write(response(metrics={"cost_usd": float("nan")}))


def infinity():
    write(response(metrics={"cost_usd": float("-inf")}))


def duplicate_members():
    write(response().replace('"status"', '"status": "failed", "status"'))


def negative_metrics():
    write(response(metrics={"total_tokens": -5}))


def deep_response():
    write(response(extra=0).replace('"extra": 0', '"extra": ' + "[" * 200 + "]" * 200))


def deeper_than_any_stack():
    write(response(extra=0).replace('"extra": 0', '"extra": ' + "[" * 100_000 + "]" * 100_000))


def deep_event():
    write(event(payload=0).replace('"payload": 0', '"payload": {"a": ' + "[" * 200 + "]" * 200 + "}"), 2)
    write(response())


def long_line_on_stdout():
    write(response(error="x" * (17 * MIB)))


def long_line_on_stderr():
    write("x" * (17 * MIB) + "\n", 2)
    write(response())


def too_many_events():
    line = event().encode()
    for _ in range(1010):
        write(line * 100, 2)
    write(response())


def endless_events():
    flood(event().encode() * 100, 2)


def endless_log():
    flood(b"still here\n" * 1000, 2)


def endless_output():
    flood(b"x" * 65536, 1)


def endless_lines_of_output():
    flood(b"x\n" * 30000, 1)


def ignores_term():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    write("deaf\n", 2)
    forever()


def children_ignore_term():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for _ in range(5):
        if os.fork() == 0:
            forever()
    forever()


def daemon_that_holds_the_pipes():
    if detach():
        forever()
    write(response())


def daemon_that_closes_the_pipes():
    if detach():
        for descriptor in range(3):
            os.close(descriptor)
        forever()
    write(response())


def daemon_that_floods():
    if detach():
        flood(b"daemon\n" * 1000, 2)
    write(response())


def daemon_that_answers_twice():
    if detach():
        time.sleep(0.1)
        write(response())
        os._exit(0)
    write(response())


def lives_on_after_closing_its_outputs():
    write(response())
    os.close(1)
    os.close(2)
    forever()


def never_reads_its_input():
    forever()


def closes_its_input():
    os.close(0)
    time.sleep(0.1)


def megabytes_on_stderr_before_reading():
    write(response())


def megabytes_on_stdout_before_stderr_closes():
    write(b"x" * (3 * MIB) + b"\n")
    write(response())


def trickle():
    while True:
        write("x")
        time.sleep(0.02)


def trickle_of_a_response():
    for byte in response():
        write(byte)
        time.sleep(0.001)


def path_that_leaves():
    write(response(artifacts=[{"type": "file", "path": "../../secret", "content": "x"}]))


def absolute_path():
    write(response(artifacts=[{"type": "file", "path": "/etc/passwd"}]))


def wrong_hash():
    write(response(artifacts=[file(content_hash="sha256:" + "0" * 64)]))


def wrong_size():
    write(response(artifacts=[file(size_bytes=99)]))


def wrong_hash_of_a_file():
    with open("out.txt", "w") as out:
        out.write("hello")
    claim = "sha256:" + hashlib.sha256(b"other").hexdigest()
    write(response(artifacts=[{"type": "file", "path": "out.txt", "content_hash": claim}]))


def link_that_leaves():
    os.symlink("/etc/passwd", "out.txt")
    write(response(artifacts=[{"type": "file", "path": "out.txt"}]))


def answer_after_the_limit():
    time.sleep(1.5)
    write(response())


def answer_on_stderr():
    write(response(), 2)


def another_version():
    write(response(version="2.0"))


def unknown_status():
    write(response(status="done"))


def no_status():
    write('{"version": "1.0", "task_id": "%s"}\n' % TASK)


def an_array():
    write("[" + response() + "]\n")


def blank_lines():
    write("\n \n\t\n")


def text_instead_of_json():
    write("Here is your answer: 42\n")


def invalid_event():
    write(event(kind="no_such_type"), 2)
    write(response())


def events_out_of_sequence():
    write(event(5) + event(3), 2)
    write(response())


def invalid_event_of_a_strict_test():
    write(event(kind="no_such_type"), 2)
    write(response())


def control_characters():
    write(response(status="failed", error="\x1b[2J\x1b]0;owned\x07 red"))


def says_failed():
    write(response(status="failed", error="no luck", error_code="LLM_ERROR"))


def says_cancelled():
    write(response(status="cancelled"))


def too_many_artifacts():
    write(response(artifacts=[{"type": "structured", "name": "a", "data": {}}] * 1001))


def odd_files():
    os.mkfifo("pipe")
    os.symlink("loop", "loop")
    os.symlink("..", "up")
    deep = "."
    for _ in range(60):
        deep += "/d"
        os.mkdir(deep)
    os.mkdir("closed")
    with open("closed/file", "w") as out:
        out.write("x")
    os.chmod("closed/file", 0)
    os.chmod("closed", 0)
    write(response())


def stops_itself():
    os.kill(os.getpid(), signal.SIGSTOP)


def calm():
    write("calm\n", 2)
    gate = os.path.join(os.path.dirname(os.path.abspath(__file__)), "gate")
    while not os.path.exists(gate):
        time.sleep(0.01)
    write(response())


KIND = globals()[os.environ["KIND"].replace("-", "_")]

if KIND in (never_reads_its_input, closes_its_input):
    KIND()
else:
    if KIND is megabytes_on_stderr_before_reading:
        write(b"noise\n" * MIB, 2)
    TASK = json.loads(sys.stdin.readline())["task_id"]
    KIND()
