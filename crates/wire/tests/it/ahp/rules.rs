//! The rules that a message must keep, in order, with the exact code and text of each refusal.

use proctor_core::json::Json;
use proctor_wire::ahp::check::{notification, request};
use proctor_wire::ahp::{Call, Contract, EventType, Limits, Question, RpcError};

use super::shape::json;

fn event(kind: &str, depth: &str, payload: &str) -> String {
    format!(
        r#"{{"event_type":"{kind}","session_id":"s","agent_id":"a","timestamp":"t","depth":{depth},"payload":{payload}}}"#
    )
}

fn batch(events: &[String]) -> String {
    format!(r#"{{"events":[{}]}}"#, events.join(","))
}

fn handshake(version: &str) -> String {
    format!(
        r#"{{"protocol_version":"{version}","agent_info":{{"framework":"f","version":"1","capabilities":[]}},"session_id":"s","agent_id":"a"}}"#
    )
}

const RUN: &str = r#"{"run_id":"r","session_id":"s","status":"created","updated_at":"t"}"#;
const LIST: &str = r#"{"run_id":"r","session_id":"s","tasks":[],"updated_at":"t"}"#;
const VERIFIED: &str = r#"{"run_id":"r","session_id":"s","status":"passed","updated_at":"t"}"#;

/// A payload that fits the kind.
fn payload(kind: EventType) -> &'static str {
    match kind {
        EventType::Idle => r#"{"idle_duration_ms":1,"idle_reason":"r"}"#,
        EventType::ContextPerception => {
            r#"{"session_id":"s","intent":"locate","target":{"location":{"path":"p","location_type":"t"}},"context":{"workspace":"w"}}"#
        }
        EventType::MemoryRecall => {
            r#"{"session_id":"s","query":"q","memory_type":"m","max_results":1,"working_directory":"w"}"#
        }
        EventType::Planning => r#"{"session_id":"s","task_description":"t","available_strategies":[]}"#,
        EventType::Reasoning => r#"{"session_id":"s","reasoning_type":"re_act","problem_statement":"p"}"#,
        EventType::RateLimit => {
            r#"{"session_id":"s","limit_type":{"custom":"c"},"retry_after_ms":1,"current_usage":"u"}"#
        }
        EventType::Confirmation => r#"{"session_id":"s","confirmation_type":"user_confirm","message":"m"}"#,
        EventType::IntentDetection => r#"{"session_id":"s","prompt":"p","workspace":"w"}"#,
        EventType::RunLifecycle => RUN,
        EventType::TaskList => LIST,
        EventType::Verification => VERIFIED,
        _ => r#"{"free":[1.10]}"#,
    }
}

