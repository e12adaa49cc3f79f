//! The engine with models: each vendor's format, a real sentence transformer, and what people said about a judge.

#[path = "../../../providers/tests/double/server.rs"]
mod double;

use std::path::Path;
use std::process::Command;

use proctor_providers::vendor::Vendor;
use serde_json::{Value, json};

use crate::support::attest::{Engine, Place};
use double::{Double, KEY, Reply};

fn trace(message: &str) -> Value {
    json!({"trace_id": "t", "output": {"message": message}})
}

fn evaluate(engine: &mut Engine, message: &str, kind: &str, spec: &Value) -> Value {
    engine.verdict(&trace(message), json!({"assertion_id": "a", "type": kind, "spec": spec}))
}

#[test]
fn every_vendor_judges_and_speaks() {
    for (vendor, key) in [
        (Vendor::OpenAi, "ATTEST_OPENAI_API_KEY"),
        (Vendor::Anthropic, "ATTEST_ANTHROPIC_API_KEY"),
        (Vendor::Gemini, "ATTEST_GEMINI_API_KEY"),
        (Vendor::Ollama, "ATTEST_JUDGE_API_KEY"),
    ] {
        let double = Double::start();
        let place = Place::new();
        let name = vendor.to_string();
        let url = double.url(vendor);
        let mut engine = place.ready(&[
            ("ATTEST_JUDGE_PROVIDER", name.as_str()),
            ("ATTEST_JUDGE_BASE_URL", url.as_str()),
            (key, KEY),
        ]);
        let result = evaluate(&mut engine, "hello", "llm_judge", &json!({"criteria": "is it polite?"}));
        assert_eq!((&result["status"], &result["score"]), (&json!("pass"), &json!(0.9)), "{name}: {result}");
        assert_eq!(result["judge_metadata"]["rubric_name"], "default");
        // The same question is not asked twice, another one is.
        let asked = double.seen().len();
        evaluate(&mut engine, "hello", "llm_judge", &json!({"criteria": "is it polite?"}));
        assert_eq!(double.seen().len(), asked, "{name}");
        double.script([Reply::text(r#"{"score": 0.1, "explanation": "it is rude"}"#)]);
        let other = evaluate(&mut engine, "hello", "llm_judge", &json!({"criteria": "is it short?"}));
        assert_eq!(
            (&other["status"], &other["score"]),
            (&json!("hard_fail"), &json!(0.1)),
            "{name}: {other}"
        );
        double.script([Reply { times: 0, ..Reply::status(400) }]);
        let refused = evaluate(&mut engine, "hello", "llm_judge", &json!({"criteria": "a third question"}));
        assert!(refused["explanation"].as_str().unwrap().starts_with("error:"), "{name}: {refused}");
        let (code, _) = engine.refusal("generate_user_message", &json!({"persona": {"name": "friendly"}}));
        assert_eq!(code, 2001, "{name}");
    }
}

#[test]
fn the_same_model_at_another_address_is_another_model() {
    let (first, second) = (Double::start(), Double::start());
    second.script([Reply { times: 0, ..Reply::text(r#"{"score": 0.0, "explanation": "it is bad"}"#) }]);
    let place = Place::new();
    let mut scores = Vec::new();
    for double in [&first, &second, &first] {
        let url = double.url(Vendor::OpenAi);
        let mut engine =
            place.ready(&[("ATTEST_JUDGE_BASE_URL", url.as_str()), ("ATTEST_OPENAI_API_KEY", KEY)]);
        scores.push(evaluate(&mut engine, "hello", "llm_judge", &json!({}))["score"].clone());
        engine.close();
    }
    assert_eq!(scores, [json!(0.9), json!(0.0), json!(0.9)]);
    assert_eq!((first.seen().len(), second.seen().len()), (1, 1), "each was asked once");
}

#[test]
fn answers_that_cannot_be_used_cost_money_too() {
    let double = Double::start();
    double.script([Reply { times: 0, stop: Some("length".into()), ..Reply::text("I think") }]);
    let place = Place::new();
    let url = double.url(Vendor::OpenAi);
    let mut engine = place.ready(&[
        ("ATTEST_JUDGE_BASE_URL", url.as_str()),
        ("ATTEST_OPENAI_API_KEY", KEY),
        ("ATTEST_JUDGE_MODEL", "gpt-4.1"),
        ("ATTEST_BUDGET_USD", "0.05"),
    ]);
    let mut said = String::new();
    for question in 0..20 {
        let result =
            evaluate(&mut engine, "hello", "llm_judge", &json!({"criteria": format!("question {question}")}));
        assert_eq!(result["status"], "hard_fail", "{result}");
        said = result["explanation"].as_str().unwrap().to_owned();
    }
    // An answer may have 1024 tokens at 8 dollars a million, so no more than six fit into five cents.
    let asked = double.seen().len();
    assert!((1..=6).contains(&asked), "{asked} calls");
    assert!(said.contains("the budget of $0.05 is used up"), "{said}");
}

#[test]
fn simulated_runs_are_not_remembered() {
    let place = Place::new();
    let assertion =
        json!({"assertion_id": "a", "type": "content", "spec": {"check": "contains", "value": "x"}});
    for (simulated, rows) in [("1", 0), ("0", 1)] {
        let mut engine = place.ready(&[("ATTEST_SIMULATION", simulated)]);
        engine.verdict(&trace("hello"), assertion.clone());
        engine.close();
        assert_eq!(place.rows().len(), rows);
    }
}

#[test]
fn what_people_said_about_a_judge_comes_with_its_scores() {
    let double = Double::start();
    let place = Place::new();
    let labels = place.path("labels.csv");
    std::fs::write(&labels, "input,human_label,judge_score\na,1,0.9\nb,0,0.2\nc,1,0.8\nd,0,0.6\n").unwrap();
    let measured =
        place.run(&["calibrate", "--labels", labels.to_str().unwrap(), "--rubric", "safety", "--persist"]);
    assert!(measured.status.success(), "{}", String::from_utf8_lossy(&measured.stderr));
    let measured: Value = serde_json::from_slice(&measured.stdout).unwrap();
    assert_eq!(measured["agreement"], 0.75);
    assert_eq!(measured["roc_auc"], 1.0);
    let url = double.url(Vendor::OpenAi);
    let mut engine = place.ready(&[("ATTEST_JUDGE_BASE_URL", url.as_str()), ("ATTEST_OPENAI_API_KEY", KEY)]);
    let result = evaluate(&mut engine, "hello", "llm_judge", &json!({"rubric": "safety"}));
    let calibration = &result["judge_metadata"]["calibration"];
    assert_eq!(
        (&calibration["label_count"], &calibration["agreement"]),
        (&json!(4), &json!(0.75)),
        "{result}"
    );
    let other = evaluate(&mut engine, "hello", "llm_judge", &json!({"rubric": "tone"}));
    assert_eq!(other["judge_metadata"].get("calibration"), None, "{other}");
}

#[test]
fn a_real_transformer_knows_what_is_meant() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/python-model");
    let made = Command::new(script).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let printed = String::from_utf8(made.stdout).unwrap();
    let model = printed.lines().last().unwrap();
    let place = Place::new();
    let mut engine = place.ready(&[("ATTEST_EMBEDDING_MODEL_DIR", model)]);
    let spec = json!({"reference": "Your money will be returned to your account.", "threshold": 0.5});
    let near = evaluate(&mut engine, "The refund is on its way to your bank account.", "embedding", &spec);
    assert_eq!(near["status"], "pass", "{near}");
    let far = evaluate(&mut engine, "The weather in the mountains is sunny today.", "embedding", &spec);
    assert_eq!(far["status"], "hard_fail", "{far}");
    assert!(near["score"].as_f64().unwrap() > far["score"].as_f64().unwrap() + 0.3, "{near} {far}");
    drop(engine);
    let missing = place.path("nowhere");
    let mut engine = place.ready(&[("ATTEST_EMBEDDING_MODEL_DIR", missing.to_str().unwrap())]);
    let failed = evaluate(&mut engine, "hello", "embedding", &spec);
    assert!(failed["explanation"].as_str().unwrap().starts_with("error:"), "{failed}");
}
