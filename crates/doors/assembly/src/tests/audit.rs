use proctor_clients::assembly::services::audit::audit_service_server::AuditService;
use proctor_wire::assembly::proto::audit::v1::audit_event::Detail;
use proctor_wire::assembly::proto::audit::v1::{
    ApprovalEvent, AuditEvent, CallStackNode, FileOpDetail, LlmCallDetail, NetworkCallDetail,
    PolicyViolation, ProcessExecDetail, ReportEventsRequest, ToolCallDetail,
};
use proctor_wire::assembly::proto::common::v1::{ActionType, Timestamp};
use tonic::Code;

use super::*;
use proctor_follow::ChainFollower;

fn event(agent: &Agent, id: &str, detail: Detail) -> AuditEvent {
    AuditEvent {
        event_id: id.to_owned(),
        agent_id: Some(agent.id()),
        trace_id: "trace".into(),
        span_id: "span".into(),
        detail: Some(detail),
        ..AuditEvent::default()
    }
}

fn completion(tokens: i32) -> Detail {
    Detail::LlmCall(LlmCallDetail {
        model: "gpt-4o".into(),
        prompt_tokens: 1000,
        completion_tokens: tokens,
        ..LlmCallDetail::default()
    })
}

async fn report(
    gateway: &Gateway,
    agent: &Agent,
    events: Vec<AuditEvent>,
) -> Result<Vec<String>, tonic::Status> {
    let request = with_token(ReportEventsRequest { events }, &agent.token);
    Ok(gateway.door.report_events(request).await?.into_inner().event_ids)
}

#[tokio::test]
async fn an_event_is_kept_whole_and_once() {
    let (mut gateway, agent) = one_agent(ALLOW_ALL).await;
    let detail = Detail::ToolCall(ToolCallDetail {
        tool_name: "search".into(),
        latency_ms: 12,
        succeeded: true,
        args_json: br#"{"key":"sk-a1B2c3D4e5F6g7H8i9J0"}"#.to_vec(),
        ..ToolCallDetail::default()
    });
    let mut said = event(&agent, "e-1", detail);
    said.labels.insert("colour".into(), "blue".into());
    assert_eq!(report(&gateway, &agent, vec![said.clone()]).await.unwrap(), ["e-1"]);
    gateway.restart().await;
    assert_eq!(report(&gateway, &agent, vec![said.clone(), said]).await.unwrap(), ["e-1", "e-1"]);
    let mut kept = records(&gateway, RecordKind::Observation);
    assert_eq!(kept.len(), 1, "the same event is recorded once");
    let (_, body) = kept.pop().unwrap();
    let data = body.get("data").unwrap();
    assert_eq!(data.pointer("/labels/colour").unwrap().as_str(), Some("blue"));
    assert_eq!(data.pointer("/detail/latency_ms").unwrap().as_u64(), Some(12));
    assert_eq!(data.pointer("/detail/args/key").unwrap().as_str(), Some("[REDACTED:OpenAiKey]"));
}

#[tokio::test]
async fn the_identifier_of_an_event_with_other_content_is_an_alarm() {
    let (mut gateway, agent) = one_agent(ALLOW_ALL).await;
    let said = |tokens| event(&agent, "e-1", completion(tokens));
    // In one report, where the first is not committed yet; and after a restart, where it is read back.
    report(&gateway, &agent, vec![said(1), said(1)]).await.unwrap();
    assert!(records(&gateway, RecordKind::Alarm).is_empty());
    report(&gateway, &agent, vec![event(&agent, "e-2", completion(1)), event(&agent, "e-2", completion(2))])
        .await
        .unwrap();
    assert_eq!(records(&gateway, RecordKind::Alarm).len(), 1);
    gateway.restart().await;
    for tokens in [1, 2, 3] {
        assert_eq!(report(&gateway, &agent, vec![said(tokens)]).await.unwrap(), ["e-1"]);
    }
    let alarms = records(&gateway, RecordKind::Alarm);
    assert_eq!(alarms.len(), 2, "one for each identifier");
    for (envelope, body) in alarms {
        assert_eq!((envelope.code.as_str(), envelope.links.len()), ("event_changed", 1));
        assert!(body.pointer("/data/detail/completion_tokens").is_some(), "{body}");
    }
    assert_eq!(records(&gateway, RecordKind::Observation).len(), 2);
}

