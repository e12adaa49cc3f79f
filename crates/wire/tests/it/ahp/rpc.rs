//! Telling requests from notifications and from what is neither, and what replies look like.

use proctor_core::json::Json;
use proctor_wire::ahp::rpc::{
    INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, MAX_ID, PARSE_ERROR, read, refuse, respond,
};
use proctor_wire::ahp::{Id, Message, RpcError};

use super::shape::json;

fn request(id: Id, method: &str, params: &str) -> Message {
    Message::Request { id, method: method.into(), params: json(params) }
}

#[test]
fn an_id_makes_a_request() {
    for (written, id) in [
        ("\"e-1\"", Id::from("e-1")),
        ("\"\"", Id::from("")),
        ("\"\\u00e9\"", Id::from("é")),
        ("7", Id::Number("7".into())),
        ("-1", Id::Number("-1".into())),
        ("1.50", Id::Number("1.50".into())),
        ("123456789012345678901234567890", Id::Number("123456789012345678901234567890".into())),
        ("1e400", Id::Number("1e400".into())),
        ("null", Id::Null),
    ] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":{written},"method":"ahp/query","params":[1]}}"#);
        assert_eq!(read(text.as_bytes()), Ok(request(id, "ahp/query", "[1]")), "{written}");
    }
}

