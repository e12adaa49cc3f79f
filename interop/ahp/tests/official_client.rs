//! The official client against our released binary: what it understands of our answers.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::collections::HashMap;
use std::sync::Arc;

use a3s_ahp::{
    AhpClient, AhpError, AhpEvent, ConfirmationDecision, ContextPerceptionDecision, Decision, EventType,
    IdleDecision, IntentDetectionDecision, MemoryRecallDecision, PlanningDecision, PlanningStrategy,
    RateLimitDecision, ReasoningDecision,
};
use interop_ahp::policies::{CLOSED, OPEN};
use interop_ahp::samples::{KINDS, event, full_event, payload, typed};
use interop_ahp::supervised::Supervised;
use interop_ahp::{Way, on_every_transport};
use serde_json::{Value, json};

fn tool(name: &str) -> Value {
    json!({ "tool_name": name, "arguments": { "target": "x" } })
}

fn official(event: &Value) -> AhpEvent {
    serde_json::from_value(event.clone()).unwrap()
}

async fn the_handshake_tells_who_we_are_and_our_limits(way: Way) {
    let ours = Supervised::start(way, OPEN);
    let client = AhpClient::new(ours.transport(None)).await.unwrap();
    let welcome = client.handshake(vec!["pre_action".to_owned()]).await.unwrap();
    assert_eq!(welcome.protocol_version, "2.4");
    assert_eq!(welcome.harness_info.name, "proctor");
    assert!(!welcome.harness_info.version.is_empty());
    for kind in KINDS.iter().filter(|kind| kind.name != "handshake") {
        assert!(welcome.harness_info.capabilities.iter().any(|name| name == kind.name), "{}", kind.name);
    }
    let limits = welcome.config.unwrap();
    assert_eq!((limits.batch_size, limits.max_depth), (Some(100), Some(10)));
    // The official client gives up after ten seconds, and takes silence for a permission.
    assert!(limits.timeout_ms.is_some_and(|ms| ms < 10_000), "{limits:?}");
    client.handshake(Vec::new()).await.unwrap();
    client.close().await.unwrap();
}

async fn every_kind_is_answered_in_its_shape(way: Way) {
    let ours = Supervised::start(way, OPEN);
    let client = ours.client().await;
    for kind in KINDS {
        let answer = client.send_event(kind.typed(), payload(kind.name)).await;
        let answer = answer.unwrap_or_else(|error| panic!("{}: {error}", kind.name));
        let shape = match kind.name {
            "idle" => serde_json::from_value::<IdleDecision>(answer.clone()).map(drop),
            "context_perception" => {
                serde_json::from_value::<ContextPerceptionDecision>(answer.clone()).map(drop)
            }
            "memory_recall" => serde_json::from_value::<MemoryRecallDecision>(answer.clone()).map(drop),
            "planning" => serde_json::from_value::<PlanningDecision>(answer.clone()).map(drop),
            "reasoning" => serde_json::from_value::<ReasoningDecision>(answer.clone()).map(drop),
            "rate_limit" => serde_json::from_value::<RateLimitDecision>(answer.clone()).map(drop),
            "confirmation" => serde_json::from_value::<ConfirmationDecision>(answer.clone()).map(drop),
            "intent_detection" => serde_json::from_value::<IntentDetectionDecision>(answer.clone()).map(drop),
            _ => serde_json::from_value::<Decision>(answer.clone()).map(drop),
        };
        shape.unwrap_or_else(|error| panic!("{}: {answer}: {error}", kind.name));
    }
    // What came in order is on record when a later question is answered.
    client.query("policy", json!({})).await.unwrap();
    drop(client);
    if way != Way::Stdio {
        let place = ours.stop();
        let records = place.run_json(&["audit", "tail", "-n", "200"]);
        for kind in ["decision", "outcome", "observation", "session"] {
            assert!(records.iter().any(|record| record["kind"] == kind), "no {kind} in {records:#?}");
        }
        place.verify();
    }
}

