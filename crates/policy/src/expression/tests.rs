use proctor_core::action::ActionKind;
use proctor_core::json::Json;
use proctor_facts::Facts;

use super::*;

fn json(text: &str) -> Json {
    Json::parse(text.as_bytes()).expect("JSON")
}

fn fires(expression: &str, facts: &Facts) -> bool {
    Expression::parse(expression).expect(expression).requires_approval(facts, &|_| None)
}

fn fires_with(expression: &str, name: &str, value: &str) -> bool {
    let expression = Expression::parse(expression).expect(expression);
    let value = json(value);
    expression.requires_approval(&Facts::default(), &|asked| (asked == name).then(|| value.clone()))
}

fn args(text: &str) -> Facts {
    Facts { args: json(text), ..Facts::default() }
}

fn error(expression: &str) -> String {
    Expression::parse(expression).expect_err(expression).to_string()
}

#[test]
fn and_binds_tighter_than_or() {
    let facts = args(r#"{"a": 1, "b": 2, "c": 3}"#);
    assert!(fires("args.a == 1 OR args.b == 9 AND args.c == 9", &facts));
    assert!(fires("args.a == 9 AND args.b == 2 OR args.c == 3", &facts));
    assert!(!fires("args.a == 9 OR args.b == 2 AND args.c == 9", &facts));
}

#[test]
fn every_operator_compares_arguments() {
    let facts =
        args(r#"{"n": 10, "s": "hello world", "deep": {"x": {"y": "z"}}, "list": ["a", "b"], "t": true}"#);
    for expression in [
        "args.n == 10",
        "args.n == 10.0",
        "args.n != 11",
        "args.n > 9.5",
        "args.n >= 10",
        "args.n < 11",
        "args.n <= 10",
        r#"args.s == "hello world""#,
        r#"args.s != "hello""#,
        "args.s contains world",
        r#"args.s contains "o w""#,
        "args.s starts_with hello",
        r#"args.s in ["x", "hello world"]"#,
        r#"args.s not_in ["x"]"#,
        "args.deep.x.y == z",
        "args.list contains a",
        "args.list.1 == b",
        "args.t == true",
        "args.t != false",
    ] {
        assert!(fires(expression, &facts), "{expression}");
    }
    for expression in [
        "args.n != 10",
        "args.n > 10",
        "args.n < 10",
        r#"args.s == "hello""#,
        "args.s contains xyz",
        "args.s starts_with world",
        r#"args.s in ["x"]"#,
        r#"args.s not_in ["hello world"]"#,
        "args.list contains c",
        "args.t == false",
    ] {
        assert!(!fires(expression, &facts), "{expression}");
    }
}

#[test]
fn a_missing_argument_does_not_match() {
    let facts = args(r#"{"n": 10, "s": "ten", "o": {}}"#);
    for expression in [
        "args.x == 1",
        "args.x != 1",
        "args.x > 1",
        r#"args.x not_in ["a"]"#,
        "args.o.deeper == 1",
        "args.s > \"a\"",
        "tool_result == x",
        "tool_result.a == 1",
    ] {
        assert!(!fires(expression, &facts), "{expression}");
    }
    let broken = Facts { result: Json::String("{not json".to_owned()), ..Facts::default() };
    assert!(!fires("tool_result.a == 1", &broken));
}

#[test]
fn a_value_of_another_type_asks() {
    let facts = args(r#"{"n": 10, "s": "9999", "o": {}, "null": null, "l": [9999], "t": true}"#);
    for expression in [
        "args.s > 5",
        "args.s < 5",
        "args.s == 10",
        r#"args.n == "x""#,
        r#"args.n contains "x""#,
        "args.n.deeper == 1",
        "args.s.deeper == 1",
        "args.o == 1",
        "args.null == 1",
        "args.l > 5",
        r#"args.l in ["a"]"#,
        r#"args.t contains "true""#,
    ] {
        assert!(fires(expression, &facts), "{expression}");
    }
}

#[test]
fn results_are_read_as_json_even_inside_a_text() {
    let facts = Facts { result: Json::String(r#"{"rows": 500}"#.to_owned()), ..Facts::default() };
    assert!(fires("tool_result.rows > 100", &facts));
    assert!(fires("tool_result contains rows", &facts));
    let facts = Facts { result: json(r#"{"rows": 500}"#), ..Facts::default() };
    assert!(fires("tool_result.rows > 100", &facts));
    assert!(fires("tool_result contains rows", &facts));
}

#[test]
fn amounts_are_compared_exactly_and_huge_ones_are_large() {
    assert!(!fires("args.n > 0.1", &args(r#"{"n": 0.1}"#)));
    assert!(fires("args.n > 0.1", &args(r#"{"n": 0.10000000000000000001}"#)));
    assert!(fires("args.n > 100", &args(r#"{"n": 1e300}"#)));
    assert!(fires("args.n > 100", &args(r#"{"n": 999999999999999999999999999999999999999}"#)));
    assert!(!fires("args.n > 100", &args(r#"{"n": -1e300}"#)));
    assert!(fires("args.n < 100", &args(r#"{"n": 1e-300}"#)));
}

#[test]
fn fields_of_every_kind_of_action_are_seen() {
    let facts = Facts {
        kind: ActionKind::ProcessExec,
        name: "Bash".to_owned(),
        tool: "shell".to_owned(),
        command: "cd / && rm -rf x".to_owned(),
        commands: vec!["cd /".to_owned(), "rm -rf x".to_owned()],
        paths: vec!["/tmp/a".to_owned(), "/etc/passwd".to_owned()],
        hosts: vec!["evil.example".to_owned()],
        ..Facts::default()
    };
    for expression in [
        "path starts_with /etc",
        r#"path not_in ["/tmp/a"]"#,
        r#"path != "/tmp/a""#,
        "command starts_with rm",
        "command contains &&",
        "tool == Bash",
        "tool == shell",
        r#"tool in ["shell"]"#,
        "url contains evil.example",
        r#"url starts_with "https://evil""#,
    ] {
        assert!(fires(expression, &facts), "{expression}");
    }
    for expression in [
        "path starts_with /usr",
        "tool != shell",
        r#"tool not_in ["Bash"]"#,
        "command starts_with /",
        "method == CONNECT",
    ] {
        assert!(!fires(expression, &facts), "{expression}");
    }
    let network =
        Facts { kind: ActionKind::NetworkCall, host: "h".to_owned(), port: 8443, ..Facts::default() };
    assert!(fires("method == CONNECT", &network));
    assert!(fires(r#"url == "https://h:8443""#, &network));
    assert!(fires("method == POST", &args(r#"{"method": "post"}"#)));
}

#[test]
fn an_order_on_text_without_numbers_fires() {
    let facts =
        Facts { name: "ls".to_owned(), tool: "ls".to_owned(), path: "/x".to_owned(), ..Facts::default() };
    assert!(fires("tool > 5", &facts));
    assert!(fires(r#"path >= "/a""#, &facts));
    let facts = Facts { name: "7".to_owned(), tool: "7".to_owned(), ..Facts::default() };
    assert!(fires("tool > 5", &facts));
    assert!(!fires("tool > 9", &facts));
}

#[test]
fn an_action_without_the_field_has_the_empty_text() {
    assert!(fires(r#"path != "/x""#, &Facts::default()));
    assert!(!fires("path starts_with /etc", &Facts::default()));
}

#[test]
fn context_that_nobody_knows_fires_if_it_is_a_number() {
    let none = Facts::default();
    for expression in [
        "agent.depth > 3",
        "agent.age < 24h",
        "team.budget_remaining < 1",
        "governance_level >= L2",
        "agent.is_root == true",
    ] {
        assert!(fires(expression, &none), "{expression}");
    }
    for expression in [
        r#"agent.team_id == "x""#,
        r#"agent.team_id != "x""#,
        "agent.risk_tier >= High",
        "child.tool == x",
        "parent.risk_tier == Low",
    ] {
        assert!(!fires(expression, &none), "{expression}");
    }
}

#[test]
fn known_context_is_compared_by_its_type() {
    assert!(fires_with("agent.depth > 3", "agent.depth", "4"));
    assert!(!fires_with("agent.depth > 3", "agent.depth", "3"));
    assert!(fires_with("agent.depth > 3", "agent.depth", "\"deep\""));
    assert!(fires_with("agent.age < 24h", "agent.age", "86399"));
    assert!(!fires_with("agent.age < 24h", "agent.age", "86400"));
    assert!(fires_with("governance_level >= L2", "governance_level", "\"L2\""));
    assert!(!fires_with("governance_level >= L2", "governance_level", "1"));
    assert!(fires_with("agent.risk_tier >= High", "agent.risk_tier", "\"Critical\""));
    assert!(!fires_with("agent.risk_tier >= High", "agent.risk_tier", "\"Medium\""));
    assert!(fires_with(r#"agent.risk_tier in ["Low", "Medium"]"#, "agent.risk_tier", "\"Medium\""));
    assert!(fires_with("agent.is_root == true", "agent.is_root", "true"));
    assert!(!fires_with("agent.is_root == true", "agent.is_root", "false"));
    assert!(fires_with("agent.team_id != a", "agent.team_id", "\"b\""));
    assert!(fires_with("agent.depth in [1, 2]", "agent.depth", "2"));
    assert!(!fires_with("agent.depth not_in [1, 2]", "agent.depth", "2"));
}

#[test]
fn the_first_documents_of_the_family_are_read() {
    assert!(fires("estimated_cost_usd > 0.10", &args(r#"{"estimated_cost_usd": 0.11}"#)));
    assert!(!fires("estimated_cost_usd > 0.10", &args(r#"{"estimated_cost_usd": 0.10}"#)));
    let facts = Facts { paths: vec!["/usr/bin/x".to_owned()], ..Facts::default() };
    assert!(fires("path starts_with /etc OR path starts_with /usr", &facts));
}

#[test]
fn mistakes_are_named_with_their_column() {
    for (expression, expected) in [
        ("pth starts_with /etc", "column 1: unknown variable `pth`; did you mean `path`?"),
        (
            "path == x AND agent.dept > 1",
            "column 15: unknown variable `agent.dept`; did you mean `agent.depth`?",
        ),
        ("path startswith /etc", "column 6: unknown operator `startswith`; did you mean `starts_with`?"),
        ("path = /etc", "column 6: unknown operator `=`; did you mean `==`?"),
        ("path ==", "column 8: a value is missing here, such as `\"/etc\"` or `10`"),
        ("path == x and tool == y", "column 11: unexpected `and`; write `AND` in capitals"),
        ("path == \"x", "column 9: this string does not end; add a `\"`"),
        (
            "path == \"a\\n\"",
            "column 11: a backslash stands only before `\"` or another backslash; double it",
        ),
        ("(path == x)", "column 1: parentheses are not part of this language; `AND` binds tighter than `OR`"),
        ("path in x", "column 9: `in` needs a list, such as `[\"a\", \"b\"]`"),
        ("path == [x]", "column 9: `==` does not take a list; use `in` or `not_in`"),
        ("path in [x", "column 9: this list does not end; add a `]`"),
        ("path in []", "column 9: this list is empty; name at least one value"),
        ("path == 'x'", "column 9: strings are written in double quotes"),
        (
            "governance_level >= L4",
            "column 21: `L4` is not a governance level; valid are `L0`, `L1`, `L2`, `L3`",
        ),
        (
            "agent.risk_tier == high",
            "column 20: `high` is not a risk tier; valid are `Low`, `Medium`, `High`, `Critical`",
        ),
        ("agent.depth > deep", "column 15: `agent.depth` is compared with a number, found `deep`"),
        ("agent.depth contains 1", "column 22: `contains` needs a string, and `agent.depth` is not one"),
        ("agent.is_root > true", "column 17: `agent.is_root` is true or false and has no order"),
        ("args == 1", "column 1: `args` needs the name of an argument, as in `args.amount`"),
        ("args..x == 1", "column 1: a name is missing between, before or after the dots"),
        ("path == x OR", "column 13: a variable is missing here, as in `path starts_with \"/etc\"`"),
        ("", "column 1: a variable is missing here, as in `path starts_with \"/etc\"`"),
    ] {
        assert_eq!(error(expression), expected, "{expression}");
    }
}

#[test]
fn the_size_is_bounded() {
    assert!(error(&format!("tool == {}", "x".repeat(5000))).contains("at most 4096"));
    let many = vec!["tool == x"; 256].join(" OR ");
    assert!(Expression::parse(&many).is_ok());
    let many = vec!["tool == x"; 257].join(" OR ");
    assert!(error(&many).ends_with("more than 256 clauses"));
}

#[test]
fn what_is_printed_reads_back() {
    for expression in [
        r#"path starts_with "/e\"t\\c" AND args.n > 0.10 OR agent.age < 24h"#,
        r#"tool not_in ["a", "b,]"]"#,
        "tool_result.x == y",
    ] {
        let read = Expression::parse(expression).expect(expression);
        assert_eq!(Expression::parse(&read.to_string()), Ok(read));
    }
}