#[test]
fn no_id_makes_a_notification() {
    assert_eq!(
        read(br#" {"params":null,"method":"ahp/event","jsonrpc":"2.0","more":{"id":1}} "#),
        Ok(Message::Notification { method: "ahp/event".into(), params: Json::Null })
    );
}

#[test]
fn the_version_may_be_any_text() {
    for version in ["2.0", "1.0", "", "AHP"] {
        let text = format!(r#"{{"jsonrpc":"{version}","id":"a","method":"m","params":{{}}}}"#);
        assert_eq!(read(text.as_bytes()), Ok(request("a".into(), "m", "{}")));
    }
}

#[test]
fn what_is_no_message_is_refused_with_the_id_that_it_has() {
    for (text, id, problem) in [
        (r#"{"id":"a","method":"m","params":{}}"#, Id::from("a"), "`jsonrpc` is missing or no string"),
        (
            r#"{"jsonrpc":2,"id":3,"method":"m","params":{}}"#,
            Id::Number("3".into()),
            "`jsonrpc` is missing or no string",
        ),
        (r#"{"jsonrpc":"2.0","id":"a","params":{}}"#, "a".into(), "`method` is missing or no string"),
        (
            r#"{"jsonrpc":"2.0","id":"a","method":7,"params":{}}"#,
            "a".into(),
            "`method` is missing or no string",
        ),
        (r#"{"jsonrpc":"2.0","id":"a","method":"m"}"#, "a".into(), "`params` is missing"),
        (r#"{"jsonrpc":"2.0","method":"m"}"#, Id::Null, "`params` is missing"),
        (
            r#"{"jsonrpc":"2.0","id":true,"method":"m","params":{}}"#,
            Id::Null,
            "`id` is a string, a number or null",
        ),
        (
            r#"{"jsonrpc":"2.0","id":["a"],"method":"m","params":{}}"#,
            Id::Null,
            "`id` is a string, a number or null",
        ),
        (
            r#"{"jsonrpc":"2.0","id":{},"method":"m","params":{}}"#,
            Id::Null,
            "`id` is a string, a number or null",
        ),
        (r#"["2.0","a","m",{}]"#, Id::Null, "a message is one JSON object"),
        (
            r#"[{"jsonrpc":"2.0","id":"a","method":"m","params":{}}]"#,
            Id::Null,
            "a message is one JSON object",
        ),
        ("[]", Id::Null, "a message is one JSON object"),
        ("{}", Id::Null, "`jsonrpc` is missing or no string"),
        ("7", Id::Null, "a message is one JSON object"),
        ("null", Id::Null, "a message is one JSON object"),
        ("\"{}\"", Id::Null, "a message is one JSON object"),
    ] {
        let refused = read(text.as_bytes()).unwrap_err();
        assert_eq!(refused.id, id, "{text}");
        assert_eq!(refused.error.code, INVALID_REQUEST, "{text}");
        assert_eq!(refused.error.message, format!("Invalid request: {problem}"), "{text}");
    }
}

#[test]
fn ids_are_bounded() {
    for (id, good) in [
        (format!("\"{}\"", "x".repeat(MAX_ID)), true),
        (format!("\"{}\"", "x".repeat(MAX_ID + 1)), false),
        ("9".repeat(MAX_ID), true),
        ("9".repeat(MAX_ID + 1), false),
    ] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m","params":{{}}}}"#);
        match read(text.as_bytes()) {
            Ok(Message::Request { id: read, .. }) => assert!(good && read.to_json().to_string() == id),
            Ok(other) => panic!("{other:?}"),
            Err(refused) => {
                assert!(!good);
                assert_eq!((refused.id, refused.error.code), (Id::Null, INVALID_REQUEST));
            }
        }
    }
}

#[test]
fn what_is_no_json_is_refused() {
    let valid = br#"{"jsonrpc":"2.0","id":"a","method":"m","params":{}}"#;
    let deep = format!(r#"{{"jsonrpc":"2.0","id":"a","method":"m","params":{}"#, "[".repeat(100_000));
    let deep_and_closed = format!("{deep}{}}}", "]".repeat(100_000));
    for text in [
        &b""[..],
        b"   ",
        b"nonsense",
        b"{\"jsonrpc\":\"2.0\"",
        br#"{"jsonrpc":"2.0","id":"a","id":"b","method":"m","params":{}}"#,
        br#"{"jsonrpc":"2.0","id":"a","method":"m","params":{"x":1,"x":2}}"#,
        b"{\"jsonrpc\":\"2.0\",\"id\":\"\xff\",\"method\":\"m\",\"params\":{}}",
        &[&valid[..], b" x"].concat(),
        &[&valid[..], &valid[..]].concat(),
        &[b"\xef\xbb\xbf", &valid[..]].concat(),
        deep.as_bytes(),
        deep_and_closed.as_bytes(),
    ] {
        let refused = read(text).unwrap_err();
        assert_eq!(refused.id, Id::Null);
        assert_eq!(refused.error.code, PARSE_ERROR);
        assert!(refused.error.message.starts_with("Parse error: "), "{}", refused.error);
        assert!(refused.error.message.len() < 200);
    }
    assert!(read(valid).is_ok());
}

#[test]
fn replies_carry_the_id_as_it_was_sent() {
    for id in ["\"é\\n\"", "\"\"", "7", "1.50", "-0", "1e400", "123456789012345678901234567890", "null"] {
        let text = format!(r#"{{"jsonrpc":"1.0","id":{id},"method":"m","params":{{}}}}"#);
        let Ok(Message::Request { id: read, .. }) = read(text.as_bytes()) else { panic!("{id}") };
        assert_eq!(
            respond(&read, &json(r#"{"decision":"allow"}"#)).unwrap(),
            format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"decision":"allow"}}}}"#)
        );
        assert_eq!(
            refuse(&read, &RpcError::new(INVALID_PARAMS, "Invalid params: \"x\"")),
            format!(
                r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32602,"message":"Invalid params: \"x\""}}}}"#
            )
        );
    }
}

#[test]
fn replies_are_one_line() {
    let line = respond(&Id::from("a\nb"), &Json::from("c\r\nd\u{2028}")).unwrap();
    assert!(!line.contains(['\n', '\r']), "{line}");
}

#[test]
fn a_result_that_cannot_be_written_is_an_error() {
    let error = respond(&Id::Null, &Json::Number("no number".into())).unwrap_err();
    assert_eq!(error.code, INTERNAL_ERROR);
    assert!(error.message.starts_with("Internal error: "));
    let unwritable = RpcError { data: Some(Json::Number("no number".into())), ..RpcError::new(1, "m") };
    assert!(json(&refuse(&Id::Null, &unwritable)).get("error").is_some());
}

#[test]
fn errors_read_back() {
    let error = RpcError { data: Some(json("[1.10]")), ..RpcError::new(-32000, "no") };
    let reply = json(&refuse(&Id::from("a"), &error));
    assert_eq!(RpcError::from_json(&reply["error"]), Ok(error));
    assert_eq!(RpcError::from_json(&json(r#"{"code":1,"message":"m"}"#)), Ok(RpcError::new(1, "m")));
    for bad in [
        "null",
        "{}",
        r#"{"code":1}"#,
        r#"{"message":"m"}"#,
        r#"{"code":"1","message":"m"}"#,
        r#"{"code":2147483648,"message":"m"}"#,
        r#"{"code":1.0,"message":"m"}"#,
        r#"{"code":1,"message":null}"#,
    ] {
        assert!(RpcError::from_json(&json(bad)).is_err(), "{bad}");
    }
}
