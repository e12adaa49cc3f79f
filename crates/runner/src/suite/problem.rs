//! Mistakes in a suite.

use proctor_yaml::Position;

/// More mistakes than this help nobody, and a hostile source must not make us compute suggestions for each of its keys.
pub(super) const MAX_PROBLEMS: usize = 500;

/// A mistake in a suite, displayed as `line:column: path: message; suggestion`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// Position in the source.
    pub at: Position,
    /// JSON path of the value.
    pub path: String,
    /// Description of the mistake.
    pub message: String,
    /// The remedy; empty if the message says it.
    pub suggestion: String,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}:{}: {}: {}", self.at.line, self.at.column, self.path, self.message)?;
        if self.suggestion.is_empty() { Ok(()) } else { write!(out, "; {}", self.suggestion) }
    }
}

/// Sorts by position, and reports a value that several aliases repeat once.
pub(super) fn sorted(mut problems: Vec<Problem>) -> Vec<Problem> {
    let full = problems.len() >= MAX_PROBLEMS;
    problems.sort();
    problems.dedup_by(|later, earlier| {
        (later.at, &later.message, &later.suggestion) == (earlier.at, &earlier.message, &earlier.suggestion)
    });
    if full && let Some(at) = problems.last().map(|last| last.at) {
        let message = format!("more than {MAX_PROBLEMS} problems; the others are not listed");
        problems.push(Problem { at, path: "$".to_owned(), message, suggestion: String::new() });
    }
    problems
}

/// Names in backticks, with commas.
pub(super) fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

/// The remedy for an unknown name: the nearest known one, or all of them.
pub(super) fn suggestion(word: &str, known: &[&str]) -> String {
    /// More names than this are no help.
    const MAX_LISTED: usize = 40;
    match proctor_core::nearest(word, known) {
        Some(name) => format!("did you mean `{name}`?"),
        None if known.is_empty() => String::new(),
        None if known.len() > MAX_LISTED => {
            format!(
                "known are {} and {} more",
                listed(known.iter().copied().take(MAX_LISTED)),
                known.len() - MAX_LISTED
            )
        }
        None => format!("known are {}", listed(known.iter().copied())),
    }
}
