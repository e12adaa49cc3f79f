//! Our client against servers on the official crate, on every transport that has one; the Unix socket through the official dispatch.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::process::Command;

use interop_ahp::process::Server;
use interop_ahp::samples::{KINDS, event, full_event, payload, typed};
use interop_ahp::{Way, on_every_transport};
use proctor_clients::ahp::client::{AhpClient, AhpError, ClientOptions, Transport};
use proctor_clients::ahp::{AhpEvent, Decision, EventType};
use proctor_core::json::Json;
use serde_json::{Value, json};
use tempfile::TempDir;

const HARNESS: &str = env!("CARGO_BIN_EXE_official-harness");

/// A harness, and how to reach it.
struct Judge {
    transport: Transport,
    _server: Option<Server>,
    _folder: TempDir,
}

impl Judge {
    fn start(way: Way) -> Judge {
        let folder = tempfile::tempdir().unwrap();
        let start = |arguments: &[&str]| Server::start(Command::new(HARNESS).args(arguments));
        let (transport, server) = match way {
            Way::Stdio => {
                (Transport::Stdio { program: HARNESS.to_owned(), args: vec!["stdio".to_owned()] }, None)
            }
            Way::Unix => {
                let path = folder.path().join("socket");
                let server = start(&["unix", path.to_str().unwrap()]);
                (Transport::UnixSocket { path }, Some(server))
            }
            Way::Http => {
                let server = start(&["http"]);
                (
                    Transport::Http { url: format!("http://{}/ahp", server.text("address")), auth: None },
                    Some(server),
                )
            }
            Way::WebSocket => {
                let server = start(&["websocket"]);
                (
                    Transport::WebSocket { url: format!("ws://{}/ahp", server.text("address")), auth: None },
                    Some(server),
                )
            }
        };
        Judge { transport, _server: server, _folder: folder }
    }

    async fn client(&self) -> AhpClient {
        let options = ClientOptions {
            session_id: Some("ses-ours".to_owned()),
            agent_id: Some("ag-ours".to_owned()),
            ..ClientOptions::default()
        };
        let client = AhpClient::connect(self.transport.clone(), options).await.unwrap();
        client.handshake(vec!["pre_action".to_owned()]).await.unwrap();
        client
    }
}

fn value(json: &Json) -> Value {
    serde_json::from_str(&json.to_string()).unwrap()
}

fn ours(event: &Value) -> AhpEvent {
    AhpEvent::from_json(Json::from(event.clone()), false).unwrap()
}

/// Messages that the harness has received so far: the form and the event.
async fn seen(client: &AhpClient) -> Vec<(String, Value)> {
    let answer = value(&client.query("seen", json!({})).await.unwrap().answer);
    let entries = answer.as_array().unwrap().iter();
    entries.map(|entry| (entry["form"].as_str().unwrap().to_owned(), entry["event"].clone())).collect()
}

async fn the_handshake_tells_who_the_harness_is_and_its_limits(way: Way) {
    let judge = Judge::start(way);
    let client = AhpClient::new(judge.transport.clone()).await.unwrap();
    let too_early = client.send_event_decision(EventType::PreAction, json!({})).await;
    assert_eq!(too_early, Err(AhpError::NotHandshaken));
    let welcome = client.handshake(vec!["pre_action".to_owned()]).await.unwrap();
    assert_eq!(welcome.protocol_version, "2.4");
    assert_eq!(
        (welcome.harness_info.name.as_str(), welcome.harness_info.version.as_str()),
        ("judge", "1.2.3")
    );
    assert_eq!(welcome.harness_info.capabilities, ["pre_action", "query"]);
    let limits = welcome.config.unwrap();
    assert_eq!((limits.timeout_ms, limits.batch_size, limits.max_depth), (Some(10_000), Some(100), Some(10)));
    assert_eq!(client.harness(), Some(welcome));
    // Again, as often as one likes.
    client.handshake(Vec::new()).await.unwrap();
}

