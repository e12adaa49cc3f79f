use proptest::prelude::*;
use serde_json::json;

use super::*;

fn shown(line: &str) -> String {
    match incoming(line.as_bytes()) {
        Incoming::Answer(id, Answer::Result(result)) => format!("{id}: {result}"),
        Incoming::Answer(id, Answer::Error(error)) => format!("{id}! {error}"),
        Incoming::Answer(id, Answer::Malformed(problem)) => format!("{id}? {problem}"),
        Incoming::Notification { method, params } => {
            format!("{method} {}", params.map_or("-", RawValue::get))
        }
        Incoming::Unroutable => "unroutable".to_owned(),
        Incoming::Unreadable => "unreadable".to_owned(),
    }
}

#[test]
fn lines_are_told_apart() {
    for (line, expected) in [
        (r#"{"jsonrpc":"2.0","id":7,"result":{"a":[1]}}"#, r#"7: {"a":[1]}"#),
        (r#"{"jsonrpc":"2.0","id":7,"result":null}"#, "7: null"),
        (r#"{"jsonrpc":"2.0","id":7,"result":1,"error":null,"more":[{}]}"#, "7: 1"),
        (
            r#"{"jsonrpc":"2.0","id":7,"error":{"code":1001,"message":"bad","data":{"error_type":"INVALID_TRACE","retryable":false,"detail":"no id"}}}"#,
            "7! bad (code 1001, INVALID_TRACE): no id",
        ),
        (r#"{"jsonrpc":"2.0","id":7,"result":null,"error":{"code":3001}}"#, "7!  (code 3001)"),
        (
            r#"{"jsonrpc":"2.0","id":7,"error":{"code":3001,"message":"m","data":["odd"]}}"#,
            "7! m (code 3001)",
        ),
        (r#"{"jsonrpc":"2.0","id":7,"error":"odd"}"#, "7? its error cannot be read"),
        (r#"{"jsonrpc":"2.0","id":7}"#, "7? it has neither a result nor an error"),
        (r#"{"jsonrpc":"2.0","id":7,"result":1,"error":{"code":1}}"#, "7? it has both a result and an error"),
        (
            r#"{"jsonrpc":"2.0","method":"drift_alert","params":{"assertion_id":"a"}}"#,
            r#"drift_alert {"assertion_id":"a"}"#,
        ),
        (r#"{"jsonrpc":"2.0","id":null,"method":"drift_alert"}"#, "drift_alert -"),
        (r#"{"jsonrpc":"2.0","id":3,"method":"ask"}"#, "unroutable"),
        (r#"{"jsonrpc":"2.0","result":1}"#, "unroutable"),
        (r#"{"jsonrpc":"2.0","id":"7","result":1}"#, "unroutable"),
        (r#"{"jsonrpc":"2.0","id":7.0,"result":1}"#, "unroutable"),
        (r#"{"jsonrpc":"2.0","id":-7,"result":1}"#, "unroutable"),
        (r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700}}"#, "unroutable"),
        (r#"{"jsonrpc":"1.0","id":7,"result":1}"#, "unreadable"),
        (r#"{"id":7,"result":1}"#, "unreadable"),
        (r#"["2.0",7,null,null,1]"#, "unreadable"),
        (r#"{"jsonrpc":"2.0","id":7,"result":1} x"#, "unreadable"),
        (r#"{"jsonrpc":"2.0","id":7,"result":1"#, "unreadable"),
        ("running 1 test", "unreadable"),
        ("", "unreadable"),
    ] {
        assert_eq!(shown(line), expected, "{line}");
    }
}

#[test]
fn results_may_be_deep_and_hold_lone_surrogates() {
    let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
    assert_eq!(shown(&format!(r#"{{"jsonrpc":"2.0","id":1,"result":{deep}}}"#)), format!("1: {deep}"));
    assert_eq!(shown(r#"{"jsonrpc":"2.0","id":1,"result":"\ud800"}"#), r#"1: "\ud800""#);
}

#[test]
fn what_the_engine_leaves_out_of_initialize_has_its_default() {
    let raw = RawValue::from_string(
        r#"{"engine_version":"0.4.0","protocol_version":1,"compatible":true,"missing":null}"#.to_owned(),
    )
    .unwrap();
    let result: InitializeResult = body(&raw).unwrap();
    assert_eq!(result.capabilities, [""; 0]);
    assert_eq!(result.missing, [""; 0]);
    assert_eq!(result.encoding, "json");
    assert_eq!(
        (result.max_concurrent_requests, result.max_trace_size_bytes, result.max_steps_per_trace),
        (64, 10_485_760, 10_000)
    );
    let raw = RawValue::from_string(r#"["0.4.0",1,true]"#.to_owned()).unwrap();
    assert!(body::<InitializeResult>(&raw).is_err());
}

#[test]
fn a_request_is_one_line_whatever_the_callers_layout() {
    let laid_out = RawValue::from_string("{\n  \"a\":\r\n  \"x\\ny\"\n}".to_owned()).unwrap();
    let line = request(3, "evaluate_batch", &laid_out, 1000).unwrap();
    assert_eq!(line.iter().filter(|byte| matches!(byte, b'\n' | b'\r')).count(), 1);
    assert_eq!(line.last(), Some(&b'\n'));
    let read: serde_json::Value = serde_json::from_slice(&line).unwrap();
    assert_eq!(read, json!({"jsonrpc": "2.0", "id": 3, "method": "evaluate_batch", "params": {"a": "x\ny"}}));
}

#[test]
fn a_request_may_be_as_long_as_the_limit_and_no_longer() {
    let whole = request(3, "m", &json!({"a": 1}), usize::MAX).unwrap().len() - 1;
    assert!(request(3, "m", &json!({"a": 1}), whole).is_ok());
    assert_eq!(request(3, "m", &json!({"a": 1}), whole - 1), Err(EncodeError::TooLong));
    let odd = std::collections::BTreeMap::from([((1, 2), 3)]);
    assert!(matches!(request(3, "m", &odd, 100), Err(EncodeError::Invalid(_))));
}

proptest! {
    #[test]
    fn no_line_is_too_odd(line in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = incoming(&line);
    }

    #[test]
    fn no_message_is_too_odd(
        id in "(7|null|\"7\"|-1|1e3|99999999999999999999)",
        rest in "(,\"(result|error|method|params|id)\":(null|1|\"x\"|\\{\\}|\\[\\]|\\{\"code\":1\\})){0,4}",
    ) {
        let line = format!(r#"{{"jsonrpc":"2.0","id":{id}{rest}}}"#);
        let _ = incoming(line.as_bytes());
    }
}
