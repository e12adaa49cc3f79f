"""An agent behind HTTP and WebSocket that misbehaves in the way that the id of its test names.

Prints its port. Everything is written by hand, byte for byte, because libraries do not let one misbehave.
"""

import asyncio
import base64
import hashlib
import json
import socket
import struct
import sys

MIB = 1 << 20
OPEN = 0
GO = asyncio.Event()


class Run:
    """One connection, after the request has been read."""

    def __init__(self, reader, writer, path, head, request):
        self.reader, self.writer, self.path, self.head = reader, writer, path, head
        self.task = request["task_id"] if request else None
        self.test = request["metadata"]["test_id"] if request else None

    async def send(self, data):
        self.writer.write(data if isinstance(data, bytes) else data.encode())
        await self.writer.drain()

    def response(self, **members):
        message = {"version": "1.0", "task_id": self.task, "status": "completed", "artifacts": [], "metrics": {}}
        message.update(members)
        return json.dumps(message)

    def event(self, sequence=0, **members):
        message = {
            "version": "1.0",
            "task_id": self.task,
            "timestamp": "2026-01-01T00:00:00Z",
            "sequence": sequence,
            "event_type": "progress",
            "payload": {"message": "working"},
        }
        message.update(members)
        return json.dumps(message)

    async def reply(self, body, status="200 OK", kind="application/json", extra=""):
        body = body if isinstance(body, bytes) else body.encode()
        head = f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n{extra}connection: close\r\n\r\n"
        await self.send(head.encode() + body)

    async def head_of_stream(self, kind="text/event-stream"):
        await self.send(f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n")

    async def block(self, data, name=""):
        await self.send((f"event: {name}\n" if name else "") + f"data: {data}\n\n")

    def reset(self):
        raw = self.writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()

    async def until_closed(self):
        while await self.reader.read(4096):
            pass

    async def frame(self, data, code=1, final=True, mask=False, length=None):
        data = data if isinstance(data, bytes) else data.encode()
        size = len(data) if length is None else length
        head = bytes([(0x80 if final else 0) | code])
        flag = 0x80 if mask else 0
        if size < 126:
            head += bytes([flag | size])
        elif size < 65536:
            head += bytes([flag | 126]) + struct.pack(">H", size)
        else:
            head += bytes([flag | 127]) + struct.pack(">Q", size)
        await self.send(head + (b"\0\0\0\0" if mask else b"") + data)

    async def close(self, code, reason=""):
        await self.frame(struct.pack(">H", code) + reason.encode(), 8)
        await self.until_closed()


# HTTP, one body.


async def status_500(run):
    await run.reply('{"detail": "model is on fire"}', "500 Internal Server Error")


async def status_404(run):
    await run.reply("not here", "404 Not Found", "text/plain")


async def status_401(run):
    await run.reply("who are you", "401 Unauthorized", "text/plain")


async def status_500_without_end(run):
    await run.send("HTTP/1.1 500 No\r\n\r\nstill failing")
    await run.until_closed()


async def redirect(run):
    await run.reply("", "307 Temporary Redirect", extra="location: http://example.invalid/steal\r\n")


async def always_415(run):
    await run.reply("never", "415 Unsupported Media Type")


async def first_415(run):
    if "content-type: application/json" in run.head:
        return await run.reply("vendor only", "415 Unsupported Media Type")
    await run.reply(run.response(), kind="application/vnd.atp.v1+json")


async def another_major_version(run):
    await run.reply(run.response(), kind="application/vnd.atp.v2+json")


async def reset_before_the_reply(run):
    run.reset()


async def reset_within_the_body(run):
    await run.send("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 5000\r\n\r\n" + run.response())
    run.reset()


async def short_body(run):
    await run.send("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 5000\r\n\r\n" + run.response())


async def garbage(run):
    await run.send("SSH-2.0-OpenSSH_9.9\r\n")


async def endless_headers(run):
    await run.send("HTTP/1.1 200 OK\r\n")
    while True:
        await run.send("x-more: " + "y" * 1000 + "\r\n")


async def trickle_of_a_head(run):
    for byte in "HTTP/1.1 200 OK\r\nx: " + "y" * 100_000:
        await run.send(byte)
        await asyncio.sleep(0.02)


async def trickle_of_a_body(run):
    await run.head_of_stream("application/json")
    while True:
        await run.send(" ")
        await asyncio.sleep(0.02)


async def silence(run):
    await run.until_closed()


async def huge_body(run):
    await run.head_of_stream("application/json")
    while True:
        await run.send(b"x" * 65536)


async def deep_body(run):
    deep = "[" * 100_000 + "]" * 100_000
    await run.reply(run.response(extra=0).replace('"extra": 0', f'"extra": {deep}'))


async def bad_json(run):
    await run.reply('{"version": "1.0", ')


async def empty_body(run):
    await run.reply("")


async def status_204(run):
    await run.send("HTTP/1.1 204 No Content\r\n\r\n")


async def web_page(run):
    await run.reply("<html>It works!</html>", kind="text/html")


async def foreign_id(run):
    await run.reply(run.response(task_id="another"))


async def not_a_number(run):
    await run.reply(run.response(metrics={"cost_usd": float("nan")}))


async def negative_metrics(run):
    await run.reply(run.response(metrics={"cost_usd": -1}))


async def duplicate_members(run):
    await run.reply(run.response().replace('"status"', '"status": "failed", "status"'))


async def invalid_utf8(run):
    await run.reply(run.response(error="X").encode().replace(b"X", b"\xff"))


async def two_documents(run):
    await run.reply(run.response() + "\n" + run.response())


async def unasked_compression(run):
    import gzip

    await run.reply(gzip.compress(run.response().encode()), extra="content-encoding: gzip\r\n")


async def path_that_leaves(run):
    await run.reply(run.response(artifacts=[{"type": "file", "path": "../../secret", "content": "x"}]))


async def wrong_hash(run):
    artifact = {"type": "file", "path": "a.txt", "content": "x", "content_hash": "sha256:" + "0" * 64}
    await run.reply(run.response(artifacts=[artifact]))



# HTTP, event stream.


async def stream_cut_in_an_event(run):
    await run.send("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
    text = f"data: {run.event()}\n\nevent: response\ndata: {run.response()[:30]}"
    await run.send(f"{len(text):x}\r\n{text}\r\n")


async def stream_that_ends_in_an_event(run):
    await run.head_of_stream()
    await run.send(f"event: response\ndata: {run.response()[:30]}")


async def stream_without_a_response(run):
    await run.head_of_stream()
    await run.block(run.event())


async def stream_with_two_responses(run):
    await run.head_of_stream()
    await run.block(run.response(), "response")
    await run.block(run.response(), "response")


async def stream_with_a_foreign_event(run):
    await run.head_of_stream()
    await run.block(run.event(task_id="another"), "event")
    await run.block(run.response(), "response")


async def stream_with_another_name(run):
    await run.head_of_stream()
    await run.block(run.event(), "message")
    await run.block(run.response(), "done")


async def stream_of_bad_json(run):
    await run.head_of_stream()
    await run.block("{oops", "response")


async def stream_of_events(run):
    await run.head_of_stream()
    block = f"data: {run.event()}\n\n" * 100
    while True:
        await run.send(block)


async def stream_of_comments(run):
    await run.head_of_stream()
    while True:
        await run.send(":\n\n")
        await asyncio.sleep(0.01)


async def stream_of_many_comments(run):
    await run.head_of_stream()
    while True:
        await run.send(": nothing\n\n" * 5000)


async def stream_with_a_long_line(run):
    await run.head_of_stream()
    await run.send("data: ")
    while True:
        await run.send(b"x" * 65536)


async def stream_in_single_bytes(run):
    await run.head_of_stream()
    for byte in f"data: {run.event()}\r\n\r\nevent: response\rdata: {run.response()}\r\r":
        await run.send(byte)


async def stream_reset_after_the_response(run):
    await run.head_of_stream()
    await run.block(run.response(), "response")
    await asyncio.sleep(0.05)
    run.reset()


async def stream_left_open(run):
    await run.head_of_stream()
    await run.block(run.response(), "response")
    await run.until_closed()


async def stream_with_events_after_the_response(run):
    await run.head_of_stream()
    await run.block(run.response(), "response")
    block = f"data: {run.event()}\n\n" * 100
    while True:
        await run.send(block)


async def stream_of_invalid_utf8(run):
    await run.head_of_stream()
    await run.send(b"data: " + run.response(error="X").encode().replace(b"X", b"\xff") + b"\n\n")


# WebSocket.


async def socket_closed_in_good_order(run):
    await run.close(1000)


async def socket_closed_with_an_error(run):
    await run.close(1011, "model is on fire")


async def socket_reset(run):
    run.reset()


async def socket_dropped(run):
    await run.frame(run.event())


async def socket_half_a_frame(run):
    await run.frame(run.response()[:20], length=500)


async def socket_half_a_message(run):
    await run.frame(run.response()[:20], final=False)


async def socket_masked_frame(run):
    await run.frame(run.response(), mask=True)


async def socket_binary_response(run):
    await run.frame(run.response(), 2)
    await run.until_closed()


async def socket_two_responses(run):
    await run.frame(run.response())
    await run.frame(run.response())
    await run.until_closed()


async def socket_foreign_id(run):
    await run.frame(run.response(task_id="another"))
    await run.until_closed()


async def socket_invalid_utf8(run):
    await run.frame(b'{"status": "\xff"}')
    await run.until_closed()


async def socket_bad_json(run):
    await run.frame("{oops")
    await run.close(1000)


async def socket_neither_event_nor_response(run):
    await run.frame('{"hello": 1}')
    await run.close(1000)


async def socket_long_message(run):
    await run.frame(b"x" * 65536, length=1 << 40)
    await run.until_closed()


async def socket_long_fragments(run):
    await run.frame(b"x" * MIB, final=False)
    while True:
        await run.frame(b"x" * MIB, 0, final=False)


async def socket_pings(run):
    while True:
        await run.frame("", 9)
        await asyncio.sleep(0.005)


async def socket_flood_of_events(run):
    text = run.event().encode()
    frame = b"\x81\x7e" + struct.pack(">H", len(text)) + text
    while True:
        await run.send(frame * 100)


async def socket_silence(run):
    await run.until_closed()


async def socket_left_open(run):
    await run.frame(run.response())
    await run.until_closed()


async def socket_reserved_bits(run):
    await run.send(b"\xf1\x02{}")
    await run.until_closed()


async def socket_deep_message(run):
    await run.frame(run.event(payload=0).replace('"payload": 0', '"payload": ' + "[" * 300 + "]" * 300))
    await run.close(1000)


async def calm(run):
    await GO.wait()
    GO.clear()
    if run.path == "/socket":
        await run.frame(run.event())
        await run.frame(run.response())
        return await run.until_closed()
    await run.head_of_stream()
    await run.block(run.event(), "event")
    await run.block(run.response(), "response")


# The server.


async def read_message(reader):
    """The first message of a WebSocket client, in one frame."""
    head = await reader.readexactly(2)
    size = head[1] & 127
    if size == 126:
        size = struct.unpack(">H", await reader.readexactly(2))[0]
    elif size == 127:
        size = struct.unpack(">Q", await reader.readexactly(8))[0]
    mask = await reader.readexactly(4)
    data = await reader.readexactly(size)
    return bytes(byte ^ mask[place % 4] for place, byte in enumerate(data))


async def serve(reader, writer):
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    path = head.split(" ")[1]
    fields = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
    fields = {name.lower(): value for name, value in fields.items()}
    if path == "/open":
        body = str(OPEN - 1)
        writer.write(f"HTTP/1.1 200 OK\r\ncontent-length: {len(body)}\r\n\r\n{body}".encode())
        return await writer.drain()
    if path == "/go":
        GO.set()
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
        return await writer.drain()
    if path == "/refused":
        return await Run(reader, writer, path, head, None).reply("no sockets here", "403 Forbidden")
    if path == "/moved":
        return await Run(reader, writer, path, head, None).reply("", "301 Moved", extra="location: /socket\r\n")
    if path == "/socket":
        accept = fields["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        accept = base64.b64encode(hashlib.sha1(accept.encode()).digest()).decode()
        upgrade = "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\n"
        writer.write(f"{upgrade}sec-websocket-accept: {accept}\r\n\r\n".encode())
        request = json.loads(await read_message(reader))
    else:
        request = json.loads(await reader.readexactly(int(fields["content-length"])))
    run = Run(reader, writer, path, head.lower(), request)
    await globals()[run.test.replace("-", "_")](run)


async def connection(reader, writer):
    global OPEN
    OPEN += 1
    try:
        await serve(reader, writer)
    except (ConnectionError, asyncio.IncompleteReadError):
        pass
    finally:
        OPEN -= 1
        writer.close()


async def main():
    server = await asyncio.start_server(connection, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    # Ends with whoever started it.
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    server.close()
    import os

    os._exit(0)


asyncio.run(main())
