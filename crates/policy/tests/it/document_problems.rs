//! Problems of documents: all are reported, each with its position.

use proctor_policy::document::read_document;

fn problems(source: &str) -> Vec<String> {
    let problems = read_document("p.yaml", source.as_bytes()).expect_err("must be refused");
    problems
        .iter()
        .map(|problem| format!("{}:{} {}", problem.at.line, problem.at.column, problem.message))
        .collect()
}

#[test]
fn one_document_with_many_mistakes_reports_all_of_them() {
    let source = r#"version: 1
scope: squad:red
defalt: deny
approval_timeout_secs: 0
network:
  allowlst: [a.example]
  allowlist: [api.example, "  "]
tools:
  shell: {allow: "true", limit_per_hour: 0}
  Shell: {allow: true}
  file_write:
    allow: true
    requires_approval_if: pth starts_with "/etc"
  search:
    allow: true
    requires_approval_if: |
      path == "/x"
        AND agent.dept > 1
data:
  sensitive_patterns: ["ok", "(unclosed"]
  credential_action: redact
  locale_packs: [zh-TW]
budget:
  daily_limit_usd: 10
  monthly_limit_usd: 5
  timezone: Mars/Olympus
  window: soon
  action_on_exceed: stop
  tokens: {daily: 1.5}
schedule:
  active_hours: {start: 9:00, end: "24:00", timezone: UTC}
capabilities:
  allow: [file_reed, everything]
filesystem:
  read: {allow: [/tmp]}
approval: {escalation_role: ""}
modules:
  - {cedar: a.cedar, rego: b.rego}
  - {wasm: c.wasm}
rules:
  - id: has space
    when: "true"
    then: deny
  - id: no-then
    match: {}
  - id: wrong-effect
    then: block
  - id: misplaced
    then: deny
    set: {/args/x: 1}
  - {id: empty-change, then: modify}
  - {id: bad-pointer, then: modify, set: {args/x: 1, /kind: x, /text: 5}}
  - {id: bad-path, then: redact, paths: ["args.x", "$.kind"]}
  - {id: nobody, then: ask, approvers: [], expires: 30}
  - {id: later, then: defer, retry_after: 5 parsecs}
  - {id: blank, when: " ", then: allow, taint: [a, ""]}
  - just text
"#;
    let expected = r"
1:10 `version`: expected a string, found a number; put it in quotes
2:8 unknown scope `squad:red`; write `global`, `org:ID`, `team:ID`, `agent:ID` or `tool:NAME`
3:1 unknown key `defalt`; did you mean `default`?
4:24 `approval_timeout_secs` must be a whole number from 1 to 4294967295, found `0`
6:3 unknown key `allowlst` in `network`; did you mean `allowlist`?
7:28 `network.allowlist[1]` is blank; write something or remove it
9:18 `tools.shell.allow`: expected `true` or `false`, found a string; take off the quotes
9:42 `tools.shell.limit_per_hour` must be a whole number from 1 to 4294967295, found `0`
10:3 tool `Shell` is listed already as `shell`; names are compared without regard to case
13:27 unknown variable `pth`; did you mean `path`?
18:13 unknown variable `agent.dept`; did you mean `agent.depth`?
20:30 `data.sensitive_patterns[1]` is not a regular expression: unclosed group
21:22 unknown value `redact` for `data.credential_action`; valid are `redact_only`, `block`, `alert_only`, `alert_and_redact`
22:17 `data.locale_packs` is not supported; write what the pack would find as `data.sensitive_patterns`
25:22 `budget.monthly_limit_usd` (5) must not be less than `budget.daily_limit_usd` (10)
26:13 `budget.timezone`: there is no time zone `Mars/Olympus`; write an IANA name such as `UTC`, `Europe/Berlin` or `America/New_York`
27:11 `budget.window`: a duration is a number and a unit, such as `24h`, `90m` or `1h30m`, found `soon`
28:21 unknown value `stop` for `budget.action_on_exceed`; valid are `deny`, `suspend`
29:19 `budget.tokens.daily` must be a whole number above 0, found `1.5`
31:25 `schedule.active_hours.start` must be a time from 00:00 to 23:59, found `9:00`
31:36 `schedule.active_hours.end` must be a time from 00:00 to 23:59, found `24:00`
33:11 unknown capability `file_reed`; did you mean `file_read`?
33:22 unknown capability `everything`; valid are `file_read`, `file_write`, `file_delete`, `network_outbound`, `network_inbound`, `terminal_exec`, `agent_spawn`, `mcp_tool:NAME`, `model:NAME`
34:1 `filesystem` is enforced by launch isolation, which a gate is not; write rules on `action.paths` and `action.writes`
36:29 `approval.escalation_role` is blank; write something or remove it
38:5 `modules[0]` must have one key, `cedar` or `rego`, with the path of a file
39:5 `modules[1]` must have one key, `cedar` or `rego`, with the path of a file
39:6 unknown key `wasm` in `modules[1]`; valid are `cedar`, `rego`
41:9 `rules[0].id` must be 1 to 128 letters, digits, `:`, `.`, `_` or `-`, found `has space`
44:5 `rules[1]` needs `then`
45:5 unknown key `match` in `rules[1]`; write the condition as `when`
47:11 unknown value `block` for `rules[2].then`; valid are `allow`, `deny`, `ask`, `defer`, `redact`, `modify`
50:5 `set` belongs to `then: modify`; this rule says `then: deny`
51:5 a `modify` rule needs `set`, with a JSON pointer and its new value
52:43 `rules[5].set`: `args/x` is not a JSON pointer: it must begin with `/`, as in `/args/timeout`
52:54 `rules[5].set`: `/kind` does not name a part of the action that can change; valid are `args`, `result`, `metadata`, `text`, `path`, `command`, `url`, `model`
52:71 `rules[5].set./text`: expected a string, found a number; put it in quotes
53:42 `rules[6].paths[0]`: `args.x` is not a JSONPath: a path starts with `$`
53:52 `rules[6].paths[1]`: `$.kind` does not name a part of the action that can change; valid are `args`, `result`, `metadata`, `text`, `path`, `command`, `url`, `model`
54:40 `rules[7].approvers` is empty, so that nobody could approve; name someone or remove it
54:53 `rules[7].expires`: expected a duration such as `30s` or `1h30m`, found a number
55:43 `rules[8].retry_after`: the unit of a duration is one of `us`, `ms`, `s`, `m`, `h`, `d`, `w`, found `5 parsecs`
56:23 `rules[9].when` is blank; write something or remove it
56:52 `rules[9].taint[1]` is blank; write something or remove it
57:5 `rules[10]`: expected a mapping, found a string
";
    assert_eq!(problems(source).join("\n"), expected.trim());
}

