//! Problems and warnings of a message, each with its JSON path.

mod problem;
mod warning;

pub use problem::{Problem, ProblemKind, Problems};
pub use warning::{Warning, WarningKind, Warnings};

/// The result of checking a message: all problems and all warnings, not only the first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Findings {
    /// Problems. A message that has one is invalid.
    pub problems: Problems,
    /// Warnings. They never make a message invalid.
    pub warnings: Warnings,
}

impl Findings {
    /// Whether the message is valid, with or without warnings.
    pub fn is_valid(&self) -> bool {
        self.problems.is_empty()
    }
}
