//! Results of a suite run: verdicts, counts, and their JSON form.

use std::time::Duration;

use proctor_core::json::Json;

use crate::isolation::Isolation;
use crate::run::RunResult;
use crate::scoring::{Ending, Verdict};
use crate::statistics::Summary;
use crate::suite::TestCase;

/// Result of a suite against one agent.
#[derive(Debug, Clone)]
pub struct SuiteResult {
    /// Name of the suite.
    pub suite: String,
    /// Name of the agent.
    pub agent: String,
    /// Results of the tests, in the order of the suite.
    pub tests: Vec<TestResult>,
    /// Whether the user interrupted.
    pub is_interrupted: bool,
    /// Time of the whole run.
    pub took: Duration,
    /// Report on what isolated the agent.
    pub isolation: Isolation,
}

/// Result of a test.
#[derive(Debug, Clone)]
pub struct TestResult {
    /// Id.
    pub id: String,
    /// Name.
    pub name: String,
    /// Tags.
    pub tags: Vec<String>,
    /// The verdict; none if the test was not run.
    pub verdict: Option<Verdict>,
    /// The reason why the test was not run.
    pub not_run: Option<String>,
    /// Its runs.
    pub runs: Vec<RunResult>,
    /// Time of all its runs.
    pub took: Duration,
}

/// Numbers of tests by verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Tests that passed.
    pub passed: usize,
    /// Tests that failed.
    pub failed: usize,
    /// Tests that could not be evaluated.
    pub errors: usize,
    /// Tests that were not run.
    pub not_run: usize,
}

impl SuiteResult {
    /// Numbers of tests by verdict.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for test in &self.tests {
            match test.verdict {
                Some(Verdict::Passed) => counts.passed += 1,
                Some(Verdict::Failed) => counts.failed += 1,
                Some(Verdict::Error) => counts.errors += 1,
                None => counts.not_run += 1,
            }
        }
        counts
    }

    /// The result as JSON.
    pub fn to_json(&self) -> Json {
        let counts = self.counts();
        let summary = Json::object()
            .with("total", self.tests.len())
            .with("passed", counts.passed)
            .with("failed", counts.failed)
            .with("errors", counts.errors)
            .with("not_run", counts.not_run);
        Json::object()
            .with("suite", self.suite.as_str())
            .with("agent", self.agent.as_str())
            .with("summary", summary)
            .with("interrupted", self.is_interrupted)
            .with("duration_seconds", seconds(self.took))
            .with("isolation", self.isolation.to_json())
            .with("tests", self.tests.iter().map(TestResult::to_json).collect::<Vec<_>>())
    }
}

impl TestResult {
    pub(crate) fn new(test: &TestCase) -> TestResult {
        TestResult {
            id: test.id.clone(),
            name: test.name.clone(),
            tags: test.tags.clone(),
            verdict: None,
            not_run: None,
            runs: Vec::new(),
            took: Duration::ZERO,
        }
    }

    /// Scores of the runs that have one.
    pub fn points(&self) -> Vec<f64> {
        self.runs.iter().filter_map(|run| Some(run.score.as_ref()?.points)).collect()
    }

    /// Whether some runs passed and others did not.
    pub fn is_flaky(&self) -> bool {
        let passed = self.runs.iter().filter(|run| run.verdict == Verdict::Passed).count();
        passed > 0 && passed < self.runs.len()
    }

    fn to_json(&self) -> Json {
        let mut json = Json::object()
            .with("id", self.id.as_str())
            .with("name", self.name.as_str())
            .with("tags", self.tags.iter().map(|tag| Json::from(tag.as_str())).collect::<Vec<_>>())
            .with("verdict", self.verdict.map_or("not_run", word));
        if let Some(reason) = &self.not_run {
            json.push("reason", reason.as_str());
        }
        let points = self.points();
        if let Some(summary) = Summary::of(&points).filter(|_| !points.is_empty()) {
            let mut score = Json::object().with("mean", number(summary.mean));
            if let Some(deviation) = summary.deviation {
                score.push("deviation", number(deviation));
            }
            json.push("score", score);
        }
        json.push("flaky", self.is_flaky());
        json.push("duration_seconds", seconds(self.took));
        json.push("runs", self.runs.iter().map(run_json).collect::<Vec<_>>());
        json
    }
}

/// The word for a verdict in reports.
pub fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Passed => "passed",
        Verdict::Failed => "failed",
        Verdict::Error => "error",
    }
}

/// The word for an ending in reports.
pub fn ending_word(ending: Ending) -> &'static str {
    match ending {
        Ending::Completed => "completed",
        Ending::Partial => "partial",
        Ending::Failed => "failed",
        Ending::Timeout => "timeout",
        Ending::Cancelled => "cancelled",
        Ending::Stopped => "stopped",
        Ending::Error => "error",
    }
}

fn run_json(run: &RunResult) -> Json {
    let assertions = run.assertions.iter().map(|result| {
        let checks = result.checks.iter().map(|check| {
            let mut json = Json::object()
                .with("name", check.name.as_str())
                .with("passed", check.passed)
                .with("score", number(check.score))
                .with("message", check.message.as_str());
            if !check.details.is_null() {
                json.push("details", check.details.clone());
            }
            json
        });
        Json::object()
            .with("name", result.name.as_str())
            .with("status", result.status.word())
            .with("critical", result.critical)
            .with("checks", checks.collect::<Vec<_>>())
    });
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
    if let Some(trace) = run.response.get("trace_id").and_then(Json::as_str) {
        json.push("trace_id", trace);
    }
    json.push("duration_seconds", seconds(run.took));
    json.push("events", run.events);
    if run.flawed_events > 0 {
        json.push("flawed_events", run.flawed_events);
    }
    json.push("assertions", assertions.collect::<Vec<_>>());
    let texts = |texts: &[String]| texts.iter().map(|text| Json::from(text.as_str())).collect::<Vec<_>>();
    if !run.last_lines.is_empty() && run.verdict != Verdict::Passed {
        json.push("last_lines", texts(&run.last_lines));
    }
    if !run.warnings.is_empty() {
        json.push("warnings", texts(&run.warnings));
    }
    json
}

fn seconds(time: Duration) -> Json {
    number((time.as_secs_f64() * 1000.0).round() / 1000.0)
}

fn number(value: f64) -> Json {
    if value.is_finite() { Json::Number(value.to_string().into()) } else { Json::Null }
}
