//! Errors and remarks at load, and the parts of a condition that the index uses.

use super::*;

/// The problems, as `line:column message`.
fn problems(text: &str) -> Vec<String> {
    match Condition::compile(text) {
        Ok(_) => panic!("`{text}` has to be refused"),
        Err(problems) => problems
            .into_iter()
            .map(|problem| format!("{}:{} {}", problem.offset_line, problem.offset_column, problem.message))
            .collect(),
    }
}

#[test]
fn unknown_names_are_reported_all_at_once_with_the_nearest() {
    assert_eq!(
        problems("acton.tool == \"x\" &&\n  action.toool == \"é\" && action.comand.contans(\"x\")"),
        [
            "1:1 unknown variable `acton`; did you mean `action`?",
            "2:10 `action` has no member `toool`; did you mean `action.tool`?",
            "2:33 `action` has no member `comand`; did you mean `action.command`?",
            "2:40 unknown function `contans`; did you mean `contains`?",
        ]
    );
    assert_eq!(
        problems("\"é\" == action.tol"),
        ["1:15 `action` has no member `tol`; did you mean `action.tool`?"]
    );
    assert_eq!(
        problems("session.caled(\"x\")"),
        ["1:9 `session` has no function `caled`; did you mean `session.called`?"]
    );
    assert_eq!(
        problems("agent.nam == \"x\""),
        ["1:7 `agent` has no member `nam`; did you mean `agent.name`?"]
    );
    assert_eq!(
        problems("time.zone == \"x\""),
        ["1:6 `time` has no member `zone`; it has now, hour, minute, weekday, date"]
    );
    assert_eq!(
        problems("has(action.pth)"),
        ["1:12 `action` has no member `pth`; did you mean `action.path`?"]
    );
    assert_eq!(
        problems("action[\"tol\"] == \"x\""),
        ["1:9 `action` has no member `tol`; did you mean `action.tool`?"]
    );
    assert_eq!(
        problems("action.kind == \"tool_cal\" || time.weekday in [\"monday\", \"Tuesdy\"]"),
        [
            "1:17 `action.kind` is never \"tool_cal\"; did you mean \"tool_call\"?",
            "1:58 `time.weekday` is never \"Tuesdy\"; did you mean \"tuesday\"?",
        ]
    );
    assert_eq!(
        problems("action.paths.exists(p, q == \"x\")"),
        ["1:24 unknown variable `q`; did you mean `p`?"]
    );
}

