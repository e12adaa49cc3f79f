//! Valid documents: every key, both forms, YAML and JSON.

use proctor_core::decision::Effect;
use proctor_core::json::Json;
use proctor_policy::document::{
    ActiveHours, AnomalySection, CredentialAction, Document, DocumentScope, LeakWatch, LoopWatch, Module,
    Position, Response, SpikeWatch, read_document,
};
use proctor_policy::policy::{Policy, Source};
use proctor_policy::question::{Account, Unit};
use rust_decimal::Decimal;

fn read(source: &str) -> Document {
    read_document("p.yaml", source.as_bytes()).unwrap_or_else(|problems| panic!("{problems:#?}"))
}

fn accepted(source: &str) -> bool {
    read_document("p.yaml", source.as_bytes()).is_ok()
}

#[test]
fn every_key_is_read() {
    let document = read(
        r#"
version: "1"
scope: team:red
default: ask
network: {allowlist: [api.example, "*.example"]}
tools:
  file_read: {allow: true, limit_per_hour: 10}
  shell: {allow: true, requires_approval_if: 'command contains "rm"'}
data: {sensitive_patterns: ['\bEMP-\d{6}\b'], credential_action: block, locale_packs: []}
budget:
  daily_limit_usd: 0.10
  monthly_limit_usd: 1.50
  team_daily_limit_usd: 1e2
  org_monthly_limit_usd: 1000
  tokens: {daily: 100000}
  calls: {team_monthly: 7}
  timezone: Europe/Berlin
  window: 1h30m
  action_on_exceed: suspend
observe: ["canary-*", "did:key:*"]
anomalies:
  loops: {count: 20, window: 1m30s, then: deny}
  spikes: {sigma: 2.5, at_least: 100, then: ask}
  leaks: off
  unknown_hosts: {then: suspend}
schedule: {active_hours: {start: 09:00, end: 17:30, timezone: Asia/Taipei}}
capabilities: {allow: [file_read, "mcp_tool:search"], deny: [terminal_exec, "model:gpt"]}
approval_timeout_secs: 600
approval: {timeout_seconds: 60, escalation_role: security}
modules: [{cedar: a.cedar}, {rego: b.rego}]
rules:
  - id: first
    when: |
      action.tool == "shell"
    then: ask
    reason: why
    expires: 10m
    approvers: [alice]
    taint: seen
  - {id: later, then: defer}
  - {id: later, then: defer, retry_after: 1500us}
  - {id: change, then: modify, set: {/args/timeout: 30, /args/list: [1, {a: null}], /text: ok}}
  - {id: cut, then: redact, paths: ["$.args.password"], taint: [a, b]}
  - {id: found, then: redact}
"#,
    );
    assert_eq!((document.version.as_str(), &document.scope), ("1", &DocumentScope::Team("red".to_owned())));
    assert_eq!(document.default.map(|default| default.value), Some(Effect::Ask));
    assert_eq!(document.network_allowlist.map(|hosts| hosts.len()), Some(2));
    let tools: Vec<_> =
        document.tools.iter().map(|tool| (tool.name.as_str(), tool.allow, tool.limit_per_hour)).collect();
    assert_eq!(tools, [("file_read", true, Some(10)), ("shell", true, None)]);
    assert!(document.tools[1].requires_approval_if.is_some());
    let data = document.data.expect("data");
    assert_eq!(data.sensitive_patterns[0].value, r"\bEMP-\d{6}\b");
    assert_eq!(data.credential_action, Some(CredentialAction::Block));
    let budget = document.budget.expect("budget");
    let limits: Vec<_> = budget
        .limits
        .iter()
        .map(|limit| (limit.key.as_str(), limit.account, limit.unit, limit.monthly, limit.most.to_string()))
        .collect();
    assert_eq!(
        limits,
        [
            ("daily_limit_usd", Account::Agent, Unit::Usd, false, "0.10".to_owned()),
            ("monthly_limit_usd", Account::Agent, Unit::Usd, true, "1.50".to_owned()),
            ("team_daily_limit_usd", Account::Team, Unit::Usd, false, "100".to_owned()),
            ("org_monthly_limit_usd", Account::Org, Unit::Usd, true, "1000".to_owned()),
            ("tokens.daily", Account::Agent, Unit::Tokens, false, "100000".to_owned()),
            ("calls.team_monthly", Account::Team, Unit::Calls, true, "7".to_owned()),
        ]
    );
    assert_eq!((budget.timezone.as_str(), budget.window_micros), ("Europe/Berlin", Some(5_400_000_000)));
    assert!(budget.suspend);
    let observed: Vec<&str> = document.observe.iter().map(|glob| glob.value.as_str()).collect();
    assert_eq!(observed, ["canary-*", "did:key:*"]);
    let anomalies = document.anomalies.expect("anomalies");
    assert_eq!(anomalies.loops, Some(LoopWatch { count: 20, window_secs: 90, then: Response::Deny }));
    assert_eq!(anomalies.spikes, Some(SpikeWatch { sigma_tenths: 25, at_least: 100, then: Response::Ask }));
    assert_eq!(anomalies.leaks, None);
    assert_eq!(
        (anomalies.unknown_hosts, anomalies.exfiltration),
        (Some(Response::Suspend), Some(Response::Deny))
    );
    assert_eq!(
        document.active_hours,
        Some(ActiveHours { start: 540, end: 1050, timezone: "Asia/Taipei".to_owned() })
    );
    let capabilities = document.capabilities.expect("capabilities");
    assert_eq!(capabilities.allow, Some(vec!["file_read".to_owned(), "mcp_tool:search".to_owned()]));
    assert_eq!(capabilities.deny, ["terminal_exec", "model:gpt"]);
    assert_eq!(
        (document.approval_timeout_secs, document.escalation_role.as_deref()),
        (Some(60), Some("security"))
    );
    let modules: Vec<_> = document.modules.into_iter().map(|module| module.value).collect();
    assert_eq!(modules, [Module::Cedar("a.cedar".to_owned()), Module::Rego("b.rego".to_owned())]);
    let rules = document.rules.expect("rules");
    let when = rules[0].when.as_ref().expect("when");
    assert_eq!(
        (when.value.as_str(), when.at),
        ("action.tool == \"shell\"\n", Position { line: 34, column: 7 })
    );
    assert_eq!(
        (rules[0].expires_micros, rules[0].approvers.as_slice()),
        (Some(600_000_000), ["alice".to_owned()].as_slice())
    );
    assert_eq!((rules[1].retry_after_ms, rules[2].retry_after_ms), (Some(30_000), Some(2)));
    let set: Vec<_> =
        rules[3].set.iter().map(|(pointer, value)| (pointer.as_str(), value.to_string())).collect();
    let expected = [("/args/timeout", "30"), ("/args/list", r#"[1,{"a":null}]"#), ("/text", "\"ok\"")];
    assert_eq!(set, expected.map(|(pointer, value)| (pointer, value.to_owned())));
    assert_eq!(rules[3].set[0].1, Json::from(30_u8));
    assert_eq!(
        (rules[4].paths.as_deref(), rules[5].paths.as_deref()),
        (Some(["$.args.password".to_owned()].as_slice()), None)
    );
    assert_eq!(rules[4].taints, ["a", "b"]);
}

#[test]
fn absent_is_not_empty() {
    let document = read("version: \"1\"\n");
    assert_eq!((document.rules, document.network_allowlist, document.default), (None, None, None));
    let document = read("network: {}\nrules: []\ncapabilities: {}\n");
    assert_eq!(document.network_allowlist, Some(Vec::new()));
    assert_eq!(document.rules, Some(Vec::new()));
    assert_eq!(document.capabilities.expect("capabilities").allow, None);
    assert_eq!(
        read("capabilities: {allow: []}\n").capabilities.expect("capabilities").allow,
        Some(Vec::new())
    );
    assert!(!read("tools: {x: {}}\n").tools[0].allow);
}

#[test]
fn the_envelope_form_is_read() {
    let document = read(
        "apiVersion: a/v1\nkind: Policy\nmetadata: {name: n, version: '2', description: d}\nspec: {default: deny}\n",
    );
    assert_eq!((document.name.as_str(), document.version.as_str()), ("n", "2"));
    assert!(document.default.is_some());
    assert_eq!(read("metadata: {version: '2'}\nspec: {version: '3'}\n").version, "3");
}

#[test]
fn json_is_read_as_it_is() {
    let document = read(
        "{\n\t\"default\": \"deny\",\n\t\"rules\": [{\"id\": \"a\", \"when\": \"action.depth\\t> 1\", \"then\": \"allow\"}]\n}",
    );
    assert_eq!(document.rules.expect("rules")[0].when.as_ref().expect("when").value, "action.depth\t> 1");
}

#[test]
fn constraints_hold_at_their_edges() {
    for (source, expected) in [
        ("scope: global", true),
        ("scope: org:a", true),
        ("scope: agent:00000000-0000-0000-0000-000000000000", true),
        ("scope: tool:x", true),
        ("scope: 'org:'", false),
        ("scope: 'org: a'", false),
        ("scope: Global", false),
        ("approval_timeout_secs: 1", true),
        ("approval_timeout_secs: -1", false),
        ("approval_timeout_secs: 4294967296", false),
        ("approval: {timeout_seconds: 0}", false),
        ("tools: {a: {limit_per_hour: 1}}", true),
        ("tools: {a: {limit_per_hour: 1.0}}", false),
        ("tools: {'': {allow: true}}", false),
        ("tools: {a: {requires_approval_if: ' '}}", false),
        ("tools: {a: {requires_approval_if: estimated_cost_usd > 0.10}}", true),
        ("tools: {a: {requires_approval_if: path starts_with /etc OR path starts_with /usr}}", true),
        ("tools: {a: {requires_approval_if: governance_level >= L4}}", false),
        ("data: {sensitive_patterns: ['a{1000}{1000}{1000}']}", false),
        ("data: {sensitive_patterns: ['']}", false),
        ("data: {locale_packs: []}", true),
        ("data: {locale_packs: zh-TW}", false),
        ("budget: {daily_limit_usd: 0}", false),
        ("budget: {daily_limit_usd: -1}", false),
        ("budget: {daily_limit_usd: .inf}", false),
        ("budget: {daily_limit_usd: '1'}", false),
        ("budget: {daily_limit_usd: 5, monthly_limit_usd: 5}", true),
        ("budget: {team_daily_limit_usd: 5, team_monthly_limit_usd: 4.99}", false),
        ("budget: {tokens: {org_daily: 2, org_monthly: 1}}", false),
        ("budget: {calls: {daily: 0}}", false),
        ("budget: {timezone: ''}", false),
        ("budget: {window: 0s}", false),
        ("schedule: {}", true),
        ("schedule: {active_hours: {start: 09:00, end: 17:00}}", false),
        ("schedule: {active_hours: {start: 09:00, end: 09:00, timezone: UTC}}", false),
        ("schedule: {active_hours: {start: 22:00, end: 06:00, timezone: UTC}}", true),
        ("schedule: {active_hours: {start: 09:60, end: 17:00, timezone: UTC}}", false),
        ("capabilities: {allow: ['mcp_tool:']}", false),
        ("capabilities: {deny: [agent_spawn, network_inbound, network_outbound, file_delete]}", true),
        ("modules: [{cedar: ' '}]", false),
        ("default: defer", false),
        ("observe: []", true),
        ("observe: ['']", false),
        ("observe: alice", false),
        ("observe: [1]", false),
        ("budget: {action_on_exceed: suspend}", true),
        ("anomalies: off", false),
        ("anomalies: {loops: 'off'}", true),
        ("anomalies: {loops: false}", false),
        ("anomalies: {loops: {}}", true),
        ("anomalies: {loops: {count: 1}}", false),
        ("anomalies: {loops: {count: 2}}", true),
        ("anomalies: {loops: {window: 1s}}", true),
        ("anomalies: {loops: {window: 999ms}}", false),
        ("anomalies: {loops: {window: 1500ms}}", false),
        ("anomalies: {loops: {window: 1h}}", true),
        ("anomalies: {loops: {window: 1h1s}}", false),
        ("anomalies: {spikes: {sigma: 1}}", true),
        ("anomalies: {spikes: {sigma: 0.9}}", false),
        ("anomalies: {spikes: {sigma: 2.50}}", true),
        ("anomalies: {spikes: {sigma: 2.55}}", false),
        ("anomalies: {spikes: {sigma: 100}}", true),
        ("anomalies: {spikes: {sigma: 100.1}}", false),
        ("anomalies: {spikes: {sigma: 1e1}}", true),
        ("anomalies: {spikes: {at_least: 0}}", false),
        ("anomalies: {leaks: {findings: 1}}", true),
        ("anomalies: {leaks: {findings: 0}}", false),
        ("anomalies: {unknown_hosts: deny}", false),
        ("anomalies: {exfiltration: {then: off}}", false),
        ("rules: [{id: 'a:b.c_d-E', then: allow}]", true),
        ("rules: [{id: '', then: allow}]", false),
    ] {
        assert_eq!(accepted(source), expected, "{source}");
    }
}

#[test]
fn parts_of_anomalies_that_are_not_written_are_as_usual() {
    let at = Position { line: 1, column: 12 };
    let usual = AnomalySection {
        loops: Some(LoopWatch { count: 50, window_secs: 300, then: Response::Alarm }),
        spikes: Some(SpikeWatch { sigma_tenths: 30, at_least: 20, then: Response::Alarm }),
        leaks: Some(LeakWatch { findings: 3, then: Response::Alarm }),
        unknown_hosts: Some(Response::Alarm),
        exfiltration: Some(Response::Deny),
        at,
    };
    assert_eq!(read("version: '1'").anomalies, None);
    assert_eq!(read("anomalies: {}").anomalies, Some(usual.clone()));
    let written = read("anomalies: {loops: off, spikes: {then: deny}, exfiltration: {}}").anomalies;
    let spikes = Some(SpikeWatch { sigma_tenths: 30, at_least: 20, then: Response::Deny });
    assert_eq!(written, Some(AnomalySection { loops: None, spikes, ..usual }));
    let off = read("anomalies: {loops: off, spikes: off, leaks: off, unknown_hosts: off, exfiltration: off}");
    assert_eq!(off.anomalies, Some(AnomalySection { at, ..AnomalySection::default() }));
}

/// Documents of the first Agent Assembly release write the cost bare and paths without quotes.
#[test]
fn older_agent_assembly_documents_are_read() {
    let sections = r#"
network:
  allowlist: [models.example, "*.models.example", code.example]
tools:
  web_search: {allow: true, limit_per_hour: 20}
  code_interpreter:
    allow: true
    limit_per_hour: 10
    requires_approval_if: estimated_cost_usd > 0.10
  file_write:
    allow: true
    requires_approval_if: path starts_with /etc OR path starts_with /usr
  shell: {allow: false}
data:
  sensitive_patterns: ['\bEMP-\d{6}\b']
budget: {daily_limit_usd: 25.00}
schedule:
  active_hours: {start: "00:00", end: "23:59", timezone: UTC}
"#;
    let indented = sections.replace('\n', "\n  ");
    let envelope =
        format!("apiVersion: v1\nkind: GovernancePolicy\nmetadata: {{name: medium-risk}}\nspec:{indented}");
    let strict = "budget: {daily_limit_usd: 5, monthly_limit_usd: 100, action_on_exceed: suspend}\n\
        tools: {'*': {allow: false}, http_get: {allow: true, requires_approval_if: url contains internal}}\n\
        capabilities: {deny: [terminal_exec, file_write, network_inbound]}\n\
        data: {credential_action: block}\n";
    for source in [sections, &envelope] {
        let document = read(source);
        let expressions: Vec<String> = document
            .tools
            .iter()
            .filter_map(|tool| tool.requires_approval_if.as_ref().map(ToString::to_string))
            .collect();
        let bare = read(
            r#"tools: {a: {requires_approval_if: 'args.estimated_cost_usd > 0.10'}, b: {requires_approval_if: 'path starts_with "/etc" OR path starts_with "/usr"'}}"#,
        );
        let quoted: Vec<String> = bare
            .tools
            .iter()
            .filter_map(|tool| tool.requires_approval_if.as_ref().map(ToString::to_string))
            .collect();
        assert_eq!(expressions, quoted);
        assert_eq!(document.active_hours.map(|hours| hours.end), Some(1440));
    }
    assert!(read(strict).budget.expect("budget").suspend);
}

#[test]
fn the_starters_watch_for_anomalies_each_in_its_way() {
    let [strict, balanced, audit] = [
        include_str!("../../../../schemas/examples/strict.yaml"),
        include_str!("../../../../schemas/examples/balanced.yaml"),
        include_str!("../../../../schemas/examples/audit-only.yaml"),
    ]
    .map(|source| read(source).anomalies.expect("anomalies"));
    assert_eq!(strict.loops.map(|watch| watch.then), Some(Response::Deny));
    assert_eq!((strict.exfiltration, balanced.exfiltration), (Some(Response::Deny), Some(Response::Alarm)));
    let responses = [
        audit.loops.map(|watch| watch.then),
        audit.spikes.map(|watch| watch.then),
        audit.leaks.map(|watch| watch.then),
        audit.unknown_hosts,
        audit.exfiltration,
    ];
    assert_eq!(responses, [Some(Response::Alarm); 5]);
}

#[test]
fn letting_agents_be_only_observed_is_a_weakening() {
    let weakenings = |source: &str| {
        let compiled = Policy::compile(vec![Source::document("p.yaml", source)]);
        compiled.unwrap_or_else(|problems| panic!("{problems:#?}")).weakenings()
    };
    assert!(weakenings("default: deny\nobserve: []\n").is_empty());
    assert_eq!(
        weakenings("default: allow\nobserve: [a, b]\n"),
        ["`p.yaml` says `default: allow`", "`p.yaml` lets agents be only observed, if they ask for it"]
    );
}

#[test]
fn the_end_of_the_day_is_the_end_of_the_day() {
    let hours = read("schedule: {active_hours: {start: 00:00, end: 23:59, timezone: UTC}}").active_hours;
    assert_eq!(hours.map(|hours| (hours.start, hours.end)), Some((0, 1440)));
}

#[test]
fn money_keeps_every_digit() {
    let budget = read("budget: {daily_limit_usd: 0.1234567890123456789012345678}").budget.expect("budget");
    assert_eq!(
        budget.limits[0].most,
        "0.1234567890123456789012345678".parse::<Decimal>().expect("a decimal")
    );
    assert!(!accepted("budget: {daily_limit_usd: 0.123456789012345678901234567890123}"));
}
