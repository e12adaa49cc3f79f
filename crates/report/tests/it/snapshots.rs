//! Snapshots of the report files, of assertions with every outcome.

use std::time::Duration;

use proctor_core::json::Json;
use proctor_core::time::Timestamp;
use proctor_report::{Ending, Entry, Findings};

/// An entry of a content assertion that passed.
fn passed(id: &str) -> Entry {
    Entry {
        id: id.to_owned(),
        request_id: String::new(),
        kind: "content".to_owned(),
        layer: Some(4),
        ending: Ending::Pass,
        score: Some(1.0),
        explanation: "`output.message` contains `refund`".to_owned(),
        path: String::new(),
        expected: String::new(),
        actual: String::new(),
        suggestion: String::new(),
        threshold_source: None,
        cost_usd: 0.0,
        took: Duration::from_millis(2),
        judge: None,
    }
}

/// An entry of a constraint that did not hold.
fn failed(id: &str, ending: Ending, field: &str, bound: &str, actual: &str) -> Entry {
    Entry {
        kind: "constraint".to_owned(),
        layer: Some(2),
        ending,
        score: Some(0.0),
        explanation: format!("`{field}` is {actual}, but should be at most {bound}"),
        path: field.to_owned(),
        expected: format!("at most {bound}"),
        actual: actual.to_owned(),
        ..passed(id)
    }
}

/// Results with every outcome.
fn findings() -> Findings {
    let error = Entry {
        kind: "embedding".to_owned(),
        layer: Some(5),
        ending: Ending::Error,
        score: Some(0.0),
        explanation: "no embedding provider is configured".to_owned(),
        suggestion: "set ATTEST_EMBEDDING_MODEL_DIR or ATTEST_EMBEDDING_BASE_URL".to_owned(),
        ..passed("near")
    };
    let not_run = Entry {
        kind: "llm_judge".to_owned(),
        layer: Some(6),
        ending: Ending::NotRun,
        score: None,
        explanation: "not run: `cheap` (constraint) failed hard".to_owned(),
        took: Duration::ZERO,
        ..passed("kind")
    };
    Findings {
        trace_id: "refund-1".to_owned(),
        source: "trace.json".to_owned(),
        made: Timestamp::from_micros(1_763_239_507_123_456),
        simulated: false,
        gate: false,
        soft_failures_count: None,
        entries: vec![
            passed("says-refund"),
            failed("brief", Ending::SoftFail, "metadata.total_tokens", "10", "400"),
            failed("cheap", Ending::HardFail, "metadata.cost_usd", "0.01", "0.02"),
            error,
            not_run,
        ],
    }
}

/// The text of a report file of this kind.
fn written(findings: &Findings, kind: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("report");
    let destinations = proctor_report::destinations(&[format!("{kind}={}", path.display())]).unwrap();
    let failures = proctor_report::write(findings, &destinations);
    assert!(failures.is_empty(), "{failures:?}");
    let text = std::fs::read_to_string(path).unwrap();
    text.replace(env!("CARGO_PKG_VERSION"), "[version]")
}

/// Compares a text with the snapshot of this name in `snapshots/`.
pub(crate) fn compare(name: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}

/// JSON with a line for each member and element, so that a difference is one line.
fn indented(value: &Json, depth: usize) -> String {
    let listed = |open: char, items: Vec<String>, close: char| {
        let indent = "  ".repeat(depth + 1);
        let items: Vec<String> = items.into_iter().map(|item| format!("\n{indent}{item}")).collect();
        format!("{open}{}\n{}{close}", items.join(","), "  ".repeat(depth))
    };
    match value {
        Json::Object(members) if !members.is_empty() => {
            let member = |(name, value): &(String, Json)| {
                format!("{}: {}", Json::from(name.as_str()), indented(value, depth + 1))
            };
            listed('{', members.iter().map(member).collect(), '}')
        }
        Json::Array(items) if !items.is_empty() => {
            listed('[', items.iter().map(|item| indented(item, depth + 1)).collect(), ']')
        }
        other => other.to_string(),
    }
}

pub(crate) fn indented_text(text: &str) -> String {
    indented(&Json::parse(text.as_bytes()).unwrap(), 0)
}

#[test]
fn junit() {
    compare("junit", &written(&findings(), "junit"));
}

#[test]
fn sarif() {
    compare("sarif", &indented_text(&written(&findings(), "sarif")));
}

#[test]
fn json() {
    compare("json", &indented_text(&written(&findings(), "json")));
}

/// The page with a line for each element, and without the style sheet, which is a file of its own.
pub(crate) fn broken_into_lines(page: &str) -> String {
    let (before, rest) = page.split_once("<style>").unwrap();
    let (_, after) = rest.split_once("</style>").unwrap();
    format!("{before}<style>[style]</style>{after}").replace("><", ">\n<")
}

#[test]
fn html() {
    compare("html", &broken_into_lines(&written(&findings(), "html")));
}

#[test]
fn reports_of_a_strict_run() {
    let strict = Findings { soft_failures_count: Some("--strict"), ..findings() };
    let strict = Findings { entries: strict.entries[..2].to_vec(), ..strict };
    compare("junit_strict", &written(&strict, "junit"));
    compare("html_strict", &broken_into_lines(&written(&strict, "html")));
}

#[test]
fn reports_of_a_simulated_run() {
    let simulated = Findings { simulated: true, gate: true, ..findings() };
    compare("junit_simulated", &written(&simulated, "junit"));
    compare("html_simulated", &broken_into_lines(&written(&simulated, "html")));
}