#[test]
fn what_can_never_be_right_is_refused() {
    for (text, expected) in [
        ("action.tool", "1:1 a condition is true or false, and this is a string"),
        ("  1 + 1", "1:3 a condition is true or false, and this is an int"),
        ("action.tool == 3", "1:13 a string is never equal to an int"),
        ("action.port.contains(\"4\")", "1:1 `contains` is for a string, and this is an int"),
        ("action.tool.lower == \"x\"", "1:13 a string has no member `lower`"),
        (
            "action.tool.size == 3",
            "1:13 a string has no member `size`; `size` is a function: write `size(…)`",
        ),
        ("action.tool && true", "1:1 `&&` is for booleans, and this is a string"),
        ("!action.tool", "1:2 `!` is for booleans, and this is a string"),
        ("action.paths == \"x\"", "1:14 a list is never equal to a string"),
        ("action.paths < 3", "1:14 `<` is not for a list and an int"),
        ("3 in action.paths", "1:3 `in` is not for an int and a list"),
        ("action == 3", "1:1 `action` is not a value by itself; name a member, such as `action.kind`"),
        ("session.called", "1:9 `session.called` is a function: write `session.called(\"…\")`"),
        ("session.called()", "1:9 `session.called` takes one text, as in `session.called(\"read_*\")`"),
        ("session.called(3)", "1:16 `session.called` takes a string, and this is an int"),
        ("session.called(\"\")", "1:16 `session.called` of an empty text matches nothing"),
        ("action.tool.startsWith()", "1:13 `startsWith` takes 1 argument here, not 0"),
        ("contains(action.tool, \"x\")", "1:1 `contains` is written `x.contains(…)`"),
        ("action.tool.int() == 1", "1:13 `int` is written `int(x)`"),
        (
            "action.tool.matches(action.name)",
            "1:21 the pattern of `matches` is written in the condition, not computed",
        ),
        (
            "duration(\"soon\") > duration(\"1s\")",
            "1:10 `soon` is not a duration; write for example \"1h30m\", \"90s\" or \"250ms\"",
        ),
        (
            "time.now > timestamp(\"today\")",
            "1:22 `today` is not a timestamp; write for example \"2026-11-15T20:45:00Z\"",
        ),
        (
            "action.paths.exists(p)",
            "1:14 `exists` takes a name and an expression, as in `action.paths.exists(p, p.startsWith(\"/etc/\"))`",
        ),
        ("action.paths.exists(1, true)", "1:21 the first argument of `exists` is a name of your choice"),
        ("action.paths.exists(p, p)", "1:24 `exists` needs a condition, and this is a string"),
        ("action.port.exists(p, true)", "1:13 `exists` goes through a list or a map, and this is an int"),
        ("has(action)", "1:1 `has` takes one member, as in `has(action.args.command)`"),
        ("action[agent.name] == 1", "1:8 members of `action` are named in the condition, not computed"),
        ("Foo{a: 1} == 1", "1:4 there is no type `Foo`: conditions cannot make messages"),
        ("sise(action.tool) == 1", "1:1 unknown function `sise`; did you mean `size`?"),
        ("", "1:1 the condition is empty; write `true` for always"),
    ] {
        assert_eq!(problems(text), [expected], "{text}");
    }
    assert!(
        problems("type(action.tool) == 1")[0]
            .starts_with("1:1 unknown function `type`; known are contains, ")
    );
    assert!(
        problems("action.tool.matches(\"(\")")[0]
            .starts_with("1:21 this is not a pattern that can be used: ")
    );
    assert!(problems("action.tool.matches(\"(\\\\w{900}){900}\")")[0].contains("this is not a pattern"));
}

#[test]
fn syntax_errors_have_a_place() {
    for (text, line, column) in [
        ("action.tool ==", 1, 15),
        ("action.tool == \"x\" &&\n  && true", 2, 3),
        ("action.tool = \"x\"", 1, 13),
        ("(action.tool == \"x\"", 1, 20),
        ("\"é\" == \"é\" \"x\"", 1, 12),
        ("action.tool == \"x", 1, 16),
        ("a.?b", 1, 2),
    ] {
        let problem = Condition::compile(text).unwrap_err().remove(0);
        assert_eq!((problem.offset_line, problem.offset_column), (line, column), "{text}: {problem}");
        assert!(problem.message.starts_with("cannot be read: "), "{problem}");
    }
    assert!(problems("action.tool = \"x\"")[0].contains("a comparison is written `==`"));
}

#[test]
fn deep_and_long_conditions_are_refused_quickly() {
    let deep = 100_000;
    for text in [
        "(".repeat(deep) + "true" + &")".repeat(deep),
        "(".repeat(deep),
        "!".repeat(deep) + "true",
        "! ".repeat(1000) + "true",
        "-".repeat(1000) + "1",
        "[".repeat(100),
        "{1:".repeat(100),
        "true?true:".repeat(100) + "true",
        "x".to_owned() + &".b".repeat(1200),
        "1".to_owned() + &"+1".repeat(1200) + " == 1",
        "\"\\\"\" + ".to_owned() + &"(".repeat(200),
        "r\"\\\" + ".to_owned() + &"(".repeat(200),
        "'\n".to_owned() + &"(".repeat(200),
    ] {
        let problem = Condition::compile(&text).unwrap_err().remove(0);
        assert!(
            problem.message.contains("nested too deeply") || problem.message.contains("bytes long"),
            "{problem}"
        );
    }
    // A reading of quotes that differs from the parser's ends at the parser's own limit.
    let quotes = "\"\"\"\" + ".repeat(3) + &"(".repeat(2000);
    assert!(Condition::compile(&quotes).is_err());
    // As deep as can be: neither the parser nor the evaluator may run out of stack.
    let chain = "action.args".to_owned() + &".b".repeat(MAX_SIGNS - 2);
    assert!(problems(&chain)[0].contains("nested too deeply"));
    let sum = "1".to_owned() + &"+1".repeat(90) + " == 91";
    assert_eq!(truth(&sum), Truth::True);
    let nested = "(".repeat(MAX_NESTING) + "true" + &")".repeat(MAX_NESTING);
    assert_eq!(truth(&nested), Truth::True);
    let alternatives = vec!["action.tool == \"x\""; 150].join(" || ");
    assert_eq!(truth(&alternatives), Truth::False);
    assert_eq!(truth("\"((((((((((((((((((((((((((((((((((((((((((\" != \"\""), Truth::True);
}

