use crate::policy::{Policy, Source};

fn warnings(sources: &[&str]) -> Vec<String> {
    let source = |(index, text): (usize, &&str)| Source::document(&format!("p{index}"), text);
    let policy = Policy::compile(sources.iter().enumerate().map(source).collect()).expect("a valid policy");
    policy.warnings().iter().map(ToString::to_string).collect()
}

/// The warnings on rules, each `when => then`, all called `a`, `b`, …
fn of_rules(rules: &[(&str, &str)]) -> Vec<String> {
    let mut text = "default: deny\nrules:\n".to_owned();
    for ((when, then), id) in rules.iter().zip('a'..) {
        text.push_str(&format!("  - {{id: {id}, when: '{when}', then: {then}}}\n"));
    }
    warnings(&[&text])
}

#[test]
fn a_tool_name_that_normalisation_never_gives_is_named() {
    for (when, column, name, canonical) in [
        (r#"action.tool == "bash""#, 36, "bash", "shell"),
        (r#""Read" == action.tool"#, 21, "Read", "file_read"),
        (r#"action.tool in ["web_search", "webfetch"]"#, 51, "webfetch", "network"),
        (r#"action.tool != "MultiEdit" && action.depth > 1"#, 36, "MultiEdit", "file_write"),
        (r#"[action.tool == "Web_Search"].size() > 1"#, 37, "Web_Search", "web_search"),
    ] {
        assert_eq!(
            of_rules(&[(when, "deny")]),
            [format!(
                "p0:3:{column}: in `when` of rule `a`: `action.tool` is never \"{name}\": it is the canonical name; write \"{canonical}\", or compare `action.name`, the name as sent"
            )],
            "{when}"
        );
    }
    let found = of_rules(&[(r#"session.called("bash")"#, "deny")]);
    assert!(found.len() == 1 && found[0].contains(r"several names of `shell`"), "{found:?}");
    for when in [
        r#"action.tool in ["shell", "file_write", "web_search", "mcp__x__run"]"#,
        r#"action.name == "bash""#,
        r#"session.called("Shell") || session.called("ba*") || session.tainted("bash")"#,
    ] {
        assert_eq!(of_rules(&[(when, "deny")]), Vec::<String>::new(), "{when}");
    }
}

#[test]
fn an_allow_that_holds_for_every_action_without_commands_is_named() {
    for (when, column) in [
        (r#"action.commands.all(c, c.startsWith("git "))"#, 36),
        (r#"action.commands.all(c, c == "ls") && action.unknown.size() == 0"#, 36),
        (r#"action.commands.all(c, c == "ls") && !action.opaque.exists(o, true)"#, 36),
        (r#"action.tool == "x" || action.commands.all(c, c == "ls")"#, 58),
    ] {
        assert_eq!(
            of_rules(&[(when, "allow")]),
            [format!(
                "p0:3:{column}: rule `a` allows every action without commands: `all` is true for an empty list; write `size(action.commands) > 0 && action.commands.all(…)`"
            )],
            "{when}"
        );
        assert_eq!(of_rules(&[(when, "deny")]), Vec::<String>::new(), "only an allow opens");
    }
    for when in [
        r#"action.commands.size() > 0 && action.commands.all(c, c == "ls")"#,
        r#"size(action.commands) != 0 && action.commands.all(c, c == "ls")"#,
        r#"action.commands.exists(c, true) && action.commands.all(c, c == "ls")"#,
        r#"action.tool == "shell" && action.commands.all(c, c == "ls")"#,
        r"action.unknown.size() == 0",
        r#"!action.hosts.all(h, h == "x")"#,
    ] {
        assert_eq!(of_rules(&[(when, "allow")]), Vec::<String>::new(), "{when}");
    }
}

#[test]
fn a_rule_that_another_always_outweighs_is_named() {
    let (x, y) = (r#"action.tool == "x""#, r"action.depth > 1");
    let both = format!("{x} && {y}");
    let either = format!("({y} || {x})");
    for (weaker, then, stronger, by, says) in [
        (x, "ask", x, "deny", "denies all that it matches, under the same condition"),
        (x, "allow", "true", "deny", "denies everything"),
        (x, "deny", "true", "deny", "denies everything"),
        (&both, "allow", y, "deny", "denies all that it matches;"),
        (&both, "allow", x, "ask", "asks about all that it matches;"),
        (x, "allow", &either, "deny", "denies all that it matches;"),
        (&both, "redact", &either, "deny", "denies all that it matches;"),
        (&format!("{y} && {x}"), "allow", &both, "deny", "under the same condition"),
        (x, "defer", r#"action.tool in ["y", "x"]"#, "ask", "asks about all that it matches;"),
        ("false", "allow", x, "deny", "denies all that it matches;"),
    ] {
        for (rules, line) in [([(weaker, then), (stronger, by)], 3), ([(stronger, by), (weaker, then)], 4)] {
            let found = of_rules(&rules);
            let outweighed: Vec<&String> =
                found.iter().filter(|found| found.contains("never matters")).collect();
            assert_eq!(outweighed.len(), 1, "{rules:?}: {found:?}");
            assert!(
                outweighed[0].starts_with(&format!("p0:{line}:5: ")) && outweighed[0].contains(says),
                "{found:?}"
            );
            assert!(outweighed[0].contains("exclude its case"), "{found:?}");
        }
    }
    for (one, then, two, by) in [
        (x, "allow", both.as_str(), "deny"),
        (either.as_str(), "allow", x, "deny"),
        (x, "deny", x, "allow"),
        (x, "allow", y, "deny"),
        (x, "allow", r#"action.name == "x""#, "deny"),
        (x, "allow", r#"!(action.tool == "x")"#, "deny"),
        (r#"action.tool in ["x", "y"]"#, "allow", x, "deny"),
        (x, "redact", x, "ask"),
    ] {
        let found = of_rules(&[(one, then), (two, by)]);
        let about_first =
            found.iter().any(|found| found.starts_with("p0:3:") && found.contains("never matters"));
        assert!(!about_first, "{one} {then}, {two} {by}: {found:?}");
    }
}

#[test]
fn a_rule_is_outweighed_only_where_the_other_applies() {
    let deny = "rules: [{id: no, when: 'action.depth > 1', then: deny}]\n";
    let allow =
        "scope: team:x\nrules: [{id: ok, when: 'action.depth > 1 && action.port == 1', then: allow}]\n";
    assert_eq!(warnings(&[deny, allow]).len(), 1);
    let of_team = format!("scope: team:y\n{deny}");
    assert_eq!(warnings(&[&of_team, allow]), Vec::<String>::new());
    // A taint is set once the question is answered.
    let taint = "rules:\n  - {id: a, when: 'action.depth > 1', then: ask}\n  - {id: b, when: 'action.depth > 1', then: allow, taint: t}\n";
    assert_eq!(warnings(&[taint]), Vec::<String>::new());
    let twice = "rules:\n  - {id: c, when: 'action.depth > 1', then: ask}\n  - {id: c, when: 'action.depth > 1', then: ask}\n";
    assert_eq!(warnings(&[twice]), ["p0:3:5: rule `c` is written twice with the same condition and effect"]);
}

#[test]
fn comparing_very_many_rules_ends() {
    let part = (0..30)
        .map(|number| format!("(action.depth > {number} || action.port > {number})"))
        .collect::<Vec<_>>()
        .join(" && ");
    let mut text = "rules:\n".to_owned();
    for number in 0..300 {
        let then = if number % 2 == 0 { "allow" } else { "deny" };
        text.push_str(&format!(
            "  - {{id: r{number}, when: '{part} && action.tokens > {number}', then: {then}}}\n"
        ));
    }
    warnings(&[&text]);
}

#[test]
fn the_policies_that_are_shipped_have_no_warnings_on_their_rules() {
    for (name, text) in [
        ("strict", include_str!("../../../../../schemas/examples/strict.yaml")),
        ("balanced", include_str!("../../../../../schemas/examples/balanced.yaml")),
        ("audit-only", include_str!("../../../../../schemas/examples/audit-only.yaml")),
        ("conformance", include_str!("../../../../../schemas/examples/conformance.yaml")),
    ] {
        let found = warnings(&[text]);
        let about_rules = |found: &&String| {
            ["never matters", "is never", "several names", "empty list"]
                .iter()
                .any(|words| found.contains(words))
        };
        assert_eq!(found.iter().filter(about_rules).count(), 0, "{name}: {found:?}");
    }
}
