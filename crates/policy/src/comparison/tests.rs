mod law;

use super::*;
use crate::policy::Source;

fn policy(text: &str) -> Policy {
    documents(&[("policy.yaml", text)])
}

fn documents(sources: &[(&str, &str)]) -> Policy {
    let sources = sources.iter().map(|(name, text)| Source::document(name, text)).collect();
    Policy::compile(sources).unwrap_or_else(|problems| panic!("{problems:?}"))
}

fn changes(before: &str, after: &str) -> Vec<String> {
    weaker_changes(&policy(before), &policy(after))
}

#[track_caller]
fn assert_kept(before: &str, after: &str) {
    assert_eq!(changes(before, after), Vec::<String>::new(), "{after}");
}

#[track_caller]
fn assert_weaker(before: &str, after: &str, what: &str) {
    let changes = changes(before, after);
    assert!(changes.iter().any(|change| change.contains(what)), "{changes:?}");
}

const RULES: &str = "version: \"1\"
default: ask
rules:
  - { id: no-rm, when: 'action.command.contains(\"rm \")', then: deny }
  - { id: look, when: 'action.tool == \"file_read\"', then: allow }
  - { id: push, when: 'action.command.contains(\"push\")', then: ask, approvers: [ann, bob], expires: 60s }
";

fn with(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "{from}");
    text.replace(from, to)
}

#[test]
fn comments_names_and_reasons_do_not_weaken_a_policy() {
    assert_kept(RULES, RULES);
    assert_kept(RULES, &with(RULES, "rules:", "# more room\n\n\nrules:"));
    assert_kept(RULES, &with(RULES, "id: no-rm", "id: never-remove, reason: because"));
    let (before, after) = (documents(&[("a.yaml", RULES)]), documents(&[("b.yaml", RULES)]));
    assert!(weaker_changes(&before, &after).is_empty(), "a renamed file is the same document");
    let advice = "version: \"1\"\nadvice:\n  intents:\n    - { intent: ask, any: [why] }\n";
    assert_kept(advice, &with(advice, "advice:", "\n# moved\nadvice:"));
}

#[test]
fn added_denials_and_removed_permissions_do_not_weaken_a_policy() {
    let denies = with(
        RULES,
        "rules:\n",
        "rules:\n  - { id: no-net, when: 'action.tool == \"network\"', then: deny }\n",
    );
    assert_kept(RULES, &denies);
    assert_weaker(&denies, RULES, "rule `no-net` (deny) is gone");
    let lines: Vec<&str> = RULES.lines().filter(|line| !line.contains("look")).collect();
    let fewer = lines.join("\n");
    assert_kept(RULES, &fewer);
    assert_weaker(&fewer, RULES, "rule `look` (allow) is new");
    assert_kept(RULES, &with(RULES, "then: allow", "then: deny"));
    assert_weaker(
        RULES,
        &with(RULES, "then: deny", "then: ask"),
        "rule `no-rm` (deny) is gone, or less strict",
    );
    assert_weaker(RULES, &with(RULES, "\"rm \"", "\"rmdir \""), "rule `no-rm`");
    assert_kept(RULES, &with(RULES, "default: ask", "default: deny"));
    assert_weaker(RULES, &with(RULES, "default: ask", "default: allow"), "`default` was ask and is allow");
    assert_weaker(RULES, "version: \"1\"\n", "`default` was ask and is allow");
}

#[test]
fn an_added_question_weakens_a_policy_only_where_it_stands_for_a_denial() {
    let asks = "  - { id: net, when: 'action.tool == \"network\"', then: ask }\n";
    assert_kept(RULES, &format!("{RULES}{asks}"));
    let closed = with(RULES, "default: ask", "default: deny");
    assert_weaker(&closed, &format!("{closed}{asks}"), "rule `net` (ask) is new");
    assert_kept(&closed, &with(&closed, "then: allow", "then: ask"));
    assert_kept(RULES, &with(RULES, "[ann, bob]", "[bob]"));
    assert_weaker(RULES, &with(RULES, "[ann, bob]", "[ann, bob, eve]"), "rule `push`");
    assert_kept(RULES, &with(RULES, "expires: 60s", "expires: 30s"));
    assert_weaker(RULES, &with(RULES, "expires: 60s", "expires: 90s"), "rule `push`");
}

