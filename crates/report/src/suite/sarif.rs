//! SARIF 2.1.0 report of a suite: results are placed at the tests in the suite's file.

use proctor_core::json::Json;
use proctor_runner::results::TestResult;
use proctor_runner::scoring::Verdict;
use proctor_runner::statistics::Verdict as Change;

use super::explain::{NAME, REASON, is_retried, line, text, why};
use super::{SuiteConclusion, SuiteReport};

const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// Rules with their descriptions and default levels.
const RULES: [(&str, &str, &str); 5] = [
    ("test-failed", "The agent did not pass a test.", "error"),
    ("test-error", "A test could not be evaluated.", "error"),
    ("flaky-test", "A test passed in some runs and not in others.", "warning"),
    ("regression", "The agent is worse in a test than the baseline.", "error"),
    ("retried-test", "A test passed after an attempt that ended in an error.", "note"),
];

/// Characters of a result's message: code hosts cut longer ones.
const MESSAGE: usize = 4000;

pub(super) fn to_json(report: &SuiteReport<'_>) -> Json {
    let result = report.result;
    let rules = RULES.map(|(id, says, level)| {
        Json::object()
            .with("id", id)
            .with("shortDescription", message(says))
            .with("defaultConfiguration", Json::object().with("level", level))
    });
    let mut results = Vec::new();
    for test in &result.tests {
        let rule = match test.verdict {
            Some(Verdict::Failed) => 0,
            Some(Verdict::Error) => 1,
            Some(Verdict::Passed) if test.is_flaky() => 2,
            Some(Verdict::Passed) if is_retried(test) => 4,
            _ => continue,
        };
        let text = format!("{}: {}\n{}", line(&test.name, NAME), why(test), text(test));
        results.push(finding(report, test, rule, &text));
    }
    if let Some(comparison) = report.comparison {
        let worse: std::collections::BTreeSet<&str> = comparison.tests(Change::Worse).collect();
        for test in result.tests.iter().filter(|test| worse.contains(test.id.as_str())) {
            let text = format!(
                "{}: worse than the baseline {}",
                line(&test.name, NAME),
                line(&comparison.source, NAME)
            );
            results.push(finding(report, test, 3, &text));
        }
    }
    let mut notifications: Vec<Json> = result
        .tests
        .iter()
        .filter_map(|test| {
            let reason = test.not_run.as_ref()?;
            let text = format!("`{}` was not run: {}", line(&test.id, NAME), line(reason, REASON));
            Some(Json::object().with("level", "warning").with("message", message(&text)))
        })
        .collect();
    if let Some(comparison) = report.comparison {
        let text = line(&comparison.sentences().join("; "), MESSAGE);
        notifications.push(Json::object().with("level", "note").with("message", message(&text)));
    }
    let driver = Json::object()
        .with("name", "proctor")
        .with("version", env!("CARGO_PKG_VERSION"))
        .with("rules", rules.to_vec());
    let is_complete = report.conclusion() != SuiteConclusion::Interrupted && result.counts().errors == 0;
    let mut invocation = Json::object().with("executionSuccessful", is_complete);
    if let Some(ended) = result.ended {
        invocation.push("endTimeUtc", ended.to_string());
    }
    invocation.push("toolExecutionNotifications", notifications);
    let properties = Json::object()
        .with("suite", result.suite.as_str())
        .with("agent", result.agent.as_str())
        .with("conclusion", report.conclusion().word());
    let run = Json::object()
        .with("tool", Json::object().with("driver", driver))
        .with("columnKind", "unicodeCodePoints")
        .with("invocations", vec![invocation])
        .with("results", results)
        .with("properties", properties);
    Json::object().with("$schema", SCHEMA).with("version", "2.1.0").with("runs", vec![run])
}

fn finding(report: &SuiteReport<'_>, test: &TestResult, rule: usize, text: &str) -> Json {
    let (id, _, level) = RULES.get(rule).copied().unwrap_or_default();
    // A result that was stored without positions still needs a line: code hosts drop results without one.
    let region =
        Json::object().with("startLine", test.at.line.max(1)).with("startColumn", test.at.column.max(1));
    let place = Json::object()
        .with("artifactLocation", Json::object().with("uri", uri(&report.result.file)))
        .with("region", region);
    let logical = Json::object().with("fullyQualifiedName", test.id.as_str()).with("kind", "member");
    let location = Json::object().with("physicalLocation", place).with("logicalLocations", vec![logical]);
    let mut properties = Json::object().with("test_id", test.id.as_str()).with("verdict", test.word());
    if let Some(mean) = test.mean() {
        properties.push("score", crate::json::number(mean));
    }
    let shortened: String = text.trim_end().chars().take(MESSAGE).collect();
    Json::object()
        .with("ruleId", id)
        .with("ruleIndex", rule)
        .with("level", level)
        .with("message", message(&shortened))
        .with("locations", vec![location])
        // The same test under the same rule is the same finding in the next run.
        .with("partialFingerprints", Json::object().with("test/v1", format!("{id}/{}", test.id)))
        .with("properties", properties)
}

fn message(text: &str) -> Json {
    Json::object().with("text", text)
}

/// A path as a URI: relative as it is, absolute with its scheme, other characters percent-encoded.
fn uri(path: &str) -> String {
    let mut uri = if path.starts_with('/') { "file://".to_owned() } else { String::new() };
    for byte in path.strip_prefix("./").unwrap_or(path).bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            uri.push_str(&format!("%{byte:02X}"));
        }
    }
    uri
}
