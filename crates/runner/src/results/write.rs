//! The JSON document of a result.

use proctor_core::json::Json;

use super::{SuiteResult, TestResult, ending_word, run_seconds, seconds, word};
use crate::checks::AssertionResult;
use crate::run::RunResult;
use crate::scoring::Verdict;

/// Format of the document.
pub(super) const FORMAT: &str = "proctor test";

/// Version of the format. Readers accept a higher minor version and ignore members that they do not know.
pub(super) const VERSION: &str = "1.0";

/// Bytes of one event or of one check's details in the document: what people read of an event fits, an inline file does not.
const MAX_VALUE_BYTES: usize = 4096;

/// Nesting of such a value. It stands a few levels deep in the document, and JSON is read down to 128 levels.
const MAX_VALUE_DEPTH: usize = 64;

/// Bytes of the events of all runs together: a suite whose every run failed must stay readable as a baseline.
pub(super) const MAX_EVENT_BYTES: usize = 32 << 20;

impl SuiteResult {
    /// The result as JSON: the document that `--report json=FILE` writes and `--baseline FILE` reads. [`SuiteResult::document`] is its text, which
    /// needs far less memory.
    pub fn to_json(&self) -> Json {
        let mut left = MAX_EVENT_BYTES;
        self.header_json()
            .with("tests", self.tests.iter().map(|test| test_json(test, &mut left)).collect::<Vec<_>>())
    }

    /// The members of the document before its tests.
    pub fn header_json(&self) -> Json {
        let counts = self.counts();
        let summary = Json::object()
            .with("total", self.tests.len())
            .with("passed", counts.passed)
            .with("failed", counts.failed)
            .with("errors", counts.errors)
            .with("not_run", counts.not_run);
        let mut json = Json::object()
            .with("format", FORMAT)
            .with("version", VERSION)
            .with("suite", self.suite.as_str())
            .with("file", self.file.as_str())
            .with("agent", self.agent.as_str());
        if let Some(ended) = self.ended {
            json.push("ended", ended.to_string());
        }
        json.with("summary", summary)
            .with("statistics", Json::from_type(&self.statistics()).unwrap_or(Json::Null))
            .with("interrupted", self.is_interrupted)
            .with("duration_seconds", number(seconds(self.took)))
            .with("isolation", self.isolation.to_json())
    }
}

impl TestResult {
    /// The result as JSON, as it stands in the document of its suite.
    pub fn to_json(&self) -> Json {
        let mut left = MAX_EVENT_BYTES;
        test_json(self, &mut left)
    }
}

/// A test; `left` is the number of bytes that its events may still take.
pub(super) fn test_json(test: &TestResult, left: &mut usize) -> Json {
    let at = Json::object().with("line", test.at.line).with("column", test.at.column);
    let mut json = Json::object()
        .with("id", test.id.as_str())
        .with("name", test.name.as_str())
        .with("tags", texts(&test.tags))
        .with("at", at)
        .with("network", test.network)
        .with("verdict", test.word());
    if let Some(reason) = &test.not_run {
        json.push("reason", reason.as_str());
    }
    if test.required > 0 {
        json.push("required_passes", test.required);
    }
    json.push("flaky", test.is_flaky());
    if !test.runs.is_empty() {
        json.push("statistics", Json::from_type(&test.statistics()).unwrap_or(Json::Null));
    }
    json.push("duration_seconds", number(seconds(test.took)));
    json.push("runs", test.runs.iter().map(|run| run_json(run, left)).collect::<Vec<_>>());
    json
}

