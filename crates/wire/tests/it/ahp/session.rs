//! Handshake, query, batch, events and their context.

use proctor_core::json::Json;
use proctor_wire::ahp::{
    AgentInfo, AhpEvent, BatchResponse, Call, Decision, EventContext, Fact, HandshakeRequest,
    HandshakeResponse, HarnessConfig, HarnessInfo, Limits, MemorySummary, QueryResponse, SessionStats, check,
};

use super::shape::{Shape, check, check_with, json};

#[test]
fn handshake() {
    check::<AgentInfo>(&Shape {
        required: &[("framework", "\"loom\""), ("version", "\"0.3\""), ("capabilities", "[\"batch\"]")],
        ..Shape::default()
    });
    check::<HandshakeRequest>(&Shape {
        required: &[
            ("protocol_version", "\"2.4\""),
            ("agent_info", r#"{"framework":"loom","version":"0.3","capabilities":[]}"#),
            ("session_id", "\"s\""),
            ("agent_id", "\"a\""),
        ],
        ..Shape::default()
    });
    check::<HarnessInfo>(&Shape {
        required: &[("name", "\"warden\""), ("version", "\"1\""), ("capabilities", "[\"query\"]")],
        ..Shape::default()
    });
    check::<HarnessConfig>(&Shape {
        optional: &[("timeout_ms", "8000"), ("batch_size", "64"), ("max_depth", "6")],
        ..Shape::default()
    });
    check::<HandshakeResponse>(&Shape {
        required: &[
            ("protocol_version", "\"2.4\""),
            ("harness_info", r#"{"name":"warden","version":"1","capabilities":[]}"#),
        ],
        optional: &[("session_token", "\"t\""), ("config", r#"{"max_depth":3}"#)],
        ..Shape::default()
    });
}

#[test]
fn query() {
    check::<QueryResponse>(&Shape {
        required: &[("answer", "3.5")],
        optional: &[("reason", "\"because\""), ("alternatives", "[\"ask\"]")],
        anything: &["answer"],
        ..Shape::default()
    });
    let read = |value: &Json| match check::request("ahp/query", value.clone(), &Limits::default()) {
        Ok(Call::Query(query)) => Ok(query),
        Ok(other) => panic!("{other:?}"),
        Err(error) => {
            assert_eq!(error.code, -32602);
            assert!(error.message.starts_with("Invalid params: "));
            Err(error.message)
        }
    };
    check_with(
        &Shape {
            required: &[
                ("session_id", "\"s\""),
                ("agent_id", "\"a\""),
                ("query_type", "\"budget_left\""),
                ("payload", r#"{"unit":1.10}"#),
            ],
            anything: &["payload"],
            ..Shape::default()
        },
        read,
        |query| Json::from_type(query).unwrap(),
    );
}

#[test]
fn events() {
    let shape = Shape {
        required: &[
            ("event_type", "\"pre_action\""),
            ("session_id", "\"s\""),
            ("agent_id", "\"a\""),
            ("timestamp", "\"any text\""),
            ("depth", "4"),
            ("payload", r#"{"arguments":{"amount":12345678901234567890.10}}"#),
        ],
        optional: &[("context", r#"{"current_task":"ship"}"#), ("metadata", r#"{"trace":1.10}"#)],
        anything: &["payload"],
        ..Shape::default()
    };
    check_with(
        &shape,
        |value| AhpEvent::from_json(value.clone(), false),
        |event| Json::from_type(event).unwrap(),
    );
}

#[test]
fn lenient_events_lack_time_and_depth_and_nothing_else() {
    let event = json(r#"{"event_type":"idle","session_id":"s","agent_id":"a","payload":null}"#);
    assert_eq!(
        AhpEvent::from_json(event.clone(), false).unwrap_err().to_string(),
        "missing field `timestamp`"
    );
    let read = AhpEvent::from_json(event, true).unwrap();
    assert_eq!((read.timestamp.as_str(), read.depth), ("", 0));
    for bad in [
        r#"{"event_type":"idle","session_id":"s","agent_id":"a"}"#,
        r#"{"event_type":"idle","session_id":"s","payload":1}"#,
        r#"{"event_type":"idle","session_id":"s","agent_id":"a","payload":1,"depth":-1}"#,
        r#"{"event_type":"idle","session_id":"s","agent_id":"a","payload":1,"timestamp":null}"#,
    ] {
        assert!(AhpEvent::from_json(json(bad), true).is_err(), "{bad}");
    }
}

#[test]
fn depth_is_an_unsigned_integer_of_32_bits() {
    let event = |depth: &str| {
        json(&format!(
            r#"{{"event_type":"idle","session_id":"s","agent_id":"a","timestamp":"","payload":1,"depth":{depth}}}"#
        ))
    };
    for (depth, good) in
        [("0", true), ("4294967295", true), ("4294967296", false), ("1.0", false), ("-1", false)]
    {
        assert_eq!(AhpEvent::from_json(event(depth), false).is_ok(), good, "{depth}");
    }
}

#[test]
fn context() {
    check::<EventContext>(&Shape {
        optional: &[
            ("recent_facts", r#"[{"content":"c","source":"s","confidence":0.9}]"#),
            ("memory_summary", r#"{"memory_type":"m","total_items":1,"recent_topics":[]}"#),
            ("session_stats", r#"{"total_actions":1,"total_tokens":2,"duration_ms":3,"error_count":4}"#),
            ("current_task", "\"ship\""),
            ("capabilities", r#"{"index":{"type":"http","port":1.10}}"#),
        ],
        ..Shape::default()
    });
    check::<Fact>(&Shape {
        required: &[("content", "\"c\""), ("source", "\"s\""), ("confidence", "0.9")],
        ..Shape::default()
    });
    check::<MemorySummary>(&Shape {
        required: &[("memory_type", "\"m\""), ("total_items", "12"), ("recent_topics", "[\"t\"]")],
        ..Shape::default()
    });
    check::<SessionStats>(&Shape {
        required: &[
            ("total_actions", "1"),
            ("total_tokens", "-2"),
            ("duration_ms", "3"),
            ("error_count", "4"),
        ],
        ..Shape::default()
    });
}

#[test]
fn batch_replies() {
    check::<BatchResponse>(&Shape {
        required: &[("decisions", r#"[{"decision":"allow"},{"decision":"block","reason":"no"}]"#)],
        ..Shape::default()
    });
    let reply =
        json(r#"{"decisions":[{"decision":"allow"},{"decision":"modify","modified_payload":{"n":1.10}}]}"#);
    let read = BatchResponse::from_json(&reply).unwrap();
    assert_eq!(read.decisions[0], Decision::allow());
    assert_eq!(Json::from_type(&read).unwrap(), reply, "with every digit");
    let error = BatchResponse::from_json(&json(r#"{"decisions":[{"decision":"allow"},{}]}"#)).unwrap_err();
    assert!(error.to_string().ends_with(" at /decisions/1"), "{error}");
    for bad in ["{}", "[]", r#"{"decisions":null}"#, r#"{"decisions":[["allow"]]}"#] {
        assert!(BatchResponse::from_json(&json(bad)).is_err(), "{bad}");
    }
}
