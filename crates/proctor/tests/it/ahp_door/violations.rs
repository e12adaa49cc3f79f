//! Violations of the protocol get their code, their id back, and an alarm; later messages are not lost.

use proctor_core::json::Json;

use crate::ahp_door::POLICY;
use crate::support::harness::{Event, Harness, alarms, before, json, request, session};
use crate::support::{Folder, text};

fn handshake(version: &str) -> Json {
    json(&format!(
        r#"{{"protocol_version":"{version}","agent_info":{{"framework":"f","version":"1","capabilities":[]}},"session_id":"s","agent_id":"coder"}}"#
    ))
}

fn batch(events: &[Event]) -> Json {
    Json::object().with("events", events.iter().map(Event::params).collect::<Vec<Json>>())
}

/// Every row of the protocol's table that a request can break: method, params, code, part of the message.
fn broken_requests() -> Vec<(&'static str, Json, i64, &'static str)> {
    let good = before("bash", r#"{"command":"ls"}"#);
    let quiet = Event::new("heartbeat", "{}");
    let mut without_depth = Json::object();
    for (name, member) in good.params().as_object().unwrap() {
        if name != "depth" {
            without_depth.push(name, member.clone());
        }
    }
    let mut negative = good.params();
    assert!(negative.set_pointer("/depth", json("-1")));
    vec![
        ("ahp/nothing", json("{}"), -32601, "Method not found"),
        ("harness/event", good.params(), -32601, "Method not found"),
        ("ahp/handshake", json("{}"), -32602, "Invalid params"),
        ("ahp/handshake", json("null"), -32602, "Invalid params"),
        ("ahp/handshake", handshake("3.0"), -32000, "Unsupported protocol version: 3.0"),
        ("ahp/handshake", handshake("v2.4"), -32000, "Unsupported protocol version"),
        ("ahp/handshake", handshake(""), -32000, "Unsupported protocol version"),
        ("ahp/event", json("[]"), -32602, "Invalid params"),
        ("ahp/event", json("{}"), -32602, "Invalid params"),
        ("ahp/event", without_depth, -32602, "Invalid params"),
        ("ahp/event", negative, -32602, "Invalid params"),
        ("ahp/event", Event::new("pre_tool_use", "{}").params(), -32602, "Invalid params"),
        (
            "ahp/event",
            good.clone().context(r#"{"session_stats":{"total_actions":1}}"#).params(),
            -32602,
            "Invalid params",
        ),
        (
            "ahp/event",
            good.clone().depth(11).params(),
            -32602,
            "Event depth 11 exceeds configured max depth 10",
        ),
        (
            "ahp/event",
            Event::new("run_lifecycle", "{}").params(),
            -32602,
            "Invalid event: Serialization error",
        ),
        ("ahp/event", quiet.params(), -32602, "must be sent as a notification"),
        ("ahp/event", Event::new("idle", "{}").params(), -32603, "Handler error: Serialization error"),
        (
            "ahp/event",
            Event::new("confirmation", r#"{"message":"x"}"#).params(),
            -32603,
            "Handler error: Serialization error",
        ),
        ("ahp/query", json("{}"), -32602, "Invalid params"),
        (
            "ahp/query",
            json(r#"{"session_id":"s","agent_id":"a","query_type":"policy"}"#),
            -32602,
            "Invalid params",
        ),
        ("ahp/batch", json("{}"), -32602, "Invalid params"),
        ("ahp/batch", json(r#"{"events":[{}]}"#), -32602, "Invalid params"),
        ("ahp/batch", batch(&vec![good.clone(); 101]), -32602, "Batch size 101 exceeds configured limit 100"),
        ("ahp/batch", batch(&[good.clone(), good.clone().depth(11)]), -32602, "exceeds configured max depth"),
        ("ahp/batch", batch(&[good.clone(), Event::new("task_list", "{}")]), -32602, "Invalid event"),
        ("ahp/batch", batch(&[good, Event::new("idle", "{}")]), -32602, "Event type idle cannot be batched"),
    ]
}

#[test]
fn every_broken_rule_has_its_code_and_the_id_comes_back() {
    let folder = Folder::with_policy(POLICY);
    let mut harness = Harness::start(&folder);
    let ids = [Json::from("an id"), Json::from(""), Json::from(7u8), json("-1.5e3"), Json::Null];
    let cases = broken_requests();
    for (index, (method, params, code, message)) in cases.iter().enumerate() {
        let id = &ids[index % ids.len()];
        harness.send(request(id, method, params).as_bytes());
        let reply = harness.reply(id);
        assert_eq!(reply["error"]["code"].as_i64(), Some(*code), "{method} {params}: {reply}");
        assert!(text(&reply["error"], "message").contains(message), "{method}: {reply}");
        assert!(reply.get("result").is_none(), "{reply}");
    }
    // The limits are inclusive, and the other ids get results as well.
    for id in &ids {
        let deepest = before("bash", r#"{"command":"ls"}"#).depth(10);
        harness.send(request(id, "ahp/event", &deepest.params()).as_bytes());
        assert_eq!(text(&harness.result(id), "decision"), "allow");
    }
    assert_eq!(harness.batch(&vec![before("bash", r#"{"command":"ls"}"#); 100]).len(), 100);
    assert_eq!(harness.request("ahp/handshake", &handshake("2"))["error"], Json::Null);
    harness.close();
    assert_eq!(alarms(&folder), vec!["malformed"; cases.len()], "nothing of a refused batch was decided");
    let decided = session(&folder, "s").iter().filter(|record| text(record, "kind") == "decision").count();
    assert_eq!(decided, ids.len() + 100);
}

#[test]
fn a_line_that_is_no_message_is_refused_and_nothing_after_it_is_lost() {
    let folder = Folder::with_policy(POLICY);
    let mut harness = Harness::start(&folder);
    let deep = "[".repeat(100_000);
    let long_id =
        format!(r#"{{"jsonrpc":"2.0","id":"{}","method":"ahp/query","params":{{}}}}"#, "x".repeat(5000));
    let long_line = vec![b'x'; (4 << 20) + 1];
    let good = request(&json("1"), "ahp/event", &before("bash", r#"{"command":"ls"}"#).params());
    let lines: Vec<(&[u8], i64)> = vec![
        (b"{", -32700),
        (b"hello", -32700),
        (b"{} {}", -32700),
        (b"{\"jsonrpc\":\"2.0\",\"id\":\"\xff\",\"method\":\"ahp/query\",\"params\":{}}", -32700),
        (br#"{"jsonrpc":"2.0","id":"a","id":"b","method":"ahp/query","params":{}}"#, -32700),
        (deep.as_bytes(), -32700),
        (b"[]", -32600),
        (b"7", -32600),
        (b"null", -32600),
        (b"{}", -32600),
        (br#"{"jsonrpc":"2.0","id":true,"method":"ahp/query","params":{}}"#, -32600),
        (br#"{"jsonrpc":"2.0","id":null,"method":"ahp/query"}"#, -32600),
        (long_id.as_bytes(), -32600),
        (&long_line, -32600),
    ];
    for (line, code) in &lines {
        harness.send(line);
        let reply = harness.reply(&Json::Null);
        let shown: String = String::from_utf8_lossy(line).chars().take(60).collect();
        assert_eq!(reply["error"]["code"].as_i64(), Some(*code), "{shown}: {reply}");
        harness.send(good.as_bytes());
        assert_eq!(text(&harness.result(&json("1")), "decision"), "allow", "after {shown}");
    }
    // What has an id gets it back even so.
    for line in
        [r#"{"id":"x","method":"ahp/query","params":{}}"#, r#"{"jsonrpc":"2.0","id":"x","params":{}}"#]
    {
        harness.send(line.as_bytes());
        assert_eq!(harness.reply(&Json::from("x"))["error"]["code"].as_i64(), Some(-32600), "{line}");
    }
    // Blank lines and line ends of other systems are no messages.
    harness.send(b"");
    harness.send(b"  \r");
    harness.send(format!("{good}\r").as_bytes());
    assert_eq!(text(&harness.result(&json("1")), "decision"), "allow");
    assert_eq!(harness.close().0, 0);
    assert_eq!(alarms(&folder), vec!["malformed"; lines.len() + 2]);
}

#[test]
fn a_broken_notification_is_an_alarm_and_gets_no_reply() {
    let folder = Folder::with_policy(POLICY);
    let mut harness = Harness::start(&folder);
    let good = Event::new("heartbeat", r#"{"uptime_ms":1}"#);
    harness.notify(&good);
    harness.notify(&before("bash", r#"{"command":"ls"}"#));
    harness.notify(&good.clone().depth(11));
    harness.notify(&Event::new("no_such_kind", "{}"));
    harness.send(br#"{"jsonrpc":"2.0","method":"ahp/event","params":null}"#);
    // These mean nothing as notifications, and do no harm.
    harness.send(br#"{"jsonrpc":"2.0","method":"ahp/handshake","params":null}"#);
    harness.send(br#"{"jsonrpc":"2.0","method":"ahp/unknown","params":null}"#);
    harness.notify(&good);
    harness.close();
    assert_eq!(alarms(&folder), ["malformed"; 4]);
    let heartbeats =
        session(&folder, "s").iter().filter(|record| text(record, "code") == "heartbeat").count();
    assert_eq!(heartbeats, 2);
}

#[test]
fn older_dialects_are_served_where_the_configuration_says_so() {
    let folder = Folder::with_policy(POLICY);
    let line = br#"{"jsonrpc":"2.0","id":3,"method":"ahp/event","params":{"event_type":"pre_action","session_id":"s","agent_id":"a","payload":{"tool":"bash","args":{"command":"ls"}}}}"#;
    let mut strict = Harness::start(&folder);
    strict.send(line);
    assert_eq!(strict.reply(&json("3"))["error"]["code"].as_i64(), Some(-32602));
    strict.close();
    folder.write(
        "proctor.toml",
        "policy = \"policy.yaml\"\n[ahp]\nlenient = true\nmax_depth = 1\nbatch_size = 2\n",
    );
    let mut lenient = Harness::start(&folder);
    lenient.send(line);
    assert_eq!(text(&lenient.result(&json("3")), "decision"), "allow");
    let deep = before("bash", r#"{"command":"ls"}"#).depth(2);
    assert_eq!(lenient.request("ahp/event", &deep.params())["error"]["code"].as_i64(), Some(-32602));
    let three = batch(&vec![before("bash", "{}"); 3]);
    assert_eq!(lenient.request("ahp/batch", &three)["error"]["code"].as_i64(), Some(-32602));
    let welcome = lenient.request("ahp/handshake", &handshake("2.4"));
    assert_eq!(welcome["result"]["config"]["max_depth"].as_u64(), Some(1), "{welcome}");
    lenient.close();
}