async fn every_kind_arrives_in_its_form(way: Way) {
    let judge = Judge::start(way);
    let client = judge.client().await;
    for kind in KINDS {
        let sent = client.send_event(kind.typed(), payload_with_answer(kind.name)).await;
        let decision = value(&sent.unwrap_or_else(|error| panic!("{}: {error}", kind.name)));
        assert!(decision["decision"].is_string(), "{}: {decision}", kind.name);
        if !kind.blocking {
            assert_eq!(decision, json!({ "decision": "allow" }));
        }
    }
    let seen = seen(&client).await;
    // The official server hands the idle handler no event, so it is the one that is not seen.
    let kinds: Vec<_> = KINDS.iter().filter(|kind| kind.name != "idle").collect();
    assert_eq!(seen.len(), kinds.len());
    for (kind, (form, event)) in kinds.iter().zip(&seen) {
        assert_eq!(form, if kind.blocking { "request" } else { "notification" }, "{}", kind.name);
        assert_eq!(event["event_type"], kind.name);
        assert_eq!(event["payload"], payload_with_answer(kind.name), "{}", kind.name);
        assert_eq!((&event["session_id"], &event["agent_id"]), (&json!("ses-ours"), &json!("ag-ours")));
        assert_eq!(event["depth"], 0);
    }
}

/// A good payload that also says what to answer.
fn payload_with_answer(kind: &str) -> Value {
    let mut payload = payload(kind);
    let answer = match kind {
        "context_perception" | "intent_detection" => json!({ "decision": "block", "reason": "no" }),
        "memory_recall" => json!({ "decision": "allow", "injected_facts": [] }),
        "planning" => json!({ "decision": "allow", "selected_strategy": "none" }),
        "rate_limit" => json!({ "decision": "queue" }),
        "confirmation" => json!({ "decision": "approve" }),
        _ => return payload,
    };
    payload["answer"] = answer;
    payload
}

async fn all_generic_decisions_are_read(way: Way) {
    let judge = Judge::start(way);
    let client = judge.client().await;
    let object = |value: Value| Json::from(value);
    let cases = [
        (json!({ "decision": "allow" }), Decision::allow()),
        (
            json!({ "decision": "allow", "modified_payload": { "a": 1 }, "metadata": { "rule": "r" } }),
            Decision::Allow {
                modified_payload: Some(object(json!({ "a": 1 }))),
                metadata: Some(object(json!({ "rule": "r" }))),
            },
        ),
        (json!({ "decision": "block", "reason": "no" }), Decision::block("no")),
        (
            json!({ "decision": "modify", "modified_payload": { "command": "ls" } }),
            Decision::Modify { modified_payload: object(json!({ "command": "ls" })), metadata: None },
        ),
        (
            json!({ "decision": "defer", "retry_after_ms": 1500, "reason": "window closed" }),
            Decision::Defer {
                retry_after_ms: 1500,
                reason: Some("window closed".to_owned()),
                approval_id: None,
                expires_at: None,
                metadata: None,
            },
        ),
        (
            json!({ "decision": "escalate", "reason": "billing", "escalation_target": "finance" }),
            Decision::Escalate {
                reason: "billing".to_owned(),
                escalation_target: Some("finance".to_owned()),
                approval_id: None,
                retry_after_ms: None,
                expires_at: None,
                metadata: None,
            },
        ),
    ];
    for (answer, expected) in cases {
        for kind in [EventType::PreAction, EventType::PrePrompt] {
            let decision =
                client.send_event_decision(kind, json!({ "answer": answer.clone() })).await.unwrap();
            assert_eq!(decision, expected);
        }
    }
}

