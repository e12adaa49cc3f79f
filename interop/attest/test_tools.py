"""The SDK's other tools around an engine: its ways to make traces, continuous evaluation, its cache commands, calibration."""

import asyncio
import json
import os
import subprocess
import sys

import pytest
from attest import Agent, Assertion, ContinuousEvalRunner, ManualAdapter, TraceBuilder, agent, delegate, expect
from attest.simulation import repeat
from support import ENGINE, NEWEST, PATIENCE, drift, engine, run, small_trace


def command(*arguments):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "attest", *arguments],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env=os.environ,
    )
    return done.returncode, done.stdout


def test_an_agent_that_is_called(attest):
    def teller(builder, question):
        builder.add_tool_call("count", args={"of": question}, result={"n": 12})
        builder.set_metadata(total_tokens=5, cost_usd=0.001, latency_ms=3)
        return {"message": f"there are 12 {question}"}

    result = Agent("teller", fn=teller).run(question="apples")
    chain = expect(result).output_contains("12 apples").required_tools(["count"]).tokens_under(5).agent_called("teller")
    assert attest.evaluate(chain).passed


def test_an_agent_that_returns_no_object(attest):
    @agent("plain")
    def plain(builder, **_):
        return "forty-two"

    result = plain(question="?")
    assert attest.evaluate(expect(result).content_contains("output.result", "forty")).passed
    (found,) = attest.evaluate(expect(result).output_contains("forty")).failed_assertions
    assert found.status == "hard_fail" and "output.message" in found.explanation


def test_agents_that_delegate(attest):
    def desk(builder, question):
        with delegate("finder") as finder:
            finder.set_input(question=question)
            finder.add_tool_call("search", args={"q": question}, started_at_ms=10, ended_at_ms=20)
            finder.set_output(fact="grüne Äpfel")
        with delegate("writer") as writer:
            writer.set_input(notes="the fact is: grüne Äpfel")
            writer.add_tool_call("draft", started_at_ms=30, ended_at_ms=45)
            writer.set_output(letter="done")
        return {"message": "done"}

    chain = expect(Agent("desk", fn=desk).run(question="apples"))
    chain = chain.follows_transitions([("desk", "finder"), ("desk", "writer")]).delegation_depth(1)
    chain = chain.cross_agent_data_flow("finder", "writer", "fact").agent_output_contains("finder", "Äpfel")
    # The steps do not name their agent; the trace that they stand in does.
    chain = chain.agent_ordered_before("finder", "writer").ordered_agents([["finder"], ["writer"]])
    chain = chain.agent_wall_time_under("writer", 16).all_tools_called(["search", "draft"])
    result = attest.evaluate(chain)
    assert result.passed, result.failed_assertions


def test_traces_made_by_hand(attest):
    def build(builder: TraceBuilder):
        builder.set_input(question="?").add_retrieval("documents", args={"k": 2}).add_llm_call("model")
        builder.set_output_dict({"message": "done", "structured": {"ok": True}}).set_trace_id("by hand")

    trace = ManualAdapter(agent_id="hand").capture(build)
    chain = expect(trace).tools_called_exactly(["documents", "model"]).tool_call_count("eq", 0)
    assert attest.evaluate(chain.output_matches_schema({"properties": {"ok": {"const": True}}})).passed


def test_many_runs_of_one_agent(attest):
    @repeat(5)
    def often():
        return attest.evaluate(expect(small_trace()).output_contains("well"))

    assert [result.passed for result in often().results] == [True] * 5


@pytest.mark.parametrize("reader", [False, True], ids=["sequential", "reader"])
def test_continuous_evaluation(reader):
    async def body():
        asked = [Assertion("live", "content", {"target": "output.message", "check": "contains", "value": "well"})]
        async with engine(reader=reader) as client:
            runner = ContinuousEvalRunner(client, asked, sample_rate=1.0)
            await runner.start()
            for number in range(40):
                await runner.submit(small_trace(f"{number}"))
            # Whoever evaluates in the background says nothing when it is done; the history does.
            if reader:
                while (await drift(client, "live"))["count"] < 40:
                    await asyncio.sleep(0)
            await runner.stop()
            if not reader:
                found = await runner.evaluate_trace(small_trace("by itself"))
                assert [one.status for one in found.results] == ["pass"]

    run(body())


def test_the_cache_commands(own_home):
    async def body():
        async with engine() as client:

            async def once(name):
                spec = {"field": "steps.length", "operator": "eq", "value": 0}
                await client.evaluate_batch(small_trace(name), [Assertion("kept", "constraint", spec)])
                return (await drift(client, "kept"))["count"]

            assert await once("first") == 1
            code, said = command("cache", "stats")
            stats = json.loads(said)
            assert code == 0 and stats["exists"] is True and stats["file_size"] > 0
            assert stats["path"] == str(own_home / "cache" / "attest.db")
            code, _ = command("cache", "clear")
            assert code == 0
            # The file of a running engine is gone; the engine goes on and makes another.
            for number in range(3):
                assert await once(f"later {number}") >= 1
        assert json.loads(command("cache", "stats")[1])["exists"] is True

    run(body())


def lines_of(*labels):
    names = ("input", "human_label", "judge_score")
    return "\n".join(json.dumps(dict(zip(names, label, strict=True))) for label in labels)


LABELS = {
    "labels.csv": "input,human_label,judge_score\na,1,0.9\nb,0,0.2\n# nobody\nc,1,0.4\nd,0,0.6\ne,1,\nf,0.5,0.5\n",
    "plain.csv": "a,0.8,0.7\nb,0.1,0.3\nc,0.9,0.7\n",
    "labels.jsonl": lines_of(*((f"text {number}", number % 3 / 2, number % 5 / 4) for number in range(60))),
    "agreed.jsonl": lines_of(*[("x", 1, 0.9)] * 3),
}


if NEWEST:

    @pytest.mark.parametrize("name", LABELS)
    @pytest.mark.parametrize("threshold", ["0.5", "0.35"])
    def test_calibration_gives_the_same_numbers(tmp_path, name, threshold):
        path = tmp_path / name
        path.write_text(LABELS[name])
        arguments = ["calibrate", "--labels", str(path), "--rubric", "default", "--threshold", threshold]
        # The engine knows the versions of its rubrics; the SDK must be told.
        code, said = command(*arguments, "--rubric-version", "v1")
        ours = subprocess.run([ENGINE, *arguments], capture_output=True, text=True, timeout=PATIENCE)
        assert (code, ours.returncode) == (0, 0), ours.stderr
        assert json.loads(ours.stdout) == json.loads(said)
        assert ours.stdout == said
