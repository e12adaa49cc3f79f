"""Every method of the SDK's `expect()`, once kept and once broken, through the SDK's own pytest fixture."""

import dataclasses

import pytest
from attest import ExpectChain, Step, Trace, expect
from support import NEWEST, desk_trace, small_trace

# Method, arguments that the desk's trace keeps, arguments that it breaks, and the score of the broken ones.
CASES = [
    (
        "output_matches_schema",
        [{"type": "object", "required": ["refund"], "properties": {"amount": {"type": "number"}}}],
        [{"type": "object", "required": ["nothing"]}],
        0,
    ),
    ("output_field_matches_schema", ["message", {"type": "string"}], ["message", {"type": "integer"}], 0),
    (
        "tool_args_match_schema",
        ["find_order", {"properties": {"order": {"pattern": "^A-"}}}],
        ["find_order", {"properties": {"order": {"pattern": "^B-"}}}],
        0,
    ),
    (
        "tool_result_matches_schema",
        ["find_order", {"properties": {"amount": {"maximum": 50}}}],
        ["find_order", {"properties": {"amount": {"maximum": 40}}}],
        0,
    ),
    ("cost_under", [0.02], [0.019], 0),
    ("latency_under", [900], [899], 0),
    ("tokens_under", [300], [299], 0),
    ("tokens_between", [300, 301], [301, 400], 0),
    ("step_count", ["eq", 6], ["lt", 6], 0),
    ("tool_call_count", ["gte", 2], ["gt", 2], 0),
    ("constraint", ["steps.length", "lte", 6], ["steps.length", "gt", 6], 0),
    ("tools_called_in_order", [["find_order", "refund"]], [["refund", "find_order"]], 0),
    ("tools_called_exactly", [["plan", "find_order"]], [["find_order", "refund"]], 0),
    ("required_tools", [["refund", "plan"]], [["refund", "escalate"]], 0),
    ("forbidden_tools", [["escalate"]], [["escalate", "refund"]], 0),
    ("output_contains", ["REFUND"], ["REFUND", {"case_sensitive": True}], 0),
    ("output_not_contains", ["sorry"], ["zoë"], 0),
    ("output_matches_regex", [r"R-\d{3}\b"], [r"^R-\d{3}$"], 0),
    ("output_has_all_keywords", [["refund", "EUR"]], [["refund", "dollar", "EUR", "cent"]], 0.5),
    ("output_has_any_keyword", [["dollar", "EUR"]], [["dollar", "cent"]], 0),
    ("output_forbids", [["dollar"]], [["dollar", "eur"]], 0),
    ("content_contains", ["output.structured", "R-100"], ["output.structured", "R-101"], 0),
    ("agent_called", ["writer"], ["lawyer"], 0),
    ("delegation_depth", [1], None, 0),
    ("agent_output_contains", ["writer", "Zoë"], ["finder", "Zoë"], 0),
    ("cross_agent_data_flow", ["finder", "writer", "fact"], ["watcher", "writer", "seen"], 0),
    (
        "follows_transitions",
        [[("desk", "finder"), ("desk", "watcher"), ("desk", "writer")]],
        [[("desk", "finder"), ("desk", "writer")]],
        0,
    ),
    ("aggregate_cost_under", [0.051], [0.049], 0),
    ("aggregate_tokens_under", [600], [599], 0),
    ("aggregate_latency_under", [1_450], [1_449], 0),
    ("agent_ordered_before", ["finder", "writer"], ["finder", "watcher"], 0),
    ("agents_overlap", ["finder", "watcher"], ["finder", "writer"], 0),
    ("agent_wall_time_under", ["finder", 101], ["finder", 100], 0),
    ("ordered_agents", [[["finder"], ["writer"]]], [[["finder"], ["watcher"]]], 0),
    ("all_tools_called", [["search", "draft", "refund"]], [["search", "shred"]], 0),
    ("no_tool_loops", ["refund"], None, 0),
    ("no_duplicate_tools", [], None, 0),
]

