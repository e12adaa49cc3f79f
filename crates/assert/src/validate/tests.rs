use super::*;

/// The place of the first problem of a trace; empty if there is none.
fn place(trace: &str) -> String {
    place_within(trace, &Limits::default())
}

fn place_within(trace: &str, limits: &Limits) -> String {
    validate(&Trace::parse(trace).unwrap(), limits).err().map(|problem| problem.place).unwrap_or_default()
}

/// Traces in each other, the innermost with these steps.
fn nested(depth: usize, steps: &str) -> String {
    (0..depth).rev().fold(format!(r#"{{"trace_id":"t{depth}","output":{{"m":1}},"steps":[{steps}]}}"#), |below, level| {
        format!(
            r#"{{"trace_id":"t{level}","output":{{"m":1}},"steps":[{{"type":"agent_call","name":"a","sub_trace":{below}}}]}}"#
        )
    })
}

#[test]
fn a_good_trace_has_no_problem() {
    for trace in [
        r#"{"trace_id":"t","output":{"message":"x"}}"#,
        r#"{"trace_id":"t","output":{"message":"x"},"steps":null,"schema_version":1,"metadata":null,"parent_trace_id":null}"#,
        r#"{"trace_id":"t","output": {"}":1},"schema_version":0}"#,
        r#"{"trace_id":"t","output":{ "" : null },"schema_version":1.0}"#,
        r#"{"trace_id":"t","output":{"a":1},"steps":[{"type":"agent_call","name":"without a trace"}]}"#,
        r#"{"trace_id":"t","output":{"a":1},"steps":[{"type":"tool_call","name":"a","sub_trace":{"nobody":"looks"}}]}"#,
    ] {
        assert_eq!(place(trace), "", "{trace}");
    }
}

#[test]
fn each_rule_names_its_place() {
    for (trace, expected) in [
        (r#"{"trace_id":"t","output":{"a":1},"schema_version":2}"#, "trace.schema_version"),
        (r#"{"trace_id":"t","output":{"a":1},"schema_version":-1}"#, "trace.schema_version"),
        (r#"{"trace_id":"t","output":{"a":1},"schema_version":1.5}"#, "trace.schema_version"),
        (r#"{"output":{"a":1}}"#, "trace.trace_id"),
        (r#"{"trace_id":" \t","output":{"a":1}}"#, "trace.trace_id"),
        (r#"{"trace_id":"t"}"#, "trace.output"),
        (r#"{"trace_id":"t","output":null}"#, "trace.output"),
        (r#"{"trace_id":"t","output":"{}"}"#, "trace.output"),
        (r#"{"trace_id":"t","output":[{"a":1}]}"#, "trace.output"),
        (r#"{"trace_id":"t","output":{}}"#, "trace.output"),
        ("{\"trace_id\":\"t\",\"output\": { \n\t } }", "trace.output"),
        (
            r#"{"trace_id":"t","output":{"a":1},"steps":[{"type":"tool_call","name":" "}]}"#,
            "trace.steps[0].name",
        ),
        (
            r#"{"trace_id":"t","output":{"a":1},"steps":[{"type":"tool_call","name":"a"},{"type":"tool","name":"b"}]}"#,
            "trace.steps[1].type",
        ),
        (r#"{"trace_id":"t","output":{"a":1},"steps":[{"name":"b"}]}"#, "trace.steps[0].type"),
        (
            r#"{"trace_id":"t","output":{"a":1},"steps":[{"type":"agent_call","name":"a","sub_trace":{"trace_id":"u","output":{}}}]}"#,
            "trace.steps[0].sub_trace.output",
        ),
        ("null", "trace.trace_id"),
    ] {
        assert_eq!(place(trace), expected, "{trace}");
    }
}

#[test]
fn the_first_problem_is_the_answer() {
    let everything_wrong =
        r#"{"schema_version":3,"trace_id":"","output":{},"steps":[{"type":"x","name":""}]}"#;
    assert_eq!(place(everything_wrong), "trace.schema_version");
    assert_eq!(place(&everything_wrong.replace("\"schema_version\":3,", "")), "trace.trace_id");
    // All steps of a trace come before anything below them.
    let trace = r#"{"trace_id":"t","output":{"a":1},"steps":[
        {"type":"agent_call","name":"a","sub_trace":{"trace_id":""}},{"type":"tool_call","name":""}]}"#;
    assert_eq!(place(trace), "trace.steps[1].name");
    // The name comes before the type, the type before the size.
    let limits = Limits { step_bytes: 3, steps: 1, ..Limits::default() };
    let with = |step: &str| format!(r#"{{"trace_id":"t","output":{{"a":1}},"steps":[{step}]}}"#);
    assert_eq!(place_within(&with(r#"{"type":"x","name":"","args":12345}"#), &limits), "trace.steps[0].name");
    assert_eq!(
        place_within(&with(r#"{"type":"x","name":"a","args":12345}"#), &limits),
        "trace.steps[0].type"
    );
    assert_eq!(
        place_within(&with(r#"{"type":"tool_call","name":"a","args":12345}"#), &limits),
        "trace.steps[0]"
    );
    assert_eq!(
        place_within(&with(r#"{"type":"x","name":""},{"type":"x","name":""}"#), &limits),
        "trace.steps"
    );
}

#[test]
fn sizes_are_bounded() {
    let limits = Limits::default();
    let step = r#"{"type":"tool_call","name":"a"}"#;
    let with = |steps: usize| {
        format!(r#"{{"trace_id":"t","output":{{"a":1}},"steps":[{}]}}"#, vec![step; steps].join(","))
    };
    assert_eq!(place(&with(limits.steps)), "");
    assert_eq!(place(&with(limits.steps + 1)), "trace.steps");

    // The name `a` and the quotes count as well.
    let sized = |bytes: usize| {
        let args = "x".repeat(bytes - 3);
        format!(
            r#"{{"trace_id":"t","output":{{"a":1}},"steps":[{{"type":"tool_call","name":"a","args":"{args}"}}]}}"#
        )
    };
    assert_eq!(place(&sized(limits.step_bytes)), "");
    assert_eq!(place(&sized(limits.step_bytes + 1)), "trace.steps[0]");
    assert_eq!(place_within(&sized(limits.step_bytes + 1), &Limits::STORED), "");
}

#[test]
fn a_step_is_measured_without_the_trace_below_it() {
    let half = "x".repeat(700 * 1024);
    let step = format!(r#"{{"type":"tool_call","name":"a","args":"{half}"}}"#);
    assert_eq!(place(&nested(1, &format!("{step},{step}"))), "");
}

#[test]
fn traces_lie_at_most_five_levels_deep() {
    assert_eq!(place(&nested(5, "")), "");
    assert_eq!(place(&nested(6, "")), format!("trace{}", ".steps[0].sub_trace".repeat(6)));
    assert_eq!(place_within(&nested(6, ""), &Limits::STORED), "");
    let problem = validate(&Trace::parse(&nested(6, "")).unwrap(), &Limits::default()).unwrap_err();
    assert!(problem.to_string().contains("5 levels"), "{problem}");
}
