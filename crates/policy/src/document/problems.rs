//! Bounded collection of the problems in a source.

use super::{Position, Problem};

/// Maximum of reported problems: a hostile source must not make us compute suggestions for each of its keys.
pub(super) const MAX_PROBLEMS: usize = 500;

/// The problems found so far in one source.
pub(super) struct Problems {
    file: String,
    found: Vec<Problem>,
}

impl Problems {
    pub(super) fn new(file: &str) -> Problems {
        Problems { file: file.to_owned(), found: Vec::new() }
    }

    pub(super) fn add(&mut self, at: Position, message: impl Into<String>) {
        if !self.is_full() {
            self.found.push(Problem { file: self.file.clone(), at, message: message.into() });
        }
    }

    /// Adds errors of the YAML parser.
    pub(super) fn extend(&mut self, errors: Vec<proctor_yaml::Error>) {
        for error in errors {
            self.add(error.at, error.kind.to_string());
        }
    }

    /// Whether another problem would be dropped, so that composing its message is wasted work.
    pub(super) fn is_full(&self) -> bool {
        self.found.len() >= MAX_PROBLEMS
    }

    pub(super) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// The problems by position. A node that several aliases repeat is reported once.
    pub(super) fn sorted(self) -> Vec<Problem> {
        let full = self.is_full();
        let mut found = self.found;
        found.sort();
        found.dedup();
        if full && let Some(last) = found.last() {
            let (file, at) = (last.file.clone(), last.at);
            let message = format!("more than {MAX_PROBLEMS} problems; the others are not listed");
            found.push(Problem { file, at, message });
        }
        found
    }
}

/// Names in backticks, with commas.
pub(super) fn listed(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

/// The end of a message about an unknown name: the nearest valid one, or all of them.
pub(super) fn suggestion(word: &str, valid: &[&str]) -> String {
    match proctor_core::nearest(word, valid) {
        Some(name) => format!("did you mean `{name}`?"),
        None => format!("valid are {}", listed(valid)),
    }
}
