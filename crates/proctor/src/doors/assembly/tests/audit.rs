use proctor_net::assembly::services::audit::audit_service_server::AuditService;
use proctor_wire::assembly::proto::audit::v1::audit_event::Detail;
use proctor_wire::assembly::proto::audit::v1::{
    AuditEvent, LlmCallDetail, ReportEventsRequest, ToolCallDetail,
};
use tonic::Code;

use super::*;

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
