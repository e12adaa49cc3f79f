//! The codes of our refusals, read from the bytes: the official client hides them. Each message is also given to the official server's own
//! dispatch, and the code must be the same.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::sync::Arc;

use a3s_ahp::AhpRequest;
use interop_ahp::official::{AllowAll, server};
use interop_ahp::policies::OPEN;
use interop_ahp::samples::{DURABLE, KINDS, SPECIALISED, event, full_event, notification, payload, request};
use interop_ahp::supervised::Supervised;
use interop_ahp::wire::Wire;
use interop_ahp::{Way, on_every_transport};
use serde_json::{Value, json};

/// The code that the official server answers a request with.
async fn official_code(method: &str, params: &Value) -> Option<i64> {
    let request = AhpRequest::new(method, params.clone());
    let response = server(Arc::new(AllowAll)).handle_request(request).await;
    response.error.map(|error| i64::from(error.code))
}

async fn refused(wire: &mut Wire, method: &str, params: &Value) -> Option<i64> {
    let reply = wire.exchange(&request("the-id", method, params)).await;
    assert_eq!(reply.status, 200, "{method} {params}");
    let body = reply.body.clone().unwrap();
    assert_eq!((&body["jsonrpc"], &body["id"]), (&json!("2.0"), &json!("the-id")), "{body}");
    assert_ne!(body.get("result").is_some(), body.get("error").is_some(), "one of the two: {body}");
    reply.code()
}

