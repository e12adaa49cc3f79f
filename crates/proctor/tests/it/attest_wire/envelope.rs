//! Lines, requests and refusals.

use serde_json::{Value, json};

use crate::attest_hostile::vendor::Vendor;
use crate::support::attest::{Engine, Place, content, request, trace};

const PARSE: i64 = -32700;
const INVALID: i64 = -32600;
const NO_METHOD: i64 = -32601;
const SESSION: i64 = 3003;

#[test]
fn lines_and_what_they_get() {
    let place = Place::new();
    let mut engine = place.start(&[]);
    let table: &[(&str, i64, i64)] = &[
        ("", PARSE, 0),
        ("   ", PARSE, 0),
        ("nonsense", PARSE, 0),
        ("null", PARSE, 0),
        ("5", PARSE, 0),
        ("\"text\"", PARSE, 0),
        ("[]", PARSE, 0),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"shutdown"}]"#, PARSE, 0),
        (r#"["2.0",1,"shutdown"]"#, PARSE, 0),
        (r#"{"jsonrpc":"2.0","id":1,"method":"shutdown"} x"#, PARSE, 0),
        (r#"{"jsonrpc":"2.0","id":1,"method":"shutdown"}{}"#, PARSE, 0),
        (r#"{"jsonrpc":"2.0","id":1,"method":"shutdown""#, PARSE, 0),
        ("\u{feff}{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"shutdown\"}", PARSE, 0),
        (r#"{"jsonrpc":"2.0","id":1,"method":"shutdown","params":{"x":NaN}}"#, PARSE, 0),
        (r#"{"jsonrpc":"2.0","id":1,"method":"shutdown","params":{"x":Infinity}}"#, PARSE, 0),
        (r#"{"jsonrpc":"2.0","id":"1","method":"shutdown"}"#, PARSE, 0),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"shutdown"}"#, PARSE, 0),
        (r#"{"jsonrpc":"2.0","id":2.0,"method":"shutdown"}"#, PARSE, 0),
        (r#"{"jsonrpc":"2.0","id":true,"method":"shutdown"}"#, PARSE, 0),
        (r#"{"jsonrpc":"2.0","id":{},"method":"shutdown"}"#, PARSE, 0),
        (r#"{"jsonrpc":"2.0","id":9223372036854775808,"method":"shutdown"}"#, PARSE, 0),
        (r#"{"id":3,"method":"shutdown"}"#, INVALID, 3),
        (r#"{"jsonrpc":"1.0","id":4,"method":"shutdown"}"#, INVALID, 4),
        (r#"{"jsonrpc":null,"id":4,"method":"shutdown"}"#, INVALID, 4),
        (r#"{"jsonrpc":"2.0","id":5}"#, INVALID, 5),
        (r#"{"jsonrpc":"2.0","id":6,"method":""}"#, INVALID, 6),
        (r#"{"jsonrpc":"2.0","id":6,"method":null}"#, INVALID, 6),
        ("{}", INVALID, 0),
        // An unknown method is said before the session is looked at.
        (r#"{"jsonrpc":"2.0","id":7,"method":"list_results"}"#, NO_METHOD, 7),
        (r#"{"jsonrpc":"2.0","id":7,"method":"Initialize"}"#, NO_METHOD, 7),
        (r#"{"jsonrpc":"2.0","id":7,"method":"generate_user_message","params":{}}"#, NO_METHOD, 7),
        // Numbers come back as they are, and none is 0.
        (r#"{"jsonrpc":"2.0","id":-5,"method":"shutdown"}"#, SESSION, -5),
        (r#"{"jsonrpc":"2.0","id":9223372036854775807,"method":"shutdown"}"#, SESSION, i64::MAX),
        (r#"{"jsonrpc":"2.0","id":-9223372036854775808,"method":"shutdown"}"#, SESSION, i64::MIN),
        (r#"{"jsonrpc":"2.0","id":9007199254740993,"method":"shutdown"}"#, SESSION, 9_007_199_254_740_993),
        (r#"{"jsonrpc":"2.0","id":null,"method":"shutdown"}"#, SESSION, 0),
        (r#"{"jsonrpc":"2.0","method":"shutdown"}"#, SESSION, 0),
        // Spaces, a carriage return, other members and another order change nothing.
        ("  { \"method\" : \"shutdown\" , \"id\" : 8 , \"jsonrpc\" : \"2.0\" }  \r", SESSION, 8),
        (r#"{"jsonrpc":"2.0","id":9,"method":"shutdown","meta":{"x":[]},"result":1}"#, SESSION, 9),
        (r#"{"jsonrpc":"2.0","id":10,"method":"sh\u0075tdown"}"#, SESSION, 10),
    ];
    for (line, code, id) in table {
        let reply = engine.exchange(line);
        assert_eq!(
            (reply["error"]["code"].as_i64(), reply["id"].as_i64()),
            (Some(*code), Some(*id)),
            "{line}: {reply}"
        );
    }
    assert_eq!(engine.close().0, 0);
}

#[test]
fn parameters_that_are_none() {
    let place = Place::new();
    let vendor = Vendor::judge(1.0);
    let url = vendor.url();
    let mut engine = place.start(&[("ATTEST_JUDGE_BASE_URL", &url)]);
    let own: &[(&str, i64)] = &[
        ("evaluate_batch", 1001),
        ("validate_trace_tree", 1001),
        ("submit_plugin_result", 1002),
        ("query_drift", 1002),
        ("generate_user_message", 1002),
    ];
    let with =
        |method: &str, params: &str| format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}"{params}}}"#);
    let code = |reply: &Value| reply["error"]["code"].as_i64().unwrap_or_default();
    let not_objects =
        [r#","params":[]"#, r#","params":5"#, r#","params":"x""#, r#","params":true"#, r#","params":[{}]"#];
    // `initialize` first: a refused one leaves the session as it was.
    for params in not_objects {
        assert_eq!(code(&engine.exchange(with("initialize", params))), -32602, "{params}");
    }
    assert_eq!(code(&engine.exchange(with("initialize", ""))), SESSION);
    engine.initialize();
    for (method, code_of_it) in own {
        let missing = engine.exchange(with(method, ""));
        assert_eq!(code(&missing), *code_of_it, "{method}: {missing}");
        for params in not_objects {
            let reply = engine.exchange(with(method, params));
            assert_eq!(code(&reply), -32602, "{method} {params}: {reply}");
            assert_eq!(reply["error"]["data"]["error_type"], "INVALID_PARAMS");
        }
    }
    // `null` is an object with everything at its default.
    let null = |engine: &mut Engine, method: &str| engine.exchange(with(method, r#","params":null"#));
    assert_eq!(code(&null(&mut engine, "evaluate_batch")), 1001);
    assert_eq!(null(&mut engine, "validate_trace_tree")["result"]["valid"], true);
    assert_eq!(null(&mut engine, "query_drift")["result"]["report"]["count"], 0);
    // `shutdown` does not look at them.
    assert_eq!(engine.exchange(with("shutdown", r#","params":[1]"#))["result"]["sessions_completed"], 1);
    assert_eq!(engine.wait().0, 0);
}

#[test]
fn each_code_has_its_name() {
    let place = Place::new();
    let mut engine = place.start(&[("ATTEST_BUDGET_MAX_COST", "0")]);
    let mut check = |line: String, code: i64, name: &str| {
        let reply = engine.exchange(&line);
        let error = &reply["error"];
        assert_eq!(
            (error["code"].as_i64(), error["data"]["error_type"].as_str()),
            (Some(code), Some(name)),
            "{reply}"
        );
        assert_eq!(error["data"]["retryable"], false, "{reply}");
    };
    check("x".to_owned(), -32700, "PARSE_ERROR");
    check("{}".to_owned(), -32600, "INVALID_REQUEST");
    check(request(1, "x", &json!({})), -32601, "METHOD_NOT_FOUND");
    check(request(1, "query_drift", &json!({})), 3003, "SESSION_ERROR");
    check(request(1, "initialize", &json!([])), -32602, "INVALID_PARAMS");
    engine.initialize();
    let mut check = |method: &str, params: Value, code: i64, name: &str| {
        let reply = engine.ask(method, &params);
        let error = &reply["error"];
        assert_eq!(
            (error["code"].as_i64(), error["data"]["error_type"].as_str()),
            (Some(code), Some(name)),
            "{reply}"
        );
    };
    check("evaluate_batch", json!({"trace": {}}), 1001, "INVALID_TRACE");
    check("query_drift", json!({"assertion_id": 5}), 1002, "ASSERTION_ERROR");
    let soft =
        content("a", &json!({"target": "output.message", "check": "contains", "value": "no", "soft": true}));
    check("evaluate_batch", json!({"trace": trace("t"), "assertions": [soft]}), 3001, "ENGINE_ERROR");
}

#[test]
fn bad_text_is_repaired() {
    let place = Place::new();
    let mut engine = place.ready(&[]);
    let spec = r#"{"target":"output.message","check":"regex_match","value":"^a(?:\\x{FFFD}+)b$"}"#;
    for (written, bad) in [
        (&b"a\\ud800b"[..], 1),
        (b"a\\udc00b", 1),
        (b"a\\udc00\\ud800b", 2),
        (b"a\\ud800\\ud800b", 2),
        (b"a\xffb", 1),
        (b"a\xe2\x82b", 2),
        (b"a\xed\xa0\x80b", 3),
    ] {
        let mut line = br#"{"jsonrpc":"2.0","id":1,"method":"evaluate_batch","params":{"trace":{"trace_id":"t","output":{"message":""#.to_vec();
        line.extend(written);
        line.extend(
            format!(r#""}}}},"assertions":[{{"assertion_id":"a","type":"content","spec":{spec}}},"#).bytes(),
        );
        let exact = format!(
            r#"{{"assertion_id":"b","type":"content","spec":{{"target":"output.message","check":"contains","value":"a{}b"}}}}]}}}}"#,
            "\u{fffd}".repeat(bad)
        );
        line.extend(exact.bytes());
        let reply = engine.exchange(&line);
        for at in 0..2 {
            assert_eq!(reply["result"]["results"][at]["status"], "pass", "{written:?}: {reply}");
        }
    }
    // A pair is a character, and an escaped backslash begins no escape.
    for (written, value) in [(r"\ud83d\ude00", "😀"), (r"\\ud800", r"\\ud800")] {
        let line = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"evaluate_batch","params":{{"trace":{{"trace_id":"t","output":{{"message":"{written}"}}}},"assertions":[{{"type":"content","spec":{{"check":"contains","value":"{value}"}}}}]}}}}"#
        );
        let reply = engine.exchange(&line);
        assert_eq!(reply["result"]["results"][0]["status"], "pass", "{written}: {reply}");
    }
}

/// Replies are in the order of requests, also when many are written at once and some wait for a model.
#[test]
fn order_is_kept_and_nothing_is_unasked() {
    let place = Place::new();
    let vendor = Vendor::judge(0.9);
    let url = vendor.url();
    let mut engine = place.ready(&[
        ("ATTEST_JUDGE_BASE_URL", &url),
        ("ATTEST_JUDGE_RPM", "60000"),
        ("ATTEST_JUDGE_BURST", "1000"),
    ]);
    let mut lines = String::new();
    for id in 100..200 {
        let line = match id % 4 {
            0 => {
                let judge = crate::support::attest::assertion(
                    "j",
                    "llm_judge",
                    &json!({"criteria": format!("{}", id % 10)}),
                );
                request(id, "evaluate_batch", &json!({"trace": trace("t"), "assertions": [judge]}))
            }
            1 => request(id, "validate_trace_tree", &json!({"trace": trace("t")})),
            2 => {
                let long = json!({"trace_id": "t", "output": {"message": "x".repeat(80_000)}});
                request(
                    id,
                    "evaluate_batch",
                    &json!({"trace": long, "assertions": [crate::support::attest::contains("a", "x")]}),
                )
            }
            _ => request(id, "evaluate_batch", &json!({"trace": trace("t"), "assertions": []})),
        };
        lines.push_str(&line);
        lines.push('\n');
    }
    engine.write(lines.as_bytes());
    for id in 100..200 {
        let reply = engine.receive();
        assert_eq!(reply["id"], id);
        assert!(reply.get("error").is_none(), "{reply}");
    }
    let ended = engine.result("shutdown", &json!({}));
    assert_eq!(ended["assertions_evaluated"], 50);
    assert_eq!(engine.wait().0, 0);
}