#[test]
fn negating_what_may_be_missing_is_remarked() {
    let warned = |text: &str| Condition::compile(text).unwrap().warnings();
    for (text, column) in [
        ("!action.args.force", 1),
        ("action.tool == \"x\" && !(action.args.env == \"prod\")", 23),
        ("!action.args.files.exists(f, f.x == 1)", 1),
        ("!has(action.args.a.b)", 1),
        ("!action.result.ok", 1),
        ("!(action.metadata[\"x\"] == 1)", 1),
    ] {
        let warnings = warned(text);
        assert_eq!(warnings.len(), 1, "{text}");
        assert_eq!(warnings[0].offset_column, column, "{text}");
    }
    for text in [
        "action.args.force",
        "!has(action.args.force)",
        "!(has(action.args.force) && action.args.force)",
        "!(has(action.args.force) ? action.args.force : false)",
        "!has(action.args.force) || !action.args.force && true || false",
        "!action.tool.startsWith(\"x\")",
        "!session.called(\"x\")",
        "!(\"x\" in action.args)",
    ] {
        let expected = usize::from(text.contains("|| !action.args"));
        assert_eq!(warned(text).len(), expected, "{text}");
    }
}

#[test]
fn the_index_says_what_must_hold() {
    use ActionKind::{LlmCall, NetworkCall, ToolCall};
    let index = |text: &str| {
        let index = Condition::compile(text).unwrap().index().clone();
        (index.kinds, index.tools.map(|tools| tools.join(",")))
    };
    let tools = |tools: &str| Some(tools.to_owned());
    assert_eq!(index("true"), (None, None));
    assert_eq!(index("action.kind == \"tool_call\""), (Some(vec![ToolCall]), None));
    assert_eq!(index("\"Bash\" == action.name"), (None, tools("bash")));
    assert_eq!(
        index("action.args.x == 1 && action.tool == \"A\" && action.kind in [\"llm_call\", \"tool_call\"]"),
        (Some(vec![LlmCall, ToolCall]), tools("a"))
    );
    assert_eq!(
        index("action.kind == \"llm_call\" || action.kind == \"network_call\" && action.tool == \"x\""),
        (Some(vec![LlmCall, NetworkCall]), None)
    );
    assert_eq!(index("action.tool == \"a\" || action.name in [\"b\", \"A\"]"), (None, tools("a,b")));
    assert_eq!(index("action.tool == \"a\" || action.path == \"b\""), (None, None));
    assert_eq!(index("!(action.tool == \"a\")"), (None, None));
    assert_eq!(index("action.tool != \"a\""), (None, None));
    assert_eq!(index("action.tool == action.name"), (None, None));
    // Both names can hold at once, so that neither list may be dropped for the other.
    assert_eq!(index("action.tool == \"shell\" && action.name == \"bash\""), (None, tools("shell")));
    assert_eq!(index("action.kind == \"llm_call\" && action.kind == \"tool_call\""), (Some(vec![]), None));
}

#[test]
fn the_index_never_hides_a_condition_that_holds() {
    let past = Past::default();
    for text in [
        "action.tool == \"shell\" && action.name == \"Bash\"",
        "action.name == \"Bash\" || action.kind == \"llm_call\"",
        "action.kind == \"tool_call\" && (action.tool == \"x\" || action.tool in [\"shell\"])",
    ] {
        let condition = Condition::compile(text).unwrap();
        let input = input();
        assert_eq!(condition.evaluate_alone(&input, &past), Truth::True);
        let index = condition.index();
        assert!(index.kinds.as_ref().is_none_or(|kinds| kinds.contains(&input.facts.kind)));
        let names = [input.facts.name.to_lowercase(), input.facts.tool.clone()];
        assert!(index.tools.as_ref().is_none_or(|tools| tools.iter().any(|tool| names.contains(tool))));
    }
}