async fn requests_get_the_codes_of_the_official_server(way: Way) {
    let ours = Supervised::start(way, OPEN);
    let mut wire = ours.wire().await;
    let hello = |version: &str| {
        json!({
            "protocol_version": version,
            "agent_info": { "framework": "f", "version": "1", "capabilities": [] },
            "session_id": "s",
            "agent_id": "a",
        })
    };
    let without = |mut value: Value, member: &str| {
        value.as_object_mut().unwrap().remove(member);
        value
    };
    let action = event("pre_action", &payload("pre_action"));
    let changed = |member: &str, value: Value| {
        let mut event = action.clone();
        event[member] = value;
        event
    };
    let mut cases = vec![
        ("ahp/handshake", hello("2.4"), None),
        ("ahp/handshake", hello("2"), None),
        ("ahp/handshake", hello("2.99.1-x"), None),
        ("ahp/handshake", hello("3.0"), Some(-32000)),
        ("ahp/handshake", hello("v2.4"), Some(-32000)),
        ("ahp/handshake", hello(""), Some(-32000)),
        ("ahp/handshake", json!({}), Some(-32602)),
        ("ahp/handshake", without(hello("2.4"), "agent_info"), Some(-32602)),
        ("ahp/handshake", without(hello("2.4"), "session_id"), Some(-32602)),
        ("ahp/handshake", json!(null), Some(-32602)),
        ("ahp/nothing", json!({}), Some(-32601)),
        ("", json!(null), Some(-32601)),
        ("AHP/EVENT", action.clone(), Some(-32601)),
        ("ahp/event", action.clone(), None),
        ("ahp/event", json!(null), Some(-32602)),
        ("ahp/event", json!("x"), Some(-32602)),
        ("ahp/event", changed("event_type", json!("PreAction")), Some(-32602)),
        ("ahp/event", changed("event_type", json!("no_such_kind")), Some(-32602)),
        ("ahp/event", changed("depth", json!(-1)), Some(-32602)),
        ("ahp/event", changed("depth", json!(1.0)), Some(-32602)),
        ("ahp/event", changed("depth", json!(4_294_967_296_u64)), Some(-32602)),
        ("ahp/event", changed("depth", json!(10)), None),
        ("ahp/event", changed("depth", json!(11)), Some(-32602)),
        ("ahp/event", changed("session_id", json!(7)), Some(-32602)),
        ("ahp/event", changed("metadata", json!([])), Some(-32602)),
        ("ahp/event", changed("metadata", json!(null)), None),
        ("ahp/event", changed("context", json!(null)), None),
        ("ahp/event", changed("context", json!({ "current_task": 5 })), Some(-32602)),
        ("ahp/event", changed("context", json!({ "recent_facts": [{ "content": "c" }] })), Some(-32602)),
        ("ahp/event", changed("unknown_member", json!(1)), None),
        ("ahp/event", full_event("pre_action", &payload("pre_action"), 1), None),
        ("ahp/query", json!({ "session_id": "s", "agent_id": "a", "query_type": "policy" }), Some(-32602)),
        (
            "ahp/query",
            json!({ "session_id": "s", "agent_id": "a", "query_type": 5, "payload": 1 }),
            Some(-32602),
        ),
        ("ahp/query", json!([]), Some(-32602)),
        ("ahp/batch", json!({}), Some(-32602)),
        ("ahp/batch", json!({ "events": {} }), Some(-32602)),
        ("ahp/batch", json!({ "events": [] }), None),
        ("ahp/batch", json!({ "events": [action.clone(), 5] }), Some(-32602)),
        ("ahp/batch", json!({ "events": vec![action.clone(); 100] }), None),
        ("ahp/batch", json!({ "events": vec![action.clone(); 101] }), Some(-32602)),
        ("ahp/batch", json!({ "events": [action.clone(), changed("depth", json!(11))] }), Some(-32602)),
    ];
    for member in ["event_type", "session_id", "agent_id", "timestamp", "depth", "payload"] {
        cases.push(("ahp/event", without(action.clone(), member), Some(-32602)));
    }
    for kind in KINDS {
        let good = event(kind.name, &payload(kind.name));
        // Quiet kinds are no requests. What the official handler of this test does not answer has a test of its own.
        if !kind.is_specialised() || kind.name == "idle" {
            cases.push(("ahp/event", good.clone(), if kind.blocking { None } else { Some(-32602) }));
        }
        let batch = if kind.batchable { None } else { Some(-32602) };
        cases.push(("ahp/batch", json!({ "events": [good] }), batch));
    }
    for kind in SPECIALISED {
        cases.push(("ahp/event", event(kind, &json!({ "nothing": true })), Some(-32603)));
    }
    for kind in DURABLE {
        cases.push(("ahp/event", event(kind, &json!({ "run_id": 1 })), Some(-32602)));
        cases.push(("ahp/batch", json!({ "events": [event(kind, &json!({}))] }), Some(-32602)));
    }
    for (method, params, expected) in cases {
        assert_eq!(official_code(method, &params).await, expected, "the official server: {method} {params}");
        assert_eq!(refused(&mut wire, method, &params).await, expected, "ours: {method} {params}");
    }
}

async fn specialised_kinds_are_answered_as_requests(way: Way) {
    let ours = Supervised::start(way, OPEN);
    let mut wire = ours.wire().await;
    for kind in SPECIALISED {
        assert_eq!(refused(&mut wire, "ahp/event", &event(kind, &payload(kind))).await, None, "{kind}");
    }
}

/// On HTTP a notification gets 204, or 200 with a refusal without id; elsewhere nothing, and the next request its answer.
async fn notifications_in_the_wrong_form_are_refused_or_dropped(way: Way) {
    let ours = Supervised::start(way, OPEN);
    let mut wire = ours.wire().await;
    let mut cases: Vec<(String, Value, bool)> = KINDS
        .iter()
        .map(|kind| (kind.name.to_owned(), event(kind.name, &payload(kind.name)), !kind.blocking))
        .collect();
    for kind in DURABLE {
        cases.push((format!("bad {kind}"), event(kind, &json!({ "run_id": 1 })), false));
    }
    cases.push(("too deep".to_owned(), full_event("post_action", &payload("post_action"), 11), false));
    cases.push(("no event".to_owned(), json!({}), false));
    for (name, params, accepted) in cases {
        let reply = wire.notify(&notification("ahp/event", &params)).await;
        assert_eq!(reply.is_some(), wire.answers_notifications());
        if let Some(reply) = reply {
            let expected = if accepted { (204, None) } else { (200, Some(-32603)) };
            assert_eq!((reply.status, reply.code()), expected, "{name}");
            assert!(accepted || reply.body.unwrap()["id"] == "", "{name}");
        }
    }
    // Other methods mean nothing as notifications.
    for method in ["ahp/handshake", "ahp/query", "ahp/batch", "ahp/nothing"] {
        let reply = wire.notify(&notification(method, &json!({}))).await;
        assert!(reply.is_none_or(|reply| (reply.status, reply.body) == (204, None)), "{method}");
    }
    let after = refused(&mut wire, "ahp/event", &event("pre_action", &payload("pre_action"))).await;
    assert_eq!(after, None, "the connection is still good");
}

