//! Reports of assertion results (JUnit, SARIF, JSON, HTML) and of test suites (also Markdown and JSON lines).
//!
//! ```
//! use proctor_report::{SuiteReport, suite_json};
//! use proctor_runner::results::SuiteResult;
//!
//! let stored = br#"{"format": "proctor test", "version": "1.0", "suite": "demo", "agent": "nop", "tests": []}"#;
//! let result = SuiteResult::read(stored).unwrap();
//! let report = SuiteReport::new(&result);
//! assert_eq!(suite_json(&report)["conclusion"], "failed");
//! ```

mod destination;
mod html;
mod json;
mod junit;
mod sarif;
mod suite;

use std::time::Duration;

use proctor_assert::{JudgeMetadata, Status};
use proctor_core::time::Timestamp;

pub use destination::{Destination, DestinationError, ItemError, Kind, WriteError, destinations, write};
pub use json::to_json;
pub use suite::{
    LiveLine, SuiteConclusion, SuiteKind, SuiteReport, SuiteStream, suite_destinations, suite_document,
    suite_json, write_suite,
};

/// Prefix of the explanation of an assertion that was not run.
pub const NOT_RUN: &str = "not run: ";

/// Assertion results of one trace.
#[derive(Debug, Clone)]
pub struct Findings {
    /// Name of the trace.
    pub trace_id: String,
    /// Source of the trace, as a relative or opaque URI.
    pub source: String,
    /// Time of the report.
    pub made: Timestamp,
    /// Whether the results are simulated.
    pub simulated: bool,
    /// Whether the run is a gate (`--gate`): errors and assertions that were not run then make it undecided, not failed.
    pub gate: bool,
    /// Argument or variable that makes soft failures count like hard ones, if any.
    pub soft_failures_count: Option<&'static str>,
    /// Results in the order of the assertions file.
    pub entries: Vec<Entry>,
}

/// Result of one assertion.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Assertion name.
    pub id: String,
    /// Correlation id of the assertion's author, echoed in the report; may be empty.
    pub request_id: String,
    /// Assertion type.
    pub kind: String,
    /// Layer number of the type, if the type is known.
    pub layer: Option<u8>,
    /// Outcome.
    pub ending: Ending,
    /// Score from 0 to 1; none if the assertion was not run.
    pub score: Option<f64>,
    /// Reason for the outcome.
    pub explanation: String,
    /// Path in the trace; may be empty.
    pub path: String,
    /// Expected value.
    pub expected: String,
    /// Actual value.
    pub actual: String,
    /// Suggested fix.
    pub suggestion: String,
    /// Origin of the threshold, if there is one.
    pub threshold_source: Option<&'static str>,
    /// Cost of the evaluation, in dollars.
    pub cost_usd: f64,
    /// Duration of the evaluation.
    pub took: Duration,
    /// Samples and probes behind a judge's score.
    pub judge: Option<Box<JudgeMetadata>>,
}

impl Entry {
    /// Explanation without the [`NOT_RUN`] prefix, for display beside the outcome.
    pub fn why(&self) -> &str {
        self.explanation.strip_prefix(NOT_RUN).unwrap_or(&self.explanation)
    }
}

/// Verdict over all assertions, which the exit code and every report share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conclusion {
    /// All assertions hold, except for tolerated soft failures.
    Passed,
    /// An assertion failed, could not be evaluated, or was not run.
    Failed,
    /// A gate without enough results to decide.
    Undecided,
}

impl Conclusion {
    /// Name in report files.
    pub fn word(self) -> &'static str {
        match self {
            Conclusion::Passed => "passed",
            Conclusion::Failed => "failed",
            Conclusion::Undecided => "undecided",
        }
    }
}

/// Outcome of an assertion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The assertion holds.
    Pass,
    /// A soft assertion does not hold.
    SoftFail,
    /// A hard assertion does not hold.
    HardFail,
    /// The assertion could not be evaluated.
    Error,
    /// Skipped, because an earlier assertion failed hard.
    NotRun,
}