async fn all_generic_decisions_are_understood(way: Way) {
    let ours = Supervised::start(way, OPEN);
    let client = ours.client().await;
    let decide = |payload: Value| client.send_event_decision(EventType::PreAction, payload);

    let Decision::Allow { metadata: Some(metadata), .. } = decide(payload("pre_action")).await.unwrap()
    else {
        panic!("not allowed with metadata")
    };
    assert_eq!(metadata["rule"], "reading-is-fine");
    assert!(metadata["decision_id"].is_string());

    let Decision::Block { reason, metadata: Some(metadata) } = decide(tool("wipe")).await.unwrap() else {
        panic!("not blocked with metadata")
    };
    assert_eq!((reason.as_str(), &metadata["rule"]), ("Nothing is wiped.", &json!("nothing-is-wiped")));

    let Decision::Modify { modified_payload, .. } = decide(tool("deploy")).await.unwrap() else {
        panic!("not modified")
    };
    assert_eq!(
        modified_payload,
        json!({ "tool_name": "deploy", "arguments": { "target": "x", "dry_run": true } })
    );

    let Decision::Defer { retry_after_ms, reason } = decide(tool("reindex")).await.unwrap() else {
        panic!("not deferred")
    };
    assert_eq!((retry_after_ms, reason.as_deref()), (90_000, Some("The window is closed.")));

    let Decision::Escalate { reason, escalation_target } = decide(tool("publish")).await.unwrap() else {
        panic!("not escalated")
    };
    assert!(reason.starts_with("Publishing needs a person."), "{reason}");
    assert_eq!(escalation_target.as_deref(), Some("ann"));

    // What nothing mentions, and what is no payload at all, is blocked.
    for odd in [tool("mystery"), json!(null), json!([1, 2]), json!("rm -rf /"), json!({ "tool_name": 5 })] {
        let decision = decide(odd.clone()).await.unwrap();
        assert!(matches!(decision, Decision::Block { .. }), "{odd}: {decision:?}");
    }
    let prompt = |text: &str| client.send_event_decision(EventType::PrePrompt, json!({ "prompt": text }));
    assert!(matches!(prompt("hello").await.unwrap(), Decision::Allow { .. }));
    let blocked = prompt("tell me the secret plan").await.unwrap();
    assert!(
        matches!(&blocked, Decision::Block { reason, .. } if reason == "Plans stay secret."),
        "{blocked:?}"
    );
}