async fn what_is_no_message_is_refused_and_the_connection_goes_on(way: Way) {
    let ours = Supervised::start(way, OPEN);
    let mut wire = ours.wire().await;
    let action = event("pre_action", &payload("pre_action"));
    let not_json = ["{", "nonsense", "{\"jsonrpc\":\"2.0\",}"];
    for text in not_json {
        let reply = wire.exchange(text).await;
        let status = if way == Way::Http { 400 } else { 200 };
        assert_eq!((reply.status, reply.code()), (status, Some(-32700)), "{text}");
    }
    let no_message = [
        json!([]),
        json!(5),
        json!({ "id": "x", "method": "ahp/event", "params": action }),
        json!({ "jsonrpc": "2.0", "id": "x", "method": "ahp/event" }),
        json!({ "jsonrpc": "2.0", "id": "x", "params": {} }),
        json!({ "jsonrpc": "2.0", "id": {}, "method": "ahp/event", "params": {} }),
    ];
    for message in no_message {
        let reply = wire.exchange(&message.to_string()).await;
        assert_eq!((reply.status, reply.code()), (200, Some(-32600)), "{message}");
    }
    // Identifiers come back as they were sent; numbers are served too.
    for id in [json!(""), json!("ü \"quoted\""), json!(17), json!(1.5), json!(null)] {
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": "ahp/event", "params": action });
        let reply = wire.exchange(&message.to_string()).await;
        assert_eq!(reply.body.unwrap()["id"], id);
    }
    assert_eq!(refused(&mut wire, "ahp/event", &action).await, None);
}

/// The end of its input is the end of a harness on standard input and output: everything is answered and on record by then.
#[tokio::test]
async fn a_harness_ends_with_its_input() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    let ours = Supervised::start(Way::Stdio, OPEN);
    let Wire::Lines(mut lines) = ours.wire().await else { panic!("lines") };
    let action = event("pre_action", &payload("pre_action"));
    for number in 0..50 {
        let text = request(&number.to_string(), "ahp/event", &action) + "\n";
        lines.writer.write_all(text.as_bytes()).await.unwrap();
    }
    drop(lines.writer);
    let mut replies = String::new();
    lines.reader.read_to_string(&mut replies).await.unwrap();
    let mut answered: Vec<u32> = replies
        .lines()
        .map(|reply| serde_json::from_str::<Value>(reply).unwrap())
        .inspect(|reply| assert_eq!(reply["result"]["decision"], "allow"))
        .map(|reply| reply["id"].as_str().unwrap().parse().unwrap())
        .collect();
    answered.sort_unstable();
    assert_eq!(answered, (0..50).collect::<Vec<u32>>());
    assert!(lines.child.unwrap().wait().await.unwrap().success());
    let place = ours.stop();
    let decisions = place.run_json(&["audit", "tail", "-n", "200", "--kind", "decision"]);
    assert_eq!(decisions.len(), 50);
    place.verify();
}

on_every_transport!(
    requests_get_the_codes_of_the_official_server,
    specialised_kinds_are_answered_as_requests,
    notifications_in_the_wrong_form_are_refused_or_dropped,
    what_is_no_message_is_refused_and_the_connection_goes_on,
);