/// Each variant of each specialised decision goes through the official type and must come out of ours as it went in.
async fn all_specialised_decisions_are_read(way: Way) {
    use proctor_clients::ahp::{
        ConfirmationDecision, ContextPerceptionDecision, IdleDecision, IntentDetectionDecision,
        MemoryRecallDecision, PlanningDecision, RateLimitDecision, ReasoningDecision,
    };
    let judge = Judge::start(way);
    let client = judge.client().await;
    macro_rules! comes_back {
        ($kind:literal as $decision:ty: $($answer:expr),+ $(,)?) => { $({
            let answer: Value = $answer;
            let mut payload = payload($kind);
            payload["answer"] = answer.clone();
            let decision: $decision = client.send_typed_event(typed($kind), payload).await.unwrap();
            assert_eq!(without_nulls(serde_json::to_value(&decision).unwrap()), answer, $kind);
        })+ };
    }
    comes_back!("context_perception" as ContextPerceptionDecision:
        json!({ "decision": "allow", "injected_context": { "facts": [] } }),
        json!({
            "decision": "allow",
            "injected_context": {
                "facts": [{ "content": "c", "source": "s", "confidence": 0.75 }],
                "file_contents": [{ "path": "p", "snippet": "s", "relevance_score": 0.5 }],
                "project_summary": { "project_name": "n", "language": "rust", "key_files": ["k"], "structure_description": "d" },
                "knowledge": ["k"],
                "suggestions": ["s"],
            },
            "metadata": { "m": 1 },
        }),
        json!({ "decision": "block", "reason": "no", "metadata": { "m": 1 } }),
        json!({ "decision": "refine", "scope_hints": ["src only"] }),
        json!({
            "decision": "refine",
            "refined_intent": "explore",
            "refined_target": { "pattern": { "pattern": "parse_*", "pattern_type": "text" } },
            "scope_hints": [],
        }),
    );
    comes_back!("memory_recall" as MemoryRecallDecision:
        json!({ "decision": "allow", "injected_facts": [{ "content": "c", "source": "s", "confidence": 0.5 }], "metadata": { "m": 1 } }),
        json!({ "decision": "block", "reason": "no" }),
    );
    comes_back!("planning" as PlanningDecision:
        json!({ "decision": "allow", "selected_strategy": "graph_planning", "planning_template": [1], "metadata": { "m": 1 } }),
        json!({ "decision": "allow", "selected_strategy": { "custom": "beam" } }),
        json!({ "decision": "block", "reason": "no" }),
        json!({ "decision": "modify", "modified_task": "smaller", "hints": ["semver"] }),
    );
    comes_back!("reasoning" as ReasoningDecision:
        json!({ "decision": "allow" }),
        json!({ "decision": "allow", "hints": ["check lock order"], "metadata": { "m": 1 } }),
        json!({ "decision": "block", "reason": "no" }),
    );
    comes_back!("rate_limit" as RateLimitDecision:
        json!({ "decision": "retry", "retry_after_ms": 2500, "metadata": { "m": 1 } }),
        json!({ "decision": "queue" }),
        json!({ "decision": "skip", "reason": "low value" }),
    );
    comes_back!("confirmation" as ConfirmationDecision:
        json!({ "decision": "approve" }),
        json!({ "decision": "reject", "reason": "no" }),
        json!({ "decision": "escalate" }),
    );
    comes_back!("intent_detection" as IntentDetectionDecision:
        json!({ "decision": "allow", "detected_intent": "locate", "confidence": 0.5 }),
        json!({ "decision": "allow", "detected_intent": "locate", "confidence": 0.5, "target_hints": { "target_type": "function" } }),
        json!({ "decision": "block", "reason": "no" }),
    );
    let idle = |reason: &str| json!({ "idle_duration_ms": 1, "idle_reason": reason });
    let allowed: IdleDecision = client.send_typed_event(EventType::Idle, idle("rest")).await.unwrap();
    assert_eq!(allowed, IdleDecision::Allow { metadata: None });
    let deferred: IdleDecision = client.send_typed_event(EventType::Idle, idle("busy")).await.unwrap();
    assert_eq!(deferred, IdleDecision::Defer { reason: None, retry_after_ms: None, metadata: None });
    let full = ours(&full_event("idle", &idle("rest"), 0));
    let deferred: IdleDecision = client.send_typed_event_full(&full).await.unwrap();
    let reason = Some("ship it".to_owned());
    assert_eq!(deferred, IdleDecision::Defer { reason, retry_after_ms: None, metadata: None });
}