#[test]
fn the_two_forms_are_not_mixed() {
    assert_eq!(
        problems("apiVersion: v1\nspec: {}\ntools: {}\nmetdata: {}\n"),
        [
            "3:1 `tools` stands beside `spec`; in a document with `spec` it belongs below it",
            "4:1 unknown key `metdata`; did you mean `metadata`?"
        ]
    );
    assert_eq!(
        problems("apiVersion: v1\ntools: {}\n"),
        ["1:1 `apiVersion` belongs to the envelope form, which needs `spec` beside it"]
    );
}

#[test]
fn keys_of_other_layers_are_refused_with_what_to_use_instead() {
    for (key, advice) in [("filesystem", "action.paths"), ("syscalls", "action.commands")] {
        let found = problems(&format!("{key}: {{}}\n"));
        assert!(found.len() == 1 && found[0].contains(advice), "{found:?}");
    }
}

#[test]
fn mistakes_in_anomalies_and_observe_are_named_where_they_stand() {
    let source = r#"observe: [ok, " ", 5]
anomalies:
  loop: {}
  loops: {count: 1, window: 2h, then: block}
  spikes:
    sigma: 0.5
    at_least: many
    above: 3
  leaks: {findings: 1.5}
  unknown_hosts: deny
  exfiltration:
budget: {action_on_exceed: pause}
"#;
    let expected = r"
1:15 `observe[1]` is blank; write something or remove it
1:20 `observe[2]`: expected a string, found a number; put it in quotes
3:3 unknown key `loop` in `anomalies`; did you mean `loops`?
4:18 `anomalies.loops.count` must be at least 2, found `1`
4:29 `anomalies.loops.window` must be from 1s to 1h, in whole seconds, found `2h`
4:39 unknown value `block` for `anomalies.loops.then`; valid are `alarm`, `ask`, `deny`, `suspend`
6:12 `anomalies.spikes.sigma` must be from 1 to 100, with one decimal, found `0.5`
7:15 `anomalies.spikes.at_least`: expected a whole number, found a string
8:5 unknown key `above` in `anomalies.spikes`; valid are `sigma`, `at_least`, `then`
9:21 `anomalies.leaks.findings` must be a whole number from 1 to 4294967295, found `1.5`
10:18 `anomalies.unknown_hosts`: expected a mapping or the word `off`, found a string
11:15 `anomalies.exfiltration`: expected a mapping or the word `off`, found nothing
12:28 unknown value `pause` for `budget.action_on_exceed`; valid are `deny`, `suspend`
";
    assert_eq!(problems(source).join("\n"), expected.trim());
    let many = format!("observe: [{}]\n", vec!["a"; 257].join(","));
    assert_eq!(problems(&many), ["1:523 `observe` has 257 entries; at most 256 are allowed"]);
}

#[test]
fn a_section_without_a_value_is_a_mistake() {
    assert_eq!(problems("network:\n"), ["1:8 `network`: expected a mapping, found nothing"]);
    assert_eq!(problems("rules:\n"), ["1:6 `rules`: expected a list, found nothing"]);
}

#[test]
fn the_number_of_rules_and_the_length_of_a_condition_are_bounded() {
    let rule = "  - {id: a, then: deny}\n";
    let many = format!("rules:\n{}", rule.repeat(10_000));
    assert_eq!(
        read_document("p", many.as_bytes()).expect("10,000 rules").rules.map(|rules| rules.len()),
        Some(10_000)
    );
    let more = format!("{many}{rule}");
    assert_eq!(problems(&more), ["10002:5 `rules` has 10001 entries; at most 10000 are allowed"]);
    let long = format!("rules:\n  - {{id: a, then: deny, when: '{}'}}\n", "x".repeat(4097));
    assert_eq!(
        problems(&long),
        ["2:31 `rules[0].when` has 4097 bytes; at most 4096 are allowed, split it into several rules"]
    );
}
