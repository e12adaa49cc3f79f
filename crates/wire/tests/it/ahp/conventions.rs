//! Numbers, null, and what is said without a type.

use proctor_core::json::Json;
use proctor_wire::ahp::{Decision, Fact, HeartbeatEvent, IdleEvent, SessionStats, TaskListEvent, check};

use super::shape::json;

#[test]
fn short_floats_are_written_short() {
    for literal in ["0.9", "0.8", "0.1", "0.75", "0.333", "1.0"] {
        let fact: Fact =
            json(&format!(r#"{{"content":"","source":"","confidence":{literal}}}"#)).read().unwrap();
        assert_eq!(
            serde_json::to_string(&fact).unwrap(),
            format!(r#"{{"content":"","source":"","confidence":{literal}}}"#)
        );
    }
    let long = json(r#"{"content":"","source":"","confidence":0.8999999761581421}"#).read::<Fact>().unwrap();
    assert!(serde_json::to_string(&long).unwrap().ends_with(r#""confidence":0.9}"#));
}

#[test]
fn float_members_take_any_number() {
    for literal in ["1", "0", "-3", "1e-3", "0.25"] {
        let text = format!(r#"{{"content":"","source":"","confidence":{literal}}}"#);
        assert!(json(&text).read::<Fact>().is_ok(), "{literal}");
    }
}

#[test]
fn integers_keep_to_their_size() {
    let idle = |number: &str| {
        json(&format!(r#"{{"idle_duration_ms":{number},"idle_reason":""}}"#)).read::<IdleEvent>()
    };
    assert_eq!(idle("18446744073709551615").unwrap().idle_duration_ms, u64::MAX);
    for bad in ["5.0", "-5", "5e0", "18446744073709551616"] {
        assert!(idle(bad).is_err(), "{bad}");
    }
    let tokens = |number: &str| {
        json(&format!(r#"{{"total_actions":0,"total_tokens":{number},"duration_ms":0,"error_count":0}}"#))
            .read::<SessionStats>()
    };
    assert_eq!(tokens("-2147483648").unwrap().total_tokens, i32::MIN);
    assert!(tokens("2147483648").is_err());
    let used = r#"{"uptime_ms":0,"total_events_processed":0,"current_state":"","tokens_used":-2147483649}"#;
    assert!(json(used).read::<HeartbeatEvent>().is_err());
}

#[test]
fn defaulted_arrays_are_not_null() {
    let list = |depends_on: &str| {
        json(&format!(
            r#"{{"run_id":"r","session_id":"s","updated_at":"","tasks":[{{"id":"a","title":"","status":"pending"{depends_on}}}]}}"#
        ))
        .read::<TaskListEvent>()
    };
    assert!(list("").is_ok());
    assert!(list(r#","depends_on":[]"#).is_ok());
    let error = list(r#","depends_on":null"#).unwrap_err().to_string();
    assert!(error.ends_with(" at /tasks/0/depends_on"), "{error}");
}

#[test]
fn an_allowed_null_payload_is_none() {
    let read = Decision::from_json(&json(r#"{"decision":"allow","modified_payload":null}"#)).unwrap();
    assert_eq!(read, Decision::allow());
    assert_eq!(serde_json::to_string(&read).unwrap(), r#"{"decision":"allow"}"#);
}

#[test]
fn versions_agree_before_the_first_dot() {
    for good in ["2.4", "2", "2.0", "2.99.1-x", "2."] {
        assert!(check::is_compatible(good), "{good}");
    }
    for bad in ["3.0", "v2.4", "", "1.0", "20.4", " 2.4", "02.4", ".2"] {
        assert!(!check::is_compatible(bad), "{bad}");
    }
}

#[test]
fn text_is_written_raw() {
    let fact = Fact { content: "é → 😀".into(), source: String::new(), confidence: 1.0 };
    assert!(serde_json::to_string(&fact).unwrap().contains("é → 😀"));
    assert_eq!(Json::from_type(&fact).unwrap()["content"], "é → 😀");
}
