"""What users of the protocol's first engine live with, and must not live with here."""

import pytest
from attest import Assertion, Step, Trace, expect
from support import NEWEST, desk_trace, engine, refused, run, small_trace

BOTH = pytest.mark.parametrize("reader", [False, True], ids=["sequential", "reader"])


def dynamic(assertion_id, *words):
    spec = {"target": "output.message", "check": "keyword_all", "values": words, "threshold": "dynamic"}
    return Assertion(assertion_id, "content", spec)


@BOTH
def test_thirty_failing_runs_send_nothing_unasked(reader):
    async def body():
        async with engine(reader=reader) as client:
            for number in range(30):
                asked = [dynamic("first", "ill"), dynamic("second", "worse"), dynamic("third", "worst")]
                found = await client.evaluate_batch(small_trace(f"{number}"), asked)
                assert [one.status for one in found.results] == ["hard_fail"] * 3, number

    run(body())


def test_what_always_fails_never_becomes_a_pass():
    async def body():
        async with engine() as client:
            statuses, sources = set(), set()
            for number in range(30):
                (found,) = (await client.evaluate_batch(small_trace(f"{number}"), [dynamic("bad", "ill")])).results
                statuses.add(found.status)
                sources.add(getattr(found, "threshold_source", None))
            assert statuses == {"hard_fail"}
            assert sources == ({"dynamic_unavailable", "dynamic"} if NEWEST else {None})

    run(body())


def test_a_dynamic_threshold_follows_earlier_runs():
    async def body():
        async with engine() as client:
            # Three of four words: between the usual thresholds.
            asked = dynamic("middling", "all", "is", "well", "today")
            statuses = []
            for number in range(12):
                (found,) = (await client.evaluate_batch(small_trace(f"{number}"), [asked])).results
                statuses.append((found.status, found.score))
            assert statuses == [("soft_fail", 0.75)] * 10 + [("pass", 0.75)] * 2
            (found,) = (await client.evaluate_batch(small_trace("worse", "all is"), [asked])).results
            assert (found.status, found.score) == ("hard_fail", 0.5)

    run(body())


def test_dynamic_thresholds_of_judge_and_vectors_have_a_history_though_ids_are_random(double):
    double.script(double.verdict(0.7, when="is it polite?", times=0))

    async def body():
        async with engine() as client:
            statuses = []
            for number in range(12):
                trace = small_trace(f"{number}", f"good morning, number {number}")
                chain = expect(trace).passes_judge("is it polite?", threshold="dynamic")
                chain = chain.output_similar_to(f"good morning, number {number}", threshold="dynamic")
                judged, similar = (await client.evaluate_batch(trace, chain.assertions)).results
                assert similar.status == "pass", similar
                statuses.append((judged.status, judged.score))
                if NEWEST:
                    assert judged.threshold_source == ("dynamic_unavailable" if number < 10 else "dynamic")
            assert statuses == [("soft_fail", 0.7)] * 10 + [("pass", 0.7)] * 2

    run(body())


def test_plugins_and_tools_of_the_whole_tree_work_beside_a_judge(double):
    async def body():
        async with engine() as client:
            chain = expect(desk_trace()).plugin("p").all_tools_called(["search", "refund"]).passes_judge("is it polite?")
            found = (await client.evaluate_batch(chain.trace, chain.assertions)).results
            assert [one.status for one in found] == ["soft_fail", "pass", "pass"]

    run(body())


def test_more_than_a_readers_buffer_is_shortened():
    async def body():
        async with engine() as client:
            trace = small_trace(message="ö" * 20_000)
            chain = expect(trace)
            for number in range(300):
                chain = chain.output_contains(f"{number}" * 500)
            found = (await client.evaluate_batch(trace, chain.assertions)).results
            assert len(found) == 300 and {one.status for one in found} == {"hard_fail"}
            assert all(one.explanation for one in found)

    run(body())


def test_letters_are_found_inside_objects():
    async def body():
        async with engine() as client:
            trace = Trace(trace_id="t", output={"message": {"städte": ["Köln", "東京"], "numbers": [1, 2]}})
            chain = expect(trace)
            for word in ("köln", "東京", "städte", "[1,2]"):
                chain = chain.output_contains(word)
            found = (await client.evaluate_batch(trace, chain.assertions)).results
            assert [one.status for one in found] == ["pass"] * 4
            chain = expect(trace).output_not_contains("köln").output_forbids(["東京"])
            found = (await client.evaluate_batch(trace, chain.assertions)).results
            assert [one.status for one in found] == ["hard_fail"] * 2

    run(body())


def test_data_flows_whatever_the_spacing():
    async def body():
        async with engine() as client:
            first = Trace(
                trace_id="1",
                agent_id="first",
                output={"list": [1, {"a": "ö"}], "number": 12, "text": "grüße", "gone": "never said"},
            )
            second = Trace(
                trace_id="2",
                agent_id="second",
                input={"got": {"list": [1, {"a": "ö"}]}, "said": "grüße an alle", "number": 12},
                output={"message": "x"},
            )
            steps = [Step(type="agent_call", name=one.agent_id, sub_trace=one) for one in (first, second)]
            trace = Trace(trace_id="0", agent_id="root", output={"message": "x"}, steps=steps)
            chain = expect(trace)
            for field in ("list", "number", "text", "gone"):
                chain = chain.cross_agent_data_flow("first", "second", field)
            found = (await client.evaluate_batch(trace, chain.assertions)).results
            assert [one.status for one in found] == ["pass", "pass", "pass", "hard_fail"]

    run(body())


@pytest.mark.parametrize("schema", [None, 7, "text", [], True, False, {"type": "nonsense"}, {"$ref": "file:///etc/passwd"}])
def test_odd_schemas_do_not_end_the_engine(schema):
    async def body():
        async with engine() as client:
            trace = desk_trace()
            asked = Assertion("a", "schema", {"target": "output.structured", "schema": schema})
            (found,) = (await client.evaluate_batch(trace, [asked])).results
            assert found.status == ("pass" if schema is True else "hard_fail")
            assert (await client.evaluate_batch(trace, expect(trace).cost_under(1).assertions)).results[0].status == "pass"

    run(body())


def test_a_line_that_is_too_long_does_not_end_the_engine():
    async def body():
        async with engine() as client:
            error = await refused(client.evaluate_batch(small_trace(message="x" * 11_000_000), []))
            assert error.code in (-32700, -32600, 1001), error.code
            trace = small_trace()
            assert (await client.evaluate_batch(trace, expect(trace).output_contains("well").assertions)).results

    run(body())
