//! Contradictions between the contracts of a run.

use serde::Serialize;

/// Maximum of listed problems of one contract.
pub const MAX_PROBLEMS: usize = 100;

/// A violation of the run's contract.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The machine-readable code.
    pub code: &'static str,
    /// The description.
    pub message: String,
}

/// The problems of one contract.
#[derive(Default)]
pub(super) struct Problems {
    told: Vec<Problem>,
    untold: usize,
}

impl Problems {
    pub(super) fn add(&mut self, code: &'static str, message: impl FnOnce() -> String) {
        if self.told.len() < MAX_PROBLEMS {
            self.told.push(Problem { code, message: message() });
        } else {
            self.untold += 1;
        }
    }

    /// Ends the list. The agent controls the number of problems: further ones are only counted.
    pub(super) fn finish(mut self) -> Vec<Problem> {
        if self.untold > 0 {
            let message = format!("and {} more problems", self.untold);
            self.told.push(Problem { code: "more_problems", message });
        }
        self.told
    }
}

/// An identifier for a message: short, in backticks.
pub(super) fn quote(text: &str) -> String {
    let mut short: String = text.chars().take(64).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    format!("`{short}`")
}