impl Ending {
    /// Name in report files.
    pub fn word(self) -> &'static str {
        match self {
            Ending::Pass => "pass",
            Ending::SoftFail => "soft_fail",
            Ending::HardFail => "hard_fail",
            Ending::Error => "error",
            Ending::NotRun => "not_run",
        }
    }

    /// Name for display.
    pub fn shown(self) -> &'static str {
        match self {
            Ending::Pass => "pass",
            Ending::SoftFail => "soft fail",
            Ending::HardFail => "hard fail",
            Ending::Error => "error",
            Ending::NotRun => "not run",
        }
    }
}

impl From<Status> for Ending {
    fn from(status: Status) -> Ending {
        match status {
            Status::Pass => Ending::Pass,
            Status::SoftFail => Ending::SoftFail,
            Status::HardFail => Ending::HardFail,
            Status::Error => Ending::Error,
        }
    }
}

/// Number of assertions by outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// All assertions.
    pub total: usize,
    /// Passed assertions.
    pub passed: usize,
    /// Soft failures.
    pub soft_fail: usize,
    /// Hard failures.
    pub hard_fail: usize,
    /// Evaluation errors.
    pub error: usize,
    /// Skipped assertions.
    pub not_run: usize,
}

impl Findings {
    /// Counts the entries by outcome.
    pub fn counts(&self) -> Counts {
        let of = |ending: Ending| self.entries.iter().filter(|entry| entry.ending == ending).count();
        Counts {
            total: self.entries.len(),
            passed: of(Ending::Pass),
            soft_fail: of(Ending::SoftFail),
            hard_fail: of(Ending::HardFail),
            error: of(Ending::Error),
            not_run: of(Ending::NotRun),
        }
    }

    /// Verdict over all entries.
    pub fn conclusion(&self) -> Conclusion {
        let counts = self.counts();
        let unknown = counts.error + counts.not_run > 0;
        let soft = self.soft_failures_count.is_some() && counts.soft_fail > 0;
        if self.gate && (self.simulated || (unknown && counts.hard_fail == 0)) {
            Conclusion::Undecided
        } else if counts.hard_fail > 0 || unknown || soft {
            Conclusion::Failed
        } else {
            Conclusion::Passed
        }
    }

    /// Failure reason if only soft failures made the run fail.
    pub fn strict_failure(&self) -> Option<String> {
        let counts = self.counts();
        let only_soft = counts.soft_fail > 0 && counts.hard_fail + counts.error + counts.not_run == 0;
        let who = self.soft_failures_count.filter(|_| only_soft)?;
        (self.conclusion() == Conclusion::Failed).then(|| format!("failed: soft failures count (`{who}`)"))
    }

    /// Total cost, in dollars.
    pub fn cost_usd(&self) -> f64 {
        self.entries.iter().map(|entry| entry.cost_usd).sum()
    }

    /// Sum of all durations.
    pub fn took(&self) -> Duration {
        self.entries.iter().map(|entry| entry.took).sum()
    }
}

impl Counts {
    /// Summary sentence of the counts that are not zero.
    pub fn sentence(&self) -> String {
        let words = [
            (self.passed, "passed"),
            (self.soft_fail, "soft fail"),
            (self.hard_fail, "hard fail"),
            (self.error, "error"),
            (self.not_run, "not run"),
        ];
        let parts: Vec<String> = words
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, word)| format!("{count} {word}"))
            .collect();
        let noun = if self.total == 1 { "assertion" } else { "assertions" };
        format!("{} {noun}: {}", self.total, parts.join(", "))
    }
}

/// Escapes control characters other than line feeds and tabs: terminals obey them, and XML forbids them.
fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        let kept = matches!(character, '\n' | '\t');
        let forbidden = character.is_control() || matches!(character, '\u{fffe}' | '\u{ffff}');
        if forbidden && !kept {
            out.extend(character.escape_default());
        } else {
            out.push(character);
        }
    }
    out
}

/// Details of a failure that are not empty, with their labels.
fn details(entry: &Entry) -> impl Iterator<Item = (&'static str, &str)> {
    let parts = [
        ("at", entry.path.as_str()),
        ("expected", &entry.expected),
        ("actual", &entry.actual),
        ("try", &entry.suggestion),
    ];
    parts.into_iter().filter(|(_, text)| !text.is_empty())
}

#[cfg(test)]
mod tests;