#[tokio::test]
async fn nobody_reports_for_another() {
    let gateway = Gateway::new(ALLOW_ALL);
    let (mut agent, mut other) = (Agent::new(1), Agent::new(2));
    gateway.register(&mut agent).await.unwrap();
    gateway.register(&mut other).await.unwrap();
    let events = vec![event(&agent, "a", completion(1)), event(&other, "b", completion(1))];
    assert_eq!(report(&gateway, &agent, events).await.unwrap_err().code(), Code::PermissionDenied);
    assert!(records(&gateway, RecordKind::Observation).is_empty(), "all or nothing");
    let nobody = Agent { token: "x".into(), ..agent };
    assert_eq!(report(&gateway, &nobody, Vec::new()).await.unwrap_err().code(), Code::Unauthenticated);
}

#[tokio::test]
async fn an_actual_replaces_the_estimate_it_binds_to_and_is_billed_in_full_otherwise() {
    let (mut gateway, agent) =
        one_agent("tools: { llm_call: { allow: true } }\nbudget: { daily_limit_usd: 1.0 }\n").await;
    let spent = |gateway: &Gateway| {
        let caller = proctor_core::session::Caller {
            principal: agent.principal(),
            team: "ml".into(),
            org: "acme".into(),
        };
        gateway.engine().budgets(&caller).unwrap()[0].spent.normalize().to_string()
    };
    // 1000 prompt tokens of gpt-4o are estimated at half a cent; with 1000 of completion they cost two.
    assert_eq!(gateway.check(&agent, llm("gpt-4o", 1000)).await.decision(), Decision::Allow);
    assert_eq!(spent(&gateway), "0.005");
    gateway.restart().await;
    report(&gateway, &agent, vec![event(&agent, "one", completion(1000))]).await.unwrap();
    assert_eq!(spent(&gateway), "0.02", "the difference is charged, also after a restart");
    let outcome = records(&gateway, RecordKind::Outcome);
    assert_eq!(outcome.len(), 1);
    // Two reports on one check, in one call: the first is its outcome, the second is billed in full.
    assert_eq!(gateway.check(&agent, llm("gpt-4o", 1000)).await.decision(), Decision::Allow);
    let twice = vec![event(&agent, "a", completion(1000)), event(&agent, "b", completion(1000))];
    report(&gateway, &agent, twice).await.unwrap();
    assert_eq!(spent(&gateway), "0.06");
    let mut unbound = event(&agent, "two", completion(1000));
    unbound.span_id = "unknown".into();
    report(&gateway, &agent, vec![unbound]).await.unwrap();
    assert_eq!(spent(&gateway), "0.08", "what binds to no check is billed in full");
}

#[tokio::test]
async fn thresholds_are_alarms_and_the_budget_suspends_and_resumes() {
    let policy = "tools: { llm_call: { allow: true } }\nbudget: { daily_limit_usd: 0.01, action_on_exceed: suspend, timezone: Asia/Tokyo }\n";
    let (gateway, agent) = one_agent(policy).await;
    let percents = |gateway: &Gateway| -> Vec<u64> {
        let alarms = records(gateway, RecordKind::Alarm);
        let crossed = alarms.iter().filter(|(envelope, _)| envelope.code == "budget_threshold");
        crossed.map(|(_, body)| body.get("percent").unwrap().as_u64().unwrap()).collect()
    };
    for (tokens, expected) in [(1000, vec![]), (600, vec![80]), (300, vec![80, 95]), (400, vec![80, 95, 100])]
    {
        assert_eq!(gateway.check(&agent, llm("gpt-4o", tokens)).await.decision(), Decision::Allow);
        assert_eq!(percents(&gateway), expected);
    }
    for expected in ["budget.daily_limit_usd", "agent.suspended", "agent.suspended"] {
        assert_eq!(decided(&gateway.check(&agent, llm("gpt-4o", 1)).await), (Decision::Deny, expected));
    }
    assert!(gateway.heartbeat(&agent).await.unwrap().should_suspend);
    let suspensions =
        || records(&gateway, RecordKind::Agent).iter().filter(|(it, _)| it.code == "suspended").count();
    assert_eq!(suspensions(), 1, "once is enough");
    // Midnight in Tokyo is three in the afternoon here.
    gateway.clock.pass(minutes(2 * 60 + 59));
    assert!(gateway.heartbeat(&agent).await.unwrap().should_suspend);
    gateway.clock.pass(minutes(2));
    assert!(!gateway.heartbeat(&agent).await.unwrap().should_suspend);
    assert_eq!(gateway.check(&agent, llm("gpt-4o", 1)).await.decision(), Decision::Allow);
}

