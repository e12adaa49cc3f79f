use super::{TreeReport, Written, inspect_tree};
use crate::Layer;
use crate::check::{Assertion, evaluate, known_members};
use crate::spec;
use crate::tools::Tools;
use crate::trace::Trace;
use crate::verdict::{Status, Verdict};

/// The outermost agent `boss` calls `scout` twice; the second time `scout` calls `diver`.
const TREE: &str = r#"{"trace_id": "t0", "agent_id": "boss", "input": {"task": "find 7"},
    "output": {"message": "f\u00fcr alle", "id": "ORD-4"}, "metadata": {"cost_usd": 0.5, "total_tokens": 100, "latency_ms": 10},
    "steps": [
        {"type": "llm_call", "name": "plan", "started_at_ms": 0, "ended_at_ms": 10},
        {"type": "agent_call", "name": "scout", "started_at_ms": 10, "ended_at_ms": 30, "sub_trace":
            {"trace_id": "t1", "agent_id": "scout", "parent_trace_id": "t0", "input": "look", "output": {"n": 4, "note": "nothing here"},
             "metadata": {"cost_usd": 0.25},
             "steps": [{"type": "tool_call", "name": "map", "started_at_ms": 12, "ended_at_ms": 20},
                       {"type": "tool_call", "name": "walk", "started_at_ms": 20, "ended_at_ms": 28}]}},
        {"type": "agent_call", "name": "scout", "started_at_ms": 30, "ended_at_ms": 60, "sub_trace":
            {"trace_id": "t2", "agent_id": "scout", "input": {"ref": "ORD-45"}, "output": {"n": 12, "empty": "", "list": [1, {"a": 2}]},
             "metadata": {"total_tokens": 11},
             "steps": [{"type": "agent_call", "name": "diver", "agent_id": "helper", "started_at_ms": 41, "ended_at_ms": 50, "sub_trace":
                {"trace_id": "t3", "agent_id": "diver", "parent_trace_id": "t2", "input": {"deep": 12, "from": [ 1, { "a" : 2 } ]},
                 "output": "gr\u00fcn", "steps": [{"type": "tool_call", "name": "dive", "started_at_ms": 42, "ended_at_ms": 48}]}}]}}]}"#;

fn judge(trace: &str, spec: &str) -> Verdict {
    evaluate(
        &Trace::parse(trace).unwrap(),
        &Assertion::new("a", "trace_tree", spec).unwrap(),
        &Tools::default(),
    )
}