fn run_json(run: &RunResult, left: &mut usize) -> Json {
    let mut json = Json::object()
        .with("run", run.number)
        .with("task_id", run.task_id.as_str())
        .with("verdict", word(run.verdict))
        .with("ending", ending_word(run.ending));
    if let Some(error) = &run.error {
        json.push("error", error.as_str());
    }
    if let Some(score) = &run.score {
        json.push("score", score.to_json());
    }
    if let Some(trace) = &run.trace_id {
        json.push("trace_id", trace.as_str());
    }
    let mut measures = Json::object();
    let amounts =
        [("steps", run.measures.steps.map(Json::from)), ("tokens", run.measures.tokens.map(Json::from))];
    for (name, amount) in amounts {
        if let Some(amount) = amount {
            measures.push(name, amount);
        }
    }
    if let Some(cost) = run.measures.cost_usd.filter(|cost| cost.is_finite()) {
        measures.push("cost_usd", number(cost));
    }
    json.push("measures", measures);
    json.push("duration_seconds", number(run_seconds(run)));
    if !run.earlier_attempts.is_empty() {
        let attempts = run.earlier_attempts.iter().map(|attempt| {
            Json::object()
                .with("task_id", attempt.task_id.as_str())
                .with("error", attempt.error.as_str())
                .with("duration_seconds", number(seconds(attempt.took)))
        });
        json.push("earlier_attempts", attempts.collect::<Vec<_>>());
    }
    json.push("events", run.events);
    if run.flawed_events > 0 {
        json.push("flawed_events", run.flawed_events);
    }
    json.push("assertions", run.assertions.iter().map(assertion_json).collect::<Vec<_>>());
    if !run.last_lines.is_empty() && run.verdict != Verdict::Passed {
        json.push("last_lines", texts(&run.last_lines));
    }
    if !run.warnings.is_empty() {
        json.push("warnings", texts(&run.warnings));
    }
    if !run.shown_events.is_empty() {
        json.push("shown_events", events_json(run, left));
    }
    json
}

impl RunResult {
    /// The result as JSON, as it stands in the document of its suite.
    pub fn to_json(&self) -> Json {
        run_json(self, &mut MAX_EVENT_BYTES.clone())
    }
}

fn assertion_json(result: &AssertionResult) -> Json {
    let checks = result.checks.iter().map(|check| {
        let mut json = Json::object()
            .with("name", check.name.as_str())
            .with("passed", check.passed)
            .with("score", number(check.score))
            .with("message", check.message.as_str());
        if !check.details.is_null() {
            let details = bounded(&check.details).map_or_else(cut, |(details, _)| details);
            json.push("details", details);
        }
        json
    });
    Json::object()
        .with("name", result.name.as_str())
        .with("status", result.status.word())
        .with("score", number(result.score))
        .with("critical", result.critical)
        .with("optional", result.optional)
        .with("checks", checks.collect::<Vec<_>>())
}

/// The events of a run until the bytes are used up. Of an event that is too large only the members that say what it was are kept.
fn events_json(run: &RunResult, left: &mut usize) -> Vec<Json> {
    let mut events = Vec::new();
    for received in &run.shown_events {
        let (event, bytes) = bounded(&received.json).unwrap_or_else(|| {
            let mut small = Json::object();
            for name in ["event_type", "sequence", "timestamp"] {
                if let Some(value) = received.json.get(name).filter(|value| bounded(value).is_some()) {
                    small.push(name, value.clone());
                }
            }
            (small.with("payload", cut()), MAX_VALUE_BYTES)
        });
        let Some(rest) = left.checked_sub(bytes) else { break };
        *left = rest;
        events.push(Json::object().with("flawed", received.is_flawed).with("event", event));
    }
    events
}

/// A value and its bytes, if it is small enough to be kept as it is.
fn bounded(value: &Json) -> Option<(Json, usize)> {
    let bytes = value.to_string().len();
    (bytes <= MAX_VALUE_BYTES && depth(value) <= MAX_VALUE_DEPTH).then(|| (value.clone(), bytes))
}

/// Placeholder for a value that is too large.
fn cut() -> Json {
    Json::object().with("cut", true)
}

/// Nesting of a value. Values are read with a limit on their depth, which also bounds this recursion.
fn depth(value: &Json) -> usize {
    match value {
        Json::Array(items) => 1 + items.iter().map(depth).max().unwrap_or_default(),
        Json::Object(members) => 1 + members.iter().map(|(_, value)| depth(value)).max().unwrap_or_default(),
        _ => 0,
    }
}

fn texts(texts: &[String]) -> Vec<Json> {
    texts.iter().map(|text| Json::from(text.as_str())).collect()
}

fn number(value: f64) -> Json {
    if value.is_finite() { Json::Number(value.to_string().into()) } else { Json::Null }
}
