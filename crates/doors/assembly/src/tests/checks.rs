use proctor_clients::assembly::services::policy::policy_service_server::PolicyService;
use proctor_wire::assembly::proto::common::v1::{ActionType, AgentIdentityAssurance, RiskTier};
use proctor_wire::assembly::proto::policy::v1::action_context::Action as Context;
use proctor_wire::assembly::proto::policy::v1::{
    BatchCheckRequest, FileOpContext, NetworkCallContext, ProcessExecContext, ToolCallContext,
    ToolResultContext,
};
use tonic::Code;

use super::*;

fn file(operation: &str, path: &str) -> Context {
    Context::FileOp(FileOpContext {
        operation: operation.into(),
        path: path.into(),
        is_sensitive_path: false,
    })
}

fn network(host: &str) -> Context {
    Context::NetworkCall(NetworkCallContext {
        host: host.into(),
        port: 443,
        protocol: "https".into(),
        in_allowlist: true,
    })
}

fn process(command: &str, args: &[&str]) -> Context {
    Context::ProcessExec(ProcessExecContext {
        command: command.into(),
        args: args.iter().map(|&word| word.into()).collect(),
    })
}

const SECTIONS: &str = r#"
network: { allowlist: ["api.example.com", "*.good.example"] }
tools:
  search: { allow: true, limit_per_hour: 2 }
  shell: { allow: false }
  file_write: { allow: true, requires_approval_if: 'path starts_with "/etc"' }
budget: { daily_limit_usd: 5.0 }
"#;

