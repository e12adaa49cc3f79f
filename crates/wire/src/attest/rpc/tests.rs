use proptest::prelude::*;

use super::*;

fn refused(line: &str) -> (i64, i64) {
    let (id, refusal) = read(line).unwrap_err();
    (id, refusal.code.number())
}

#[test]
fn numbers_of_requests() {
    let id =
        |id: &str| read(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m"}}"#)).map(|request| request.id);
    assert_eq!(id("5").unwrap(), 5);
    assert_eq!(id("-5").unwrap(), -5);
    assert_eq!(id("9007199254740993").unwrap(), 9_007_199_254_740_993);
    assert_eq!(id("null").unwrap(), 0);
    for odd in ["\"a\"", "2.0", "1e3", "9223372036854775808", "{}", "true"] {
        assert_eq!(id(odd).unwrap_err().0, 0, "{odd}");
        assert_eq!(id(odd).unwrap_err().1.code, Code::Parse, "{odd}");
    }
    assert_eq!(read(r#"{"jsonrpc":"2.0","method":"m"}"#).unwrap().id, 0);
}

#[test]
fn what_is_no_request() {
    for line in [
        "",
        "[]",
        "{",
        "x",
        r#"{"jsonrpc":"2.0","id":1,"method":"m"} x"#,
        "\u{feff}{}",
        r#"{"jsonrpc":2,"id":1,"method":"m"}"#,
    ] {
        assert_eq!(refused(line), (0, -32700), "{line}");
    }
    for line in [
        r#"{"id":4,"method":"m"}"#,
        r#"{"jsonrpc":"1.0","id":4,"method":"m"}"#,
        r#"{"jsonrpc":"2.0","id":4}"#,
        r#"{"jsonrpc":"2.0","id":4,"method":""}"#,
    ] {
        assert_eq!(refused(line), (4, -32600), "{line}");
    }
    assert_eq!(
        refused(r#"{"jsonrpc":"2.0","id":4,"id":5,"method":"m"}"#),
        (0, -32700),
        "which one is meant?"
    );
}

#[test]
fn params_in_every_form() {
    let params = |text: &str| {
        let line = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m"{text}}}"#);
        read(&line).unwrap().params.read::<std::collections::BTreeMap<String, i64>>()
    };
    assert!(matches!(params(""), Err(ParamsError::Unfit(_))));
    assert_eq!(params(r#","params":null"#).unwrap().len(), 0);
    assert_eq!(params(r#","params":{"a":1}"#).unwrap().len(), 1);
    assert!(matches!(params(r#","params":{"a":"b"}"#), Err(ParamsError::Unfit(_))));
    for other in ["[]", "1", "\"x\"", "true"] {
        assert_eq!(params(&format!(r#","params":{other}"#)), Err(ParamsError::NotAnObject), "{other}");
    }
}

#[test]
fn bad_text_is_repaired() {
    assert_eq!(repaired(br#"{"a":"\ud800"}"#), r#"{"a":"\ufffd"}"#);
    assert_eq!(repaired(br#"{"a":"\udc00\ud800x"}"#), r#"{"a":"\ufffd\ufffdx"}"#);
    assert_eq!(repaired(br#"{"a":"\ud83d\ude00"}"#), r#"{"a":"\ud83d\ude00"}"#);
    assert_eq!(repaired(br#"{"a":"\ud83d\ud83d\uDE00"}"#), r#"{"a":"\ufffd\ud83d\uDE00"}"#);
    assert_eq!(
        repaired(br#"{"a":"\\ud800"}"#),
        r#"{"a":"\\ud800"}"#,
        "an escaped backslash begins no escape"
    );
    assert_eq!(repaired(b"a\xff\xfeb"), "a\u{fffd}\u{fffd}b", "one for each byte");
    assert_eq!(repaired(b"\xe2\x82"), "\u{fffd}\u{fffd}");
}

#[test]
fn numbers_at_the_beginning() {
    assert_eq!(
        number_at_the_beginning(br#"{"jsonrpc":"2.0","id":17,"method":"evaluate_batch","params":{"id":3"#),
        17
    );
    assert_eq!(number_at_the_beginning(br#"{"params":{"id":3,"#), 0);
    assert_eq!(number_at_the_beginning(b"\xff\xff"), 0);
    assert_eq!(number_at_the_beginning(br#"{"id":"#), 0);
}

#[test]
fn refusals_carry_their_data() {
    let line = refuse(3, &Refusal::new(Code::Engine, "m", "d").retryable());
    let value: serde_json::Value = serde_json::from_slice(&line).unwrap();
    assert_eq!(
        value,
        serde_json::json!({"jsonrpc": "2.0", "id": 3, "error": {"code": 3001, "message": "m",
            "data": {"error_type": "ENGINE_ERROR", "retryable": true, "detail": "d"}}})
    );
}

proptest! {
    #[test]
    fn whatever_comes_is_text_that_json_can_read(bytes in prop::collection::vec(any::<u8>(), 0..40), units in prop::collection::vec(0xd700_u32..0xe100, 0..8)) {
        let escapes: String = units.iter().map(|unit| format!("\\u{unit:04x}")).collect();
        let mut line = b"{\"a\":\"".to_vec();
        line.extend(bytes.iter().filter(|byte| !matches!(byte, b'"' | b'\\' | 0..=31)));
        line.extend(escapes.as_bytes());
        line.extend(b"\"}");
        let text = repaired(&line);
        prop_assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok(), "{}", text);
    }

    #[test]
    fn a_cut_text_fits_and_no_more_is_cut_than_must_be(text in "[\\PC\u{0}-\u{1f}\"\\\\]*", longest in 0..200usize) {
        let written = |text: &str| serde_json::to_string(text).map_or(0, |json| json.len() - 2);
        prop_assert_eq!(written_length(&text), written(&text));
        let kept = cut_written(&text, longest);
        prop_assert!(text.starts_with(kept) && written(kept) <= longest);
        if let Some(next) = text.get(kept.len()..).and_then(|rest| rest.chars().next()) {
            let more = written(kept) + written(&next.to_string());
            prop_assert!(more > longest);
        }
    }

    #[test]
    fn reading_never_panics(line in "\\PC*") {
        let _ = read(&line);
        let _ = number_at_the_beginning(line.as_bytes());
    }
}
