//! Mock tools answer by input and by number of the call.

use proctor_core::json::Json;

use super::*;

fn tool(responses: &str) -> MockTool {
    let source =
        with_test(&format!("mock_tools:\n- {{name: t, responses: {responses}, default: {{output: none}}}}"));
    loaded(&source).suite.tests[0].settings.mock_tools[0].clone()
}

fn answer(tool: &MockTool, input: &str, call: u64) -> String {
    tool.answer(&Json::parse(input.as_bytes()).unwrap(), call).output.to_string()
}

#[test]
fn the_first_rule_that_matches_answers() {
    let tool = tool(
        "[{when: {type: exact, field: op, pattern: add}, then: {output: 1}}, {when: {type: contains, pattern: needle}, then: {output: 2}}, {when: {type: regex, field: n, pattern: '^4\\d$'}, then: {output: 3}}, {when: {type: any, field: q, pattern: x}, then: {output: 4}}]",
    );
    assert_eq!(answer(&tool, r#"{"op": "add"}"#, 1), "1");
    assert_eq!(answer(&tool, r#"{"a": ["needle"]}"#, 1), "2");
    assert_eq!(answer(&tool, r#"{"n": 42}"#, 1), "3");
    assert_eq!(answer(&tool, "null", 1), "4");
    let strict = self::tool(
        "[{when: {type: exact, pattern: '{\"a\":1}'}, then: {output: 1}}, {when: {type: exact, pattern: x}, then: {output: 2}}]",
    );
    assert_eq!(answer(&strict, r#"{ "a": 1 }"#, 1), "1");
    assert_eq!(answer(&strict, r#""x""#, 1), "2");
    assert_eq!(answer(&strict, "5", 1), r#""none""#);
}

#[test]
fn calls_are_counted() {
    let tool = tool(
        "[{when: {call: 2}, then: {output: second}}, {when: {from_call: 4, to_call: 5}, then: {error: busy}}, {when: {from_call: 7, type: exact, field: a, pattern: b}, then: {output: late}}]",
    );
    let said: Vec<String> = (1..=8).map(|call| answer(&tool, r#"{"a": "b"}"#, call)).collect();
    assert_eq!(
        said,
        [r#""none""#, r#""second""#, r#""none""#, "{}", "{}", r#""none""#, r#""late""#, r#""late""#]
    );
    let busy = tool.answer(&Json::Null, 4);
    assert_eq!((busy.status, busy.error.as_deref()), (MockStatus::Error, Some("busy")));
}

#[test]
fn usual_answers_and_delays() {
    let source = with_test(
        "mock_tools: {default_delay_ms: 7, tools: [{name: t}, {name: u, default: {delay_ms: 1, output: null}}]}",
    );
    let test = &loaded(&source).suite.tests[0];
    let empty = test.settings.mock_tools[0].answer(&Json::Null, 1);
    assert_eq!(
        (empty.output.to_string().as_str(), empty.status, empty.delay_ms),
        ("{}", MockStatus::Success, 7)
    );
    let own = test.settings.mock_tools[1].answer(&Json::Null, 1);
    assert_eq!((own.output.is_null(), own.delay_ms), (true, 1));
}

#[test]
fn mistakes_of_mock_tools() {
    for (responses, expected) in [
        ("[{when: {type: glob, pattern: x}, then: {}}]", "unknown value `glob`"),
        ("[{when: {type: regex, pattern: '('}, then: {}}]", "is not a regular expression"),
        ("[{when: {call: 1, from_call: 2}, then: {}}]", "`call` stands for one call"),
        ("[{when: {from_call: 3, to_call: 2}, then: {}}]", "the rule would never match"),
        ("[{when: {call: 0}, then: {}}]", "expected a whole number from 1 on"),
        ("[{then: {outptu: 1}}]", "did you mean `output`?"),
        ("[{then: {status: ok}}]", "known are `success`, `error`"),
    ] {
        let found = mistakes(&with_test(&format!("mock_tools: [{{name: t, responses: {responses}}}]")));
        assert!(found.iter().any(|line| line.contains(expected)), "{responses}: {found:?}");
    }
    let twice = mistakes(&with_test("mock_tools: [{name: t}, {name: t}]"));
    assert!(twice[0].contains("the tool `t` is there already"), "{twice:?}");
}