#[track_caller]
fn passes(rest: &str) {
    let verdict = judge(TREE, &format!(r#"{{"check": {rest}}}"#));
    assert_eq!(verdict.status, Status::Pass, "{rest}: {verdict:?}");
    assert!(!verdict.explanation.is_empty() && verdict.path.is_empty());
}

#[track_caller]
fn fails(rest: &str, path: &str) {
    fails_on(TREE, rest, path);
}

#[track_caller]
fn fails_on(trace: &str, rest: &str, path: &str) {
    let verdict = judge(trace, &format!(r#"{{"check": {rest}}}"#));
    assert_eq!((verdict.status, verdict.path.as_str()), (Status::HardFail, path), "{rest}: {verdict:?}");
    for text in [&verdict.explanation, &verdict.expected, &verdict.actual, &verdict.suggestion] {
        assert!(!text.is_empty(), "{verdict:?}");
    }
    let softened = judge(trace, &format!(r#"{{"soft": true, "check": {rest}}}"#));
    assert_eq!(softened.status, Status::SoftFail, "{rest}");
    assert_eq!(Verdict { status: Status::HardFail, ..softened }, verdict);
}

#[test]
fn agents_that_act() {
    passes(r#""agent_called", "agent_id": "boss""#);
    passes(r#""agent_called", "agent_id": "diver""#);
    passes(r#""agent_called", "agents": ["diver", "boss", "scout"]"#);
    passes(r#""agent_called", "agent_id": "scout", "agents": ["boss"]"#);
    fails(r#""agent_called", "agent_id": "scout", "agents": ["nobody"]"#, "steps");
    fails(r#""agent_called", "agent_id": "nobody""#, "steps");
    fails(r#""agent_called", "agents": ["boss", "nobody"]"#, "steps");
    // Steps name agents that have no trace of their own.
    fails(r#""agent_called", "agent_id": "helper""#, "steps");
    // A trace below anything but an agent call is not there.
    let hidden = r#"{"steps": [{"type": "tool_call", "name": "x", "sub_trace": {"agent_id": "a"}}]}"#;
    fails_on(hidden, r#""agent_called", "agent_id": "a""#, "steps");
}

#[test]
fn depth() {
    passes(r#""delegation_depth", "max_depth": 2"#);
    fails(r#""delegation_depth", "max_depth": 1"#, "steps[2].sub_trace.steps[0].sub_trace");
    assert_eq!(judge("{}", r#"{"check": "delegation_depth", "max_depth": 1}"#).status, Status::Pass);
}

#[test]
fn outputs() {
    for value in ["nothing HERE", "note", "empty", r#"\"n\":12"#, r#"\"n\": 12"#] {
        passes(&format!(r#""agent_output_contains", "agent_id": "scout", "value": "{value}""#));
    }
    passes(r#""agent_output_contains", "agent_id": "boss", "value": "FÜR""#);
    passes(r#""agent_output_contains", "agent_id": "boss", "value": "f\\u00fcr""#);
    passes(r#""agent_output_contains", "agent_id": "diver", "value": "grün", "case_sensitive": true"#);
    fails(
        r#""agent_output_contains", "agent_id": "diver", "value": "Grün", "case_sensitive": true"#,
        "steps[2].sub_trace.steps[0].sub_trace.output",
    );
    fails(r#""agent_output_contains", "agent_id": "scout", "value": "gold""#, "steps[1].sub_trace.output");
    fails(r#""agent_output_contains", "agent_id": "boss", "value": "gold""#, "output");
    fails(r#""agent_output_contains", "agent_id": "nobody", "value": "gold""#, "steps");
}

#[test]
fn data_that_flows() {
    let flow = |from: &str, to: &str, field: &str| {
        format!(r#""cross_agent_data_flow", "from_agent": "{from}", "to_agent": "{to}", "field": "{field}""#)
    };
    // By the first call of `scout` or by the second: any pair will do.
    passes(&flow("scout", "diver", "n"));
    passes(&flow("scout", "diver", "list"));
    passes(&flow("boss", "scout", "id"));
    fails(&flow("boss", "diver", "id"), "steps[2].sub_trace.steps[0].sub_trace.input");
    fails(&flow("boss", "boss", "id"), "input");
    fails(&flow("scout", "diver", "absent"), "steps");
    fails(&flow("diver", "scout", "n"), "steps");
    fails(&flow("nobody", "diver", "n"), "steps");
    fails(&flow("scout", "nobody", "n"), "steps");
    fails(&flow("scout", "diver", "empty"), "steps[2].sub_trace.output.empty");
    assert!(
        judge(TREE, &format!(r#"{{"check": {}}}"#, flow("scout", "diver", "empty")))
            .explanation
            .contains("empty")
    );

    let pair = |value: &str, input: &str| {
        let trace = format!(
            r#"{{"agent_id": "a", "output": {{"k": {value}}}, "steps": [{{"type": "agent_call", "name": "b", "sub_trace": {{"agent_id": "b", "input": {input}}}}}]}}"#
        );
        judge(&trace, &format!(r#"{{"check": {}}}"#, flow("a", "b", "k"))).status.passed()
    };
    assert!(pair("4", r#"{"n": 4}"#) && !pair("4", r#"{"n": 45}"#) && !pair("4", r#"{"n": 14}"#));
    assert!(pair(r#""ORD-4""#, r#""about ORD-45""#));
    assert!(!pair("null", r#"{"n": null}"#) && !pair(r#""""#, r#"{"n": ""}"#));
    assert!(!pair("4", "null"));
}

#[test]
fn data_flows_into_the_outermost_agent_too() {
    let trace = r#"{"agent_id": "a", "input": "with v", "steps": [
        {"type": "agent_call", "name": "b", "sub_trace": {"agent_id": "b", "output": {"k": "v"}}}]}"#;
    let spec = r#"{"check": "cross_agent_data_flow", "from_agent": "b", "to_agent": "a", "field": "k"}"#;
    assert_eq!(judge(trace, spec).status, Status::Pass);
    assert_eq!(judge(&trace.replace("with v", "without"), spec).status, Status::HardFail);
    // The second agent may come first, and the same trace may be both.
    let spec = r#"{"check": "cross_agent_data_flow", "from_agent": "a", "to_agent": "a", "field": "k"}"#;
    assert_eq!(judge(r#"{"agent_id": "a", "input": [5], "output": {"k": 5}}"#, spec).status, Status::Pass);
    let trace = r#"{"steps": [
        {"type": "agent_call", "name": "b", "sub_trace": {"agent_id": "a", "input": [5], "output": {"k": 6}}},
        {"type": "agent_call", "name": "b", "sub_trace": {"agent_id": "a", "input": [7], "output": {"k": 5}}}]}"#;
    assert_eq!(judge(trace, spec).status, Status::Pass);
}

#[test]
fn calls_that_are_listed() {
    passes(r#""follows_transitions", "transitions": [["boss", "scout"], ["scout", "diver"], ["x", "y"]]"#);
    passes(
        r#""follows_transitions", "transitions": [{"from": "boss", "to": "scout"}, {"from": "scout", "to": "diver"}]"#,
    );
    fails(r#""follows_transitions", "transitions": [["boss", "scout"]]"#, "steps[2].sub_trace.steps[0]");
    fails(r#""follows_transitions", "transitions": [["scout", "diver"]]"#, "steps[1]");
    assert_eq!(
        judge("{}", r#"{"check": "follows_transitions", "transitions": [["a", "b"]]}"#).status,
        Status::Pass
    );
    // A call is told before what lies below it.
    let chain = r#"{"agent_id": "a", "steps": [{"type": "agent_call", "name": "b", "sub_trace": {"agent_id": "b", "steps": [
        {"type": "agent_call", "name": "c", "sub_trace": {"agent_id": "c"}}]}}]}"#;
    fails_on(chain, r#""follows_transitions", "transitions": [["x", "y"]]"#, "steps[0]");
    fails_on(chain, r#""follows_transitions", "transitions": [["a", "b"]]"#, "steps[0].sub_trace.steps[0]");
    // Agents without a name call each other too.
    let nameless = r#"{"steps": [{"type": "agent_call", "name": "x", "sub_trace": {}}]}"#;
    fails_on(nameless, r#""follows_transitions", "transitions": [["a", "b"]]"#, "steps[0]");
    assert_eq!(
        judge(nameless, r#"{"check": "follows_transitions", "transitions": [["", ""]]}"#).status,
        Status::Pass
    );
}

#[test]
fn sums() {
    for (operator, value, holds) in [
        ("lt", "0.75", false),
        ("lt", "0.76", true),
        ("lte", "0.75", true),
        ("lte", "0.7", false),
        ("gt", "0.75", false),
        ("gt", "0.7", true),
        ("gte", "0.75", true),
        ("gte", "1", false),
        ("eq", "0.75", true),
        ("eq", "0.5", false),
    ] {
        for member in ["operator", "op"] {
            let rest = format!(r#""aggregate_cost", "{member}": "{operator}", "value": {value}"#);
            if holds { passes(&rest) } else { fails(&rest, "metadata.cost_usd") }
        }
    }
    passes(r#""aggregate_tokens", "operator": "eq", "value": 111"#);
    passes(r#""aggregate_latency", "operator": "eq", "value": 10"#);
    passes(r#""aggregate_latency", "operator": "between", "min": 10, "max": 10"#);
    fails(r#""aggregate_latency", "operator": "between", "min": 11, "max": 12"#, "metadata.latency_ms");
    passes(r#""aggregate_tokens", "operator": "lte", "op": "gt", "value": 111"#);
}

#[test]
fn a_sum_of_nothing_is_not_nothing() {
    let trace = |outermost: &str, below: &str| {
        format!(
            r#"{{"trace_id": "t0", "metadata": {outermost}, "steps": [{{"type": "tool_call", "name": "x"}},
                {{"type": "agent_call", "name": "a", "sub_trace": {{"trace_id": "t1", "metadata": {below}}}}}]}}"#
        )
    };
    for (check, member) in [
        ("aggregate_cost", "cost_usd"),
        ("aggregate_tokens", "total_tokens"),
        ("aggregate_latency", "latency_ms"),
    ] {
        for bound in [
            r#""operator": "lte", "value": 5"#,
            r#""operator": "eq", "value": 0"#,
            r#""op": "between", "min": 0, "max": 5"#,
        ] {
            let rest = format!(r#""{check}", {bound}"#);
            let said = |number: &str| format!(r#"{{"{member}": {number}, "other": -1}}"#);
            for (outermost, below) in [("null", "null"), ("{}", r#"{"other": 1}"#), (&said("null"), "{}")] {
                let text = trace(outermost, below);
                fails_on(&text, &rest, &format!("metadata.{member}"));
                let verdict = judge(&text, &format!(r#"{{"check": {rest}}}"#));
                assert_eq!(verdict.explanation, format!("no trace says `{member}`"));
            }
            for (outermost, below) in [(said("0"), "{}".to_owned()), ("null".to_owned(), said("-0.0"))] {
                let verdict = judge(&trace(&outermost, &below), &format!(r#"{{"check": {rest}}}"#));
                assert_eq!(verdict.status, Status::Pass, "{rest}: {verdict:?}");
            }
            // What is less than nothing does not pay for the rest.
            fails_on(&trace(&said("-1"), &said("4")), &rest, &format!("metadata.{member}"));
            let text = trace(&said("1"), &said("-1"));
            fails_on(&text, &rest, &format!("steps[1].sub_trace.metadata.{member}"));
            let verdict = judge(&text, &format!(r#"{{"check": {rest}}}"#));
            assert!(verdict.explanation.starts_with("a negative ") && verdict.explanation.contains("`t1`"));
        }
    }
}

#[test]
fn a_step_that_ends_before_it_begins_proves_nothing() {
    let trace = r#"{"steps": [{"type": "tool_call", "name": "x", "agent_id": "a", "started_at_ms": 0, "ended_at_ms": 5},
        {"type": "tool_call", "name": "x", "agent_id": "a", "started_at_ms": 9, "ended_at_ms": 2},
        {"type": "tool_call", "name": "x", "agent_id": "b", "started_at_ms": 6, "ended_at_ms": 7},
        {"type": "tool_call", "name": "x", "agent_id": "c", "started_at_ms": 8, "ended_at_ms": 8}]}"#;
    for rest in [
        r#""agent_ordered_before", "agent_a": "a", "agent_b": "b""#,
        r#""agent_ordered_before", "agent_a": "b", "agent_b": "a""#,
        r#""agents_overlap", "agent_a": "a", "agent_b": "b""#,
        r#""agents_overlap", "agent_a": "b", "agent_b": "a""#,
        r#""agent_wall_time_under", "agent_id": "a", "max_ms": 5"#,
        r#""ordered_agents", "groups": [["a"], ["b"]]"#,
    ] {
        fails_on(trace, rest, "steps[1]");
        let verdict = judge(trace, &format!(r#"{{"check": {rest}}}"#));
        assert_eq!(verdict.explanation, "steps[1], a step of `a`, ended before it began", "{rest}");
    }
    // What takes no time is no harm, and what others do is not looked at.
    let spec = r#"{"check": "agent_ordered_before", "agent_a": "b", "agent_b": "c"}"#;
    assert_eq!(judge(trace, spec).status, Status::Pass);
}

#[test]
fn agents_one_after_the_other() {
    // `scout` acts from 12 to 28; its second trace has no step of its own, since that names another agent.
    passes(r#""agent_ordered_before", "agent_a": "scout", "agent_b": "diver""#);
    passes(r#""agent_ordered_before", "agents": ["scout", "helper"]"#);
    fails(r#""agent_ordered_before", "agent_a": "diver", "agent_b": "scout""#, "steps[1].sub_trace.steps[0]");
    fails(r#""agent_ordered_before", "agent_a": "boss", "agent_b": "scout""#, "steps[1].sub_trace.steps[0]");
    fails(r#""agent_ordered_before", "agent_a": "scout", "agent_b": "boss""#, "steps[0]");
    fails(r#""agent_ordered_before", "agent_a": "nobody", "agent_b": "scout""#, "steps");
    passes(r#""ordered_agents", "groups": [["scout"], ["diver", "helper"]]"#);
    passes(r#""ordered_agents", "agents": ["scout", "diver"]"#);
    fails(r#""ordered_agents", "groups": [["scout"], ["diver", "nobody"]]"#, "steps");
    fails(r#""ordered_agents", "agents": ["scout", "diver", "helper"]"#, "steps[2].sub_trace.steps[0]");
    let touching = r#"{"steps": [{"type": "tool_call", "name": "x", "agent_id": "a", "started_at_ms": 0, "ended_at_ms": 5},
        {"type": "tool_call", "name": "x", "agent_id": "b", "started_at_ms": 5, "ended_at_ms": 9}]}"#;
    fails_on(touching, r#""agent_ordered_before", "agent_a": "a", "agent_b": "b""#, "steps[1]");
    fails_on(touching, r#""agents_overlap", "agent_a": "a", "agent_b": "b""#, "steps[1]");
    fails_on(touching, r#""agents_overlap", "agent_a": "b", "agent_b": "a""#, "steps[1]");
}

#[test]
fn agents_at_the_same_time() {
    passes(r#""agents_overlap", "agent_a": "diver", "agent_b": "helper""#);
    passes(r#""agents_overlap", "agents": ["boss", "scout"]"#);
    fails(
        r#""agents_overlap", "agent_a": "scout", "agent_b": "diver""#,
        "steps[2].sub_trace.steps[0].sub_trace.steps[0]",
    );
    fails(r#""agents_overlap", "agent_a": "scout", "agent_b": "nobody""#, "steps");
}

#[test]
fn time_that_agents_take() {
    // 10 + 20 + 30 for the steps of the outermost trace.
    passes(r#""agent_wall_time_under", "agent_id": "boss", "max_ms": 60.5"#);
    fails(r#""agent_wall_time_under", "agent_id": "boss", "max_ms": 60"#, "steps[2]");
    fails(r#""agent_wall_time_under", "agent_id": "nobody", "max_ms": 60"#, "steps");
}

#[test]
fn an_agent_that_delegates_without_times_is_judged_by_its_other_steps() {
    let call = r#"{"type": "agent_call", "name": "b", "sub_trace": {"agent_id": "b", "steps": [
        {"type": "tool_call", "name": "y", "started_at_ms": 10, "ended_at_ms": 20}]}}"#;
    let trace = format!(
        r#"{{"agent_id": "a", "steps": [{{"type": "tool_call", "name": "x", "started_at_ms": 1, "ended_at_ms": 5}}, {call}]}}"#
    );
    for rest in [
        r#""agent_ordered_before", "agent_a": "a", "agent_b": "b""#,
        r#""agent_wall_time_under", "agent_id": "a", "max_ms": 5"#,
        r#""ordered_agents", "groups": [["a"], ["b"]]"#,
    ] {
        let verdict = judge(&trace, &format!(r#"{{"check": {rest}}}"#));
        assert_eq!(verdict.status, Status::Pass, "{rest}: {verdict:?}");
    }
    // Half a time is a mistake of the recorder, and delegations alone say nothing.
    let half =
        trace.replace(r#""agent_call", "name": "b","#, r#""agent_call", "name": "b", "ended_at_ms": 30,"#);
    fails_on(&half, r#""agent_wall_time_under", "agent_id": "a", "max_ms": 50"#, "steps[1]");
    let only = format!(r#"{{"agent_id": "a", "steps": [{call}]}}"#);
    fails_on(&only, r#""agent_wall_time_under", "agent_id": "a", "max_ms": 50"#, "steps[0]");
    fails_on(&only, r#""agent_ordered_before", "agent_a": "a", "agent_b": "b""#, "steps[0]");
    // Another kind of step without times is missing them.
    let tool = trace.replace("agent_call", "tool_call");
    fails_on(&tool, r#""agent_wall_time_under", "agent_id": "a", "max_ms": 50"#, "steps[1]");
}

#[test]
fn only_the_times_that_are_needed_are_needed() {
    let trace = r#"{"agent_id": "a", "steps": [{"type": "tool_call", "name": "x", "ended_at_ms": 5},
        {"type": "tool_call", "name": "x", "agent_id": "b", "started_at_ms": 6}]}"#;
    assert_eq!(
        judge(trace, r#"{"check": "agent_ordered_before", "agent_a": "a", "agent_b": "b"}"#).status,
        Status::Pass
    );
    fails_on(trace, r#""agent_ordered_before", "agent_a": "b", "agent_b": "a""#, "steps[1]");
    fails_on(trace, r#""agents_overlap", "agent_a": "a", "agent_b": "b""#, "steps[0]");
    fails_on(trace, r#""agent_wall_time_under", "agent_id": "a", "max_ms": 5"#, "steps[0]");
    fails_on(trace, r#""agent_wall_time_under", "agent_id": "b", "max_ms": 5"#, "steps[1]");
    fails_on(trace, r#""ordered_agents", "groups": [["b"], ["a"]]"#, "steps[1]");
}

#[test]
fn tools_of_all_agents() {
    passes(r#""all_tools_called", "tools": ["dive", "plan", "map", "diver"]"#);
    passes(r#""all_tools_called", "tool_names": ["walk"]"#);
    fails(r#""all_tools_called", "tools": ["dive", "fly", "fly"]"#, "steps");
    let aliased = TREE.replace(r#""name": "dive""#, r#""name": "dive", "alias": "fly""#);
    let spec = r#"{"check": "all_tools_called", "tools": ["dive", "fly", "map"]}"#;
    assert_eq!(judge(&aliased, spec).status, Status::Pass);
    let verdict = judge(TREE, r#"{"check": "all_tools_called", "tools": ["dive", "fly", "fly"]}"#);
    assert_eq!(verdict.explanation, "called by no agent: fly");
}

#[test]
fn what_cannot_be_read_is_never_softened() {
    for rest in [
        r#""""#,
        r#""Agent_called", "agent_id": "boss""#,
        "null",
        "1",
        r#""agent_called", "agent_id": 1"#,
        r#""agent_called", "agents": "boss""#,
        r#""delegation_depth", "max_depth": 1.5"#,
        r#""delegation_depth", "max_depth": "1""#,
        r#""agent_output_contains", "agent_id": "boss", "value": 1"#,
        r#""aggregate_cost", "operator": "lte", "value": "1""#,
        r#""follows_transitions", "transitions": [["a"]]"#,
        r#""ordered_agents", "groups": ["a", "b"]"#,
        r#""agent_called", "agent_id": ["boss"]"#,
    ] {
        for soft in ["", r#""soft": true, "#] {
            let verdict = judge(TREE, &format!(r#"{{{soft}"check": {rest}}}"#));
            assert_eq!(verdict.status, Status::Error, "{rest}: {verdict:?}");
            assert!(!verdict.explanation.is_empty());
        }
    }
    assert_eq!(judge(TREE, r#"{"soft": true}"#).status, Status::Error);
    assert_eq!(
        judge(TREE, r#"{"check": "agent_called", "agent_id": "boss", "soft": "yes"}"#).status,
        Status::Error
    );
    assert_eq!(judge(TREE, "null").status, Status::Error);
    assert!(super::compile(None).is_err());
}

#[test]
fn what_a_check_lacks_is_never_softened() {
    for rest in [
        r#""agent_called""#,
        r#""agent_called", "agent_id": """#,
        r#""agent_called", "agents": []"#,
        r#""delegation_depth""#,
        r#""delegation_depth", "max_depth": 0"#,
        r#""delegation_depth", "max_depth": -1"#,
        r#""agent_output_contains", "agent_id": "boss""#,
        r#""agent_output_contains", "agent_id": "boss", "value": """#,
        r#""agent_output_contains", "value": "x""#,
        r#""cross_agent_data_flow", "from_agent": "a", "to_agent": "b""#,
        r#""cross_agent_data_flow", "from_agent": "a", "field": "b""#,
        r#""cross_agent_data_flow", "to_agent": "a", "field": "b""#,
        r#""follows_transitions""#,
        r#""follows_transitions", "transitions": []"#,
        r#""aggregate_cost", "value": 1"#,
        r#""aggregate_cost", "operator": "about", "value": 1"#,
        r#""aggregate_cost", "operator": "between", "min": 1"#,
        r#""agent_ordered_before", "agent_a": "a""#,
        r#""agents_overlap", "agent_b": "a""#,
        r#""agents_overlap", "agents": ["a", "b", "c"]"#,
        r#""agent_wall_time_under", "agent_id": "a""#,
        r#""agent_wall_time_under", "agent_id": "a", "max_ms": 0"#,
        r#""ordered_agents""#,
        r#""ordered_agents", "groups": [["a"]]"#,
        r#""ordered_agents", "groups": [["a"], []]"#,
        r#""ordered_agents", "agents": ["a"]"#,
        r#""all_tools_called""#,
        r#""all_tools_called", "tools": []"#,
        r#""aggregate_cost", "operator": "lte""#,
        r#""aggregate_cost", "operator": "lte", "value": null"#,
        r#""aggregate_cost", "operator": "gte", "value": null, "op": "lte""#,
        r#""aggregate_cost", "operator": "between""#,
        r#""aggregate_cost", "operator": null, "value": 1"#,
        r#""aggregate_cost", "operator": "", "op": "gt", "value": 1"#,
        r#""agent_ordered_before", "agent_a": "a", "agent_b": "a""#,
        r#""agent_ordered_before", "agents": ["a", "a"]"#,
        r#""agents_overlap", "agent_a": "boss", "agent_b": "boss""#,
        r#""ordered_agents", "groups": [["a"], ["b"], ["a"]]"#,
        r#""ordered_agents", "groups": [["a", "b"], ["b"]]"#,
        r#""ordered_agents", "agents": ["a", "b", "a"]"#,
        // Empty names.
        r#""agent_called", "agent_id": "", "agents": ["boss"]"#,
        r#""agent_called", "agents": ["boss", ""]"#,
        r#""agent_output_contains", "agent_id": "", "value": "x""#,
        r#""cross_agent_data_flow", "from_agent": "", "to_agent": "b", "field": "k""#,
        r#""cross_agent_data_flow", "from_agent": "a", "to_agent": "b", "field": """#,
        r#""agents_overlap", "agents": ["boss", ""]"#,
        r#""agents_overlap", "agent_a": "", "agent_b": "boss", "agents": ["boss", "scout"]"#,
        r#""agent_wall_time_under", "agent_id": "", "max_ms": 5"#,
        r#""ordered_agents", "groups": [["a"], [""]]"#,
        r#""ordered_agents", "agents": ["a", ""]"#,
        r#""all_tools_called", "tools": [""]"#,
        r#""all_tools_called", "tools": ["map"], "tool_names": [""]"#,
        // What the check does not read.
        r#""agent_called", "agent_id": "boss", "tools": ["map"]"#,
        r#""delegation_depth", "max_depth": 2, "value": 1"#,
        r#""agent_output_contains", "agent_id": "boss", "value": "a", "agents": ["boss"]"#,
        r#""follows_transitions", "transitions": [["boss", "scout"], ["scout", "diver"]], "agents": ["boss"]"#,
        r#""aggregate_cost", "operator": "gte", "value": 0, "max": 0.1"#,
        r#""aggregate_cost", "operator": "between", "min": 0, "max": 9, "value": 0.1"#,
        r#""agent_wall_time_under", "agent_id": "boss", "max_ms": 99, "max": 1"#,
        r#""all_tools_called", "tools": ["map"], "agent_id": "boss""#,
        r#""ordered_agents", "groups": [["scout"], ["diver"]], "agent_a": "diver""#,
    ] {
        let verdict = judge(TREE, &format!(r#"{{"check": {rest}}}"#));
        assert_eq!(verdict.status, Status::Error, "{rest}: {verdict:?}");
        assert!(!verdict.explanation.is_empty() && !verdict.suggestion.is_empty(), "{rest}: {verdict:?}");
        assert_eq!(judge(TREE, &format!(r#"{{"soft": true, "check": {rest}}}"#)), verdict, "{rest}");
    }
    for rest in [
        r#""agent_called", "agents": ["boss", null]"#,
        r#""all_tools_called", "tools": [null]"#,
        r#""ordered_agents", "groups": [["scout"], [null]]"#,
        r#""follows_transitions", "transitions": [[null, "scout"]]"#,
        r#""follows_transitions", "transitions": [{"from": "boss", "to": null}]"#,
        r#""follows_transitions", "transitions": [{"from": "boss", "to": "x", "to": "scout"}]"#,
    ] {
        for soft in ["", r#""soft": true, "#] {
            let verdict = judge(TREE, &format!(r#"{{{soft}"check": {rest}}}"#));
            assert_eq!(verdict.status, Status::Error, "{rest}: {verdict:?}");
        }
    }
}

#[test]
fn what_is_not_read_is_named_with_what_is() {
    let verdict = judge(TREE, r#"{"check": "aggregate_cost", "operator": "gte", "value": 0, "max": 0.1}"#);
    assert_eq!(
        verdict.explanation,
        "aggregate_cost with the operator gte does not read `max`, it reads: operator, op, value"
    );
    // Members that are not there, that no check reads, or that are other names for the usual ones are no harm.
    passes(r#""agent_called", "agent_id": "boss", "tools": null, "unheard_of": 1, "threshold": 0.5"#);
    passes(r#""all_tools_called", "tools": ["map"], "tool_names": ["fly"]"#);
}

#[test]
fn lists_are_bounded() {
    let names = |count: usize| vec!["\"map\""; count].join(", ");
    let groups = |count: usize| format!("[[{}], [\"diver\"]]", names(count));
    let pairs = |count: usize| vec!["[\"boss\", \"scout\"]"; count].join(", ");
    for (fits, rest) in [
        (true, format!(r#""all_tools_called", "tools": [{}]"#, names(10_000))),
        (false, format!(r#""all_tools_called", "tools": [{}]"#, names(10_001))),
        (true, format!(r#""ordered_agents", "groups": {}"#, groups(9_999))),
        (false, format!(r#""ordered_agents", "groups": {}"#, groups(10_000))),
        (true, format!(r#""follows_transitions", "transitions": [{}]"#, pairs(10_000))),
        (false, format!(r#""follows_transitions", "transitions": [{}]"#, pairs(10_001))),
    ] {
        let verdict = judge(TREE, &format!(r#"{{"check": {rest}}}"#));
        assert_eq!(verdict.status == Status::Error, !fits, "{verdict:?}");
    }
}

#[test]
fn every_member_is_known() {
    // Where no member may be an object, a spec in which one is cannot be read: so each is read.
    for member in known_members(Layer::Tree).iter().filter(|member| !["threshold", "value"].contains(*member))
    {
        let text = format!(r#"{{"{member}": {{}}}}"#);
        let raw: Box<serde_json::value::RawValue> = serde_json::from_str(&text).unwrap();
        assert!(spec::read::<Written<'_>>(Some(&raw)).is_err(), "{member}");
    }
}

fn report(trace: &str) -> TreeReport {
    inspect_tree(&Trace::parse(trace).unwrap())
}

#[test]
fn a_tree_is_described() {
    assert_eq!(
        report(TREE),
        TreeReport {
            valid: true,
            errors: Vec::new(),
            depth: 2,
            agent_count: 4,
            agent_ids: ["boss", "scout", "scout", "diver"].map(str::to_owned).to_vec(),
            aggregate_tokens: 111.0,
            aggregate_cost_usd: 0.75,
            aggregate_latency_ms: 10.0,
        }
    );
    assert_eq!(report("null"), TreeReport { valid: true, ..TreeReport::default() });
    assert_eq!(report(r#"{"output": "a string", "steps": [{"type": "odd", "name": ""}]}"#), report("{}"));
}

#[test]
fn the_first_problem_of_a_tree_is_told() {
    let nested = |depth: usize| {
        (0..depth).rev().fold(format!(r#"{{"trace_id": "t{depth}"}}"#), |below, level| {
            format!(r#"{{"trace_id": "t{level}", "steps": [{{"type": "agent_call", "name": "a", "sub_trace": {below}}}]}}"#)
        })
    };
    let deep = report(&nested(5));
    assert!(deep.valid && deep.depth == 5);
    let deeper = report(&nested(6));
    assert!(!deeper.valid && deeper.depth == 6 && deeper.errors.len() == 1, "{deeper:?}");
    assert!(deeper.errors[0].contains("5 levels"), "{deeper:?}");

    let wrong = |trace: &str| {
        let report = report(trace);
        assert!(!report.valid && report.errors.len() == 1, "{report:?}");
        report.errors.concat()
    };
    let child = |members: &str| {
        format!(r#"{{"trace_id": "t", "steps": [{{"type": "agent_call", "name": "a"{members}}}]}}"#)
    };
    assert!(wrong(&child("")).starts_with("trace.steps[0].sub_trace:"));
    assert!(
        wrong(&child(r#", "sub_trace": {"trace_id": "t"}"#))
            .starts_with("trace.steps[0].sub_trace.trace_id:")
    );
    assert!(
        wrong(&child(r#", "sub_trace": {"trace_id": "u", "parent_trace_id": "v"}"#))
            .starts_with("trace.steps[0].sub_trace.parent_trace_id:")
    );
    // Of several problems only the first in the order of the walk is told.
    let both = r#"{"trace_id": "t", "steps": [
        {"type": "agent_call", "name": "a", "sub_trace": {"trace_id": "u", "steps": [{"type": "agent_call", "name": "b"}]}},
        {"type": "agent_call", "name": "c", "sub_trace": {"trace_id": "t"}}]}"#;
    assert!(wrong(both).starts_with("trace.steps[0].sub_trace.steps[0].sub_trace:"));
    // Only within one tree must names differ, and only names that are there.
    assert!(report(&child(r#", "sub_trace": {"trace_id": "u", "parent_trace_id": null}"#)).valid);
    assert!(report(r#"{"steps": [{"type": "agent_call", "name": "a", "sub_trace": {}}]}"#).valid);
    assert!(report(r#"{"parent_trace_id": "elsewhere"}"#).valid);
}

#[test]
fn the_page_has_the_members_of_every_check() {
    let page = include_str!("../../../../docs/attest.md");
    for check in super::CHECKS.split(", ").map(str::trim) {
        let name = format!("`{check}`");
        let row = page.lines().find(|line| {
            let cells: Vec<&str> = line.split('|').collect();
            cells.get(1).is_some_and(|kind| kind.trim() == "`trace_tree`")
                && cells.len() == 5
                && cells.get(2).is_some_and(|checks| checks.contains(&name))
                && !cells.get(3).is_some_and(|members| members.contains("`agent_called`"))
        });
        let row = row.unwrap_or_else(|| panic!("`{check}` has no row in docs/attest.md"));
        let members = row.split('|').nth(3).unwrap();
        let shown: std::collections::BTreeSet<&str> = members.split('`').skip(1).step_by(2).collect();
        let known = [false, true].iter().flat_map(|between| super::members_of(check, *between).unwrap());
        assert_eq!(shown, known.copied().collect(), "{check}");
    }
}