async fn all_specialised_decisions_are_understood(way: Way) {
    let ours = Supervised::start(way, OPEN);
    let client = ours.client().await;
    let with = |kind: &str, member: &str, value: Value| {
        let mut payload = payload(kind);
        payload[member] = value;
        payload
    };

    let idle: IdleDecision = client.send_typed_event(EventType::Idle, payload("idle")).await.unwrap();
    assert!(matches!(idle, IdleDecision::Allow));

    let intent: IntentDetectionDecision =
        client.send_typed_event(EventType::IntentDetection, payload("intent_detection")).await.unwrap();
    let IntentDetectionDecision::Allow { detected_intent, confidence, target_hints: Some(hints) } = intent
    else {
        panic!("{intent:?}")
    };
    assert_eq!((detected_intent.as_str(), confidence), ("locate", 0.75));
    assert_eq!(hints.target_type.as_deref(), Some("function"));
    assert_eq!(hints.target_name.as_deref(), Some("retry loop"));
    let unknown = with("intent_detection", "prompt", json!("good morning"));
    let unknown: IntentDetectionDecision =
        client.send_typed_event(EventType::IntentDetection, unknown).await.unwrap();
    let IntentDetectionDecision::Allow { detected_intent, confidence, .. } = unknown else {
        panic!("{unknown:?}")
    };
    assert_eq!((detected_intent.as_str(), confidence), ("unknown", 0.0), "nothing is stopped by not knowing");

    let plan: PlanningDecision =
        client.send_typed_event(EventType::Planning, payload("planning")).await.unwrap();
    let PlanningDecision::Allow { selected_strategy, planning_template, .. } = plan else {
        panic!("{plan:?}")
    };
    assert!(matches!(selected_strategy, PlanningStrategy::StepByStep));
    assert_eq!(planning_template, Some(json!({ "steps": [] })));
    let custom = with("planning", "available_strategies", json!([{ "custom": "beam" }]));
    let custom: PlanningDecision = client.send_typed_event(EventType::Planning, custom).await.unwrap();
    let PlanningDecision::Allow { selected_strategy: PlanningStrategy::Custom(name), .. } = custom else {
        panic!("{custom:?}")
    };
    assert_eq!(name, "beam");
    let denied = with("planning", "task_description", json!("change production"));
    let denied: PlanningDecision = client.send_typed_event(EventType::Planning, denied).await.unwrap();
    assert!(matches!(denied, PlanningDecision::Block { .. }));

    let thought: ReasoningDecision =
        client.send_typed_event(EventType::Reasoning, payload("reasoning")).await.unwrap();
    let ReasoningDecision::Allow { hints, .. } = thought else { panic!("{thought:?}") };
    assert_eq!(hints, Some(vec!["check the lock order".to_owned()]));
    let other = with("reasoning", "reasoning_type", json!({ "other": "guessing" }));
    let other: ReasoningDecision = client.send_typed_event(EventType::Reasoning, other).await.unwrap();
    assert!(matches!(other, ReasoningDecision::Block { .. }));

    let wait: RateLimitDecision =
        client.send_typed_event(EventType::RateLimit, payload("rate_limit")).await.unwrap();
    assert!(matches!(wait, RateLimitDecision::Retry { retry_after_ms: 2000, .. }), "{wait:?}");
    let long = with("rate_limit", "retry_after_ms", json!(60_000));
    let long: RateLimitDecision = client.send_typed_event(EventType::RateLimit, long).await.unwrap();
    assert!(matches!(long, RateLimitDecision::Queue), "{long:?}");

    let confirm = async |message: &str| -> ConfirmationDecision {
        let asked = with("confirmation", "message", json!(message));
        client.send_typed_event(EventType::Confirmation, asked).await.unwrap()
    };
    assert!(matches!(confirm("shall I go on?").await, ConfirmationDecision::Approve));
    assert!(matches!(confirm("anything else?").await, ConfirmationDecision::Reject { .. }));
    assert!(matches!(confirm("spend 4 USD?").await, ConfirmationDecision::Escalate));

    // Memory of what this very session did; the full events carry their own session.
    client.send_event_full(&official(&event("pre_action", &tool("wipe")))).await.unwrap();
    let recall = official(&event("memory_recall", &with("memory_recall", "query", json!("wipe"))));
    let memory: MemoryRecallDecision = client.send_typed_event_full(&recall).await.unwrap();
    let MemoryRecallDecision::Allow { injected_facts, .. } = memory else { panic!("{memory:?}") };
    assert!(
        injected_facts.iter().any(|fact| fact.content.contains("Nothing is wiped.")),
        "{injected_facts:?}"
    );

    let mut look = payload("context_perception");
    look["context"]["workspace"] = json!(ours.place.workspace());
    let context: ContextPerceptionDecision =
        client.send_typed_event(EventType::ContextPerception, look).await.unwrap();
    let ContextPerceptionDecision::Allow { injected_context, .. } = context else { panic!("{context:?}") };
    let files = injected_context.file_contents.unwrap_or_default();
    assert!(files.iter().any(|file| file.path.ends_with("notes.txt")), "{files:?}");
    let nowhere = json!({ "entity": { "name": "zzyzx", "entity_type": "function" } });
    let mut nothing = with("context_perception", "target", nowhere);
    nothing["context"] = json!({ "workspace": "." });
    let nothing: ContextPerceptionDecision =
        client.send_typed_event(EventType::ContextPerception, nothing).await.unwrap();
    let ContextPerceptionDecision::Refine { scope_hints, .. } = nothing else { panic!("{nothing:?}") };
    assert!(!scope_hints.is_empty());
}

