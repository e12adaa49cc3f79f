"""An agent on FastAPI and uvicorn. Prints its port."""

import json
import socket

import uvicorn
from fastapi import Body, FastAPI
from fastapi.responses import StreamingResponse

import work

app = FastAPI()


@app.post("/execute")
async def execute(request: dict = Body()):
    return list(work.steps(request))[-1]


@app.post("/execute/stream")
async def execute_stream(request: dict = Body()):
    async def blocks():
        for message in work.steps(request):
            name = "event" if "event_type" in message else "response"
            yield f"event: {name}\ndata: {json.dumps(message, ensure_ascii=False)}\n\n"

    return StreamingResponse(blocks(), media_type="text/event-stream")


listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])
