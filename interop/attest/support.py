"""What the tests share: the engine to be judged, engines of their own environment, and a trace with every kind of step."""

import asyncio
import contextlib
import importlib.metadata
import os
import pathlib
import sys

import pytest
from attest import Step, Trace, TraceMetadata
from attest._proto.codec import ProtocolError
from attest.client import AttestClient
from attest.engine_manager import EngineManager

VERSION = importlib.metadata.version("attest-ai")
NEWEST = VERSION == "0.9.0"

ENGINE = os.environ["ATTEST_ENGINE_PATH"]

# Longer than anything here takes, so that a hang is a failure with a name.
PATIENCE = 60


def run(coroutine):
    """Runs a coroutine to its end, or fails the test when it hangs."""
    return asyncio.run(asyncio.wait_for(coroutine, PATIENCE))


@contextlib.asynccontextmanager
async def engine(path=ENGINE, log_level="warn", reader=False):
    """An engine that the official manager starts and stops, and the official client to it."""
    manager = EngineManager(engine_path=str(path), log_level=log_level)
    client = AttestClient(manager)
    client.started = await manager.start()
    try:
        if reader:
            client.start_reader()
        yield client
        if NEWEST:
            assert client.protocol_diagnostics() == ()
        if reader:
            await client.stop_reader()
    finally:
        await manager.stop()


async def refused(call):
    """The error that a call is refused with."""
    with pytest.raises(ProtocolError) as caught:
        await call
    return caught.value


async def drift(client, assertion_id, window_size=50):
    """The drift report of an assertion; the older SDK has no method for it."""
    if NEWEST:
        report = await client.query_drift(assertion_id, window_size)
        return report.to_dict()
    params = {"assertion_id": assertion_id, "window_size": window_size}
    return (await client.send_request("query_drift", params))["report"]


def taped_engine(folder: pathlib.Path):
    """A program that is the engine, with everything written down in a folder: `asked`, `answered` and the exit `code`."""
    tape = pathlib.Path(__file__).with_name("tape.py")
    program = folder / "taped-engine"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{tape}" "{ENGINE}" "{folder}" "$@"\n')
    program.chmod(0o755)
    return program


def small_trace(trace_id="small", message="all is well", **more):
    """A trace that only says something."""
    return Trace(trace_id=trace_id, output={"message": message}, **more)


def sub_agent(agent_id, tool, begin, end, said, told=None):
    """A step that calls another agent, with the trace of that agent."""
    trace = Trace(
        trace_id=f"trace-{agent_id}",
        agent_id=agent_id,
        parent_trace_id="trace-desk",
        input=told,
        output=said,
        steps=[
            Step(type="tool_call", name=tool, args={}, result={}, started_at_ms=begin, ended_at_ms=end),
        ],
        metadata=TraceMetadata(total_tokens=100, cost_usd=0.01, latency_ms=end - begin),
    )
    return Step(type="agent_call", name=agent_id, sub_trace=trace)


def desk_trace():
    """A help desk that asks two other agents, one after the other, while a third looks on."""
    return Trace(
        trace_id="trace-desk",
        agent_id="desk",
        input={"question": "Where is my money?"},
        steps=[
            Step(type="llm_call", name="plan", args={"model": "some"}, result={"completion": "look it up"}),
            Step(
                type="tool_call",
                name="find_order",
                args={"order": "A-17"},
                result={"state": "delivered", "amount": 49.99},
            ),
            sub_agent("finder", "search", 1_000, 1_100, {"fact": "the parcel came back", "days": 3}),
            sub_agent("watcher", "watch", 1_050, 1_400, {"seen": True}),
            sub_agent(
                "writer",
                "draft",
                1_200,
                1_300,
                {"letter": "Dear Zoë, the parcel came back"},
                {"notes": "finder says: the parcel came back, wait 3 days"},
            ),
            Step(type="tool_call", name="refund", args={"order": "A-17"}, result={"refund": "R-100"}),
        ],
        output={
            "message": "Your refund R-100 of 49.99 EUR is on its way, Zoë.",
            "structured": {"refund": "R-100", "amount": 49.99},
        },
        metadata=TraceMetadata(total_tokens=300, cost_usd=0.02, latency_ms=900),
    )