/// Length of a refusal's text that is promised.
enum Text {
    Whole(&'static str),
    Start(&'static str),
}
use Text::{Start, Whole};

fn assert_refused(error: &RpcError, code: i32, text: &Text, sent: &str) {
    assert_eq!(error.code, code, "{sent}: {error}");
    match text {
        Whole(whole) => assert_eq!(error.message, *whole, "{sent}"),
        Start(start) => {
            assert!(error.message.starts_with(start), "{sent}: {error}");
            assert!(error.message.len() > start.len(), "{sent}: it says what is wrong");
        }
    }
}

#[test]
fn requests_are_refused_as_the_protocol_says() {
    let table: Vec<(&str, String, i32, Text)> = vec![
        ("ahp/nonsense", "{}".into(), -32601, Whole("Method not found")),
        ("harness/event", event("pre_action", "0", "1"), -32601, Whole("Method not found")),
        ("", "null".into(), -32601, Whole("Method not found")),
        // Handshake: shape, then version.
        ("ahp/handshake", "null".into(), -32602, Start("Invalid params: ")),
        ("ahp/handshake", "{}".into(), -32602, Start("Invalid params: ")),
        (
            "ahp/handshake",
            handshake("9").replace("\"session_id\":\"s\",", ""),
            -32602,
            Start("Invalid params: "),
        ),
        ("ahp/handshake", handshake("5.1"), -32000, Whole("Unsupported protocol version: 5.1")),
        ("ahp/handshake", handshake(""), -32000, Whole("Unsupported protocol version: ")),
        // Event: shape and kind, depth, durable payload, form, specialised payload.
        ("ahp/event", "[]".into(), -32602, Start("Invalid params: ")),
        ("ahp/event", "null".into(), -32602, Start("Invalid params: ")),
        ("ahp/event", event("pre_tool_use", "99", "1"), -32602, Start("Invalid params: ")),
        ("ahp/event", event("pre_action", "1.0", "1"), -32602, Start("Invalid params: ")),
        (
            "ahp/event",
            event("pre_action", "0,\"context\":{\"recent_facts\":7}", "1"),
            -32602,
            Start("Invalid params: "),
        ),
        ("ahp/event", event("pre_action", "0,\"metadata\":[]", "1"), -32602, Start("Invalid params: ")),
        (
            "ahp/event",
            event("pre_action", "11", "1"),
            -32602,
            Whole("Invalid event: Protocol error: Event depth 11 exceeds configured max depth 10"),
        ),
        (
            "ahp/event",
            event("run_lifecycle", "11", "{}"),
            -32602,
            Whole("Invalid event: Protocol error: Event depth 11 exceeds configured max depth 10"),
        ),
        (
            "ahp/event",
            event("run_lifecycle", "0", "{}"),
            -32602,
            Start("Invalid event: Serialization error: "),
        ),
        ("ahp/event", event("task_list", "0", "null"), -32602, Start("Invalid event: Serialization error: ")),
        (
            "ahp/event",
            event("verification", "0", "[]"),
            -32602,
            Start("Invalid event: Serialization error: "),
        ),
        (
            "ahp/event",
            event("run_lifecycle", "0", RUN),
            -32602,
            Whole("Fire-and-forget event run_lifecycle must be sent as a notification"),
        ),
        (
            "ahp/event",
            event("post_action", "0", "1"),
            -32602,
            Whole("Fire-and-forget event post_action must be sent as a notification"),
        ),
        ("ahp/event", event("idle", "0", "{}"), -32603, Start("Handler error: Serialization error: ")),
        (
            "ahp/event",
            event("confirmation", "0", "null"),
            -32603,
            Start("Handler error: Serialization error: "),
        ),
        // Query: shape.
        ("ahp/query", "{}".into(), -32602, Start("Invalid params: ")),
        ("ahp/query", "[]".into(), -32602, Start("Invalid params: ")),
        // Batch: shape of all, number, depth and durable payload of each, kind of each.
        ("ahp/batch", "{}".into(), -32602, Start("Invalid params: ")),
        ("ahp/batch", "[]".into(), -32602, Start("Invalid params: ")),
        ("ahp/batch", r#"{"events":null}"#.into(), -32602, Start("Invalid params: ")),
        ("ahp/batch", r#"{"events":{}}"#.into(), -32602, Start("Invalid params: ")),
        (
            "ahp/batch",
            batch(&[vec![event("idle", "99", "1"); 101], vec!["7".into()]].concat()),
            -32602,
            Start("Invalid params: "),
        ),
        (
            "ahp/batch",
            batch(&vec![event("idle", "99", "1"); 101]),
            -32602,
            Whole("Batch size 101 exceeds configured limit 100"),
        ),
        (
            "ahp/batch",
            batch(&[event("pre_action", "0", "1"), event("idle", "11", "1")]),
            -32602,
            Whole("Invalid event: Protocol error: Event depth 11 exceeds configured max depth 10"),
        ),
        (
            "ahp/batch",
            batch(&[event("task_list", "0", "{}")]),
            -32602,
            Start("Invalid event: Serialization error: "),
        ),
        (
            "ahp/batch",
            batch(&[event("pre_action", "0", "1"), event("idle", "0", "{}")]),
            -32602,
            Whole("Event type idle cannot be batched because it does not return a generic Decision"),
        ),
        (
            "ahp/batch",
            batch(&[event("query", "0", "{}")]),
            -32602,
            Whole("Event type query cannot be batched because it does not return a generic Decision"),
        ),
    ];
    for (method, params, code, text) in table {
        let error = request(method, json(&params), &Limits::default()).map(|_| ()).unwrap_err();
        assert_refused(&error, code, &text, &format!("{method} {params}"));
    }
}

#[test]
fn notifications_are_refused_as_the_protocol_says() {
    let table: Vec<(String, Text)> = vec![
        ("null".into(), Start("Handler error: Serialization error: ")),
        (event("nonsense", "0", "1"), Start("Handler error: Serialization error: ")),
        (
            event("post_action", "11", "1"),
            Whole("Handler error: Protocol error: Event depth 11 exceeds configured max depth 10"),
        ),
        (event("verification", "0", "{}"), Start("Handler error: Serialization error: ")),
        (
            event("pre_action", "0", "1"),
            Whole("Handler error: Protocol error: Blocking event pre_action must be sent as a request"),
        ),
        (
            event("idle", "0", "{}"),
            Whole("Handler error: Protocol error: Blocking event idle must be sent as a request"),
        ),
    ];
    for (params, text) in table {
        let error = notification("ahp/event", json(&params), &Limits::default()).map(|_| ()).unwrap_err();
        assert_refused(&error, -32603, &text, &params);
    }
    for method in ["ahp/handshake", "ahp/query", "ahp/batch", "ahp/nonsense", ""] {
        assert_eq!(notification(method, Json::Null, &Limits::default()), Ok(None), "{method} is ignored");
    }
}

#[test]
fn every_kind_is_taken_in_its_own_form_only() {
    for kind in EventType::ALL {
        let params = json(&event(kind.name(), "10", payload(kind)));
        let limits = Limits::default();
        match request("ahp/event", params.clone(), &limits) {
            Ok(Call::Event(event, question)) => {
                assert!(kind.is_blocking(), "{kind}");
                assert_eq!(event.event_type, kind);
                assert_eq!(event.payload, json(payload(kind)), "with every digit");
                assert_eq!(*question == Question::Generic, !kind.is_specialised(), "{kind}");
            }
            Ok(other) => panic!("{other:?}"),
            Err(error) => assert!(!kind.is_blocking(), "{kind}: {error}"),
        }
        match notification("ahp/event", params.clone(), &limits) {
            Ok(entry) => {
                assert!(!kind.is_blocking(), "{kind}");
                assert_eq!(entry.unwrap().contract.is_some(), kind.is_durable());
            }
            Err(error) => assert!(kind.is_blocking(), "{kind}: {error}"),
        }
        let alone = Json::object().with("events", vec![params]);
        match request("ahp/batch", alone, &limits) {
            Ok(Call::Batch(entries)) => {
                assert!(kind.is_batchable(), "{kind}");
                assert_eq!(entries.len(), 1);
                assert_eq!(entries[0].contract.is_some(), kind.is_durable());
            }
            Ok(other) => panic!("{other:?}"),
            Err(error) => assert!(!kind.is_batchable(), "{kind}: {error}"),
        }
    }
}

#[test]
fn every_specialised_payload_is_read_and_every_other_left_alone() {
    for kind in EventType::ALL.into_iter().filter(|kind| kind.is_blocking()) {
        let unreadable = request("ahp/event", json(&event(kind.name(), "0", "[\"x\"]")), &Limits::default());
        assert_eq!(unreadable.is_err(), kind.is_specialised(), "{kind}");
    }
    for kind in EventType::ALL.into_iter().filter(|kind| !kind.is_blocking()) {
        let unreadable =
            notification("ahp/event", json(&event(kind.name(), "0", "[\"x\"]")), &Limits::default());
        assert_eq!(unreadable.is_err(), kind.is_durable(), "{kind}");
    }
}

#[test]
fn contracts_are_handed_over_read() {
    for (kind, text) in [("run_lifecycle", RUN), ("task_list", LIST), ("verification", VERIFIED)] {
        let entry =
            notification("ahp/event", json(&event(kind, "0", text)), &Limits::default()).unwrap().unwrap();
        let contract = entry.contract.unwrap();
        assert_eq!((contract.run_id(), contract.session_id(), contract.updated_at()), ("r", "s", "t"));
        let expected = match contract {
            Contract::RunLifecycle(_) => "run_lifecycle",
            Contract::TaskList(_) => "task_list",
            Contract::Verification(_) => "verification",
        };
        assert_eq!(kind, expected);
    }
}

#[test]
fn limits_are_inclusive_and_may_be_absent() {
    let full = batch(&vec![event("pre_action", "10", "1"); 100]);
    assert!(
        matches!(request("ahp/batch", json(&full), &Limits::default()), Ok(Call::Batch(all)) if all.len() == 100)
    );
    assert!(
        matches!(request("ahp/batch", json(&batch(&[])), &Limits::default()), Ok(Call::Batch(all)) if all.is_empty())
    );

    let none = Limits { max_depth: None, batch_size: None, lenient: false };
    let large = batch(&vec![event("post_action", "4294967295", "1"); 101]);
    assert!(request("ahp/batch", json(&large), &none).is_ok());
    assert!(request("ahp/event", json(&event("pre_action", "4294967295", "1")), &none).is_ok());

    let zero = Limits { max_depth: Some(0), batch_size: Some(0), lenient: false };
    assert!(request("ahp/event", json(&event("pre_action", "0", "1")), &zero).is_ok());
    assert!(request("ahp/event", json(&event("pre_action", "1", "1")), &zero).is_err());
    assert!(request("ahp/batch", json(&batch(&[])), &zero).is_ok());
    assert!(request("ahp/batch", json(&batch(&[event("error", "0", "1")])), &zero).is_err());
}

#[test]
fn events_of_a_batch_stay_in_order() {
    let kinds = ["pre_action", "post_action", "run_lifecycle", "pre_prompt", "error"];
    let events: Vec<_> = kinds.iter().map(|kind| event(kind, "0", RUN)).collect();
    let Ok(Call::Batch(entries)) = request("ahp/batch", json(&batch(&events)), &Limits::default()) else {
        panic!()
    };
    let read: Vec<_> = entries.iter().map(|entry| entry.event.event_type.name()).collect();
    assert_eq!(read, kinds);
}

#[test]
fn a_bad_event_of_a_batch_is_named() {
    let events = batch(&[event("error", "0", "1"), r#"{"event_type":"error"}"#.into()]);
    let error = request("ahp/batch", json(&events), &Limits::default()).unwrap_err();
    assert_eq!(error.message, "Invalid params: missing field `session_id` at /events/1");
}

#[test]
fn lenient_limits_hold_for_every_form() {
    let short =
        |kind: &str| format!(r#"{{"event_type":"{kind}","session_id":"s","agent_id":"a","payload":1}}"#);
    for (lenient, good) in [(true, true), (false, false)] {
        let limits = Limits { lenient, ..Limits::default() };
        assert_eq!(request("ahp/event", json(&short("pre_action")), &limits).is_ok(), good);
        assert_eq!(request("ahp/batch", json(&batch(&[short("error")])), &limits).is_ok(), good);
        assert_eq!(notification("ahp/event", json(&short("error")), &limits).is_ok(), good);
    }
}
