//! Reports of what assertions found, for other programs and for people: JUnit, SARIF, JSON, HTML.

mod destination;
mod html;
mod json;
mod junit;
mod sarif;

use std::time::Duration;

use proctor_assert::{JudgeMetadata, Status};
use proctor_core::time::Timestamp;

pub use destination::{destinations, write};
pub use json::to_json;

/// How the explanation of an assertion that was not run begins.
pub const NOT_RUN: &str = "not run: ";

/// What assertions found on one trace.
#[derive(Debug, Clone)]
pub struct Findings {
    /// Name of the trace.
    pub trace_id: String,
    /// What the trace was read from, as a relative or opaque URI.
    pub source: String,
    /// When the report was made.
    pub made: Timestamp,
    /// Whether the results are simulated.
    pub simulated: bool,
    /// Whether something is decided by them: then what is not known is neither yes nor no.
    pub gate: bool,
    /// What says that soft failures count like hard ones: an argument or a variable. None: they do not.
    pub soft_failures_count: Option<&'static str>,
    /// One for each assertion, in the order in which they were written.
    pub entries: Vec<Entry>,
}

/// What one assertion found.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Its name.
    pub id: String,
    /// What its author wants back with the result; empty if nothing.
    pub request_id: String,
    /// Its type.
    pub kind: String,
    /// The number of its layer, if its type is known.
    pub layer: Option<u8>,
    /// How it ended.
    pub ending: Ending,
    /// From 0 to 1; none if it was not run.
    pub score: Option<f64>,
    /// Why.
    pub explanation: String,
    /// Where in the trace; empty if nowhere in particular.
    pub path: String,
    /// What should have been there.
    pub expected: String,
    /// What was there.
    pub actual: String,
    /// What to do about it.
    pub suggestion: String,
    /// Where the threshold came from, if there is one.
    pub threshold_source: Option<&'static str>,
    /// What it cost to find out, in dollars.
    pub cost_usd: f64,
    /// How long it took.
    pub took: Duration,
    /// How a judge came to its score.
    pub judge: Option<Box<JudgeMetadata>>,
}

impl Entry {
    /// Why, beside the word for how it ended.
    pub fn why(&self) -> &str {
        self.explanation.strip_prefix(NOT_RUN).unwrap_or(&self.explanation)
    }
}

/// What follows from all of it. The exit code and every report say the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conclusion {
    /// Every assertion holds, but for soft failures that are allowed.
    Passed,
    /// Something failed, could not be evaluated, or was not run.
    Failed,
    /// There is not enough to decide.
    Undecided,
}

impl Conclusion {
    /// The word for it in files.
    pub fn word(self) -> &'static str {
        match self {
            Conclusion::Passed => "passed",
            Conclusion::Failed => "failed",
            Conclusion::Undecided => "undecided",
        }
    }
}

/// How an assertion ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// It holds.
    Pass,
    /// It does not hold, and was marked as soft.
    SoftFail,
    /// It does not hold.
    HardFail,
    /// It could not be decided.
    Error,
    /// It was not run, because something before it failed hard.
    NotRun,
}

impl Ending {
    /// The word for it in files.
    pub fn word(self) -> &'static str {
        match self {
            Ending::Pass => "pass",
            Ending::SoftFail => "soft_fail",
            Ending::HardFail => "hard_fail",
            Ending::Error => "error",
            Ending::NotRun => "not_run",
        }
    }

    /// The word for it for people.
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

/// How many assertions ended how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// All of them.
    pub total: usize,
    /// Those that hold.
    pub passed: usize,
    /// Those that failed softly.
    pub soft_fail: usize,
    /// Those that failed hard.
    pub hard_fail: usize,
    /// Those that could not be decided.
    pub error: usize,
    /// Those that were not run.
    pub not_run: usize,
}

impl Findings {
    /// How many assertions ended how.
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

    /// What follows from all of it.
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

    /// Why it failed, if nothing failed hard and soft failures count.
    pub fn strict_failure(&self) -> Option<String> {
        let counts = self.counts();
        let only_soft = counts.soft_fail > 0 && counts.hard_fail + counts.error + counts.not_run == 0;
        let who = self.soft_failures_count.filter(|_| only_soft)?;
        (self.conclusion() == Conclusion::Failed).then(|| format!("failed: soft failures count (`{who}`)"))
    }

    /// What all of it cost, in dollars.
    pub fn cost_usd(&self) -> f64 {
        self.entries.iter().map(|entry| entry.cost_usd).sum()
    }

    /// How long all of it took, added up.
    pub fn took(&self) -> Duration {
        self.entries.iter().map(|entry| entry.took).sum()
    }
}

impl Counts {
    /// The counts in words, without those that are zero.
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

/// A text for files in which control characters would be obeyed or are forbidden: they are written out, except line ends and tabs.
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

/// The parts of a failure that help to understand it, with their names.
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