# These need another trace to be broken.
OTHER_TRACES = {
    "delegation_depth": ([1], lambda: deep_trace()),
    "no_tool_loops": (["again", 2], lambda: looping_trace()),
    "no_duplicate_tools": ([], lambda: looping_trace()),
}

# These are tested elsewhere in this file: without a model or a plugin they cannot be kept.
OTHERS = {"output_similar_to", "passes_judge", "plugin"}

# What is never softened has no `soft` in the SDK either.
NEVER_SOFT = {
    "output_matches_schema",
    "output_field_matches_schema",
    "tool_args_match_schema",
    "tool_result_matches_schema",
    "output_forbids",
}

LAYERS = {"schema": 1, "constraint": 2, "trace": 3, "content": 4, "embedding": 5, "llm_judge": 6, "trace_tree": 7}


def looping_trace():
    steps = [Step(type="tool_call", name="again") for _ in range(3)]
    return Trace(trace_id="looping", output={"message": "x"}, steps=steps)


def deep_trace():
    inner = Trace(trace_id="inner", agent_id="inner", output={"message": "x"})
    middle = Trace(
        trace_id="middle",
        agent_id="middle",
        output={"message": "x"},
        steps=[Step(type="agent_call", name="inner", sub_trace=inner)],
    )
    steps = [Step(type="agent_call", name="middle", sub_trace=middle)]
    return Trace(trace_id="outer", agent_id="outer", output={"message": "x"}, steps=steps)


def chain_of(trace, method, arguments, **more):
    arguments = list(arguments)
    if arguments and isinstance(arguments[-1], dict) and set(arguments[-1]) == {"case_sensitive"}:
        more |= arguments.pop()
    return getattr(expect(trace), method)(*arguments, **more)


def broken(method, fails, **more):
    if fails is not None:
        return chain_of(desk_trace(), method, fails, **more)
    arguments, trace = OTHER_TRACES[method]
    return chain_of(trace(), method, arguments, **more)


def test_every_method_of_the_sdk_is_here():
    methods = {name for name in vars(ExpectChain) if not name.startswith("_")} - {"assertions", "trace"}
    assert methods == {case[0] for case in CASES} | OTHERS


@pytest.mark.parametrize("method, keeps", [(case[0], case[1]) for case in CASES])
def test_kept(attest, method, keeps):
    result = attest.evaluate(chain_of(desk_trace(), method, keeps))
    assert result.passed and result.pass_count == 1, result.assertion_results
    (found,) = result.assertion_results
    assert (found.status, found.score) == ("pass", 1)
    assert result.failed_assertions == []


@pytest.mark.parametrize("method, fails, score", [(case[0], case[2], case[3]) for case in CASES])
def test_broken(attest, method, fails, score):
    chain = broken(method, fails)
    result = attest.evaluate(chain)
    assert not result.passed and result.fail_count == 1, result.assertion_results
    (found,) = result.failed_assertions
    assert (found.status, found.score) == ("hard_fail", score)
    assert found.assertion_id == chain.assertions[0].assertion_id
    assert found.explanation and not found.explanation.startswith("error:"), found.explanation
    assert result.hard_failures == [found] and result.soft_failures == []
    if NEWEST:
        kind = chain.assertions[0].type
        assert (found.type, found.layer) == (kind, LAYERS[kind])
        assert found.expected and found.actual and found.suggested_action


@pytest.mark.parametrize(
    "method, fails, score", [(case[0], case[2], case[3]) for case in CASES if case[0] not in NEVER_SOFT]
)
def test_broken_softly(attest, method, fails, score):
    result = attest.evaluate(broken(method, fails, soft=True))
    assert not result.passed
    (found,) = result.soft_failures
    assert (found.status, found.score) == ("soft_fail", score)
    assert result.hard_failures == []


