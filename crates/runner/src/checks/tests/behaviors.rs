use super::*;

fn run(config: &str, response: &str, events: &[(&str, &str)]) -> AssertionResult {
    let response = json(response);
    let payloads: Vec<Json> = events.iter().map(|(_, payload)| json(payload)).collect();
    let views: Vec<EventView<'_>> = events
        .iter()
        .zip(&payloads)
        .enumerate()
        .map(|(index, ((event_type, _), payload))| EventView {
            sequence: payload.get("sequence").and_then(Json::as_u64).or(Some(index as u64)),
            event_type,
            payload,
            is_doubtful: payload.get("doubtful").is_some(),
        })
        .collect();
    let evidence = Evidence { response: &response, events: &views, files: &NoFiles, has_tools: false };
    evaluate(&assertion(loaded("behavior", config)), &evidence, &[])
}

#[test]
fn a_metric_of_the_agent_does_not_stand_for_calls_that_the_endpoint_counts() {
    let response = json(r#"{"metrics": {"tool_calls": 5}}"#);
    let counted = |has_tools| {
        let evidence = Evidence { response: &response, events: &[], files: &NoFiles, has_tools };
        evaluate(&assertion(loaded("behavior", "{min_tool_calls: 3}")), &evidence, &[]).status
    };
    assert_eq!((counted(true), counted(false)), (Status::Failed, Status::Passed));
}

const CALLS: &[(&str, &str)] = &[
    (
        "tool_call",
        r#"{"tool": "search", "input": {"q": "slack", "n": 5}, "output": {"hits": [1]}, "status": "success"}"#,
    ),
    ("progress", r#"{"percentage": 50}"#),
    ("tool_call", r#"{"tool": "write", "args": {"path": "a"}, "status": "error"}"#),
];

#[test]
fn calls_that_the_endpoint_did_not_see_fulfil_nothing_and_still_count_against_limits() {
    let invented = [("tool_call", r#"{"tool": "pay", "status": "success", "doubtful": true}"#)];
    let response = r#"{"metrics": {"tool_calls": 50}}"#;
    for config in [
        "{must_use_tools: [pay]}",
        "{min_tool_calls: 1}",
        "{expected_tool_calls: [{tool: pay}]}",
        "{forbidden_tools: [pay]}",
        "{max_tool_calls: 0}",
    ] {
        assert_eq!(run(config, response, &invented).status, Status::Failed, "{config}");
    }
}

#[test]
fn tools_calls_and_errors() {
    for (config, expected) in [
        ("{must_use_tools: [search, write]}", Status::Passed),
        ("{must_use_tools: [search, read]}", Status::Failed),
        ("{forbidden_tools: [shell]}", Status::Passed),
        ("{forbidden_tools: [shell, write]}", Status::Failed),
        ("{max_tool_calls: 2}", Status::Passed),
        ("{max_tool_calls: 1}", Status::Failed),
        ("{min_tool_calls: 2}", Status::Passed),
        ("{min_tool_calls: 3}", Status::Failed),
        ("{no_errors: true}", Status::Passed),
        ("{check: no_errors}", Status::Passed),
        ("{expected_tool_calls: [{tool: search, status: success}]}", Status::Passed),
        ("{expected_tool_calls: [{tool: search, status: error}]}", Status::Failed),
        (
            "{expected_tool_calls: [{tool: search, input_matches: [{path: $.q, equals: slack}, {path: $.n, equals: 5.0}]}]}",
            Status::Passed,
        ),
        (
            "{expected_tool_calls: [{tool: write, input_matches: [{path: $.path, equals: a}]}]}",
            Status::Passed,
        ),
        (
            "{expected_tool_calls: [{tool: search, output_matches: [{path: '$.hits[0]', exists: true}, {path: '$.hits[1]', absent: true}]}]}",
            Status::Passed,
        ),
        (
            "{expected_tool_calls: [{tool: search, output_matches: [{path: $.hits, absent: true}]}]}",
            Status::Failed,
        ),
        ("{expected_tool_calls: [{tool: search}, {tool: write}], tool_call_order: expected}", Status::Passed),
        ("{expected_tool_calls: [{tool: write}, {tool: search}], tool_call_order: expected}", Status::Failed),
        ("{expected_tool_calls: [{tool: write}, {tool: search}]}", Status::Passed),
        ("{expected_tool_calls: [{tool: write}, {tool: write}]}", Status::Passed),
        ("{expected_tool_calls: [{tool: write}, {tool: write}], tool_call_order: expected}", Status::Failed),
        ("{forbidden_tool_calls: [{tool: search, status: error}]}", Status::Passed),
        ("{forbidden_tool_calls: [{tool: write, status: error}]}", Status::Failed),
    ] {
        assert_eq!(run(config, "{}", CALLS).status, expected, "{config}");
    }
}

#[test]
fn each_rule_is_a_check_of_its_own() {
    let result = run(
        "{must_use_tools: [read], forbidden_tools: [shell], no_errors: true, max_tool_calls: 9}",
        "{}",
        CALLS,
    );
    let names: Vec<(&str, bool)> =
        result.checks.iter().map(|check| (check.name.as_str(), check.passed)).collect();
    assert_eq!(
        names,
        [("must_use_tools", false), ("forbidden_tools", true), ("max_tool_calls", true), ("no_errors", true)]
    );
    assert_eq!((result.status, result.score), (Status::Failed, 0.75));
    assert_eq!(
        result.checks[0].message,
        "not called: `read`; called: `search`({\"q\":\"slack\",\"n\":5}), `write`({\"path\":\"a\"})"
    );
}

#[test]
fn order_is_by_sequence_not_by_arrival() {
    let late: &[(&str, &str)] =
        &[("tool_call", r#"{"tool": "b", "sequence": 9}"#), ("tool_call", r#"{"tool": "a", "sequence": 2}"#)];
    assert_eq!(
        run("{expected_tool_calls: [{tool: a}, {tool: b}], tool_call_order: expected}", "{}", late).status,
        Status::Passed
    );
    let result = run("{expected_tool_calls: [{tool: b}, {tool: a}], tool_call_order: expected}", "{}", late);
    assert_eq!(
        result.checks[0].message,
        "expected call 2 (`a`) was not made after the one before it; called: `b`(), `a`()"
    );
    let nothing = run("{expected_tool_calls: [{tool: a}]}", "{}", &[]);
    assert_eq!(nothing.checks[0].message, "expected call 1 (`a`) was not made; no tool was called");
}

#[test]
fn metrics_do_not_hide_calls() {
    let zero = r#"{"metrics": {"tool_calls": 0}}"#;
    assert_eq!(run("{max_tool_calls: 1}", zero, CALLS).status, Status::Failed);
    assert_eq!(run("{max_tool_calls: 1}", r#"{"metrics": {"tool_calls": 5}}"#, &[]).status, Status::Failed);
    assert_eq!(run("{min_tool_calls: 1}", zero, CALLS).status, Status::Failed);
    assert_eq!(run("{min_tool_calls: 5}", r#"{"metrics": {"tool_calls": 5}}"#, &[]).status, Status::Passed);
}

#[test]
fn recovered_errors_count() {
    let error: &[(&str, &str)] =
        &[("error", r#"{"error_type": "x", "message": "rate limited", "recoverable": true}"#)];
    let result = run("{check: no_errors}", "{}", error);
    assert_eq!(result.checks[0].message, "1 error events, the first: `rate limited`");
    for (response, expected) in [
        (r#"{"error": null}"#, Status::Passed),
        (r#"{"error": ""}"#, Status::Passed),
        (r#"{"error": "no key"}"#, Status::Failed),
        (r#"{"error": {"code": 5}}"#, Status::Failed),
    ] {
        assert_eq!(run("{no_errors: true}", response, &[]).status, expected, "{response}");
    }
}

#[test]
fn rules_are_assertions_of_their_own_too() {
    for (kind, config, name) in [
        ("must_use_tools", "{tools: [a]}", "must_use_tools"),
        ("forbidden_tools", "{tools: [a]}", "forbidden_tools"),
        ("max_tool_calls", "{limit: 0}", "max_tool_calls"),
        ("min_tool_calls", "{limit: 1}", "min_tool_calls"),
        ("no_errors", "{}", "no_errors"),
    ] {
        let response = Json::object();
        let evidence = Evidence { response: &response, events: &[], files: &NoFiles, has_tools: false };
        let result = evaluate(&assertion(loaded(kind, config)), &evidence, &[]);
        assert_eq!(result.checks.len(), 1);
        assert_eq!(result.checks[0].name, name);
    }
}
