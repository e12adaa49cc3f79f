"""The document's HTTP agent, in our words: a typed request, unnamed blocks, the response as the last of them. Prints its port."""

import json
import socket

import uvicorn
from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from pydantic import BaseModel

import work


class AgentRequest(BaseModel):
    version: str
    task_id: str
    task: dict
    constraints: dict | None = None
    context: dict | None = None
    metadata: dict | None = None


app = FastAPI()


@app.post("/execute")
async def execute(request: AgentRequest):
    *_, response = work.steps(request.model_dump())
    return response


@app.post("/execute/stream")
async def execute_stream(request: AgentRequest):
    async def blocks():
        for message in work.steps(request.model_dump()):
            yield f"data: {json.dumps(message)}\n\n"

    return StreamingResponse(blocks(), media_type="text/event-stream")


listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])