/// Members that are `null` are as good as absent.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(members) => Value::Object(
            members
                .into_iter()
                .filter(|(_, member)| !member.is_null())
                .map(|(name, member)| (name, without_nulls(member)))
                .collect(),
        ),
        Value::Array(items) => Value::Array(items.into_iter().map(without_nulls).collect()),
        other => other,
    }
}

async fn full_events_arrive_untouched(way: Way) {
    let judge = Judge::start(way);
    let client = judge.client().await;
    let mut sent = Vec::new();
    for (depth, kind) in [(10, "pre_action"), (3, "post_action"), (1, "verification"), (2, "reasoning")] {
        let event = full_event(kind, &payload(kind), depth);
        client.send_event_full_value(&ours(&event)).await.unwrap();
        sent.push(event);
    }
    let decision = client.send_event_full(&ours(&sent[0])).await.unwrap();
    assert_eq!(decision, Decision::allow());
    sent.push(sent[0].clone());
    let arrived: Vec<Value> = seen(&client).await.into_iter().map(|(_, event)| event).collect();
    assert_eq!(arrived, sent);
}

async fn batches_keep_order_and_count(way: Way) {
    let judge = Judge::start(way);
    let client = judge.client().await;
    let action = |answer: Value| ours(&event("pre_action", &json!({ "answer": answer })));
    let decisions = client
        .send_batch(vec![
            action(json!({ "decision": "block", "reason": "first" })),
            ours(&event("post_action", &payload("post_action"))),
            ours(&event("task_list", &payload("task_list"))),
            ours(&event("pre_prompt", &json!({ "fail": "out of order" }))),
            action(json!({ "decision": "allow" })),
        ])
        .await
        .unwrap()
        .decisions;
    assert_eq!(decisions.len(), 5);
    assert_eq!(decisions[0], Decision::block("first"));
    assert_eq!(decisions[1], Decision::allow());
    assert_eq!(decisions[2], Decision::allow());
    assert!(matches!(&decisions[3], Decision::Block { reason, .. } if reason.contains("out of order")));
    assert_eq!(decisions[4], Decision::allow());

    assert_eq!(client.send_batch(Vec::new()).await.unwrap().decisions, []);
    let many = |count: usize| vec![action(json!({ "decision": "allow" })); count];
    assert_eq!(client.send_batch(many(100)).await.unwrap().decisions.len(), 100);
    assert_eq!(client.send_batch(many(101)).await, Err(AhpError::BatchTooLarge { events: 101, max: 100 }));
    for kind in KINDS.iter().filter(|kind| !kind.batchable) {
        let refused = client.send_batch(vec![ours(&event(kind.name, &payload(kind.name)))]).await;
        assert_eq!(refused, Err(AhpError::NotBatchable(kind.typed())));
    }
}

async fn queries_are_answered(way: Way) {
    let judge = Judge::start(way);
    let client = judge.client().await;
    for question in [json!(null), json!(3.5), json!("text"), json!([1, { "a": null }])] {
        let response = client.query("echo", question.clone()).await.unwrap();
        assert_eq!(value(&response.answer), question);
        assert_eq!(response.reason.as_deref(), Some("because"));
        assert_eq!(response.alternatives, Some(vec!["one".to_owned(), "two".to_owned()]));
    }
    let who = client.query("who", json!({})).await.unwrap();
    assert_eq!((value(&who.answer), who.reason), (json!(["ses-ours", "ag-ours"]), None));
}