#[test]
fn lower_limits_do_not_weaken_a_policy_and_higher_ones_do() {
    let text = "version: \"1\"
default: deny
tools:
  Bash: { allow: true, limit_per_hour: 10 }
  '*': { allow: false }
network: { allowlist: [a.example, b.example] }
capabilities: { allow: [file_read, file_write], deny: [agent_spawn] }
budget: { daily_limit_usd: 5, monthly_limit_usd: 50 }
schedule: { active_hours: { start: \"08:00\", end: \"18:00\", timezone: UTC } }
approval_timeout_secs: 100
observe: [a*, b*]
anomalies: { loops: { count: 10, then: deny } }
";
    let cases = [
        ("limit_per_hour: 10", "limit_per_hour: 9", "limit_per_hour: 11", "`tools.Bash` is less strict"),
        ("allow: true, limit", "allow: false, limit", "limit", ""),
        ("'*': { allow: false }", "", "'*': { allow: true }", "`tools.*` is less strict"),
        ("[a.example, b.example]", "[b.example]", "[a.example, b.example, c.example]", "`network.allowlist`"),
        (
            "[file_read, file_write]",
            "[file_read]",
            "[file_read, file_write, file_delete]",
            "`capabilities.allow`",
        ),
        ("deny: [agent_spawn]", "deny: [agent_spawn, file_delete]", "deny: []", "`capabilities.deny`"),
        (
            "daily_limit_usd: 5,",
            "daily_limit_usd: 4,",
            "daily_limit_usd: 6,",
            "`budget.daily_limit_usd` is higher",
        ),
        ("daily_limit_usd: 5,", "daily_limit_usd: 5, window: 24h,", "", "`budget.daily_limit_usd` is gone"),
        ("\"18:00\"", "\"17:00\"", "\"19:00\"", "`schedule.active_hours`"),
        ("approval_timeout_secs: 100", "approval_timeout_secs: 99", "", "approvals wait longer"),
        ("observe: [a*, b*]", "observe: [a*]", "observe: [\"*\"]", "`observe`"),
        ("count: 10", "count: 9", "count: 11", "`anomalies`"),
        ("then: deny } }", "then: suspend } }", "then: alarm } }", "`anomalies`"),
    ];
    for (from, stricter, weaker, what) in cases {
        if !stricter.contains("window") && !stricter.is_empty() {
            assert_kept(text, &with(text, from, stricter));
        }
        if !what.is_empty() {
            assert_weaker(text, &with(text, from, weaker), what);
        }
    }
    assert_weaker(
        text,
        &with(text, "daily_limit_usd: 5,", "daily_limit_usd: 5, window: 24h,"),
        "`budget.window`",
    );
    for gone in ["network:", "capabilities:", "budget:", "schedule:", "anomalies:"] {
        let rest: Vec<&str> = text.lines().filter(|line| !line.starts_with(gone)).collect();
        assert!(!changes(text, &rest.join("\n")).is_empty(), "{gone}");
    }
}

#[test]
fn sections_that_permit_weaken_a_policy_that_does_not() {
    let (open, closed) = ("version: \"1\"\ndefault: allow\n", "version: \"1\"\ndefault: deny\n");
    let sections = [
        ("network: { allowlist: [evil.example] }", "`network.allowlist`"),
        ("capabilities: { allow: [terminal_exec] }", "`capabilities.allow`"),
    ];
    for (section, what) in sections {
        assert_kept(open, &format!("{open}{section}\n"));
        assert_weaker(closed, &format!("{closed}{section}\n"), what);
    }
    assert_kept(closed, &format!("{closed}tools: {{ Bash: {{ allow: false }} }}\n"));
    assert_weaker(closed, &format!("{closed}tools: {{ Bash: {{ allow: true }} }}\n"), "`tools.Bash` is new");
    assert_weaker(closed, &format!("{closed}data: {{ credential_action: alert_only }}\n"), "`data` changed");
    assert_kept(closed, &format!("{closed}data: {{ credential_action: block }}\n"));
}

#[test]
fn the_entry_for_a_tool_does_not_take_the_place_of_the_one_for_all_tools() {
    let text = "version: \"1\"\ntools:\n  '*': { allow: true, limit_per_hour: 5 }\n";
    assert_weaker(text, &format!("{text}  Bash: {{ allow: true }}\n"), "`tools.Bash` is new");
    assert_kept(text, &format!("{text}  Bash: {{ allow: false }}\n"));
}

#[test]
fn documents_that_come_and_go_count_as_changes() {
    let deny = "version: \"1\"\nrules:\n  - { id: n, when: 'action.tool == \"network\"', then: deny }\ndefault: ask\n";
    let main = ("a.yaml", RULES);
    let (one, two) = (documents(&[main]), documents(&[main, ("b.yaml", deny)]));
    assert!(weaker_changes(&one, &two).is_empty());
    assert!(!weaker_changes(&two, &one).is_empty());
    let team = "version: \"1\"\nscope: team:red\ndefault: deny\n";
    let (red, both) = (documents(&[("t.yaml", team)]), documents(&[("t.yaml", team), main]));
    assert!(!weaker_changes(&red, &both).is_empty(), "callers without a team had no policy");
    assert!(weaker_changes(&both, &Policy::closed()).is_empty());
    assert!(!weaker_changes(&Policy::closed(), &both).is_empty());
}

#[test]
fn every_change_of_a_rule_that_changes_actions_counts_as_weaker() {
    let redacts = "version: \"1\"\ndefault: allow\nrules:\n  - { id: r, then: redact }\n";
    assert_kept(redacts, redacts);
    assert_weaker(redacts, "version: \"1\"\ndefault: allow\nrules: []\n", "`redact` or `modify`");
    let modifies =
        "version: \"1\"\ndefault: allow\nrules:\n  - { id: m, then: modify, set: { /args/x: 1 } }\n";
    assert_weaker(modifies, &with(modifies, "/args/x: 1", "/args/x: 2"), "`redact` or `modify`");
}

#[test]
fn taints_that_other_rules_wait_for_stay_as_they_are() {
    let text = "version: \"1\"\ndefault: ask\nrules:\n  - { id: a, when: 'action.tool == \"file_read\"', then: allow, taint: [seen] }\n";
    assert_weaker(text, &with(text, ", taint: [seen]", ""), "rule `a` (allow) is gone");
    assert_kept(text, &with(text, "then: allow", "then: deny"));
    let more =
        format!("{text}  - {{ id: b, when: 'action.tool == \"network\"', then: ask, taint: [other] }}\n");
    assert_weaker(text, &more, "rule `b` (ask) is new");
}

#[cfg(feature = "rego")]
#[test]
fn every_change_of_a_module_counts_as_weaker() {
    let with_module = |module: &str| {
        let document = "version: \"1\"\ndefault: deny\nmodules:\n  - { rego: m.rego }\n";
        let sources = vec![
            Source::document("policy.yaml", document),
            Source::module(SourceRole::Rego, "m.rego", module),
        ];
        Policy::compile(sources).unwrap_or_else(|problems| panic!("{problems:?}"))
    };
    let module = "package proctor\n\ndecision := {\"effect\": \"deny\"}\n";
    let before = with_module(module);
    assert!(weaker_changes(&before, &with_module(module)).is_empty());
    assert_eq!(
        weaker_changes(&before, &with_module(&format!("{module}\n"))),
        ["`policy.yaml`: `modules` changed"]
    );
}

#[test]
fn the_list_of_changes_is_bounded() {
    let rules: Vec<String> = (0..150)
        .map(|n| format!("  - {{ id: r{n}, when: 'action.command == \"{n}\"', then: deny }}\n"))
        .collect();
    let before = format!("version: \"1\"\ndefault: allow\nrules:\n{}", rules.concat());
    let changes = changes(&before, "version: \"1\"\ndefault: allow\nrules: []\n");
    assert_eq!((changes.len(), changes.last().map(String::as_str)), (101, Some("and 50 more")));
}

#[test]
fn the_way_back_from_a_policy_that_allows_everything_is_open() {
    let open = "version: \"1\"\ndefault: allow\n";
    assert_kept(open, RULES);
    assert_kept(open, include_str!("../../../../schemas/examples/balanced.yaml"));
    assert_kept(open, include_str!("../../../../schemas/examples/strict.yaml"));
}