#[tokio::test]
async fn every_kind_of_action_is_judged_and_answered_with_a_rule() {
    let (gateway, agent) = one_agent(SECTIONS).await;
    let cases = [
        (tool("search", r#"{"q":"x"}"#), Decision::Allow, "tool:search"),
        (network("api.example.com"), Decision::Allow, "network.allowlist"),
        (network("evil.example"), Decision::Deny, "network.allowlist"),
        (process("bash", &["-c", "ls"]), Decision::Deny, "tool:shell"),
        (file("write", "/etc/passwd"), Decision::Pending, "requires_approval"),
        (file("write", "/home/me/x"), Decision::Allow, "tool:file_write"),
        (llm("claude-3-5-sonnet", 100), Decision::Allow, "default"),
    ];
    for (context, decision, rule) in cases {
        let shown = format!("{context:?}");
        let response = gateway.check(&agent, context).await;
        assert_eq!(decided(&response), (decision, rule), "{shown}: {}", response.reason);
        assert!(response.decision_latency_us > 0 && !response.decision_id.is_empty());
        assert_eq!(response.agent_identity_assurance(), AgentIdentityAssurance::Bound);
        assert_eq!(response.approval_id.is_empty(), decision != Decision::Pending);
        assert!(response.redact.is_none());
    }
}

#[tokio::test]
async fn process_execution_is_governed_by_policy() {
    let (gateway, agent) = one_agent("tools:\n  shell: { allow: true }\n").await;
    assert_eq!(gateway.check(&agent, process("ls", &["-l"])).await.decision(), Decision::Allow);
    let policy = "default: allow\nrules:\n  - { id: no-rm, when: 'action.commands.exists(c, c.startsWith(\"rm \"))', then: deny }\n";
    let (gateway, agent) = one_agent(policy).await;
    for context in [
        process("rm", &["-rf", "/"]),
        process("bash", &["-c", "cd / && rm -rf *"]),
        process("rm -rf /", &[]),
        process("sh", &["-c", "x=1; sudo rm -r /tmp/it's"]),
    ] {
        assert_eq!(gateway.check(&agent, context).await.policy_rule, "no-rm");
    }
    assert_eq!(gateway.check(&agent, process("ls", &[])).await.decision(), Decision::Allow);
}

#[tokio::test]
async fn redactions_name_true_paths_and_kinds_and_nothing_secret_is_kept() {
    let (gateway, agent) = one_agent(ALLOW_ALL).await;
    let args = r#"{"list":[{"token":"ghp_abcdefghijklmnop"}],"url":"postgres://u:p@h/db","n":1}"#;
    let response = gateway.tool(&agent, "db_query", args).await;
    assert_eq!(response.decision(), Decision::Redact, "{}", response.reason);
    let rules: Vec<(String, String)> =
        response.redact.unwrap().rules.into_iter().map(|rule| (rule.field_path, rule.replacement)).collect();
    assert_eq!(
        rules,
        [
            ("$.args.list[0].token".to_owned(), "[REDACTED:GitHubPat]".to_owned()),
            ("$.args.url".to_owned(), "[REDACTED:PostgresUrl]".to_owned()),
        ]
    );
    let (_, body) = records(&gateway, RecordKind::Decision).pop().unwrap();
    let kept = body.pointer("/read_set/action/args").unwrap();
    assert_eq!(
        kept.to_string(),
        r#"{"list":[{"token":"[REDACTED:GitHubPat]"}],"url":"[REDACTED:PostgresUrl]","n":1}"#
    );
    assert!(!body.to_string().contains("ghp_abcdefghijklmnop"));
    let result = Context::ToolResult(ToolResultContext {
        tool_name: "fetch".into(),
        result_json: b"the key is sk-a1B2c3D4e5F6g7H8i9J0".to_vec(),
        ..ToolResultContext::default()
    });
    let response = gateway.check(&agent, result).await;
    assert_eq!(response.redact.unwrap().rules[0].field_path, "$.result");
}

fn places(response: CheckActionResponse) -> Vec<(String, String)> {
    let rules = response.redact.unwrap_or_default().rules;
    rules.into_iter().map(|rule| (rule.field_path, rule.replacement)).collect()
}

#[tokio::test]
async fn redactions_name_the_fields_that_were_sent() {
    let (gateway, agent) = one_agent(ALLOW_ALL).await;
    let (key, cut) = ("AKIAQ7W3ERTY5UIOP2XZ", "[REDACTED:AwsAccessKey]");
    let tool = |args: &str, url: String| {
        Context::ToolCall(ToolCallContext {
            tool_name: "fetch".into(),
            args_json: args.as_bytes().to_vec(),
            target_url: url,
            ..ToolCallContext::default()
        })
    };
    let result = Context::ToolResult(ToolResultContext {
        tool_name: "fetch".into(),
        result_json: format!(r#"{{"a":["{key}"]}}"#).into_bytes(),
        source_url: format!("https://example.com/{key}"),
        ..ToolResultContext::default()
    });
    for (context, expected) in [
        (process("deploy", &["--key", key, "now"]), vec![("$.args[1]", cut.to_owned())]),
        (
            process("deploy", &[&format!("--key={key}"), key]),
            vec![("$.args[0]", format!("--key={cut}")), ("$.args[1]", cut.to_owned())],
        ),
        (process(&format!("deploy {key}"), &[]), vec![("$.command", format!("deploy {cut}"))]),
        (
            tool("{}", format!("https://example.com/{key}/x")),
            vec![("$.target_url", format!("https://example.com/{cut}/x"))],
        ),
        (tool(&format!(r#"{{"a":{{"b":"{key}"}}}}"#), String::new()), vec![("$.args.a.b", cut.to_owned())]),
        (
            result,
            vec![("$.result.a[0]", cut.to_owned()), ("$.source_url", format!("https://example.com/{cut}"))],
        ),
        (file("read", &format!("/home/{key}/x")), vec![("$.path", format!("/home/{cut}/x"))]),
    ] {
        let shown = format!("{context:?}");
        let response = gateway.check(&agent, context).await;
        assert_eq!(response.decision(), Decision::Redact, "{shown}: {}", response.reason);
        let expected: Vec<(String, String)> =
            expected.into_iter().map(|(path, text)| (path.to_owned(), text)).collect();
        assert_eq!(places(response), expected, "{shown}");
    }
    let batch = BatchCheckRequest {
        requests: vec![
            agent.asking(tool("{}", String::new())),
            agent.asking(process("deploy", &["-k", key])),
        ],
    };
    let checks = gateway.door.clone();
    let mut responses = checks.batch_check(Request::new(batch)).await.unwrap().into_inner().responses;
    assert_eq!(places(responses.pop().unwrap()), [("$.args[1]".to_owned(), cut.to_owned())]);
    assert_eq!(responses.pop().unwrap().decision(), Decision::Allow);
}

#[tokio::test]
async fn what_cannot_be_changed_in_the_request_must_not_run() {
    let policy = "default: allow\nrules:\n  - { id: other, when: 'action.kind == \"process_exec\"', then: modify, set: { /command: echo } }\n  - { id: hide, when: 'action.kind == \"file_operation\"', then: redact, paths: [$.metadata.is_sensitive_path] }\n";
    let (gateway, agent) = one_agent(policy).await;
    for (context, rule) in [(process("rm", &["-rf", "/"]), "other"), (file("read", "/x"), "hide")] {
        let response = gateway.check(&agent, context).await;
        assert_eq!(decided(&response), (Decision::Deny, rule), "{}", response.reason);
        assert!(response.redact.is_none() && response.reason.contains("no place in this request"));
    }
    let alarms = records(&gateway, RecordKind::Alarm);
    let told: Vec<&str> = alarms.iter().map(|(envelope, _)| envelope.code.as_str()).collect();
    assert_eq!(told, ["no_place", "no_place"], "that it was not let through is on record");
    assert_eq!(alarms[0].0.principal, agent.principal());
    let response = gateway.check(&agent, process("rm -rf /", &[])).await;
    assert_eq!(places(response), [("$.command".to_owned(), "echo".to_owned())]);
}

#[tokio::test]
async fn the_name_of_a_protocol_is_no_secret() {
    let (gateway, agent) = one_agent(ALLOW_ALL).await;
    let database = |host: &str| {
        Context::NetworkCall(NetworkCallContext {
            host: host.into(),
            port: 5432,
            protocol: "postgres".into(),
            in_allowlist: false,
        })
    };
    let response = gateway.check(&agent, database("db.example.com")).await;
    assert_eq!(response.decision(), Decision::Allow, "{}", response.reason);
    let response = gateway.check(&agent, database("me:password@db.example.com")).await;
    assert_ne!(response.decision(), Decision::Allow);
}

#[tokio::test]
async fn an_allowlist_without_hosts_allows_none() {
    let (gateway, agent) = one_agent("network: { allowlist: [] }\ntools: { fetch: { allow: true } }\n").await;
    for host in ["api.example.com", "localhost", "127.0.0.1", "::1", "*"] {
        assert_eq!(
            decided(&gateway.check(&agent, network(host)).await),
            (Decision::Deny, "network.allowlist"),
            "{host}"
        );
    }
    let fetch = Context::ToolCall(ToolCallContext {
        tool_name: "fetch".into(),
        target_url: "https://api.example.com/".into(),
        ..ToolCallContext::default()
    });
    assert_eq!(decided(&gateway.check(&agent, fetch).await), (Decision::Deny, "network.allowlist"));
}

#[tokio::test]
async fn what_is_no_check_is_an_error_and_what_contradicts_itself_a_deny() {
    let (gateway, agent) = one_agent(ALLOW_ALL).await;
    let code = async |context: Option<Context>| {
        let mut request = agent.asking(tool("x", ""));
        request.context = context
            .map(|action| proctor_wire::assembly::proto::policy::v1::ActionContext { action: Some(action) });
        gateway
            .door
            .check_action(Request::new(request))
            .await
            .map(tonic::Response::into_inner)
            .map_err(|status| status.code())
    };
    assert_eq!(code(None).await.unwrap_err(), Code::InvalidArgument);
    assert_eq!(code(Some(file("chmod", "/x"))).await.unwrap_err(), Code::InvalidArgument);
    let port = Context::NetworkCall(NetworkCallContext {
        host: "h".into(),
        port: 70_000,
        ..NetworkCallContext::default()
    });
    assert_eq!(code(Some(port)).await.unwrap_err(), Code::InvalidArgument);
    for args in ["{", r#"{"a":1,"a":2}"#, "\u{1}"] {
        assert_eq!(
            decided(&code(Some(tool("x", args))).await.unwrap()),
            (Decision::Deny, "malformed"),
            "{args}"
        );
    }
    let mut lying = agent.asking(process("rm", &["-rf", "/"]));
    lying.action_type = ActionType::LlmCall.into();
    let response = gateway.door.check_action(Request::new(lying)).await.unwrap().into_inner();
    assert_eq!(decided(&response), (Decision::Deny, "malformed"));
    let mut spawning = agent.asking(tool("agent_spawn", "{}"));
    spawning.action_type = ActionType::AgentSpawn.into();
    let response = gateway.door.check_action(Request::new(spawning)).await.unwrap().into_inner();
    assert_eq!(response.decision(), Decision::Allow);
    assert_eq!(
        records(&gateway, RecordKind::Decision)
            .pop()
            .unwrap()
            .1
            .pointer("/read_set/action/kind")
            .unwrap()
            .as_str(),
        Some("agent_spawn")
    );
}

#[tokio::test]
async fn a_batch_is_answered_in_order_and_refused_whole() {
    let (gateway, agent) = one_agent(SECTIONS).await;
    let ask = |name: &str| agent.asking(tool(name, "{}"));
    let batch =
        BatchCheckRequest { requests: vec![ask("search"), ask("bash"), ask("search"), ask("search")] };
    let responses = gateway.door.batch_check(Request::new(batch)).await.unwrap().into_inner().responses;
    let decisions: Vec<Decision> = responses.iter().map(CheckActionResponse::decision).collect();
    assert_eq!(
        decisions,
        [Decision::Allow, Decision::Deny, Decision::Allow, Decision::Deny],
        "the third is over the limit"
    );
    let before = records(&gateway, RecordKind::Decision).len();
    let mut broken = ask("search");
    broken.context = None;
    let batch = BatchCheckRequest { requests: vec![ask("search"), broken] };
    assert_eq!(
        gateway.door.batch_check(Request::new(batch)).await.unwrap_err().code(),
        Code::InvalidArgument
    );
    assert_eq!(records(&gateway, RecordKind::Decision).len(), before);
}

#[tokio::test]
async fn rules_can_speak_of_risk_and_lineage() {
    let policy = "default: allow\nrules:\n  - { id: risky, when: 'agent.risk_tier == \"critical\"', then: deny }\n  - { id: deep, when: 'agent.depth > 0 && action.tool == \"deploy\"', then: ask }\n";
    let gateway = Gateway::new(policy);
    let mut root = Agent::new(1);
    gateway.register(&mut root).await.unwrap();
    let mut child = Agent::child_of(2, &root);
    gateway.register(&mut child).await.unwrap();
    let mut risky = Agent::new(3);
    risky.request.risk_tier = RiskTier::Critical.into();
    gateway.register(&mut risky).await.unwrap();
    assert_eq!(gateway.tool(&risky, "x", "{}").await.policy_rule, "risky");
    assert_eq!(gateway.tool(&root, "deploy", "{}").await.decision(), Decision::Allow);
    assert_eq!(gateway.tool(&child, "deploy", "{}").await.policy_rule, "deep");
}

#[tokio::test]
async fn a_document_for_one_agent_is_about_that_agent() {
    let uuid = |did: &str| {
        let digest = proctor_core::digest::Digest::of(did.as_bytes()).to_string();
        format!(
            "{}-{}-{}-{}-{}",
            &digest[..8],
            &digest[8..12],
            &digest[12..16],
            &digest[16..20],
            &digest[20..32]
        )
    };
    let did = Agent::new(1).did();
    for scope in [did.clone(), uuid(&did), format!("agent:{did}")] {
        let own = format!("scope: 'agent:{scope}'\ntools: {{ shell: {{ allow: false }} }}\n");
        let sources = vec![
            proctor_policy::policy::Source::document("a.yaml", ALLOW_ALL),
            proctor_policy::policy::Source::document("b.yaml", &own),
        ];
        let (gateway, agent) = one_agent(ALLOW_ALL).await;
        gateway.engine().reload(proctor_policy::policy::Policy::compile(sources));
        assert_eq!(gateway.check(&agent, process("ls", &["-l"])).await.policy_rule, "tool:shell", "{scope}");
        let mut other = Agent::new(2);
        gateway.register(&mut other).await.unwrap();
        assert_eq!(
            gateway.check(&other, process("ls", &["-l"])).await.decision(),
            Decision::Allow,
            "{scope}"
        );
    }
}

#[tokio::test]
async fn new_patterns_hold_after_a_reload() {
    let (mut gateway, agent) = one_agent(ALLOW_ALL).await;
    let args = r#"{"note":"project BLUEBIRD"}"#;
    assert_eq!(gateway.tool(&agent, "x", args).await.decision(), Decision::Allow);
    gateway.reload("default: allow\nrules: []\ndata:\n  sensitive_patterns: ['BLUEB[A-Z]+']\n");
    let response = gateway.tool(&agent, "x", args).await;
    assert_eq!(response.decision(), Decision::Redact);
    assert_eq!(response.redact.unwrap().rules[0].replacement, "project [REDACTED:Custom]");
}

#[tokio::test]
async fn observing_needs_the_policy() {
    use proctor_wire::assembly::proto::common::v1::EnforcementMode;
    for (policy, expected) in [
        ("default: deny\nrules: []\n", Decision::Deny),
        ("default: deny\nrules: []\nobserve: ['did:key:*']\n", Decision::Allow),
    ] {
        let gateway = Gateway::new(policy);
        let mut agent = Agent::new(1);
        agent.request.enforcement_mode = EnforcementMode::Observe.into();
        gateway.register(&mut agent).await.unwrap();
        let response = gateway.tool(&agent, "x", "{}").await;
        assert_eq!(response.decision(), expected, "{}", response.reason);
        if expected == Decision::Allow {
            let (_, body) = records(&gateway, RecordKind::Decision).pop().unwrap();
            assert_eq!(body.pointer("/decision/shadow/effect").unwrap().as_str(), Some("deny"));
        }
        give_order(&gateway, &agent, Order::Suspend, "no");
        assert_eq!(
            gateway.tool(&agent, "x", "{}").await.decision(),
            Decision::Deny,
            "a stop holds for everybody"
        );
    }
}

#[tokio::test]
async fn a_modification_that_the_protocol_cannot_say_is_a_deny() {
    let policy = "default: allow\nrules:\n  - { id: few, when: 'action.tool == \"many\"', then: modify, set: { /args/limit: 10 } }\n  - { id: word, when: 'action.tool == \"word\"', then: modify, set: { /args/mode: safe } }\n";
    let (gateway, agent) = one_agent(policy).await;
    assert_eq!(decided(&gateway.tool(&agent, "many", r#"{"limit":99}"#).await), (Decision::Deny, "few"));
    let (envelope, _) = records(&gateway, RecordKind::Decision).pop().unwrap();
    assert_eq!(
        envelope.decision,
        Some(proctor_core::decision::Effect::Deny),
        "the record says what was answered"
    );
    let response = gateway.tool(&agent, "word", r#"{"mode":"fast"}"#).await;
    assert_eq!(decided(&response), (Decision::Redact, "word"));
    assert_eq!(response.redact.unwrap().rules[0].field_path, "$.args.mode");
}

#[tokio::test]
async fn overnight_hours_and_days_without_an_end_work() {
    let hours = |start: &str, end: &str| {
        format!(
            "tools: {{ x: {{ allow: true }} }}\nschedule:\n  active_hours: {{ start: \"{start}\", end: \"{end}\", timezone: UTC }}\n"
        )
    };
    let (gateway, agent) = one_agent(&hours("00:00", "23:59")).await;
    gateway.clock.pass(minutes(11 * 60 + 59) + Duration::from_secs(30));
    assert_eq!(
        gateway.tool(&agent, "x", "{}").await.decision(),
        Decision::Allow,
        "the last minute of the day"
    );
    let (gateway, agent) = one_agent(&hours("22:00", "06:00")).await;
    assert_eq!(gateway.tool(&agent, "x", "{}").await.policy_rule, "schedule", "noon");
    gateway.clock.pass(minutes(13 * 60));
    assert_eq!(gateway.tool(&agent, "x", "{}").await.decision(), Decision::Allow, "one at night");
}
