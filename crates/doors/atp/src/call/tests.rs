//! Tests of the changes that a decision makes to arguments.

use proctor_core::decision::Change;

use super::*;

fn decided(changes: &[(&str, Json)]) -> Decided {
    let change =
        |(path, value): &(&str, Json)| Change { path: (*path).to_owned(), replacement: value.clone() };
    Decided {
        record: DecisionRecord {
            record: None,
            effect: Effect::Modify,
            rule: "rule".to_owned(),
            reason: "reason".to_owned(),
        },
        changes: changes.iter().map(change).collect(),
        retry_after_ms: None,
    }
}

fn json(text: &str) -> Json {
    Json::parse(text.as_bytes()).unwrap()
}

#[test]
fn changes_apply_to_objects_and_to_wrapped_values() {
    let input = json(r#"{"a": {"b": 1}, "c": 2}"#);
    assert_eq!(changed(&input, &decided(&[])), Ok(None));
    let now = changed(&input, &decided(&[("$.args.a.b", "x".into()), ("$.args.d", true.into())]));
    assert_eq!(now, Ok(Some(json(r#"{"a": {"b": "x"}, "c": 2, "d": true}"#))));
    let text = changed(&Json::from("secret"), &decided(&[("$.args.input", "cut".into())]));
    assert_eq!(text, Ok(Some(Json::from("cut"))));
}

#[test]
fn a_change_that_cannot_be_made_is_an_error() {
    for path in ["$.args.missing.b", "$.args[*]", "$.command", "nonsense"] {
        let result = changed(&json(r#"{"a": 1}"#), &decided(&[(path, "x".into())]));
        assert!(result.is_err(), "{path}: {result:?}");
    }
}

#[test]
fn long_results_are_replaced_by_length_and_digest() {
    assert_eq!(bounded(Json::from("short")), "short");
    let omitted = bounded(Json::from("x".repeat(MAX_RESULT)));
    assert_eq!(omitted["omitted_bytes"].as_u64(), Some(MAX_RESULT as u64 + 2));
    assert!(omitted["sha256"].as_str().is_some());
}
