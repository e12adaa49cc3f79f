//! Loading, evaluation and scoring together, through the public interface.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test panics when it fails, and prints its seed"
)]

mod statistics;

use proctor_core::json::Json;
use proctor_runner::checks::{AssertionResult, EventView, Evidence, NoFiles, evaluate};
use proctor_runner::scoring::{Ending, Limits, Measures, Score, Verdict, run_verdict, score, test_verdict};
use proctor_runner::suite::{LoadOptions, TestCase, load};

const SUITE: &str = include_str!("worked-example.yaml");

const RESPONSE: &str = r#"{
    "version": "1.0", "task_id": "t", "status": "completed",
    "artifacts": [{"type": "file", "path": "total.json", "content": "{\"total\": 7}"}],
    "metrics": {"total_steps": 3, "total_tokens": 1000}
}"#;

fn worked_example() -> TestCase {
    let loaded = load(SUITE.as_bytes(), &LoadOptions::new(&|_| None, &|_| None)).unwrap();
    loaded.suite.tests.into_iter().next().unwrap()
}

fn scored(test: &TestCase, response: &str, tool: &str) -> (Vec<AssertionResult>, Score) {
    let response = Json::parse(response.as_bytes()).unwrap();
    let payload = Json::object().with("tool", tool).with("status", "success");
    let events =
        [EventView { sequence: Some(0), event_type: "tool_call", payload: &payload, is_doubtful: false }];
    let evidence = Evidence { response: &response, events: &events, files: &NoFiles, has_tools: false };
    let results: Vec<AssertionResult> =
        test.assertions.iter().map(|assertion| evaluate(assertion, &evidence, &[])).collect();
    let metric = |name: &str| response["metrics"][name].as_u64();
    let measures = Measures { steps: metric("total_steps"), tokens: metric("total_tokens"), cost_usd: None };
    let limits = Limits {
        max_steps: test.settings.constraints.max_steps,
        max_tokens: test.settings.constraints.max_tokens,
        budget_usd: test.settings.constraints.budget_usd,
    };
    let score = score(&results, &test.settings.weights, &measures, &limits);
    (results, score)
}

#[test]
fn the_worked_example_scores_93_92() {
    let test = worked_example();
    let (results, score) = scored(&test, RESPONSE, "calc");
    assert_eq!(results.iter().map(|result| result.checks.len()).sum::<usize>(), 5);
    assert_eq!(score.points.to_string(), "93.92");
    assert_eq!(run_verdict(Ending::Completed, test.settings.allow_partial, Some(&score)), Verdict::Passed);
    let partial = run_verdict(Ending::Partial, test.settings.allow_partial, Some(&score));
    assert_eq!(test_verdict(&[Verdict::Passed, partial], test.settings.pass_rate), Verdict::Failed);
}

#[test]
fn a_failed_critical_assertion_scores_0() {
    let test = worked_example();
    let (_, score) = scored(&test, &RESPONSE.replace("total.json", "sum.json"), "calc");
    assert_eq!((score.points.to_string().as_str(), score.critical.len()), ("0", 1));
    assert_eq!(run_verdict(Ending::Completed, false, Some(&score)), Verdict::Failed);
}

#[test]
fn a_forbidden_tool_fails_the_run() {
    let (results, score) = scored(&worked_example(), RESPONSE, "shell");
    let failed: Vec<&str> = results
        .iter()
        .flat_map(|result| &result.checks)
        .filter(|check| !check.passed)
        .map(|check| check.name.as_str())
        .collect();
    assert_eq!(failed, ["must_use_tools", "forbidden_tools"]);
    assert_eq!(run_verdict(Ending::Completed, false, Some(&score)), Verdict::Failed);
}
