"""The SDK's client in both of its ways: one request at a time, and many in flight with a reader."""

import asyncio
import json
import os

import pytest
from attest import Assertion, Step, Trace, TraceMetadata, expect
from attest.plugins import PluginResult, execute_plugin_assertion
from support import ENGINE, desk_trace, drift, engine, refused, run, small_trace, taped_engine

BOTH = pytest.mark.parametrize("reader", [False, True], ids=["sequential", "reader"])


def contains(assertion_id, word, **more):
    return Assertion(assertion_id, "content", {"target": "output.message", "check": "contains", "value": word, **more})


def keywords(assertion_id, *words):
    """An assertion whose score is the share of the words that are there."""
    return Assertion(assertion_id, "content", {"target": "output.message", "check": "keyword_all", "values": words})


@BOTH
def test_the_handshake(reader):
    async def body():
        async with engine(reader=reader) as client:
            said = client.started
            assert said.compatible and said.missing == []
            assert said.protocol_version == 1 and said.engine_version == "0.9.0" and said.encoding == "json"
            assert {"layers_1_4", "trace_tree", "plugins", "soft_failures", "multi_agent"} <= set(said.capabilities)
            assert not {"llm_judge", "embedding", "layers_5_6"} & set(said.capabilities), "there are no keys"
            assert said.max_concurrent_requests >= 1 and said.max_steps_per_trace == 10_000

    run(body())


@BOTH
def test_ids_costs_and_times_come_back(reader):
    async def body():
        async with engine(reader=reader) as client:
            asked = contains("same name", "well")
            asked.request_id = "request 7"
            twice = [asked, contains("same name", "ill"), contains("", "well")]
            found = await client.evaluate_batch(small_trace(), twice)
            assert [(one.assertion_id, one.status) for one in found.results] == [
                ("same name", "pass"),
                ("same name", "hard_fail"),
                ("", "pass"),
            ]
            assert [one.request_id for one in found.results] == ["request 7", None, None]
            assert found.total_cost == 0 and found.total_duration_ms >= 0
            assert (await client.evaluate_batch(small_trace(), [])).results == []

    run(body())


def test_two_hundred_requests_in_flight():
    async def body():
        async with engine(reader=True) as client:

            async def one(number):
                trace = small_trace(f"trace {number}", f"this is {number}.")
                asked = [contains(f"{number}/{place}", f"is {place}.") for place in (number, number + 1)]
                found = await client.evaluate_batch(trace, asked)
                assert [(one.assertion_id, one.status) for one in found.results] == [
                    (f"{number}/{number}", "pass"),
                    (f"{number}/{number + 1}", "hard_fail"),
                ]

            await asyncio.gather(*(one(number) for number in range(200)))

    run(body())


def test_errors_among_requests_in_flight_reach_their_callers():
    async def body():
        async with engine(reader=True) as client:

            async def one(number):
                if number % 3 == 0:
                    error = await refused(client.send_request("no_such_method", {}))
                    assert error.code == -32601
                else:
                    found = await client.evaluate_batch(small_trace(f"{number}"), [contains(f"{number}", "well")])
                    assert found.results[0].assertion_id == f"{number}"

            await asyncio.gather(*(one(number) for number in range(150)))

    run(body())