#[tokio::test]
async fn the_organisation_has_a_limit_of_its_own() {
    let gateway =
        Gateway::new("tools: { llm_call: { allow: true } }\nbudget: { org_daily_limit_usd: 0.01 }\n");
    let (mut one, mut other) = (Agent::new(1), Agent::new(2));
    other.team = "other".into();
    gateway.register(&mut one).await.unwrap();
    gateway.register(&mut other).await.unwrap();
    assert_eq!(gateway.check(&one, llm("gpt-4o", 2000)).await.decision(), Decision::Allow);
    assert_eq!(gateway.check(&other, llm("gpt-4o", 1)).await.policy_rule, "budget.org_daily_limit_usd");
}

#[tokio::test]
async fn loops_raise_alarms_and_can_suspend() {
    let policy = "default: allow\nrules: []\nanomalies:\n  loops: { count: 5, window: 60s, then: suspend }\n";
    let (gateway, agent) = one_agent(policy).await;
    for _ in 0..4 {
        assert_eq!(gateway.tool(&agent, "x", r#"{"a":1}"#).await.decision(), Decision::Allow);
    }
    assert_eq!(gateway.tool(&agent, "x", r#"{"a":2}"#).await.decision(), Decision::Allow, "another action");
    assert_eq!(decided(&gateway.tool(&agent, "x", r#"{"a":1}"#).await), (Decision::Deny, "anomaly.loops"));
    assert_eq!(gateway.tool(&agent, "y", "{}").await.policy_rule, "agent.suspended");
    let alarms = records(&gateway, RecordKind::Alarm);
    assert!(alarms.iter().any(|(envelope, _)| envelope.code == "loop"));
}

/// Every detail with every field, and how each stands in the record. No field is left to its default, so that one that is added is missed.
fn details() -> Vec<(Detail, &'static str)> {
    let llm = LlmCallDetail {
        model: "gpt-4o".into(),
        prompt_tokens: 11,
        completion_tokens: 12,
        latency_ms: 13,
        pii_detected: true,
        pii_redacted: true,
        provider: "someone".into(),
    };
    let tool = ToolCallDetail {
        tool_name: "search".into(),
        tool_source: "mcp".into(),
        latency_ms: 21,
        succeeded: true,
        error_message: "none".into(),
        args_json: br#"{"q":[1]}"#.to_vec(),
    };
    let file = FileOpDetail {
        operation: "read".into(),
        path: "/a/b".into(),
        bytes: 31,
        source: "ebpf".into(),
        latency_ms: 32,
        sensitive: true,
    };
    let network = NetworkCallDetail {
        host: "example.com".into(),
        port: 443,
        protocol: "https".into(),
        latency_ms: 41,
        status_code: 204,
        succeeded: true,
    };
    let process = ProcessExecDetail {
        command: "ls".into(),
        args: vec!["-l".into(), "/".into()],
        exit_code: 51,
        duration_ms: 52,
        succeeded: true,
    };
    let violation = PolicyViolation {
        policy_rule: "no-rm".into(),
        blocked_action: "rm".into(),
        reason: "never".into(),
        latency_ms: 61,
    };
    let approval = ApprovalEvent {
        approval_id: "a-1".into(),
        approver_id: "alice".into(),
        approved: true,
        reason: "fine".into(),
        wait_time_ms: 71,
    };
    vec![
        (
            Detail::LlmCall(llm),
            r#""detail_kind":"llm_call","detail":{"model":"gpt-4o","provider":"someone","prompt_tokens":11,"completion_tokens":12,"latency_ms":13,"pii_detected":true,"pii_redacted":true}"#,
        ),
        (
            Detail::ToolCall(tool),
            r#""detail_kind":"tool_call","detail":{"tool_name":"search","tool_source":"mcp","latency_ms":21,"succeeded":true,"error_message":"none","args":{"q":[1]}}"#,
        ),
        (
            Detail::FileOp(file),
            r#""detail_kind":"file_op","detail":{"operation":"read","path":"/a/b","bytes":31,"source":"ebpf","latency_ms":32,"sensitive":true}"#,
        ),
        (
            Detail::Network(network),
            r#""detail_kind":"network","detail":{"host":"example.com","port":443,"protocol":"https","latency_ms":41,"status_code":204,"succeeded":true}"#,
        ),
        (
            Detail::Process(process),
            r#""detail_kind":"process","detail":{"command":"ls","args":["-l","/"],"exit_code":51,"duration_ms":52,"succeeded":true}"#,
        ),
        (
            Detail::Violation(violation),
            r#""detail_kind":"violation","detail":{"policy_rule":"no-rm","blocked_action":"rm","reason":"never","latency_ms":61}"#,
        ),
        (
            Detail::Approval(approval),
            r#""detail_kind":"approval","detail":{"approval_id":"a-1","approver_id":"alice","approved":true,"reason":"fine","wait_time_ms":71}"#,
        ),
    ]
}

fn full_event(agent: &Agent, number: usize, detail: Detail) -> AuditEvent {
    let leaf = CallStackNode {
        id: "n-2".into(),
        kind: "tool".into(),
        label: "inner".into(),
        latency_ms: 82,
        children: Vec::new(),
    };
    let node = CallStackNode {
        id: "n-1".into(),
        kind: "llm".into(),
        label: "outer".into(),
        latency_ms: 81,
        children: vec![leaf],
    };
    AuditEvent {
        event_id: format!("e-{number}"),
        agent_id: Some(agent.id()),
        // In milliseconds it looks like the number of a card.
        occurred_at: Some(Timestamp { unix_ms: 1_760_000_000_008 }),
        action_type: ActionType::ToolCall.into(),
        decision: Decision::Redact.into(),
        trace_id: "trace-f".into(),
        span_id: "span-f".into(),
        parent_span_id: "span-g".into(),
        labels: [("colour".to_owned(), "blue".to_owned())].into(),
        root_agent_id: "root".into(),
        parent_agent_id: "parent".into(),
        team_id: "ml".into(),
        session_id: "session".into(),
        delegation_reason: "help".into(),
        spawned_by_tool: "spawn".into(),
        depth: 3,
        call_stack: vec![node],
        dry_run: true,
        shadow_decision: "deny".into(),
        matched_rule_id: "rule-7".into(),
        detail: Some(detail),
    }
}

/// The lines of the audit log, as payloads.
fn log(gateway: &Gateway) -> Vec<Json> {
    let folder = tempfile::tempdir().unwrap();
    gateway.engine().ledger().checkpoint().unwrap();
    let follower = ChainFollower::start(folder.path(), gateway.engine().ledger().reader(), |_| ()).unwrap();
    gateway.engine().finish();
    follower.finish(std::time::Instant::now() + Duration::from_secs(60)).unwrap();
    let text = std::fs::read_to_string(folder.path().join("gateway-default.jsonl")).unwrap();
    let payload = |line: &str| {
        let line = Json::parse(line.as_bytes()).unwrap();
        Json::parse(line.get("payload").unwrap().as_str().unwrap().as_bytes()).unwrap()
    };
    text.lines().map(payload).collect()
}

#[tokio::test]
async fn every_field_of_every_event_is_in_the_record_and_in_the_log() {
    let (gateway, agent) = one_agent(ALLOW_ALL).await;
    let details = details();
    let events: Vec<AuditEvent> = details
        .iter()
        .enumerate()
        .map(|(number, (detail, _))| full_event(&agent, number, detail.clone()))
        .collect();
    assert_eq!(events.len(), 7);
    report(&gateway, &agent, events).await.unwrap();
    let recorded = records(&gateway, RecordKind::Observation);
    let log = log(&gateway);
    let logged: Vec<&Json> =
        log.iter().filter_map(|payload| payload.get("event")).filter(|it| it.as_object().is_some()).collect();
    for (number, (_, detail)) in details.into_iter().enumerate() {
        let expected = [
            &format!(r#""event_id":"e-{number}""#),
            r#""action_type":"TOOL_CALL""#,
            r#""decision":"REDACT""#,
            r#""occurred_at_s":1760000000.008"#,
            r#""trace_id":"trace-f""#,
            r#""span_id":"span-f""#,
            r#""parent_span_id":"span-g""#,
            r#""labels":{"colour":"blue"}"#,
            r#""root_agent_id":"root""#,
            r#""parent_agent_id":"parent""#,
            r#""team_id":"ml""#,
            r#""session_id":"session""#,
            r#""delegation_reason":"help""#,
            r#""spawned_by_tool":"spawn""#,
            r#""depth":3"#,
            r#""call_stack":[{"id":"n-1","kind":"llm","label":"outer","latency_ms":81,"children":[{"id":"n-2","kind":"tool","label":"inner","latency_ms":82}]}]"#,
            r#""dry_run":true"#,
            r#""shadow_decision":"deny""#,
            r#""matched_rule_id":"rule-7""#,
            detail,
        ];
        let (envelope, body) = &recorded[number];
        assert_eq!((&*envelope.agent, &*envelope.team, &*envelope.org), (&*agent.did(), "ml", "acme"));
        for text in [body.get("data").unwrap().to_string(), logged[number].to_string()] {
            for part in expected {
                assert!(text.contains(part), "{part} is missing in {text}");
            }
        }
    }
}

#[tokio::test]
async fn no_depth_of_arguments_makes_an_event_unreadable() {
    let (gateway, agent) = one_agent(ALLOW_ALL).await;
    let deep = |levels: usize| {
        let args = format!("{}\"AKIAQ7W3ERTY5UIOP2XZ\"{}", "[".repeat(levels), "]".repeat(levels));
        let detail = ToolCallDetail {
            tool_name: "search".into(),
            args_json: args.into_bytes(),
            ..ToolCallDetail::default()
        };
        event(&agent, &format!("deep-{levels}"), Detail::ToolCall(detail))
    };
    let levels = [90, 95, 96, 97, 120, 125, 126, 127, 128, 129, 1000];
    report(&gateway, &agent, levels.iter().map(|levels| deep(*levels)).collect()).await.unwrap();
    let recorded = records(&gateway, RecordKind::Observation);
    let log = log(&gateway);
    for (levels, (_, body)) in levels.iter().zip(&recorded) {
        let id = format!("deep-{levels}");
        let logged =
            log.iter().find(|line| line.get("event_id").and_then(Json::as_str) == Some(&*id)).unwrap();
        assert_eq!(logged.get("action").unwrap().as_str(), Some("search"));
        for data in [body.get("data").unwrap(), logged.get("event").unwrap()] {
            assert_eq!(data.get("event_id").unwrap().as_str(), Some(&*id));
            let text = data.get("detail").unwrap().to_string();
            assert!(text.contains("[REDACTED:AwsAccessKey]"), "{levels}: {text}");
            assert!(!text.contains("AKIAQ7"), "{levels}: {text}");
        }
    }
}

#[tokio::test]
async fn two_documents_with_the_same_limit_raise_one_alarm() {
    let text = "default: allow\nrules: []\nbudget: {calls: {daily: 5}}\n";
    let (gateway, agent) = one_agent(text).await;
    let sources = ["a.yaml", "b.yaml"].map(|name| proctor_policy::policy::Source::document(name, text));
    let compiled = proctor_policy::policy::Policy::compile(sources.to_vec());
    assert_eq!(gateway.engine().reload(compiled), proctor_engine::Reload::Loaded);
    for number in 0..5 {
        let decision = gateway.tool(&agent, &format!("tool-{number}"), "{}").await.decision();
        assert_eq!(decision, Decision::Allow, "check {number}");
    }
    let alarms = records(&gateway, RecordKind::Alarm).into_iter();
    let crossed = alarms.filter(|(envelope, _)| envelope.code == "budget_threshold").count();
    assert_eq!(crossed, 2, "at the fourth and at the fifth call, once each");
}