async fn refusals_keep_their_code(way: Way) {
    let judge = Judge::start(way);
    let client = judge.client().await;
    let code_of = |refused: Result<Json, AhpError>| match refused {
        Err(AhpError::Rpc { code, message, method, .. }) => (method, code, message),
        other => panic!("{other:?}"),
    };
    let (method, code, message) =
        code_of(client.send_event(EventType::PreAction, json!({ "fail": "on purpose" })).await);
    assert_eq!((method, code), ("ahp/event", -32603));
    assert!(message.contains("on purpose"), "{message}");
    // Every specialised kind refuses a payload that it cannot read.
    for kind in KINDS.iter().filter(|kind| kind.is_specialised()) {
        let (_, code, _) = code_of(client.send_event(kind.typed(), json!({ "nothing": true })).await);
        assert_eq!(code, -32603, "{}", kind.name);
    }
    let refused = client.query("no such question", json!({})).await.map(|response| response.answer);
    assert_eq!(code_of(refused).1, -32603);
    // What the harness would refuse without a word does not leave.
    let deep = ours(&full_event("pre_action", &json!({}), 11));
    assert_eq!(client.send_event_full(&deep).await, Err(AhpError::TooDeep { depth: 11, max: 10 }));
    for kind in ["run_lifecycle", "task_list", "verification"] {
        let refused = client.notify(typed(kind), json!({ "run_id": 1 })).await;
        assert!(
            matches!(&refused, Err(AhpError::InvalidEvent { kind: found, .. }) if found.name() == kind),
            "{refused:?}"
        );
    }
    let refused = client.notify(EventType::PreAction, json!({})).await;
    assert!(
        matches!(&refused, Err(AhpError::InvalidEvent { kind: EventType::PreAction, .. })),
        "{refused:?}"
    );
    // And the connection is still good.
    assert_eq!(client.send_event_decision(EventType::PreAction, json!({})).await, Ok(Decision::allow()));
}

async fn sixty_four_callers_get_their_own_answers(way: Way) {
    let judge = Judge::start(way);
    let client = judge.client().await;
    let callers = (0..64).map(|number| {
        let client = client.clone();
        tokio::spawn(async move {
            for round in 0..8 {
                let reason = format!("{number}/{round}");
                let answer = json!({ "answer": { "decision": "block", "reason": reason } });
                let decision = client.send_event_decision(EventType::PreAction, answer).await.unwrap();
                assert_eq!(decision, Decision::block(reason));
            }
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        caller.await.unwrap();
    }
    assert_eq!(client.in_flight(), 0);
}

async fn a_dead_harness_is_noticed(way: Way) {
    let judge = Judge::start(way);
    let client = judge.client().await;
    let lost = client.send_event_decision(EventType::PreAction, json!({ "die": true })).await;
    assert_eq!(lost, Err(AhpError::ConnectionClosed));
    let next = client
        .with_timeout(std::time::Duration::from_secs(5))
        .send_event_decision(EventType::PreAction, json!({}))
        .await;
    if way == Way::Stdio {
        // The program is started and greeted again.
        assert_eq!(next, Ok(Decision::allow()));
        assert_eq!(seen(&client).await.len(), 1, "and nothing was sent twice");
    } else {
        let gone = matches!(
            next,
            Err(AhpError::Transport(_) | AhpError::Timeout { .. } | AhpError::ConnectionClosed)
        );
        assert!(gone, "{next:?}");
    }
}

async fn after_close_nothing_is_sent(way: Way) {
    let judge = Judge::start(way);
    let client = judge.client().await;
    let clone = client.clone();
    client.close().await.unwrap();
    let refused = clone.send_event_decision(EventType::PreAction, json!({})).await;
    assert_eq!(refused, Err(AhpError::ConnectionClosed));
}

on_every_transport!(
    the_handshake_tells_who_the_harness_is_and_its_limits,
    every_kind_arrives_in_its_form,
    all_generic_decisions_are_read,
    all_specialised_decisions_are_read,
    full_events_arrive_untouched,
    batches_keep_order_and_count,
    queries_are_answered,
    refusals_keep_their_code,
    sixty_four_callers_get_their_own_answers,
    a_dead_harness_is_noticed,
    after_close_nothing_is_sent,
);
