//! Results of a suite run: verdicts, counts, statistics, and the JSON document that keeps them.
//!
//! [`SuiteResult::to_json`] writes the document, [`SuiteResult::read`] reads it back. Writing what was read gives the same document.
//!
//! ```
//! use proctor_runner::results::SuiteResult;
//!
//! let text = br#"{"format": "proctor test", "version": "1.0", "suite": "demo", "agent": "nop", "tests": []}"#;
//! let result = SuiteResult::read(text).unwrap();
//! assert_eq!(result.suite, "demo");
//! let mistake = SuiteResult::read(br#"{"format": "proctor test", "version": "2.0"}"#).unwrap_err();
//! assert!(mistake.to_string().starts_with("version `2.0` of the format is not known"));
//! ```

mod document;
mod isolation;
mod read;
mod statistics;
mod write;

use std::sync::Arc;
use std::time::Duration;

use proctor_core::time::Timestamp;
use proctor_yaml::Position;

use crate::checks::Status;
use crate::run::RunResult;
use crate::scoring::{Ending, Verdict};
use crate::suite::TestCase;

pub use document::Document;
pub use isolation::{Isolation, ProtectionState, State};
pub use read::{MAX_RESULT_BYTES, ReadError};
pub use statistics::{PassRate, StabilityCounts, SuiteStatistics, TestStatistics};

/// Result of a suite against one agent.
#[derive(Debug, Clone)]
pub struct SuiteResult {
    /// Name of the suite.
    pub suite: String,
    /// Path of the suite as given; empty if it is not known.
    pub file: String,
    /// Name of the agent.
    pub agent: String,
    /// Results of the tests, in the order of the suite.
    pub tests: Vec<TestResult>,
    /// Whether the user interrupted.
    pub is_interrupted: bool,
    /// Time of the whole run.
    pub took: Duration,
    /// End of the run, if it is known.
    pub ended: Option<Timestamp>,
    /// Protections of the runs, and what held them.
    pub isolation: Isolation,
}

/// Result of a test.
#[derive(Debug, Clone)]
pub struct TestResult {
    /// Id.
    pub id: String,
    /// Name.
    pub name: String,
    /// Tags, shared with the test.
    pub tags: Arc<[String]>,
    /// Position of the test in the suite's file.
    pub at: Position,
    /// Whether the agent was allowed to use the network.
    pub network: bool,
    /// The verdict; none if the test was not run.
    pub verdict: Option<Verdict>,
    /// The reason why the test was not run.
    pub not_run: Option<String>,
    /// Number of runs that must pass; 0 if it is not known.
    pub required: usize,
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
}

impl Counts {
    /// Sentence part like `3 passed, 1 failed`; errors and tests that were not run only if there are some.
    pub fn sentence(&self) -> String {
        let mut parts = vec![format!("{} passed", self.passed), format!("{} failed", self.failed)];
        if self.errors > 0 {
            parts.push(format!("{} could not be evaluated", self.errors));
        }
        if self.not_run > 0 {
            parts.push(format!("{} not run", self.not_run));
        }
        parts.join(", ")
    }
}

impl TestResult {
    pub(crate) fn new(test: &TestCase) -> TestResult {
        TestResult {
            id: test.id.clone(),
            name: test.name.clone(),
            tags: Arc::clone(&test.tags),
            at: test.at,
            network: test.settings.network,
            verdict: None,
            not_run: None,
            required: 0,
            runs: Vec::new(),
            took: Duration::ZERO,
        }
    }

    /// Word for the verdict in reports.
    pub fn word(&self) -> &'static str {
        self.verdict.map_or("not_run", word)
    }

    /// Scores of the runs that could be evaluated.
    pub fn points(&self) -> Vec<f64> {
        self.runs.iter().filter_map(points).collect()
    }

    /// Mean score of the runs that could be evaluated.
    pub fn mean(&self) -> Option<f64> {
        let points = self.points();
        (!points.is_empty()).then(|| points.iter().sum::<f64>() / points.len() as f64)
    }

    /// Number of passed runs for people, like `3 of 5 runs, needs 4`.
    pub fn runs_sentence(&self) -> String {
        let needs = match self.required {
            0 => String::new(),
            required if required == self.runs.len() => String::new(),
            required => format!(", needs {required}"),
        };
        let flaky = if self.is_flaky() { ", flaky" } else { "" };
        format!("{} of {} runs{needs}{flaky}", self.passes(), self.runs.len())
    }

    /// Mean score for people: in parentheses if a run did not pass for a reason that the score does not know, as a crossed limit.
    pub fn shown_mean(&self) -> Option<String> {
        let mean = self.mean()?;
        Some(if self.runs.iter().any(has_void_score) { format!("({mean:.2})") } else { format!("{mean:.2}") })
    }

    /// Whether the test has runs, but nothing that they were evaluated by.
    pub fn has_no_assertions(&self) -> bool {
        self.runs.iter().any(|run| run.score.is_some())
            && self.runs.iter().all(|run| run.assertions.is_empty())
    }

    /// Number of runs that passed.
    pub fn passes(&self) -> usize {
        self.runs.iter().filter(|run| run.verdict == Verdict::Passed).count()
    }

    /// Whether some runs passed and others did not.
    pub fn is_flaky(&self) -> bool {
        (1..self.runs.len()).contains(&self.passes())
    }
}

