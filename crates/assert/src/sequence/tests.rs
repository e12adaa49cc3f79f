use proptest::prelude::*;

use crate::check::{Assertion, evaluate, known_members};
use crate::tools::Tools;
use crate::trace::Trace;
use crate::verdict::{Status, Verdict};
use crate::{Layer, spec};

/// A trace whose steps have these names, of all kinds in turn; `name/alias` has both.
fn steps(names: &str) -> String {
    let kinds = ["tool_call", "llm_call", "retrieval", "agent_call"];
    let steps: Vec<String> = names
        .split_whitespace()
        .zip(kinds.iter().cycle())
        .map(|(name, kind)| match name.split_once('/') {
            None => format!(r#"{{"type":"{kind}","name":"{name}"}}"#),
            Some((name, alias)) => format!(r#"{{"type":"{kind}","name":"{name}","alias":"{alias}"}}"#),
        })
        .collect();
    format!(r#"{{"trace_id":"t","output":{{"m":1}},"steps":[{}]}}"#, steps.join(","))
}

fn judge(trace: &str, spec: &str) -> Verdict {
    evaluate(&Trace::parse(trace).unwrap(), &Assertion::new("a", "trace", spec).unwrap(), &Tools::default())
}

#[track_caller]
fn passes(names: &str, spec: &str) {
    let verdict = judge(&steps(names), spec);
    assert_eq!(verdict.status, Status::Pass, "{spec} on {names}: {verdict:?}");
    assert!((verdict.score - 1.0).abs() < f64::EPSILON && !verdict.explanation.is_empty());
}

#[track_caller]
fn fails(names: &str, spec: &str, path: &str) {
    let verdict = judge(&steps(names), spec);
    assert_fails(&verdict, path);
    let soft = spec.replacen('{', r#"{"soft": true, "#, 1);
    let softened = judge(&steps(names), &soft);
    assert_eq!(softened.status, Status::SoftFail, "{soft}");
    assert_eq!(Verdict { status: Status::HardFail, ..softened }, verdict);
}

#[track_caller]
fn assert_fails(verdict: &Verdict, path: &str) {
    assert_eq!((verdict.status, verdict.path.as_str()), (Status::HardFail, path), "{verdict:?}");
    assert!(verdict.score.abs() < f64::EPSILON);
    for text in [&verdict.explanation, &verdict.expected, &verdict.actual, &verdict.suggestion] {
        assert!(!text.is_empty(), "{verdict:?}");
    }
}

#[track_caller]
fn malformed(spec: &str) {
    for spec in [spec.to_owned(), spec.replacen('{', r#"{"soft": true, "#, 1).replace(", }", "}")] {
        let verdict = judge(&steps("a"), &spec);
        assert_eq!(verdict.status, Status::Error, "{spec}: {verdict:?}");
        assert!(!verdict.explanation.is_empty());
    }
}

#[test]
fn in_order_with_gaps() {
    let spec = r#"{"check": "contains_in_order", "tools": ["a", "b", "a"]}"#;
    passes("a b a", spec);
    passes("x a y b z a w", spec);
    fails("a b", spec, "steps");
    fails("a a b", spec, "steps");
    fails("", spec, "steps");
    fails("A B A", spec, "steps");
    let verdict = judge(&steps("x a"), spec);
    assert_eq!(verdict.explanation, "`b` was not called after `a`");
    assert_eq!((verdict.expected.as_str(), verdict.actual.as_str()), ("in this order: a, b, a", "x, a"));
}

#[test]
fn in_order_without_gaps() {
    let spec = r#"{"check": "exact_order", "tools": ["a", "b", "a", "c"]}"#;
    passes("a b a c", spec);
    passes("a b a b a c a", spec);
    passes("a a b a c", spec);
    fails("a b x a c", spec, "steps");
    fails("a b a a c", spec, "steps");
    fails("", spec, "steps");
    passes("x a", r#"{"check": "exact_order", "tool_names": ["a"]}"#);
}

#[test]
fn loops() {
    let spec = r#"{"check": "loop_detection", "tool": "a", "max_repetitions": 2}"#;
    passes("", spec);
    passes("a b a", spec);
    fails("a b a b a a", spec, "steps[4]");
    let verdict = judge(&steps("a a a a"), spec);
    assert_eq!(verdict.actual, "4 calls");
    passes("a a", r#"{"check": "loop_detection", "tool_name": "a", "max": 2.0}"#);
    fails("a a", r#"{"check": "loop_detection", "tool_name": "a", "max": 1}"#, "steps[1]");
    // The usual names win.
    passes(
        "a a b",
        r#"{"check": "loop_detection", "tool_name": "a", "tool": "b", "max": 1, "max_repetitions": 1}"#,
    );
    passes("a a", r#"{"check": "loop_detection", "tool": "a", "max": 1, "max_repetitions": 2}"#);
    for spec in [
        r#"{"check": "loop_detection", "tool": "a"}"#,
        r#"{"check": "loop_detection", "tool": "a", "max_repetitions": 0}"#,
        r#"{"check": "loop_detection", "tool": "a", "max_repetitions": -1}"#,
        r#"{"check": "loop_detection", "tool": "a", "max_repetitions": 1.5}"#,
        r#"{"check": "loop_detection", "tool": "", "max_repetitions": 1}"#,
        r#"{"check": "loop_detection", "max_repetitions": 1}"#,
    ] {
        malformed(spec);
    }
}

#[test]
fn duplicates() {
    let spec = r#"{"check": "no_duplicates"}"#;
    passes("", spec);
    passes("a b c A", spec);
    fails("a b a b", spec, "steps[2]");
}

#[test]
fn required_and_forbidden() {
    let required = r#"{"check": "required_tools", "tools": ["a", "b", "a"]}"#;
    passes("b x a", required);
    fails("a", required, "steps");
    assert_eq!(judge(&steps("x"), required).explanation, "not called: a, b");
    let forbidden = r#"{"check": "forbidden_tools", "tool_names": ["a", "b"]}"#;
    passes("", forbidden);
    passes("c", forbidden);
    fails("c b a", forbidden, "steps[1]");
}

#[test]
fn the_names_of_the_document() {
    for member in ["tool", "tool_name"] {
        passes("x a", &format!(r#"{{"check": "contains", "{member}": "a"}}"#));
        fails("x", &format!(r#"{{"check": "contains", "{member}": "a"}}"#), "steps");
        passes("x", &format!(r#"{{"check": "not_contains", "{member}": "a"}}"#));
        fails("x a", &format!(r#"{{"check": "not_contains", "{member}": "a"}}"#), "steps[1]");
    }
    for member in ["tools", "tool_names"] {
        passes("b a", &format!(r#"{{"check": "contains", "{member}": ["a", "b"]}}"#));
        fails("b", &format!(r#"{{"check": "contains", "{member}": ["a", "b"]}}"#), "steps");
        fails("b", &format!(r#"{{"check": "not_contains", "{member}": ["a", "b"]}}"#), "steps[0]");
    }
    fails("a", r#"{"check": "contains", "tool": "a", "tools": ["b"]}"#, "steps");
    passes("b", r#"{"check": "required_tools", "tools": ["b"], "tool_names": ["c"]}"#);
    malformed(r#"{"check": "contains"}"#);
    malformed(r#"{"check": "not_contains", "tools": []}"#);
}

#[test]
fn transitions() {
    for check in ["transitions", "state_transitions", "follows_transitions"] {
        let spec = format!(
            r#"{{"check": "{check}", "transitions": [["a", "b"], {{"from": "b", "to": "a"}}, ["b", "b"]]}}"#
        );
        passes("", &spec);
        passes("x", &spec);
        passes("a b b a b", &spec);
        fails("a b a a b a a", &spec, "steps[3]");
        fails("b c", &spec, "steps[1]");
        assert_eq!(judge(&steps("a c"), &spec).actual, "a → c");
    }
    for transitions in
        ["[]", "null", r#"[["a"]]"#, r#"[["a", "b", "c"]]"#, r#"[{"from": "a"}]"#, r#"["a"]"#, "[[1, 2]]"]
    {
        malformed(&format!(r#"{{"check": "transitions", "transitions": {transitions}}}"#));
    }
}

#[test]
fn numbers_of_steps_and_calls() {
    for member in ["max", "value", "max_steps"] {
        let spec = format!(r#"{{"check": "max_steps", "{member}": 2}}"#);
        passes("", &spec);
        passes("a b", &spec);
        fails("a b c d", &spec, "steps[2]");
    }
    passes("", r#"{"check": "max_steps", "max": 0}"#);
    fails("a", r#"{"check": "max_steps", "max": 0}"#, "steps[0]");
    passes("a a", r#"{"check": "max_steps", "max": 1, "value": 0, "max_steps": 2}"#);
    malformed(r#"{"check": "max_steps"}"#);
    malformed(r#"{"check": "max_steps", "max": -1}"#);

    passes("b", r#"{"check": "max_calls", "tool": "a", "max": 0}"#);
    fails("b a", r#"{"check": "max_calls", "tool": "a", "max": 0}"#, "steps[1]");
    passes("a a", r#"{"check": "max_calls", "tool_name": "a", "max": 2}"#);
    malformed(r#"{"check": "max_calls", "tool": "a"}"#);
    malformed(r#"{"check": "max_calls", "tool": "a", "max": -1}"#);
}

const CALLS: &str = r#"{"trace_id": "t", "steps": [
    {"type": "tool_call", "name": "bare"},
    {"type": "tool_call", "name": "pay", "args": {"to": "ann", "sum": 5.0, "tags": [1, 2], "by": {"card": "x", "pin": null}}, "result": "ok"},
    {"type": "tool_call", "name": "pay", "args": {"to": "bob", "sum": 7}, "result": {"code": 3, "text": "no"}}]}"#;

#[test]
fn arguments() {
    for (rest, expected) in [
        (r#""tool": "pay", "args": {"to": "ann"}"#, None),
        (r#""tool_name": "pay", "args": {"sum": 5, "by": {"card": "x"}, "tags": [1.0, 2]}"#, None),
        (r#""tool": "pay", "args": {"by": {"pin": null}}"#, None),
        (r#""tool": "pay", "args": {"to": "bob"}, "result": {"code": 3}"#, None),
        (r#""tool": "pay", "result": "ok""#, None),
        (r#""tool": "pay", "args": {}, "all": true"#, None),
        (r#""tool": "bare", "args": {}"#, None),
        (r#""tool": "pay", "args": {"to": "eve"}"#, Some("steps[1].args")),
        (r#""tool": "pay", "args": {"tags": [1]}"#, Some("steps[1].args")),
        (r#""tool": "pay", "args": {"to": "ann"}, "result": {"code": 3}"#, Some("steps[1].result")),
        (r#""tool": "pay", "args": {"to": "ann"}, "all": true"#, Some("steps[2].args")),
        (r#""tool": "pay", "result": "ok", "all": true"#, Some("steps[2].result")),
        (r#""tool": "bare", "args": {"a": 1}"#, Some("steps[0].args")),
        (r#""tool": "bare", "result": "x""#, Some("steps[0].result")),
        (r#""tool": "fly", "args": {}"#, Some("steps")),
        (r#""tool": "fly", "args": {}, "all": true"#, Some("steps")),
    ] {
        for check in ["argument_match", "args_match"] {
            let verdict = judge(CALLS, &format!(r#"{{"check": "{check}", {rest}}}"#));
            match expected {
                None => assert_eq!(verdict.status, Status::Pass, "{rest}: {verdict:?}"),
                Some(path) => assert_fails(&verdict, path),
            }
        }
    }
    malformed(r#"{"check": "argument_match", "tool": "a"}"#);
    malformed(r#"{"check": "argument_match", "args": {}}"#);
    malformed(r#"{"check": "argument_match", "tool": "a", "args": [1]}"#);
    malformed(r#"{"check": "argument_match", "tool": "a", "args": {}, "all": 1}"#);
}

#[test]
fn a_value_may_be_null() {
    let calls = r#"{"steps": [
        {"type": "tool_call", "name": "none"},
        {"type": "tool_call", "name": "null", "args": null, "result": null},
        {"type": "tool_call", "name": "some", "args": {}, "result": {}}]}"#;
    for (tool, rest, expected) in [
        ("none", r#""result": null"#, None),
        ("null", r#""result": null"#, None),
        ("some", r#""result": null"#, Some("steps[2].result")),
        ("none", r#""args": null"#, None),
        ("null", r#""args": null"#, None),
        ("some", r#""args": null"#, Some("steps[2].args")),
        ("some", r#""args": {}, "result": null"#, Some("steps[2].result")),
        ("none", r#""result": {}"#, Some("steps[0].result")),
        ("none", r#""args": {}"#, None),
    ] {
        let verdict = judge(calls, &format!(r#"{{"check": "argument_match", "tool": "{tool}", {rest}}}"#));
        match expected {
            None => assert_eq!(verdict.status, Status::Pass, "{rest}: {verdict:?}"),
            Some(path) => assert_fails(&verdict, path),
        }
    }
}

#[test]
fn arguments_are_compared_exactly_and_only_if_each_is_there_once() {
    let call = |args: &str, result: &str| {
        format!(
            r#"{{"steps": [{{"type": "tool_call", "name": "pay", "args": {args}, "result": {result}}}]}}"#
        )
    };
    let sum = r#"{"check": "argument_match", "tool": "pay", "args": {"ids": [{"id": 9007199254740993}]}}"#;
    let with = |id: &str| judge(&call(&format!(r#"{{"ids": [{{"id": {id}}}]}}"#), "1"), sum).status;
    assert_eq!(with("9007199254740993"), Status::Pass);
    assert_eq!(with("9007199254740992"), Status::HardFail);
    assert_eq!(with("9007199254740993.0"), Status::Pass);
    let long = r#"{"check": "argument_match", "tool": "pay", "result": 123456789012345678901234567890}"#;
    assert_eq!(judge(&call("{}", "123456789012345678901234567890"), long).status, Status::Pass);
    assert_eq!(judge(&call("{}", "123456789012345678901234567891"), long).status, Status::HardFail);

    let spec = r#"{"check": "argument_match", "tool": "pay", "args": {"to": "ann"}}"#;
    for args in [r#"{"to": "bob", "to": "ann"}"#, r#"{"to": "ann", "by": [{"a": 1, "\u0061": 1}]}"#] {
        for all in ["", r#""all": true, "#] {
            let verdict = judge(&call(args, "1"), &spec.replacen('{', &format!("{{{all}"), 1));
            assert_fails(&verdict, "steps[0].args");
            assert!(verdict.explanation.contains("is there twice"), "{}", verdict.explanation);
        }
    }
    // What is not compared may be anything.
    assert_eq!(judge(&call(r#"{"to": "ann"}"#, r#"{"a": 1, "a": 2}"#), spec).status, Status::Pass);
    malformed(r#"{"check": "argument_match", "tool": "a", "args": {"to": "ann", "to": "bob"}}"#);
    malformed(r#"{"check": "argument_match", "tool": "a", "args": {"by": {"x": 1, "x": 1}}}"#);
    malformed(r#"{"check": "argument_match", "tool": "a", "result": [{"x": 1, "x": 1}]}"#);
}

#[test]
fn a_step_with_two_names_is_found_by_both() {
    for name in ["shell", "bash"] {
        let lists = |check: &str| format!(r#"{{"check": "{check}", "tools": ["{name}", "b"]}}"#);
        passes("x shell/bash b", &lists("contains_in_order"));
        passes("x shell/bash b", &lists("exact_order"));
        passes("b shell/bash", &lists("required_tools"));
        passes("b shell/bash", &lists("contains"));
        fails("x shell/bash", &lists("forbidden_tools"), "steps[1]");
        fails("x shell/bash", &lists("not_contains"), "steps[1]");
        let calls =
            |check: &str, most: usize| format!(r#"{{"check": "{check}", "tool": "{name}", "max": {most}}}"#);
        for check in ["loop_detection", "max_calls"] {
            passes("shell/bash x shell/bash", &calls(check, 2));
            fails("shell/bash x shell/bash", &calls(check, 1), "steps[2]");
        }
        passes("shell/bash", &format!(r#"{{"check": "argument_match", "tool": "{name}", "args": {{}}}}"#));
        for pair in [format!(r#"["{name}", "b"]"#), format!(r#"{{"from": "{name}", "to": "c"}}"#)] {
            passes("shell/bash b/c", &format!(r#"{{"check": "transitions", "transitions": [{pair}]}}"#));
        }
    }
    fails("shell/bash b/c", r#"{"check": "transitions", "transitions": [["bash", "shell"]]}"#, "steps[1]");
    let verdict =
        judge(&steps("shell/bash b"), r#"{"check": "transitions", "transitions": [["bash", "shell"]]}"#);
    assert_eq!(verdict.actual, "shell (bash) → b");
    let verdict = judge(&steps("shell/bash a/a"), r#"{"check": "required_tools", "tools": ["fly"]}"#);
    assert_eq!(verdict.actual, "shell (bash), a");
    let verdict = judge(&steps("shell/bash"), r#"{"check": "forbidden_tools", "tools": ["bash"]}"#);
    assert_eq!(verdict.actual, "shell (bash)");
    // A step is itself only once, whatever it is also called.
    passes("shell/bash bash/sh", r#"{"check": "no_duplicates"}"#);
    fails("shell/bash shell/sh", r#"{"check": "no_duplicates"}"#, "steps[1]");
}

#[test]
fn a_name_that_nothing_has_is_a_mistake() {
    for spec in [
        r#"{"check": "forbidden_tools", "tools": [null]}"#,
        r#"{"check": "forbidden_tools", "tools": [""]}"#,
        r#"{"check": "forbidden_tools", "tools": ["b", " "]}"#,
        r#"{"check": "forbidden_tools", "tool_names": ["b", null]}"#,
        r#"{"check": "forbidden_tools", "tools": ["b"], "tool_names": [""]}"#,
        r#"{"check": "not_contains", "tool": "", "tools": ["b"]}"#,
        r#"{"check": "not_contains", "tool_name": "", "tool": "b"}"#,
        r#"{"check": "max_calls", "tool": "", "max": 1}"#,
        r#"{"check": "max_calls", "tool": "", "tool_name": "a", "max": 1}"#,
        r#"{"check": "loop_detection", "tool_name": "", "max": 1}"#,
        r#"{"check": "transitions", "transitions": [["a", null]]}"#,
        r#"{"check": "transitions", "transitions": [["", "a"]]}"#,
        r#"{"check": "transitions", "transitions": [{"from": "a", "to": ""}]}"#,
        r#"{"check": "transitions", "transitions": [{"from": "a", "to": "a", "to": "b"}]}"#,
    ] {
        malformed(spec);
    }
    let list = |count: usize| {
        format!(r#"{{"check": "forbidden_tools", "tools": [{}]}}"#, vec![r#""b""#; count].join(","))
    };
    passes("a", &list(10_000));
    malformed(&list(10_001));
    let pairs = vec![r#"["a", "b"]"#; 10_001].join(",");
    malformed(&format!(r#"{{"check": "transitions", "transitions": [{pairs}]}}"#));
}

#[test]
fn what_a_check_does_not_read_is_a_mistake() {
    for spec in [
        r#"{"check": "forbidden_tools", "tools": ["b"], "tool": "a"}"#,
        r#"{"check": "forbidden_tools", "tools": ["b"], "tool_name": "a"}"#,
        r#"{"check": "required_tools", "tools": ["a"], "max": 0}"#,
        r#"{"check": "loop_detection", "tool": "b", "max": 1, "tools": ["a"]}"#,
        r#"{"check": "loop_detection", "tool": "b", "max": 1, "max_steps": 1}"#,
        r#"{"check": "max_calls", "tool": "b", "max": 1, "value": 0}"#,
        r#"{"check": "max_steps", "max": 1, "tool": "a"}"#,
        r#"{"check": "max_steps", "max": 1, "max_repetitions": 1}"#,
        r#"{"check": "no_duplicates", "tools": ["a"]}"#,
        r#"{"check": "transitions", "transitions": [["a", "b"]], "tools": ["a"]}"#,
        r#"{"check": "argument_match", "tool": "a", "args": {}, "tools": ["b"]}"#,
        r#"{"check": "contains", "tool": "a", "args": {"b": 1}}"#,
        r#"{"check": "contains", "tool": "a", "result": null}"#,
        r#"{"check": "contains", "tool": "a", "all": true}"#,
    ] {
        malformed(spec);
    }
    let verdict = judge(&steps("a"), r#"{"check": "forbidden_tools", "tools": ["b"], "tool": "a"}"#);
    assert_eq!(verdict.explanation, "forbidden_tools does not read `tool`, it reads: tools, tool_names");
    passes(
        "a",
        r#"{"check": "forbidden_tools", "tools": ["b"], "tool": null, "agent_id": "a", "colour": 1}"#,
    );
}

#[test]
fn what_is_no_spec_is_never_softened() {
    for spec in [
        "{}",
        "null",
        "[]",
        r#"{"check": ""}"#,
        r#"{"check": "Contains"}"#,
        r#"{"check": 1}"#,
        r#"{"check": "required_tools"}"#,
        r#"{"check": "required_tools", "tools": []}"#,
        r#"{"check": "required_tools", "tools": "a"}"#,
        r#"{"check": "required_tools", "tools": [1]}"#,
        r#"{"check": "forbidden_tools"}"#,
        r#"{"check": "exact_order"}"#,
        r#"{"check": "contains_in_order", "tools": []}"#,
    ] {
        malformed(spec);
    }
    assert_eq!(judge(&steps("a"), r#"{"check": "no_duplicates", "soft": 1}"#).status, Status::Error);
    passes("a", r#"{"check": "no_duplicates", "soft": null, "unheard_of": [1], "threshold": "dynamic"}"#);
    assert!(super::compile(None, &Tools::default()).is_err());
}

#[test]
fn steps_below_agent_calls_are_not_looked_at() {
    let trace = r#"{"steps": [{"type": "agent_call", "name": "a", "sub_trace": {"steps": [{"type": "tool_call", "name": "b"}]}}]}"#;
    assert_eq!(judge(trace, r#"{"check": "forbidden_tools", "tools": ["b"]}"#).status, Status::Pass);
    assert_eq!(judge(trace, r#"{"check": "max_steps", "max": 1}"#).status, Status::Pass);
}

#[test]
fn evidence_stays_short() {
    let long = "n".repeat(5000);
    let many = vec![long.as_str(); 100].join(" ");
    let verdict = judge(&steps(&many), r#"{"check": "required_tools", "tools": ["x"]}"#);
    assert!(verdict.actual.len() < 500 && verdict.explanation.len() < 200);
    let names: Vec<String> = (0..30).map(|number| format!("n{number}")).collect();
    let verdict = judge(&steps(&names.join(" ")), r#"{"check": "required_tools", "tools": ["x"]}"#);
    assert!(verdict.actual.ends_with("n18, n19 and 10 more"), "{}", verdict.actual);
}

#[test]
fn every_member_is_known() {
    // A spec with all members, each of a type that no member has, cannot be read: so each is read.
    for member in
        known_members(Layer::Trace).iter().filter(|member| !["threshold", "args", "result"].contains(*member))
    {
        let text = format!(r#"{{"{member}": {{}}}}"#);
        let raw: Box<serde_json::value::RawValue> = serde_json::from_str(&text).unwrap();
        assert!(spec::read::<super::Written<'_>>(Some(&raw)).is_err(), "{member}");
    }
}

proptest! {
    #[test]
    fn no_spec_breaks_it(spec in "\\PC{0,40}", check in "[a-z_]{0,12}", names in "[a-c ]{0,12}") {
        let text = serde_json::json!({"check": check, "tools": [spec], "tool": spec, "max": 3}).to_string();
        judge(&steps(&names), &text);
    }
}

#[test]
fn the_page_has_the_members_of_every_check() {
    let page = include_str!("../../../../docs/attest.md");
    for check in super::CHECKS.split(", ").map(str::trim) {
        let name = format!("`{check}`");
        let row = page.lines().find(|line| {
            let cells: Vec<&str> = line.split('|').collect();
            cells.get(1).is_some_and(|kind| kind.trim() == "`trace`")
                && cells.len() == 5
                && cells.get(2).is_some_and(|checks| checks.contains(&name))
        });
        let row = row.unwrap_or_else(|| panic!("`{check}` has no row in docs/attest.md"));
        let members = row.split('|').nth(3).unwrap();
        let shown: std::collections::BTreeSet<&str> =
            members.split('`').skip(1).step_by(2).map(|word| word.trim_end_matches(": true")).collect();
        let known = super::members_of(check).unwrap().iter().copied().collect();
        assert_eq!(shown, known, "{check}");
    }
}

const TOOL_CALLS: &str = r#"{"trace_id":"t","output":{"m":1},"steps":[
    {"type":"tool_call","name":"shell","alias":"bash","args":{"command":"ls -l","env":{"A":"1"}}},
    {"type":"tool_call","name":"shell","args":{"command":"sudo RM -rf /tmp/x","files":["a","b"],"n":4}},
    {"type":"agent_call","name":"scout","sub_trace":{"trace_id":"s","output":{"m":1},"steps":[
        {"type":"tool_call","name":"fetch","args":{"url":"https://evil.example/x"}}]}},
    {"type":"tool_call","name":"note","args":"plain words"},
    {"type":"tool_call","name":"idle"}]}"#;

#[test]
fn a_call_that_no_step_may_make_is_found_in_every_step() {
    for (rest, path) in [
        (r#""tool": "shell", "args": {"command": "rm -rf"}"#, "steps[1].args"),
        (r#""tool": "bash", "args": {"env": {"A": "1"}}"#, "steps[0].args"),
        (r#""tool_name": "shell", "args": {"files": ["b"]}"#, "steps[1].args"),
        (r#""tool": "shell", "args": {"files": "B"}"#, "steps[1].args"),
        (r#""tool": "shell", "args": {"n": 4.0, "command": "sudo"}"#, "steps[1].args"),
        (r#""tool": "fetch", "args": {"url": "evil.example"}"#, "steps[2].sub_trace.steps[0].args"),
        (r#""tool": "note""#, "steps[3]"),
        (r#""tool": "idle""#, "steps[4]"),
    ] {
        let spec = format!(r#"{{"check": "no_call", {rest}}}"#);
        assert_fails(&judge(TOOL_CALLS, &spec), path);
        let soft = judge(TOOL_CALLS, &spec.replacen('{', r#"{"soft": true, "#, 1));
        assert_eq!(soft.status, Status::SoftFail, "{spec}");
    }
    for rest in [
        r#""tool": "shell", "args": {"command": "rm -rf"}, "case_sensitive": true"#,
        r#""tool": "shell", "args": {"command": "curl"}"#,
        r#""tool": "shell", "args": {"n": 44}"#,
        r#""tool": "shell", "args": {"path": "x"}"#,
        r#""tool": "idle", "args": {"path": "x"}"#,
        r#""tool": "absent""#,
    ] {
        let verdict = judge(TOOL_CALLS, &format!(r#"{{"check": "no_call", {rest}}}"#));
        assert_eq!(verdict.status, Status::Pass, "{rest}: {verdict:?}");
    }
}

#[test]
fn a_call_that_cannot_be_decided_is_no_pass() {
    let twice = r#"{"trace_id":"t","output":{"m":1},"steps":[{"type":"tool_call","name":"x","args":{"a":"1","a":"2"}}]}"#;
    for (trace, tool) in [(TOOL_CALLS, "note"), (twice, "x")] {
        for soft in [true, false] {
            let spec =
                format!(r#"{{"check": "no_call", "tool": "{tool}", "args": {{"a": "z"}}, "soft": {soft}}}"#);
            assert_eq!(judge(trace, &spec).status, Status::Error, "{spec}");
        }
    }
    for rest in [
        "",
        r#", "tool": "x", "args": {}"#,
        r#", "tool": "x", "args": "y""#,
        r#", "tool": "x", "args": null"#,
        r#", "args": {"a": 1}"#,
    ] {
        malformed(&format!(r#"{{"check": "no_call"{rest}}}"#));
    }
}
