"""What people see when they run pytest with the SDK's plugin: a project of its own, in a process of its own."""

import os
import subprocess
import sys

import pytest
from support import ENGINE, NEWEST, PATIENCE

PROJECT = '''
from attest import TraceBuilder, expect, tier


def said():
    trace = TraceBuilder(agent_id="teller").set_input(question="how much?").add_tool_call(name="count", args={"n": 1})
    return trace.set_output(message="it is 12 EUR").set_metadata(cost_usd=0.5, latency_ms=20, total_tokens=7).build()


def test_kept(attest):
    assert attest.evaluate(expect(said()).cost_under(1).output_contains("EUR")).passed


def test_too_dear(attest):
    assert attest.evaluate(expect(said()).cost_under(0.25)).passed


def test_soft(attest):
    result = attest.evaluate(expect(said()).output_contains("dollar", soft=True))
    assert not result.passed and not result.hard_failures


def test_judged(attest):
    assert attest.evaluate(expect(said()).passes_judge("is it polite?")).passed


@tier(3)
def test_of_a_later_tier(attest):
    raise AssertionError("it is not to be run")
'''


@pytest.fixture
def pytest_run(tmp_path):
    """Runs pytest on the project: its exit code and its output."""
    (tmp_path / "test_teller.py").write_text(PROJECT)

    def run(*options, engine=ENGINE, **environment):
        arguments = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:asyncio"]
        done = subprocess.run(
            [*arguments, f"--attest-engine={engine}", "--attest-tier=1", *options, "."],
            cwd=tmp_path,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        return done.returncode, done.stdout

    return run


def test_failures_fail_and_are_explained(pytest_run):
    code, said = pytest_run()
    assert code == 1
    assert "2 failed, 2 passed, 1 deselected" in said, said
    assert "FAILED test_teller.py::test_too_dear" in said
    assert "FAILED test_teller.py::test_judged" in said
    if NEWEST:
        lines = [" ".join(line.split()) for line in said.splitlines()]
        block = lines[next(at for at, line in enumerate(lines) if line.endswith("L2 constraint")) :][:8]
        assert "trace path: metadata.cost_usd" in block
        assert "expected: at most 0.25" in block
        assert "actual: 0.5" in block
        assert any(line.startswith("hint: ") for line in block)
        assert any(line.endswith("L4 content") for line in lines), said
        assert any(line.endswith("L6 llm_judge") for line in lines), said
        assert any(line.startswith("detail: error: ") for line in lines), said
        assert "uncategorized" not in said


def test_diagnostics_on_request(pytest_run):
    if not NEWEST:
        code, _ = pytest_run("--attest-diagnostics")
        assert code == 4, "the older plugin has no such option"
        return
    code, said = pytest_run("--attest-diagnostics", "-k", "soft or dear")
    assert code == 1
    lines = [" ".join(line.split()) for line in said.splitlines()]
    for path, expected, actual in [("metadata.cost_usd", "0.25", "0.5"), ("output.message", "dollar", "it is 12 EUR")]:
        at = lines.index(f"trace path: {path}")
        block = lines[at : at + 4]
        assert any(line.startswith("expected: ") and expected in line for line in block), said
        assert f"actual: {actual}" in block, said


def test_the_cost_report_is_printed(pytest_run):
    code, said = pytest_run("--attest-cost-report", "-k", "kept")
    assert code == 0
    assert "1 passed" in said and "cost" in said.lower()


@pytest.mark.parametrize("level", ["debug", "info", "warn", "error"])
def test_every_log_level_is_taken(pytest_run, level):
    code, said = pytest_run(f"--attest-log-level={level}", "-k", "kept")
    assert code == 0, said


def test_simulation_needs_no_model(pytest_run):
    code, said = pytest_run("-k", "judged", ATTEST_SIMULATION="1")
    assert code == 0, said


def test_without_an_engine_nothing_passes(pytest_run, tmp_path):
    code, said = pytest_run("-k", "kept", engine=tmp_path / "nothing")
    assert code == 1 and "1 error" in said, said
