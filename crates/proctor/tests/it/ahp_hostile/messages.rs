//! Messages that are not as they should be.

use proctor_core::json::Json;

use crate::ahp_serve::server::pre_action;

/// Requests whose id is odd, with the id that the answer must have.
pub fn odd_ids() -> Vec<(String, Json)> {
    let with_id = |id: &str| pre_action("ID", "s", "look").replace("\"id\":\"ID\"", &format!("\"id\":{id}"));
    let huge = "i".repeat(4000);
    vec![
        (with_id("7"), Json::parse(b"7").unwrap()),
        (with_id("-1"), Json::parse(b"-1").unwrap()),
        (with_id("null"), Json::Null),
        (with_id("\"\""), Json::from("")),
        (with_id(&format!("\"{huge}\"")), Json::from(huge.as_str())),
        (with_id(r#""\u0000\ud83d\ude00""#), Json::from("\0😀")),
    ]
}

/// Messages that cannot be let through, whatever a server makes of them.
pub fn broken() -> Vec<Vec<u8>> {
    let good = pre_action("bad", "s", "look");
    let mut all: Vec<Vec<u8>> = [
        "{",
        "[]",
        "null",
        "7",
        "\"x\"",
        "{}",
        "nul",
        "]",
        "{\"jsonrpc\":\"2.0\"}",
        r#"{"jsonrpc":"2.0","id":"bad","method":"ahp/event"}"#,
        r#"{"jsonrpc":"2.0","id":"bad","method":"ahp/event","params":null}"#,
        r#"{"jsonrpc":"2.0","id":"bad","method":"ahp/event","params":[]}"#,
        r#"{"jsonrpc":"2.0","id":"bad","method":"ahp/event","params":{}}"#,
        r#"{"jsonrpc":"2.0","id":"bad","method":"ahp/nothing","params":{}}"#,
        r#"{"jsonrpc":"2.0","id":"bad","method":7,"params":{}}"#,
        r#"{"jsonrpc":"2.0","id":"bad","method":"ahp/batch","params":{"events":[]}}"#,
        r#"{"jsonrpc":"2.0","id":"bad","method":"ahp/batch","params":{"events":[{}]}}"#,
        r#"{"jsonrpc":"2.0","id":"bad","method":"ahp/handshake","params":{"protocol_version":"3.0"}}"#,
        r#"{"jsonrpc":"2.0","id":"bad","method":"ahp/query","params":{"query_type":"may_i"}}"#,
        r#"{"jsonrpc":"2.0","id":{"a":1},"method":"ahp/event","params":{}}"#,
        r#"{"jsonrpc":"2.0","id":["a"],"method":"ahp/event","params":{}}"#,
    ]
    .iter()
    .map(|text| text.as_bytes().to_vec())
    .collect();
    let mut change = |from: &str, to: &str| {
        assert!(good.contains(from), "{from}");
        all.push(good.replace(from, to).into_bytes());
    };
    // Members that are missing, of another type, or out of range.
    change(r#""event_type":"pre_action","#, "");
    change(r#""event_type":"pre_action""#, r#""event_type":"pre_nothing""#);
    change(r#""session_id":"s","#, "");
    change(r#""agent_id":"hand""#, r#""agent_id":7"#);
    change(r#""depth":0"#, r#""depth":-1"#);
    change(r#""depth":0"#, r#""depth":4294967296"#);
    change(r#""depth":0"#, r#""depth":1e400"#);
    change(r#""depth":0"#, r#""depth":11"#);
    change(r#""tool_name":"look""#, r#""tool_name":["look"]"#);
    change(r#""tool_name":"look""#, r#""tool_name":"look","tool":"wipe""#);
    // Members that are there twice: two readers could see two different things.
    change(r#""tool_name":"look""#, r#""tool_name":"wipe","tool_name":"look""#);
    change(r#""event_type":"pre_action""#, r#""event_type":"heartbeat","event_type":"pre_action""#);
    change(r#""method":"ahp/event""#, r#""method":"ahp/query","method":"ahp/event""#);
    change(r#""id":"bad""#, &format!(r#""id":"{}""#, "i".repeat(100_000)));
    // Text that is none.
    let mut invalid = good.clone().into_bytes();
    let at = good.find("look").unwrap();
    invalid[at] = 0xff;
    all.push(invalid);
    all.push(vec![0xff; 1000]);
    all.push(vec![0; 1000]);
    all.push(good.replace("look", r"\ud800").into_bytes());
    all.extend(deep());
    all
}

/// Nested far deeper than anything means to be.
pub fn deep() -> Vec<Vec<u8>> {
    let good = pre_action("bad", "s", "look");
    let nested = |open: &str, inner: &str, close: &str| {
        format!("{}{inner}{}", open.repeat(100_000), close.repeat(100_000)).into_bytes()
    };
    let inside = |value: Vec<u8>| {
        good.replace("\"bad\"}", &format!("{}}}", String::from_utf8(value).unwrap())).into_bytes()
    };
    vec![
        nested("[", "", "]"),
        nested("{\"a\":", "1", "}"),
        "[".repeat(1_000_000).into_bytes(),
        inside(nested("[", "", "]")),
        inside(nested("{\"a\":", "1", "}")),
    ]
}

/// An answer to something broken: an error, or a decision that lets nothing through.
pub fn assert_refused(answer: &Json) {
    assert!(!answer.to_string().contains("\"decision\":\"allow\""), "let through: {answer}");
    assert!(answer.get("error").is_some() != answer.get("result").is_some(), "{answer}");
}
