"""How long the official client waits for a batch of four assertions, one batch after the other."""

import asyncio
import os
import statistics
import time

from attest import Trace, TraceMetadata, expect
from attest.client import AttestClient
from attest.engine_manager import EngineManager

WARM, ROUNDS = 50, 500


async def main():
    manager = EngineManager(engine_path=os.environ["ATTEST_ENGINE_PATH"])
    await manager.start()
    client = AttestClient(manager)
    trace = Trace(
        trace_id="timed",
        output={"message": "Your refund R-100 is on its way.", "structured": {"refund": "R-100"}},
        metadata=TraceMetadata(total_tokens=300, cost_usd=0.02, latency_ms=900),
    )
    schema = {"type": "object", "required": ["refund"], "properties": {"refund": {"type": "string"}}}
    chain = expect(trace).output_matches_schema(schema).cost_under(1).forbidden_tools(["shred"]).output_contains("refund")
    times = []
    for _ in range(WARM + ROUNDS):
        begin = time.perf_counter()
        found = await client.evaluate_batch(trace, chain.assertions)
        times.append(time.perf_counter() - begin)
        assert [one.status for one in found.results] == ["pass"] * 4
    await manager.stop()
    times = sorted(1e3 * one for one in times[WARM:])
    print(f"a batch of 4 assertions and back: median {statistics.median(times):.3f} ms, p99 {times[ROUNDS * 99 // 100]:.3f} ms")


asyncio.run(main())