@BOTH
def test_errors_have_codes_and_data(reader):
    async def body():
        async with engine(reader=reader) as client:
            asked = [contains("a", "well")]
            good = small_trace().to_dict()
            step = {"type": "guess", "name": "x"}
            cases = [
                ("no_such_method", {}, -32601, "METHOD_NOT_FOUND"),
                ("initialize", {"protocol_version": 1}, 3003, "SESSION_ERROR"),
                ("evaluate_batch", {"trace": {"trace_id": "x", "output": {}}}, 1001, "INVALID_TRACE"),
                ("evaluate_batch", {"trace": {"trace_id": " ", "output": {"a": 1}}}, 1001, "INVALID_TRACE"),
                ("evaluate_batch", {"trace": {"trace_id": "x"}}, 1001, "INVALID_TRACE"),
                ("evaluate_batch", {"trace": {**good, "schema_version": 2}}, 1001, "INVALID_TRACE"),
                ("evaluate_batch", {"trace": {**good, "steps": [step]}}, 1001, "INVALID_TRACE"),
                ("evaluate_batch", {"trace": "text"}, 1001, "INVALID_TRACE"),
                ("evaluate_batch", {"trace": good, "assertions": [{"assertion_id": "ä" * 129}]}, 1002, "ASSERTION_ERROR"),
                ("submit_plugin_result", {"trace_id": 7}, 1002, "ASSERTION_ERROR"),
                ("query_drift", {"assertion_id": []}, 1002, "ASSERTION_ERROR"),
                ("generate_user_message", {}, -32601, "METHOD_NOT_FOUND"),
            ]
            for method, params, code, error_type in cases:
                error = await refused(client.send_request(method, params))
                assert (error.code, error.data.error_type) == (code, error_type), (method, params)
                assert error.data.retryable is False
                assert error.data.detail and error.error_message
                # The session goes on.
                assert (await client.evaluate_batch(small_trace(), asked)).results[0].status == "pass"

    run(body())


@BOTH
def test_plugin_results(reader):
    class Polite:
        name = "polite"
        plugin_type = "content"

        def execute(self, trace, spec):
            return PluginResult(status="fail", score=0.25, explanation="no please")

    async def body():
        async with engine(reader=reader) as client:
            trace = desk_trace()
            chain = expect(trace).plugin("polite").plugin("other")
            first, second = (one.assertion_id for one in chain.assertions)
            found = await client.evaluate_batch(trace, chain.assertions)
            assert [one.status for one in found.results] == ["soft_fail", "soft_fail"]

            submit = client.submit_plugin_result
            assert await submit(trace.trace_id, "polite", first, "pass", 1.0, "it is") is True
            assert await submit(trace.trace_id, "polite", first, "pass", 1.0, "again") is False, "nobody waits for it"
            assert await submit(trace.trace_id, "polite", "never asked", "pass", 1.0, "it is") is False
            assert await submit("no such trace", "other", second, "pass", 1.0, "it is") is False
            error = await refused(submit(trace.trace_id, "other", second, "splendid", 1.0, "it is"))
            assert (error.code, error.data.error_type) == (1002, "ASSERTION_ERROR")
            error = await refused(submit(trace.trace_id, "other", second, "pass", 7.0, "it is"))
            assert error.code == 1002

            done = await execute_plugin_assertion(Polite(), trace, {}, client, trace.trace_id, second)
            assert done.status == "fail"
            assert (await drift(client, first))["latest_score"] == 1
            assert (await drift(client, second))["latest_score"] == 0.25

    run(body())


@BOTH
def test_drift(reader):
    async def body():
        async with engine(reader=reader) as client:
            assert (await drift(client, "nobody"))["status"] == "no_data"
            scores = [1, 1, 1, 1, 1, 1, 1, 1, 1, 0.5]
            for number, score in enumerate(scores):
                message = "one two" if score == 1 else "one"
                await client.evaluate_batch(small_trace(f"{number}", message), [keywords("kept", "one", "two")])
            report = await drift(client, "kept")
            assert report["assertion_id"] == "kept" and report["count"] == 10
            assert report["mean"] == pytest.approx(0.95) and report["stddev"] == pytest.approx(0.15)
            assert report["latest_score"] == 0.5 and report["deviation"] == pytest.approx(-0.45)
            assert report["status"] == "drift_detected"
            await client.evaluate_batch(small_trace("last", "two one"), [keywords("kept", "one", "two")])
            assert (await drift(client, "kept"))["status"] == "ok"
            assert (await drift(client, "kept", 1))["latest_score"] == 1

    run(body())