async fn refusals_of_advice_are_understood(way: Way) {
    let ours = Supervised::start(way, CLOSED);
    let client = ours.client().await;
    let idle: IdleDecision = client.send_typed_event(EventType::Idle, payload("idle")).await.unwrap();
    assert!(
        matches!(&idle, IdleDecision::Defer { reason: Some(reason) } if reason == "backup running"),
        "{idle:?}"
    );
    let plan: PlanningDecision =
        client.send_typed_event(EventType::Planning, payload("planning")).await.unwrap();
    assert!(
        matches!(&plan, PlanningDecision::Block { reason, .. } if reason.contains("no plans")),
        "{plan:?}"
    );
    let thought: ReasoningDecision =
        client.send_typed_event(EventType::Reasoning, payload("reasoning")).await.unwrap();
    assert!(
        matches!(&thought, ReasoningDecision::Block { reason, .. } if reason.contains("no thoughts")),
        "{thought:?}"
    );
    let memory: MemoryRecallDecision =
        client.send_typed_event(EventType::MemoryRecall, payload("memory_recall")).await.unwrap();
    assert!(
        matches!(&memory, MemoryRecallDecision::Block { reason, .. } if reason.contains("no memory")),
        "{memory:?}"
    );
    let context: ContextPerceptionDecision =
        client.send_typed_event(EventType::ContextPerception, payload("context_perception")).await.unwrap();
    assert!(
        matches!(&context, ContextPerceptionDecision::Block { reason, .. } if reason.contains("no context")),
        "{context:?}"
    );
    // The one call of the day, and what is advised when it is spent.
    let spent = client.send_event_decision(EventType::PreAction, tool("anything")).await.unwrap();
    assert!(matches!(spent, Decision::Allow { .. }), "{spent:?}");
    let over = client.send_event_decision(EventType::PreAction, tool("anything")).await.unwrap();
    assert!(matches!(over, Decision::Block { .. }), "{over:?}");
    let skip: RateLimitDecision =
        client.send_typed_event(EventType::RateLimit, payload("rate_limit")).await.unwrap();
    assert!(matches!(skip, RateLimitDecision::Skip { .. }), "{skip:?}");
}

/// Agents that read every answer as a generic decision, and go on when that fails.
async fn agents_that_only_know_generic_decisions_are_safe(way: Way) {
    let closed = Supervised::start(way, CLOSED);
    let client = closed.client().await;
    let deferred = client.send_event_decision(EventType::Idle, payload("idle")).await.unwrap();
    assert!(matches!(deferred, Decision::Defer { retry_after_ms: 90_000, .. }), "{deferred:?}");
    for kind in ["planning", "reasoning", "memory_recall", "context_perception"] {
        let blocked = client.send_event_decision(typed(kind), payload(kind)).await.unwrap();
        assert!(matches!(blocked, Decision::Block { .. }), "{kind}: {blocked:?}");
    }
    let open = Supervised::start(way, OPEN);
    let client = open.client().await;
    let mut spend = payload("confirmation");
    spend["message"] = json!("spend 4 USD?");
    let escalated = client.send_event_decision(EventType::Confirmation, spend).await.unwrap();
    assert!(matches!(escalated, Decision::Escalate { .. }), "{escalated:?}");
}

