//! Thresholds that follow from earlier runs.

use serde_json::{Value, json};

use crate::support::attest::{Engine, Place, content, trace};

fn dynamic(id: &str, values: &[&str]) -> Value {
    content(
        id,
        &json!({"target": "output.message", "check": "keyword_all", "values": values, "threshold": "dynamic"}),
    )
}

fn judged(engine: &mut Engine, assertion: Value) -> (String, String) {
    let result = engine.verdict(&trace("t"), assertion);
    let text = |name: &str| result[name].as_str().unwrap_or_default().to_owned();
    (text("status"), text("threshold_source"))
}

#[test]
fn what_always_fails_never_becomes_good() {
    let place = Place::new();
    let mut engine = place.ready(&[]);
    for run in 0..40 {
        let (status, source) = judged(&mut engine, dynamic("fixed", &["absent"]));
        assert_eq!(status, "hard_fail", "run {run}");
        assert_eq!(source, if run < 10 { "dynamic_unavailable" } else { "dynamic" }, "run {run}");
    }
    // In another process too.
    assert_eq!(engine.close().0, 0);
    let mut engine = place.ready(&[]);
    assert_eq!(
        judged(&mut engine, dynamic("fixed", &["absent"])),
        ("hard_fail".to_owned(), "dynamic".to_owned())
    );
}

#[test]
fn a_name_made_up_for_each_run_still_has_a_history() {
    let place = Place::new();
    let mut engine = place.ready(&[]);
    // Two of three keywords are there: 0.667, and steady.
    for run in 0..30 {
        let (status, source) =
            judged(&mut engine, dynamic(&format!("assert_{run:08x}"), &["hello", "world", "absent"]));
        let expected = if run < 10 { ("soft_fail", "dynamic_unavailable") } else { ("pass", "dynamic") };
        assert_eq!((status.as_str(), source.as_str()), expected, "run {run}");
    }
    // Another spec has a history of its own.
    let (_, source) = judged(&mut engine, dynamic("assert_other", &["hello", "absent", "world"]));
    assert_eq!(source, "dynamic_unavailable");
    // The same spec written in another order is the same.
    let line = r#"{"jsonrpc":"2.0","id":1,"method":"evaluate_batch","params":{"trace":{"trace_id":"t","output":{"message":"hello world"}},"assertions":[{"assertion_id":"x","type":"content","spec":{ "threshold":"dynamic", "values":["hello","world","absent"], "check":"keyword_all", "target":"output.message" }}]}}"#;
    assert_eq!(engine.exchange(line)["result"]["results"][0]["threshold_source"], "dynamic");
}

/// A thousand requests at once: each sees what those before it found.
#[test]
fn history_is_in_order_also_when_requests_are_not_waited_for() {
    let place = Place::new();
    let mut engine = place.ready(&[]);
    let lines: String = (1..=30)
        .map(|id| {
            let assertion = dynamic(&format!("a{id}"), &["hello", "world", "absent"]);
            crate::support::attest::request(
                id,
                "evaluate_batch",
                &json!({"trace": trace("t"), "assertions": [assertion]}),
            ) + "\n"
        })
        .collect();
    engine.write(lines.as_bytes());
    for id in 1..=30 {
        let reply = engine.receive();
        let expected = if id <= 10 { "soft_fail" } else { "pass" };
        assert_eq!(
            (&reply["id"], &reply["result"]["results"][0]["status"]),
            (&json!(id), &json!(expected)),
            "{reply}"
        );
    }
}

/// Official clients take a notification for a reply: none is sent unless it is asked for.
#[test]
fn drift_is_announced_only_to_those_who_ask() {
    let place = Place::new();
    let mut engine = place.ready(&[]);
    for _ in 0..15 {
        assert_eq!(judged(&mut engine, dynamic("d", &["absent"])).0, "hard_fail");
    }
    assert_eq!(engine.close().0, 0);
    for (variables, asks) in [(&[("ATTEST_DRIFT_ALERTS", "1")][..], false), (&[], true)] {
        let mut engine = place.start(variables);
        engine.result("initialize", &json!({"protocol_version": 1, "drift_alerts": asks}));
        let batch = json!({"trace": trace("t"), "assertions": [dynamic("d", &["absent"]), dynamic("good", &["hello"])]});
        let id = engine.begin("evaluate_batch", &batch);
        let alert: Value = serde_json::from_slice(&engine.receive_raw()).unwrap();
        assert_eq!((&alert["method"], alert.get("id")), (&json!("drift_alert"), None), "{alert}");
        assert_eq!(
            (&alert["params"]["assertion_id"], &alert["params"]["status"]),
            (&json!("d"), &json!("drift_detected"))
        );
        assert_eq!(engine.receive()["id"], id);
        assert_eq!(engine.close().0, 0);
    }
}

/// Undecidable assertions have no score, and do not change the history of decidable ones.
#[test]
fn errors_are_no_history() {
    let place = Place::new();
    let mut engine = place.ready(&[]);
    let spec = json!({"target": "output.maybe", "check": "contains", "value": "x", "threshold": "dynamic"});
    for _ in 0..15 {
        let result = engine.verdict(&json!({"trace_id": "t", "output": {"other": 1}}), content("m", &spec));
        assert_eq!(result["status"], "hard_fail", "{result}");
    }
    let bad = json!({"check": 5, "threshold": "dynamic"});
    for _ in 0..3 {
        let result = engine.verdict(&trace("t"), content("bad", &bad));
        assert!(result["explanation"].as_str().unwrap().starts_with("error:"), "{result}");
    }
    assert_eq!(engine.result("query_drift", &json!({"assertion_id": "bad"}))["report"]["count"], 0);
}