/// Points of a run; none if it could not be evaluated. A run that failed before there was anything to score has 0 points: leaving it out
/// would make an agent better by the runs that it breaks off.
pub fn points(run: &RunResult) -> Option<f64> {
    match (run.verdict, &run.score) {
        (Verdict::Error, _) | (Verdict::Passed, None) => None,
        (_, Some(score)) => Some(score.points),
        (Verdict::Failed, None) => Some(0.0),
    }
}

/// Whether a run did not pass although its score says nothing about why: the score counts assertions, steps and cost only.
pub fn has_void_score(run: &RunResult) -> bool {
    run.verdict != Verdict::Passed && run.error.is_some() && points(run).is_some_and(|points| points > 0.0)
}

/// Score of a run for people: in parentheses if it is void; see [`has_void_score`].
pub fn shown_points(run: &RunResult) -> Option<String> {
    let points = run.score.as_ref()?.points;
    Some(if has_void_score(run) { format!("({points:.2})") } else { format!("{points:.2}") })
}

/// Duration of a run in seconds, to the microsecond that documents keep: a result has the same statistics after it was read back.
pub fn run_seconds(run: &RunResult) -> f64 {
    seconds(run.took)
}

fn seconds(time: Duration) -> f64 {
    time.as_micros() as f64 / 1e6
}

/// Reasons why a run did not pass: the error, then each check that does not hold. Empty if it passed.
pub fn reasons(run: &RunResult) -> Vec<String> {
    let mut reasons = Vec::new();
    if run.verdict == Verdict::Passed {
        return reasons;
    }
    if let Some(error) = &run.error {
        // An agent that says `completed` is not the reason.
        let word = if run.ending == Ending::Completed { word(run.verdict) } else { ending_word(run.ending) };
        reasons.push(format!("{word}: {error}"));
    }
    for assertion in run.assertions.iter().filter(|assertion| assertion.status != Status::Passed) {
        for check in assertion.checks.iter().filter(|check| !check.passed) {
            let kind = if assertion.status == Status::Error { "could not be evaluated: " } else { "" };
            let critical = if assertion.critical { " (critical)" } else { "" };
            reasons.push(format!("{}{critical}: {kind}{}", assertion.name, check.message));
        }
    }
    if reasons.is_empty() {
        let advice =
            if run.ending == Ending::Partial { ", which passes only with `allow_partial: true`" } else { "" };
        reasons.push(format!("the agent ended as `{}`{advice}", ending_word(run.ending)));
    }
    reasons
}

/// Sentences that help with a run that did not pass: a closed network that it seems to have needed, and the command that shows all of it.
pub fn hints(test: &TestResult, run: &RunResult) -> Vec<String> {
    let mut hints = Vec::new();
    if run.verdict == Verdict::Passed {
        return hints;
    }
    if !test.network && misses_network(run) {
        hints.push("the network is closed for this test; `network: true` opens it".to_owned());
    }
    if !run.task_id.is_empty() {
        hints.push(format!("`proctor session show {}` shows what it did", run.task_id));
    }
    hints
}

/// Whether a program says that it could not reach a host. A server that Proctor could not reach itself is another matter.
fn misses_network(run: &RunResult) -> bool {
    /// Words of resolvers, kernels and HTTP libraries, in lower case.
    const SIGNS: [&str; 14] = [
        "network is unreachable",
        "no route to host",
        "connection refused",
        "connection error",
        "connecterror",
        "connectionerror",
        "temporary failure in name resolution",
        "name or service not known",
        "could not resolve host",
        "failed to lookup address",
        "getaddrinfo",
        "econnrefused",
        "enetunreach",
        "fetch failed",
    ];
    let said = |text: &str| {
        let text = text.to_lowercase();
        SIGNS.iter().any(|sign| text.contains(sign))
    };
    let error = run.error.as_deref().unwrap_or_default();
    !error.contains("cannot be connected to")
        && (said(error)
            || run.last_lines.iter().any(|line| said(line))
            || run
                .assertions
                .iter()
                .flat_map(|assertion| &assertion.checks)
                .any(|check| said(&check.message)))
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

#[cfg(test)]
mod tests;