def test_bounds_of_a_free_constraint(attest):
    def status(**bounds):
        chain = expect(desk_trace()).constraint("metadata.cost_usd", "between", **bounds)
        return attest.evaluate(chain).assertion_results[0].status

    assert status(min=0.02, max=0.02) == "pass"
    assert status(min=0.03, max=0.04) == "hard_fail"
    assert status(min=0.0) == "hard_fail"


def test_a_long_chain_has_a_result_for_every_link(attest):
    chain = expect(desk_trace()).cost_under(1).output_contains("refund").agent_called("lawyer")
    chain = chain.required_tools(["refund"]).output_contains("dollar", soft=True)
    result = attest.evaluate(chain)
    statuses = {found.assertion_id: found.status for found in result.assertion_results}
    assert [statuses[one.assertion_id] for one in chain.assertions] == [
        "pass",
        "pass",
        "hard_fail",
        "pass",
        "soft_fail",
    ]
    assert (result.pass_count, result.fail_count) == (3, 2)
    assert len(result.hard_failures) == len(result.soft_failures) == 1


def test_without_a_key_models_are_errors_and_never_passes(attest):
    chain = expect(desk_trace()).cost_under(1).output_similar_to("refund").passes_judge("is it polite?")
    result = attest.evaluate(chain)
    assert not result.passed
    by_id = {found.assertion_id: found for found in result.assertion_results}
    cost, similar, judged = (by_id[one.assertion_id] for one in chain.assertions)
    assert cost.status == "pass"
    for found in (similar, judged):
        assert (found.status, found.score) == ("hard_fail", 0)
        assert found.explanation.startswith("error:"), found.explanation


def test_soft_does_not_hide_that_there_is_no_model(attest):
    chain = expect(desk_trace()).output_similar_to("refund", soft=True).passes_judge("polite?", soft=True)
    assert {found.status for found in attest.evaluate(chain).assertion_results} == {"hard_fail"}


def test_a_plugin_is_waited_for_and_stops_nothing(attest):
    chain = expect(desk_trace()).plugin("house-rules", {"level": 3}).passes_judge("is it polite?")
    plugin, judged = attest.evaluate(chain).assertion_results
    assert plugin.status == "soft_fail" and "submit_plugin_result" in plugin.explanation
    assert judged.explanation.startswith("error:"), "it was run, and there is no model"


def test_a_hard_failure_says_that_models_were_not_asked(attest):
    chain = expect(desk_trace()).passes_judge("is it polite?").output_contains("dollar")
    (only,) = attest.evaluate(chain).assertion_results
    assert only.assertion_id == chain.assertions[1].assertion_id
    assert "not run" in only.explanation


def test_what_cannot_be_checked_is_hard_and_says_why(attest):
    chain = expect(small_trace()).output_matches_regex("(", soft=True)
    chain = chain.content_contains("output.nowhere", "x", soft=True).cost_under(1, soft=True)
    chain = chain.step_count("about", 3, soft=True)
    result = attest.evaluate(chain)
    assert {(found.status, found.score) for found in result.assertion_results} == {("hard_fail", 0)}
    why = {found.assertion_id: found.explanation for found in result.assertion_results}
    words = ["error: the pattern", "output.nowhere", "metadata.cost_usd", "error: "]
    for assertion, word in zip(chain.assertions, words, strict=True):
        assert word in why[assertion.assertion_id]


def test_results_can_be_evaluated_again(attest):
    first = attest.evaluate(expect(desk_trace()).cost_under(1))
    second = attest.evaluate(expect(first).agent_called("writer"))
    assert first.passed and second.passed
    assert second.trace_tree().depth == 1
    assert dataclasses.is_dataclass(second)


def test_a_budget_of_the_fixture_counts_the_engines_costs(attest):
    result = attest.evaluate(expect(desk_trace()).cost_under(1), budget=0.0)
    assert result.passed and result.total_cost == 0
