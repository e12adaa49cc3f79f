"""An agent on websockets. Prints its port."""

import asyncio
import json

import websockets

import work


async def execute(connection):
    request = json.loads(await connection.recv())
    for message in work.steps(request):
        await connection.send(json.dumps(message, ensure_ascii=False))


async def main():
    async with websockets.serve(execute, "127.0.0.1", 0) as server:
        print(server.sockets[0].getsockname()[1], flush=True)
        await server.serve_forever()


asyncio.run(main())
