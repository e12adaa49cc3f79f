//! Reports of test suites.

mod explain;
mod html;
mod json;
mod junit;
mod live;
mod markdown;
mod sarif;
mod stream;

use proctor_runner::comparison::{BaselineComparison, Conclusion};
use proctor_runner::results::SuiteResult;

use crate::destination::{Destination, DestinationError, WriteError, parse, replace};

pub use json::{document as suite_document, to_json as suite_json};
pub use live::LiveLine;
pub use stream::SuiteStream;

/// Result of a suite with all that its reports say about it.
#[derive(Debug, Clone, Copy)]
pub struct SuiteReport<'r> {
    /// The result.
    pub result: &'r SuiteResult,
    /// Comparison with the baseline, if there is one.
    pub comparison: Option<&'r BaselineComparison>,
    /// Result of the baseline, if it was made in the same command.
    pub baseline: Option<&'r SuiteResult>,
    /// Whether errors alone make the result undecided instead of failed (`--gate`).
    pub gate: bool,
    /// Whether the comparison decides too (`--fail-on-regression`).
    pub fail_on_regression: bool,
}

/// Verdict over a suite, which the exit code and every report share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SuiteConclusion {
    /// Every test that was run passed, and at least one was run.
    Passed,
    /// A test failed or could not be evaluated, or none was run.
    Failed,
    /// A regression is shown, and nothing else failed.
    Regression,
    /// A gate without enough results to decide, or a comparison without enough runs.
    Undecided,
    /// The user interrupted.
    Interrupted,
}

impl<'r> SuiteReport<'r> {
    /// A report of a result that is compared with nothing.
    pub fn new(result: &'r SuiteResult) -> SuiteReport<'r> {
        SuiteReport { result, comparison: None, baseline: None, gate: false, fail_on_regression: false }
    }

    /// Verdict over the tests and, if it decides, the comparison. A test that nobody evaluated never counts as passed.
    pub fn conclusion(&self) -> SuiteConclusion {
        let counts = self.result.counts();
        let compared =
            self.comparison.filter(|_| self.fail_on_regression).map(BaselineComparison::conclusion);
        let is_nothing = counts.passed + counts.errors == 0;
        if self.result.is_interrupted {
            SuiteConclusion::Interrupted
        } else if counts.failed > 0 || (counts.errors > 0 && !self.gate) || is_nothing {
            SuiteConclusion::Failed
        } else if compared == Some(Conclusion::Regression) {
            SuiteConclusion::Regression
        } else if counts.errors > 0 || compared == Some(Conclusion::Undecided) {
            SuiteConclusion::Undecided
        } else {
            SuiteConclusion::Passed
        }
    }
}

impl SuiteConclusion {
    /// Name in report files.
    pub fn word(self) -> &'static str {
        match self {
            SuiteConclusion::Passed => "passed",
            SuiteConclusion::Failed => "failed",
            SuiteConclusion::Regression => "regression",
            SuiteConclusion::Undecided => "undecided",
            SuiteConclusion::Interrupted => "interrupted",
        }
    }

    /// Name for display.
    pub fn shown(self) -> &'static str {
        match self {
            SuiteConclusion::Passed => "Passed",
            SuiteConclusion::Failed => "Failed",
            SuiteConclusion::Regression => "Regression",
            SuiteConclusion::Undecided => "Not enough to decide",
            SuiteConclusion::Interrupted => "Interrupted",
        }
    }
}

/// Kinds of reports of suites.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SuiteKind {
    /// JUnit XML.
    Junit,
    /// SARIF 2.1.0.
    Sarif,
    /// The JSON document of the result, which can be a baseline.
    Json,
    /// One HTML page.
    Html,
    /// Markdown, for summaries of code hosts.
    Markdown,
    /// JSON lines, one for each test as it ends.
    JsonLines,
}

const KINDS: [(&str, SuiteKind); 6] = [
    ("junit", SuiteKind::Junit),
    ("sarif", SuiteKind::Sarif),
    ("json", SuiteKind::Json),
    ("html", SuiteKind::Html),
    ("markdown", SuiteKind::Markdown),
    ("jsonl", SuiteKind::JsonLines),
];

/// Parses lists of `KIND=PATH`, and checks that the files can be created. Returns all mistakes at once.
pub fn suite_destinations(lists: &[String]) -> Result<Vec<Destination<SuiteKind>>, Vec<DestinationError>> {
    parse(lists, &KINDS)
}

/// Writes all reports that are not streamed. A failure does not stop the others; all failures are returned.
pub fn write_suite(report: &SuiteReport<'_>, destinations: &[Destination<SuiteKind>]) -> Vec<WriteError> {
    let written = destinations.iter().map(|destination| {
        let text = match destination.kind {
            SuiteKind::Junit => junit::write(report).map_err(WriteError::Junit)?,
            SuiteKind::Sarif => sarif::to_json(report).to_string() + "\n",
            SuiteKind::Json => json::document(report).to_string() + "\n",
            SuiteKind::Html => html::page(report),
            SuiteKind::Markdown => markdown::write(report),
            SuiteKind::JsonLines => return Ok(()),
        };
        replace(&destination.path, text.as_bytes())
            .map_err(|source| WriteError::Io { path: destination.path.clone(), source })
    });
    written.filter_map(Result::err).collect()
}

#[cfg(test)]
mod tests;
