//! Checks of the client, before it sends and when it is answered.

use std::time::{Duration, Instant};

use crate::support::harness::{Harness, quick};
use proctor_clients::ahp::client::{AhpClient, AhpError, ClientOptions, TransportConfig};
use proctor_clients::ahp::{AhpEvent, Decision, EventType, IdleDecision, PlanningDecision, QueryResponse};
use proctor_core::json::Json;
use serde_json::json;

fn event(kind: EventType, depth: u32) -> AhpEvent {
    AhpEvent {
        event_type: kind,
        session_id: "their-session".to_owned(),
        agent_id: "their-agent".to_owned(),
        timestamp: "yesterday".to_owned(),
        depth,
        payload: json!({"tool_name": "ls"}).into(),
        context: None,
        metadata: Some(json!({"trace": "9f2"}).into()),
    }
}

/// A client after its handshake, and the harness's end.
macro_rules! connected {
    ($config:expr) => {
        connected!($config, quick())
    };
    ($config:expr, $options:expr) => {{
        let harness = Harness::new();
        let client = AhpClient::connect(harness.transport(), $options).await.unwrap();
        let mut peer = harness.accept().await;
        let (greeted, _) = tokio::join!(client.handshake(vec!["pre_action".to_owned()]), peer.greet($config));
        greeted.unwrap();
        (harness, client, peer)
    }};
}

/// Result of the client for a reply to a `pre_action`; `$ID` stands for its identifier.
async fn outcome(reply: &str) -> Result<Json, AhpError> {
    let (_harness, client, mut peer) = connected!("{}");
    let answering = async {
        let request = peer.next().await.unwrap();
        peer.line(reply.replace("$ID", &request["id"].to_string())).await;
    };
    let client = client.with_timeout(Duration::from_millis(400));
    tokio::join!(client.send_event(EventType::PreAction, json!({})), answering).0
}

#[tokio::test]
async fn nothing_is_sent_before_the_handshake() {
    let harness = Harness::new();
    let client = AhpClient::connect(harness.transport(), quick()).await.unwrap();
    let mut peer = harness.accept().await;
    let early = |error: AhpError| assert_eq!(error, AhpError::NotHandshaken);
    early(client.send_event(EventType::PreAction, json!({})).await.unwrap_err());
    early(client.send_event(EventType::PostAction, json!({})).await.unwrap_err());
    early(client.notify(EventType::PostAction, json!({})).await.unwrap_err());
    early(client.send_batch(vec![event(EventType::PreAction, 0)]).await.unwrap_err());
    early(client.query("q", json!({})).await.unwrap_err());
    let (greeted, request) = tokio::join!(client.handshake(vec![]), peer.greet("{}"));
    greeted.unwrap();
    assert_eq!(request["method"], "ahp/handshake");
}