async fn full_events_carry_depth_context_and_metadata(way: Way) {
    let ours = Supervised::start(way, OPEN);
    let client = ours.client().await;
    let traced = full_event("pre_action", &tool("traced"), 3);
    assert!(matches!(client.send_event_full(&official(&traced)).await.unwrap(), Decision::Allow { .. }));
    let value = client.send_event_full_value(&official(&traced)).await.unwrap();
    assert_eq!(value["decision"], "allow");
    let shallow = full_event("pre_action", &tool("traced"), 2);
    assert!(matches!(client.send_event_full(&official(&shallow)).await.unwrap(), Decision::Block { .. }));
    let plain = AhpEvent { metadata: Some(HashMap::new()), ..official(&traced) };
    assert!(matches!(client.send_event_full(&plain).await.unwrap(), Decision::Block { .. }));
    let full = official(&full_event("reasoning", &payload("reasoning"), 1));
    let decision: ReasoningDecision = client.send_typed_event_full(&full).await.unwrap();
    assert!(matches!(decision, ReasoningDecision::Allow { .. }));
    for kind in KINDS.iter().filter(|kind| !kind.blocking) {
        let quiet = official(&full_event(kind.name, &payload(kind.name), 1));
        assert!(
            matches!(client.send_event_full(&quiet).await.unwrap(), Decision::Allow { .. }),
            "{}",
            kind.name
        );
    }
}

async fn depth_ten_passes_and_eleven_does_not(way: Way) {
    let ours = Supervised::start(way, OPEN);
    let client = ours.client().await;
    let at = |depth: u32| official(&full_event("pre_action", &payload("pre_action"), depth));
    assert!(matches!(client.send_event_full(&at(10)).await.unwrap(), Decision::Allow { .. }));
    let refused = client.send_event_full(&at(11)).await;
    assert!(matches!(&refused, Err(AhpError::Protocol(text)) if text.contains("depth 11")), "{refused:?}");
}

async fn batches_keep_order_and_count(way: Way) {
    let ours = Supervised::start(way, OPEN);
    let client = ours.client().await;
    let kinds =
        ["post_action", "heartbeat", "run_lifecycle", "task_list", "verification", "success", "error"];
    let mut events = vec![official(&event("pre_action", &payload("pre_action")))];
    events.extend(kinds.iter().map(|kind| official(&event(kind, &payload(kind)))));
    events.push(official(&event("pre_action", &tool("wipe"))));
    events.push(official(&event("pre_action", &tool("deploy"))));
    events.push(official(&event("pre_action", &tool("reindex"))));
    events.push(official(&event("pre_action", &tool("publish"))));
    events.push(official(&event("pre_prompt", &payload("pre_prompt"))));
    let decisions = client.send_batch(events).await.unwrap().decisions;
    let word = |decision: &Decision| match decision {
        Decision::Allow { .. } => "allow",
        Decision::Block { .. } => "block",
        Decision::Modify { .. } => "modify",
        Decision::Defer { .. } => "defer",
        Decision::Escalate { .. } => "escalate",
    };
    let words: Vec<&str> = decisions.iter().map(word).collect();
    let mut expected = vec!["allow"; 1 + kinds.len()];
    expected.extend(["block", "modify", "defer", "escalate", "allow"]);
    assert_eq!(words, expected);

    assert!(client.send_batch(Vec::new()).await.unwrap().decisions.is_empty());
    let many = |count: usize| vec![official(&event("pre_action", &payload("pre_action"))); count];
    assert_eq!(client.send_batch(many(100)).await.unwrap().decisions.len(), 100);
    let refused = client.send_batch(many(101)).await;
    assert!(matches!(&refused, Err(AhpError::Protocol(text)) if text.contains("101")), "{refused:?}");
}

async fn queries_are_answered(way: Way) {
    let ours = Supervised::start(way, OPEN);
    let client = ours.client().await;
    for question in ["may_i", "should_i_proceed"] {
        let yes = client.query(question, payload("pre_action")).await.unwrap();
        assert_eq!(yes.answer, true, "{yes:?}");
        let no = client.query(question, tool("wipe")).await.unwrap();
        assert_eq!(no.answer, false, "{no:?}");
        assert!(no.reason.is_some_and(|reason| reason.contains("Nothing is wiped.")));
    }
    let ask = client.query("may_i", tool("publish")).await.unwrap();
    assert_eq!(ask.answer, false);
    assert!(ask.alternatives.is_some_and(|alternatives| !alternatives.is_empty()));
    let policy = client.query("policy", json!({})).await.unwrap();
    assert!(policy.answer.to_string().contains("publishing-is-asked"), "{policy:?}");
    let budget = client.query("budget", json!({})).await.unwrap();
    assert!(budget.answer.to_string().contains("100000"), "{budget:?}");
    let unknown = client.query("what_is_love", json!({})).await.unwrap();
    assert!(unknown.answer.is_null());
    assert!(unknown.alternatives.is_some_and(|known| known.contains(&"may_i".to_owned())));
    // Asking changes nothing: the question was no request for an approval.
    let first = client.send_event_decision(EventType::PreAction, tool("publish")).await.unwrap();
    assert!(matches!(first, Decision::Escalate { .. }), "{first:?}");
}

