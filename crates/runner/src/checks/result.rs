//! Results of assertions.

use proctor_assert::Verdict;
use proctor_core::json::Json;

use super::command::shown_output;
use super::{Assertion, FilesError, PatternError};

/// Status of an assertion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// The assertion holds.
    Passed,
    /// The assertion does not hold.
    Failed,
    /// The assertion could not be evaluated.
    Error,
}

impl Status {
    /// The word for it in reports.
    pub fn word(self) -> &'static str {
        match self {
            Status::Passed => "passed",
            Status::Failed => "failed",
            Status::Error => "error",
        }
    }
}

/// Result of one check of an assertion.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckResult {
    /// Name of the check.
    pub name: String,
    /// Whether it holds.
    pub passed: bool,
    /// From 0 to 1.
    pub score: f64,
    /// What was found.
    pub message: String,
    /// Numbers and lists behind the message; an object, or null.
    pub details: Json,
}

impl CheckResult {
    /// A check whose score is 1 if it holds and 0 otherwise.
    pub(super) fn new(name: &str, passed: bool, message: impl Into<String>) -> CheckResult {
        let score = if passed { 1.0 } else { 0.0 };
        CheckResult { name: name.to_owned(), passed, score, message: message.into(), details: Json::Null }
    }

    pub(super) fn with_details(mut self, details: Json) -> CheckResult {
        self.details = details;
        self
    }
}

/// Result of an assertion.
#[derive(Debug, Clone, PartialEq)]
pub struct AssertionResult {
    /// The assertion's type, or the id of an Attest assertion.
    pub name: String,
    /// Status.
    pub status: Status,
    /// Mean of the checks' scores; 0 for an error.
    pub score: f64,
    /// Whether a failure sets the score of the run to 0.
    pub critical: bool,
    /// Whether an error is left out of the score and the verdict.
    pub optional: bool,
    /// The checks; one that did not pass if the assertion could not be evaluated.
    pub checks: Vec<CheckResult>,
}

impl AssertionResult {
    pub(super) fn new(
        assertion: &Assertion,
        outcome: Result<Vec<CheckResult>, CheckError>,
    ) -> AssertionResult {
        let (status, checks) = match outcome {
            Ok(checks) if checks.iter().all(|check| check.passed) => (Status::Passed, checks),
            Ok(checks) => (Status::Failed, checks),
            Err(error) => (Status::Error, vec![CheckResult::new(assertion.name, false, error.to_string())]),
        };
        AssertionResult {
            name: assertion.name.to_owned(),
            status,
            score: mean_score(&checks),
            critical: assertion.critical,
            optional: assertion.optional,
            checks,
        }
    }

    /// The result of an Attest assertion. A soft failure counts with its score and fails nothing, as in `proctor assert`.
    pub fn from_verdict(id: &str, verdict: &Verdict) -> AssertionResult {
        use proctor_assert::Status as Attest;
        let (status, passed) = match verdict.status {
            Attest::Pass | Attest::SoftFail => (Status::Passed, true),
            Attest::HardFail => (Status::Failed, false),
            Attest::Error => (Status::Error, false),
        };
        let message = match verdict.status {
            Attest::SoftFail => format!("soft failure: {}", verdict.explanation),
            _ => verdict.explanation.clone(),
        };
        let score = if status == Status::Error { 0.0 } else { verdict.score.clamp(0.0, 1.0) };
        let mut details = Json::object();
        for (name, value) in
            [("path", &verdict.path), ("expected", &verdict.expected), ("actual", &verdict.actual)]
        {
            if !value.is_empty() {
                details.push(name, value.as_str());
            }
        }
        let check = CheckResult { name: id.to_owned(), passed, score, message, details };
        AssertionResult {
            name: id.to_owned(),
            status,
            score,
            critical: false,
            optional: false,
            checks: vec![check],
        }
    }
}

/// Mean of the scores; 1 if there are none.
pub(super) fn mean_score(checks: &[CheckResult]) -> f64 {
    if checks.is_empty() {
        return 1.0;
    }
    checks.iter().map(|check| check.score).sum::<f64>() / checks.len() as f64
}

/// Reasons why an assertion could not be evaluated.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum CheckError {
    /// The workspace could not be read.
    #[error(transparent)]
    Files(#[from] FilesError),
    /// A pattern cannot be used.
    #[error(transparent)]
    Pattern(#[from] PatternError),
    /// A schema cannot be used, or not on this value.
    #[error("{0}")]
    Schema(String),
    /// A command or judge that the check depends on gave no result.
    #[error("{0}")]
    NotAnswered(&'static str),
    /// The program of a command does not exist.
    #[error("the program `{0}` was not found; install it where the checks run")]
    ProgramMissing(String),
    /// A command could not be started.
    #[error("the command could not be run: {0}")]
    NotStarted(String),
    /// The output of a command has no counts of tests.
    #[error("no counts of tests were found in the output (exit code {code}): {}", shown_output(.output))]
    NoCounts {
        /// Exit code.
        code: i32,
        /// End of the output.
        output: String,
    },
    /// The output of a linter cannot be read.
    #[error("the output of `{linter}` (exit code {code}) is not its JSON report: {}", shown_output(.output))]
    NoReport {
        /// The linter.
        linter: &'static str,
        /// Exit code.
        code: i32,
        /// End of the output.
        output: String,
    },
    /// The judge gave too few scores.
    #[error("the judge gave {given} of {asked} scores: {reason}")]
    NoScore {
        /// Scores given.
        given: usize,
        /// Scores asked for.
        asked: usize,
        /// Problem of the first reply without a score.
        reason: String,
    },
    /// A composite depends on checks that could not be evaluated.
    #[error("the composite cannot be decided, because {0}")]
    Indeterminate(String),
}