#[tokio::test]
async fn names_and_request_ids_can_be_chosen_and_read() {
    let options = ClientOptions {
        session_id: Some("ses-71".to_owned()),
        agent_id: Some("ag-4".to_owned()),
        framework: "loom".to_owned(),
        framework_version: "0.3.1".to_owned(),
        ..quick()
    };
    let harness = Harness::new();
    let client = AhpClient::connect(harness.transport(), options).await.unwrap();
    assert_eq!((client.session_id(), client.agent_id()), ("ses-71", "ag-4"));
    let mut peer = harness.accept().await;
    let first = client.with_id("h-1");
    let (greeted, request) = tokio::join!(first.handshake(vec!["batch".to_owned()]), peer.greet("{}"));
    assert_eq!(greeted.unwrap().harness_info.name, "h");
    assert_eq!(
        request.to_string(),
        r#"{"jsonrpc":"2.0","id":"h-1","method":"ahp/handshake","params":{"protocol_version":"2.4","agent_info":{"framework":"loom","version":"0.3.1","capabilities":["batch"]},"session_id":"ses-71","agent_id":"ag-4"}}"#
    );
    let answering = async {
        let request = peer.next().await.unwrap();
        assert_eq!(request["id"], "e-1");
        let params = &request["params"];
        assert_eq!(params["session_id"], "ses-71");
        assert_eq!(params["agent_id"], "ag-4");
        assert_eq!(params["depth"].as_u64(), Some(0));
        assert!(proctor_core::time::Timestamp::parse(params["timestamp"].as_str().unwrap()).is_some());
        assert!(params.get("context").is_none() && params.get("metadata").is_none());
        peer.result(&request, r#"{"decision":"block","reason":"no"}"#).await;
    };
    let tagged = client.with_id("e-1");
    let (decision, ()) =
        tokio::join!(tagged.send_event_decision(EventType::PreAction, json!({"a": 1})), answering);
    assert!(matches!(decision.unwrap(), Decision::Block { reason, .. } if reason == "no"));
}

#[tokio::test]
async fn random_names_differ_and_an_id_in_use_is_refused() {
    let (_harness, client, mut peer) = connected!("{}");
    let (_other_harness, other, _other_peer) = connected!("{}");
    assert_ne!(client.session_id(), other.session_id());
    assert_ne!(client.session_id(), client.agent_id());
    let tagged = client.with_id("same");
    let first = tokio::spawn({
        let tagged = tagged.clone();
        async move { tagged.send_event(EventType::PreAction, json!({})).await }
    });
    let request = peer.next().await.unwrap();
    let error = tagged.send_event(EventType::PreAction, json!({})).await.unwrap_err();
    assert!(matches!(error, AhpError::InvalidId { id, .. } if id == "same"));
    peer.result(&request, r#"{"decision":"allow"}"#).await;
    first.await.unwrap().unwrap();
    let long = client.with_id("x".repeat(5000));
    let error = long.send_event(EventType::PreAction, json!({})).await.unwrap_err();
    assert!(matches!(error, AhpError::InvalidId { .. }));
    assert!(error.to_string().len() < 200);
}

#[tokio::test]
async fn replies_are_checked() {
    assert!(
        outcome(r#"{"jsonrpc":"2.0","id":$ID,"result":{"decision":"allow"},"error":null}"#).await.is_ok()
    );
    for broken in [
        r#"{"jsonrpc":"1.0","id":$ID,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":$ID}"#,
        r#"{"jsonrpc":"2.0","id":$ID,"result":null}"#,
        r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":4294967296,"message":"m"}}"#,
    ] {
        let error = outcome(broken).await.unwrap_err();
        assert!(matches!(error, AhpError::Protocol(_)), "{broken}: {error:?}");
    }
    for ignored in [
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":null,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":"another","result":{}}"#,
        r#"{"jsonrpc":"2.0","id":$ID,"method":"ahp/event","params":{},"result":{}}"#,
    ] {
        let error = outcome(ignored).await.unwrap_err();
        assert_eq!(error, AhpError::Timeout { what: "reply", ms: 400 }, "{ignored}");
    }
}

/// Code and data of an error reach the caller, and an error wins over a result.
#[tokio::test]
async fn an_error_keeps_its_code_and_data() {
    let reply = r#"{"jsonrpc":"2.0","id":$ID,"result":{"decision":"allow"},"error":{"code":-32602,"message":"Invalid params: depth","data":{"at":"/depth"}}}"#;
    let error = outcome(reply).await.unwrap_err();
    assert!(error.to_string().contains("Invalid params: depth"));
    let AhpError::Rpc { method, code, data, .. } = error else { panic!("{error:?}") };
    assert_eq!((method, code), ("ahp/event", -32602));
    assert_eq!(data.unwrap().to_string(), r#"{"at":"/depth"}"#);
}

#[tokio::test]
async fn a_harness_of_another_major_version_is_refused() {
    for (version, fine) in
        [("2", true), ("2.99.1-x", true), ("3.0", false), ("1.9", false), ("v2.4", false), ("", false)]
    {
        let harness = Harness::new();
        let client = AhpClient::connect(harness.transport(), quick()).await.unwrap();
        let mut peer = harness.accept().await;
        let answering = async {
            let request = peer.next().await.unwrap();
            let answer =
                crate::support::harness::greeting("{}").replace("\"2.4\"", &format!("\"{version}\""));
            peer.result(&request, &answer).await;
        };
        let (greeted, ()) = tokio::join!(client.handshake(vec![]), answering);
        assert_eq!(greeted.is_ok(), fine, "{version}");
        if !fine {
            assert!(matches!(greeted.unwrap_err(), AhpError::Protocol(_)));
            assert!(client.harness().is_none());
            assert_eq!(client.query("q", json!({})).await.unwrap_err(), AhpError::NotHandshaken);
        }
    }
}

#[tokio::test]
async fn quiet_kinds_are_notifications_and_allowed_here() {
    let (_harness, client, mut peer) = connected!("{}");
    let allowed = client.send_event(EventType::PostAction, json!({"n": 1})).await.unwrap();
    assert_eq!(allowed.to_string(), r#"{"decision":"allow"}"#);
    assert!(matches!(
        client.send_event_decision(EventType::Heartbeat, json!({})).await.unwrap(),
        Decision::Allow { .. }
    ));
    let idle: IdleDecision = client.send_typed_event(EventType::Success, json!({})).await.unwrap();
    assert!(matches!(idle, IdleDecision::Allow { .. }));
    // The only answer there can be does not fit: nothing is sent.
    let error = client.send_typed_event::<PlanningDecision>(EventType::Error, json!({})).await.unwrap_err();
    assert!(matches!(error, AhpError::Serialization(_)));
    let error = client.notify(EventType::PreAction, json!({})).await.unwrap_err();
    assert!(matches!(error, AhpError::InvalidEvent { kind: EventType::PreAction, .. }));
    for kind in ["post_action", "heartbeat", "success"] {
        let message = peer.next().await.unwrap();
        assert_eq!(message["params"]["event_type"], kind);
        assert!(message.get("id").is_none());
    }
    client.close().await.unwrap();
    assert_eq!(peer.next().await, None);
}

/// Harnesses on streams refuse a bad contract without a word, so it is refused here.
#[tokio::test]
async fn bad_contracts_are_refused_before_they_are_sent() {
    let (_harness, client, mut peer) = connected!("{}");
    for kind in [EventType::RunLifecycle, EventType::TaskList, EventType::Verification] {
        let error = client.notify(kind, json!({"run_id": 1})).await.unwrap_err();
        assert!(matches!(error, AhpError::InvalidEvent { kind: refused, .. } if refused == kind), "{error}");
    }
    let wrong = AhpEvent { metadata: Some(Json::from("text")), ..event(EventType::PreAction, 0) };
    assert!(matches!(client.send_event_full(&wrong).await.unwrap_err(), AhpError::InvalidEvent { .. }));
    let good = json!({"run_id": "r", "session_id": "s", "status": "verifying", "started_at": "t", "updated_at": "t"});
    client.notify(EventType::RunLifecycle, good).await.unwrap();
    assert_eq!(peer.next().await.unwrap()["params"]["event_type"], "run_lifecycle");
}

#[tokio::test]
async fn full_events_go_out_untouched() {
    let (_harness, client, mut peer) = connected!("{}");
    let sent = event(EventType::PreAction, 3);
    let answering = async {
        for _ in 0..3 {
            let request = peer.next().await.unwrap();
            let seen = AhpEvent::from_json(request["params"].clone(), false).unwrap();
            assert_eq!(seen, sent);
            peer.result(&request, r#"{"decision":"allow","extra":1}"#).await;
        }
    };
    let asking = async {
        assert!(matches!(client.send_event_full(&sent).await.unwrap(), Decision::Allow { .. }));
        let raw = client.send_event_full_value(&sent).await.unwrap();
        assert_eq!(raw.to_string(), r#"{"decision":"allow","extra":1}"#);
        client.send_typed_event_full::<IdleDecision>(&sent).await.unwrap();
    };
    tokio::join!(asking, answering);
}

#[tokio::test]
async fn advertised_limits_are_kept_before_anything_is_sent() {
    let (_harness, client, mut peer) = connected!(r#"{"batch_size":2,"max_depth":6}"#);
    assert_eq!(client.harness().unwrap().config.unwrap().max_depth, Some(6));
    let deep = |depth| event(EventType::PreAction, depth);
    assert_eq!(client.send_event_full(&deep(7)).await.unwrap_err(), AhpError::TooDeep { depth: 7, max: 6 });
    assert_eq!(
        client.notify_full(&event(EventType::PostAction, 9)).await.unwrap_err(),
        AhpError::TooDeep { depth: 9, max: 6 }
    );
    assert_eq!(
        client.send_batch(vec![deep(0), deep(0), deep(0)]).await.unwrap_err(),
        AhpError::BatchTooLarge { events: 3, max: 2 }
    );
    assert_eq!(
        client.send_batch(vec![deep(0), deep(7)]).await.unwrap_err(),
        AhpError::TooDeep { depth: 7, max: 6 }
    );
    for kind in EventType::ALL.into_iter().filter(|kind| !kind.is_batchable()) {
        let error =
            client.send_batch(vec![event(EventType::PreAction, 0), event(kind, 0)]).await.unwrap_err();
        assert_eq!(error, AhpError::NotBatchable(kind));
    }
    let answering = async {
        let request = peer.next().await.unwrap();
        assert_eq!(request["params"]["depth"].as_u64(), Some(6));
        peer.result(&request, r#"{"decision":"allow"}"#).await;
    };
    let deepest = event(EventType::PreAction, 6);
    let (allowed, ()) = tokio::join!(client.send_event_full(&deepest), answering);
    allowed.unwrap();
}

#[tokio::test]
async fn a_batch_gets_as_many_decisions_as_it_has_events() {
    let (_harness, client, mut peer) = connected!("{}");
    let answering = async {
        for decisions in
            [r#"[{"decision":"allow"},{"decision":"block","reason":"b"}]"#, r#"[{"decision":"allow"}]"#, "[]"]
        {
            let request = peer.next().await.unwrap();
            assert_eq!(request["method"], "ahp/batch");
            peer.result(&request, &format!(r#"{{"decisions":{decisions}}}"#)).await;
        }
    };
    let asking = async {
        let two = || vec![event(EventType::PreAction, 0), event(EventType::PostAction, 0)];
        let response = client.send_batch(two()).await.unwrap();
        assert!(matches!(&response.decisions[1], Decision::Block { reason, .. } if reason == "b"));
        assert!(matches!(client.send_batch(two()).await.unwrap_err(), AhpError::Protocol(_)));
        assert!(client.send_batch(vec![]).await.unwrap().decisions.is_empty());
    };
    tokio::join!(asking, answering);
}

#[tokio::test]
async fn queries_are_answered_even_with_null() {
    let (_harness, client, mut peer) = connected!("{}");
    let answering = async {
        for answer in [r#"{"answer":null}"#, r#"{"answer":3.5,"reason":"r","alternatives":["a"]}"#] {
            let request = peer.next().await.unwrap();
            assert_eq!(request["params"]["query_type"], "budget_left");
            peer.result(&request, answer).await;
        }
    };
    let asking = async {
        let none = client.query("budget_left", json!({"unit": "usd"})).await.unwrap();
        assert_eq!(none, QueryResponse { answer: Json::Null, reason: None, alternatives: None });
        let some = client.query("budget_left", Json::Null).await.unwrap();
        assert_eq!(some.answer.to_string(), "3.5");
        assert_eq!(some.alternatives.unwrap(), ["a"]);
    };
    tokio::join!(asking, answering);
}

#[tokio::test]
async fn an_answer_of_another_shape_is_an_error_and_no_permission() {
    let (_harness, client, mut peer) = connected!("{}");
    let answering = async {
        let request = peer.next().await.unwrap();
        peer.result(&request, r#"{"decision":"perhaps"}"#).await;
    };
    let (decision, ()) = tokio::join!(client.send_event_decision(EventType::PreAction, json!({})), answering);
    assert!(matches!(decision.unwrap_err(), AhpError::Serialization(_)));
}

#[tokio::test]
async fn a_message_that_is_too_long_is_not_sent() {
    let (_harness, client, mut peer) = connected!("{}");
    let long = json!({"text": "x".repeat(4 * 1024 * 1024)});
    let error = client.send_event(EventType::PreAction, long).await.unwrap_err();
    assert!(matches!(error, AhpError::TooLarge { max: 4_194_304, .. }));
    client.close().await.unwrap();
    assert_eq!(peer.next().await, None);
}

/// The harness's time counts, unless the agent says otherwise.
#[tokio::test]
async fn waiting_ends_with_the_time_that_was_agreed() {
    let unset = ClientOptions { reply_timeout: None, ..quick() };
    let (_harness, client, _peer) = connected!(r#"{"timeout_ms":50}"#, unset);
    let started = Instant::now();
    let error = client.send_event(EventType::PreAction, json!({})).await.unwrap_err();
    assert_eq!(error, AhpError::Timeout { what: "reply", ms: 300 });
    assert!(started.elapsed() < Duration::from_secs(2));
    let error = client.with_timeout(Duration::from_millis(40)).query("q", json!({})).await.unwrap_err();
    assert_eq!(error, AhpError::Timeout { what: "reply", ms: 40 });
    assert_eq!(client.in_flight(), 0);

    let harness = Harness::new();
    let config = TransportConfig { timeout_ms: Some(60) };
    let client = AhpClient::new_with_config(harness.transport(), config).await.unwrap();
    let error = client.handshake(vec![]).await.unwrap_err();
    assert_eq!(error, AhpError::Timeout { what: "reply", ms: 60 });
}

/// Noise, bytes that are no text and replies to nobody are skipped; the next good line works.
#[tokio::test]
async fn noise_does_not_stop_the_reader() {
    let (_harness, client, mut peer) = connected!("{}");
    let answering = async {
        for _ in 0..2 {
            let request = peer.next().await.unwrap();
            peer.line(b"\xff\xfe\x00 not text \xc3").await;
            peer.line("INFO: starting up").await;
            peer.line("").await;
            peer.line("[1,2,3]").await;
            peer.line(r#"{"jsonrpc":"2.0","method":"harness/hello","params":{}}"#).await;
            peer.line(vec![b'x'; 5 * 1024 * 1024]).await;
            let reply = crate::support::harness::result_line(&request, r#"{"decision":"allow"}"#);
            peer.line(format!("{reply}\r")).await;
        }
    };
    let asking = async {
        client.send_event(EventType::PreAction, json!({})).await.unwrap();
        client.send_event(EventType::PreAction, json!({})).await.unwrap();
    };
    tokio::join!(asking, answering);
}
