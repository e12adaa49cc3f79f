//! Our own client against our own engine, found and started as the official SDKs do it.

use std::path::Path;
use std::process::Command;

use proctor_clients::attest::{AttestClient, Discovery, EngineBuilder};
use serde_json::{Value, json};

/// A home whose cache was filled by `proctor names --attest`.
fn filled_home() -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    let made = Command::new(env!("CARGO_BIN_EXE_proctor"))
        .args(["names", "--attest"])
        .env("HOME", home.path())
        .current_dir(home.path())
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    home
}

async fn start(engine: &Path, home: &Path) -> AttestClient {
    EngineBuilder::new(engine)
        .env("HOME", home)
        .env("ATTEST_CACHE_DIR", home.join("cache"))
        .current_dir(home)
        .start()
        .await
        .unwrap()
}

fn trace() -> Value {
    json!({"trace_id": "t", "steps": [{"type": "tool_call", "name": "lookup"}], "output": {"message": "done"}})
}

#[tokio::test]
async fn the_engine_is_found_in_the_cache_and_answers_many_at_once() {
    let home = filled_home();
    let found =
        Discovery::new(|_| None, Some(home.path().to_owned()), home.path().to_owned(), None).find().unwrap();
    let client = start(&found.path, home.path()).await;
    let batch = |value: &str| json!([{"assertion_id": value, "type": "content", "spec": {"check": "contains", "value": value}}]);
    let asked = (0..200).map(|index| {
        let (trace, assertions) = (trace(), batch(if index % 2 == 0 { "done" } else { "never" }));
        let client = &client;
        async move {
            let answer = client.evaluate_batch(&trace, &assertions).await.unwrap();
            let answer: Value = serde_json::from_str(answer.get()).unwrap();
            answer["results"][0]["status"].as_str().unwrap().to_owned()
        }
    });
    let answers = futures_util::future::join_all(asked).await;
    for (index, status) in answers.iter().enumerate() {
        assert_eq!(status, if index % 2 == 0 { "pass" } else { "hard_fail" }, "{index}");
    }
    let report = client.shutdown().await.unwrap();
    assert_eq!(report.statistics.unwrap().assertions_evaluated, 200);
    assert_eq!(report.status.code(), Some(0));
}

#[tokio::test]
async fn plugin_results_and_refusals_come_through() {
    let home = filled_home();
    let client = start(&home.path().join(".attest/bin/attest-engine"), home.path()).await;
    let assertions = json!([{"assertion_id": "p", "type": "plugin", "spec": {"plugin_id": "x"}}]);
    client.evaluate_batch(&trace(), &assertions).await.unwrap();
    let result = json!({"status": "pass", "score": 1.0, "explanation": "fine"});
    assert!(client.submit_plugin_result("t", "x", "p", &result).await.unwrap());
    assert!(!client.submit_plugin_result("t", "x", "p", &result).await.unwrap());
    let refused = client.evaluate_batch(&json!({"trace_id": ""}), &json!([])).await.unwrap_err();
    assert!(refused.to_string().contains("1001"), "{refused}");
    client.shutdown().await.unwrap();
}

#[test]
fn the_marker_says_the_version_and_a_file_in_the_way_stays() {
    let home = filled_home();
    let folder = home.path().join(".attest/bin");
    assert_eq!(std::fs::read_to_string(folder.join(".engine-version")).unwrap(), "0.9.0");
    std::fs::remove_file(folder.join("attest-engine")).unwrap();
    std::fs::write(folder.join("attest-engine"), "mine").unwrap();
    let again = Command::new(env!("CARGO_BIN_EXE_proctor"))
        .args(["names", "--attest=0.5.0"])
        .env("HOME", home.path())
        .current_dir(home.path())
        .output()
        .unwrap();
    assert_eq!(again.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&again.stderr).contains("is in the way"));
    assert_eq!(std::fs::read_to_string(folder.join("attest-engine")).unwrap(), "mine");
}