async fn sixty_four_callers_get_their_own_answers(way: Way) {
    let ours = Supervised::start(way, OPEN);
    let client = Arc::new(ours.client().await);
    let callers = (0..64).map(|number| {
        let client = Arc::clone(&client);
        tokio::spawn(async move {
            for round in 0..4 {
                let payload =
                    json!({ "tool_name": "deploy", "arguments": { "number": number, "round": round } });
                let decision = client.send_event_decision(EventType::PreAction, payload).await.unwrap();
                let Decision::Modify { modified_payload, .. } = decision else { panic!("{decision:?}") };
                let arguments = json!({ "number": number, "round": round, "dry_run": true });
                assert_eq!(modified_payload["arguments"], arguments);
            }
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        caller.await.unwrap();
    }
}

/// Ask, be told to wait, wait, be allowed once, ask again.
async fn an_approval_goes_from_ask_to_grant(way: Way) {
    let place = interop_ahp::ours::Place::new(OPEN);
    let credential = place.credential();
    let credential = credential.to_str().unwrap();
    place.run(&["init", "--approver", "ann", "--credential", credential]);
    let ours = Supervised::start_in(way, place);
    let client = ours.client().await;
    let decide = || client.send_event(EventType::PreAction, tool("publish"));
    let asked = decide().await.unwrap();
    assert_eq!(asked["decision"], "escalate", "{asked}");
    let approval = asked["approval_id"].as_str().unwrap().to_owned();
    assert!(asked["reason"].as_str().unwrap().contains(&approval), "{asked}");
    for _ in 0..2 {
        let waiting = client.send_event_decision(EventType::PreAction, tool("publish")).await.unwrap();
        let Decision::Defer { reason: Some(reason), .. } = waiting else { panic!("{waiting:?}") };
        assert!(reason.contains(&approval), "{reason}");
    }
    let status = client.query("approval", json!({ "approval_id": approval })).await.unwrap();
    assert_eq!(status.answer["status"], "waiting");
    let listed = ours.place.run_json(&["approve", "list"]);
    assert!(listed.iter().any(|entry| entry["approval_id"] == approval.as_str()), "{listed:?}");
    ours.place.run(&["approve", "allow", &approval, "--reason", "reviewed", "--credential", credential]);
    let status = client.query("approval", json!({ "approval_id": approval })).await.unwrap();
    assert_eq!(status.answer["status"], "granted");
    let granted = client.send_event_decision(EventType::PreAction, tool("publish")).await.unwrap();
    assert!(matches!(granted, Decision::Allow { .. }), "{granted:?}");
    let again = decide().await.unwrap();
    assert_eq!(again["decision"], "escalate", "a grant is used once: {again}");
    assert_ne!(again["approval_id"], approval.as_str());
}

on_every_transport!(
    the_handshake_tells_who_we_are_and_our_limits,
    every_kind_is_answered_in_its_shape,
    all_generic_decisions_are_understood,
    all_specialised_decisions_are_understood,
    refusals_of_advice_are_understood,
    agents_that_only_know_generic_decisions_are_safe,
    full_events_carry_depth_context_and_metadata,
    depth_ten_passes_and_eleven_does_not,
    batches_keep_order_and_count,
    queries_are_answered,
    sixty_four_callers_get_their_own_answers,
    an_approval_goes_from_ask_to_grant,
);
