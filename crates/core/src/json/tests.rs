use proptest::prelude::*;

use super::{Json, JsonProblem};

fn problem(text: &str) -> String {
    Json::parse(text.as_bytes()).unwrap_err().to_string()
}

#[test]
fn numbers_keep_their_text() {
    for literal in ["0", "-0", "1.10", "1e400", "12345678901234567890123", "-1.5E+3"] {
        assert_eq!(Json::parse(literal.as_bytes()).unwrap().to_string(), literal);
    }
}

#[test]
fn strictness() {
    assert_eq!(problem(r#"{"a":1,"a":2}"#), "duplicate member `a` at line 1, column 8");
    assert_eq!(problem("[1,\n 2,]"), "unexpected character where a value should be at line 2, column 4");
    assert_eq!(problem("{} x"), "something follows the value at line 1, column 4");
    for bad in [
        "",
        "01",
        "1.",
        "+1",
        "NaN",
        "\"a\nb\"",
        "\"\\x\"",
        "[1 2]",
        "{\"a\" 1}",
        "{a:1}",
        "tru",
        "\"\\u12",
        "[",
        "{\"a\":",
    ] {
        assert!(Json::parse(bad.as_bytes()).is_err(), "{bad} was accepted");
    }
    assert_eq!(Json::parse(b"\"\xff\"").unwrap_err().problem, JsonProblem::NotUtf8);
}

#[test]
fn duplicates_are_found_in_large_objects() {
    let mut text = String::from("{");
    for index in 0..100 {
        text.push_str(&format!("\"m{index}\":0,"));
    }
    assert!(Json::parse(format!("{text}\"last\":0}}").as_bytes()).is_ok());
    assert!(Json::parse(format!("{text}\"m7\":0}}").as_bytes()).is_err());
    assert!(Json::parse(format!("{text}\"m99\":0}}").as_bytes()).is_err());
}

#[test]
fn depth_is_bounded_and_does_not_use_the_stack() {
    assert!(Json::parse(format!("{}{}", "[".repeat(128), "]".repeat(128)).as_bytes()).is_ok());
    assert!(problem(&"[".repeat(100_000)).contains("nested deeper than 128 levels"));
}

#[test]
fn escapes_and_surrogates() {
    let value = Json::parse(br#""\u00e9\ud83d\ude00\ud800x\ud800\u0041\n\/""#).unwrap();
    assert_eq!(value, Json::from("é😀\u{fffd}x\u{fffd}A\n/"));
}

#[test]
fn pointers_read_and_write() {
    let mut value = Json::parse(br#"{"a":[1,{"b/c":2}],"m~n":3}"#).unwrap();
    assert_eq!(value.pointer("/a/1/b~1c"), Some(&Json::from(2u8)));
    assert_eq!(value.pointer("/m~0n"), Some(&Json::from(3u8)));
    assert_eq!(value.pointer("/a/01"), None);
    assert!(value.set_pointer("/a/0", Json::from("x")));
    assert!(value.set_pointer("/new", Json::Null));
    assert!(!value.set_pointer("/none/x", Json::Null));
    assert_eq!(value.to_string(), r#"{"a":["x",{"b/c":2}],"m~n":3,"new":null}"#);
}

/// Any value that serde_json can make.
fn any_value() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<f64>().prop_filter("finite", |number| number.is_finite()).prop_map(Into::into),
        any::<String>().prop_map(Into::into),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(serde_json::Value::Array),
            prop::collection::hash_map(any::<String>(), inner, 0..6)
                .prop_map(|members| serde_json::Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn reads_what_serde_json_writes_and_back(value in any_value()) {
        let ours = Json::parse(value.to_string().as_bytes()).unwrap();
        let back: serde_json::Value = serde_json::from_str(&ours.to_string()).unwrap();
        // serde_json's own reading of its own text is the yardstick: it rounds some doubles.
        let theirs: serde_json::Value = serde_json::from_str(&value.to_string()).unwrap();
        prop_assert_eq!(back, theirs);
        prop_assert_eq!(Json::parse(ours.to_string().as_bytes()).unwrap(), ours);
    }

    #[test]
    fn accepts_nothing_that_serde_json_refuses(text in "[\\[\\]{}\",:0-9eE.+\\-a-z\\\\ ]{0,24}") {
        if Json::parse(text.as_bytes()).is_ok() {
            // Numbers beyond f64 are the one thing that we keep and serde_json refuses.
            let verdict = serde_json::from_str::<&serde_json::value::RawValue>(&text);
            prop_assert!(verdict.is_ok(), "{}", text);
        }
    }
}