def test_trees():
    async def body():
        async with engine() as client:
            said = await client.send_request("validate_trace_tree", {"trace": desk_trace().to_dict()})
            assert said["valid"] is True and "errors" not in said
            assert said["agent_ids"] == ["desk", "finder", "watcher", "writer"]
            assert (said["depth"], said["agent_count"], said["aggregate_tokens"]) == (1, 4, 600)
            assert said["aggregate_cost_usd"] == pytest.approx(0.05) and said["aggregate_latency_ms"] == 1_450

            broken = desk_trace()
            broken.steps.append(Step(type="agent_call", name="lost"))
            said = await client.send_request("validate_trace_tree", {"trace": broken.to_dict()})
            assert said["valid"] is False and len(said["errors"]) == 1 and "sub_trace" in said["errors"][0]

    run(body())


@BOTH
def test_five_hundred_results_in_one_batch(reader):
    async def body():
        async with engine(reader=reader) as client:
            asked = [contains(f"assertion {number}", "well" if number % 2 else "ill") for number in range(500)]
            found = (await client.evaluate_batch(small_trace(), asked)).results
            assert [one.assertion_id for one in found] == [one.assertion_id for one in asked]
            assert [one.status for one in found] == ["hard_fail", "pass"] * 250

            error = await refused(client.evaluate_batch(small_trace(), asked * 20))
            assert error.code == 1002 and "batches" in error.data.detail
            assert (await client.evaluate_batch(small_trace(), asked[:1])).results

    run(body())


@BOTH
def test_long_texts_in_answers_never_break_the_client(reader):
    async def body():
        async with engine(reader=reader) as client:
            words = ["w" * 3_000 + str(number) for number in range(100)]
            trace = small_trace(message="x" * 500_000)
            schema = {"enum": ["e" * 100_000, "f" * 100_000]}
            chain = expect(trace).output_has_all_keywords(words).output_contains("y" * 200_000).output_forbids(["x"])
            chain = chain.output_field_matches_schema("message", schema).required_tools(words)
            found = (await client.evaluate_batch(trace, chain.assertions)).results
            assert {one.status for one in found} == {"hard_fail"} and len(found) == 5
            error = await refused(client.send_request("evaluate_batch", {"trace": {"trace_id": "t", "steps": "s" * 300_000}}))
            assert error.code == 1001
            error = await refused(client.send_request("m" * 200_000, {}))
            assert error.code == -32601
            assert (await drift(client, "a" * 256))["status"] == "no_data"

    run(body())


@BOTH
def test_texts_of_every_kind(reader):
    async def body():
        async with engine(reader=reader) as client:
            said = "Zoë 日本 🎉 \u2028 <&> \x00 \\ \" tab\t"
            trace = small_trace("träce", said)
            asked = [contains(piece, piece, case_sensitive=True) for piece in said.split(" ")]
            found = (await client.evaluate_batch(trace, asked)).results
            assert [(one.assertion_id, one.status) for one in found] == [(piece, "pass") for piece in said.split(" ")]

            # Half of a surrogate pair is no character, but the SDK writes it.
            odd = Trace(trace_id="odd", output={"message": "before \ud800 after", "more": {"\udfff": "x\udc00"}})
            asked = [contains("a", "before"), contains("b", "after"), contains("c", "nowhere")]
            asked.append(contains("d\ud83d", "before \ufffd after"))
            found = (await client.evaluate_batch(odd, asked)).results
            assert [one.status for one in found] == ["pass", "pass", "hard_fail", "pass"]

    run(body())


def test_nobody_reads_the_log():
    async def body():
        async with engine(log_level="debug") as client:
            asked = [contains("a", "well"), contains("b", "ill")]
            for number in range(3_000):
                found = await client.evaluate_batch(small_trace(f"trace {number}"), asked)
                assert [one.status for one in found.results] == ["pass", "hard_fail"]

    run(body())


def test_four_engines_share_a_cache():
    rounds = 50

    async def one(name):
        async with engine() as client:
            for number in range(rounds):
                found = await client.evaluate_batch(small_trace(f"{name}/{number}"), [contains("shared", "well")])
                assert found.results[0].status == "pass"

    async def body():
        await asyncio.gather(*(one(name) for name in range(4)))
        async with engine() as client:
            report = await drift(client, "shared", 1_000)
            assert report["count"] == 4 * rounds and report["mean"] == pytest.approx(1) and report["status"] == "ok"

    run(body())


def test_a_home_that_cannot_be_written(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.delenv("ATTEST_CACHE_DIR")
    monkeypatch.setenv("HOME", str(tmp_path / "file" / "home"))

    async def body():
        async with engine() as client:
            for threshold in (0.8, "dynamic"):
                found = await client.evaluate_batch(small_trace(), [contains("a", "well", threshold=threshold)])
                assert found.results[0].status == "pass"
            params = {"assertion_id": "a"}
            error = await refused(client.send_request("query_drift", params))
            assert (error.code, error.data.error_type) == (3001, "ENGINE_ERROR")

    run(body())


def test_the_engine_ends_well(tmp_path):
    async def body():
        async with engine(taped_engine(tmp_path)) as client:
            await client.evaluate_batch(small_trace(), [contains("a", "well")])

    run(body())
    assert (tmp_path / "code").read_text() == "0"


def test_the_last_words_count_everything():
    async def body():
        async with engine() as client:
            trace = desk_trace()
            chain = expect(trace).cost_under(1).plugin("p")
            await client.evaluate_batch(trace, chain.assertions)
            await client.evaluate_batch(small_trace(), [contains("a", "well"), contains("b", "ill")])
            await refused(client.evaluate_batch(Trace(trace_id="bad", output={}), [contains("c", "well")]))
            assert await client.submit_plugin_result(trace.trace_id, "p", chain.assertions[1].assertion_id, "pass", 1.0, "ok")
            assert not await client.submit_plugin_result("t", "p", "nobody", "pass", 1.0, "ok")
            said = await client.send_request("shutdown", {})
            assert said == {"sessions_completed": 1, "assertions_evaluated": 5}

    run(body())


def test_every_line_answers_one_request(tmp_path):
    """What the client cannot see: each request has one line, none is longer than a reader's buffer, none comes unasked."""

    async def body():
        async with engine(taped_engine(tmp_path)) as client:
            chain = expect(desk_trace()).cost_under(0).passes_judge("x", threshold="dynamic").plugin("p")
            for _ in range(12):
                await client.evaluate_batch(chain.trace, chain.assertions)
                await client.evaluate_batch(small_trace(), [contains("fails", "ill", threshold="dynamic")])
            await refused(client.send_request("nothing", {}))

    run(body())
    requests = [json.loads(line)["id"] for line in (tmp_path / "asked").read_text().splitlines()]
    lines = (tmp_path / "answered").read_text().splitlines()
    assert [json.loads(line)["id"] for line in lines] == requests
    assert max(len(line) for line in lines) < 60 * 1024


def test_numbers_need_not_be_whole():
    async def body():
        async with engine() as client:
            trace = small_trace(metadata=TraceMetadata(total_tokens=7.0, latency_ms=100.5, cost_usd=1))
            trace.steps = [Step(type="tool_call", name="t", started_at_ms=1.5, ended_at_ms=2.75)]
            found = (await client.evaluate_batch(trace, expect(trace).latency_under(100).tokens_under(7).assertions)).results
            assert [one.status for one in found] == ["hard_fail", "pass"]
            found = (await client.evaluate_batch(trace, expect(trace).latency_under(101).assertions)).results
            assert found[0].status == "pass"

    run(body())


def test_the_engine_is_the_one_under_test():
    assert os.path.basename(ENGINE) == "attest-engine" and os.access(ENGINE, os.X_OK)
