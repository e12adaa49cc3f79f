//! TOML of settings files: read into a type, or every mistake with its position and a suggestion.
//!
//! `toml` alone stops at the first mistake and speaks of Rust types. Here, a deserializer of its own walks over the parsed document: unknown
//! keys are noted and left out; a value that cannot be read is noted, and the document read again without it.
//!
//! ```
//! use proctor_engine::settings::file::read;
//!
//! #[derive(serde::Deserialize)]
//! struct Settings {
//!     answer_ms: Option<u64>,
//!     agent: Option<String>,
//! }
//!
//! let mistakes = read::<Settings>("answer_ms = true\nagnet = \"x\"\n").err().unwrap();
//! assert_eq!(mistakes[0].to_string(), "1:13: `answer_ms`: expected a whole number, found a boolean");
//! assert_eq!(mistakes[1].to_string(), "2:1: unknown key `agnet`; did you mean `agent`?");
//! ```

mod walk;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use proctor_core::quoted;
use serde::de::DeserializeOwned;
use toml::de::{DeTable, DeValue};

use walk::{Failed, Walker};

/// Mistakes of one file that are reported.
pub const MAX_MISTAKES: usize = 50;

/// A mistake in a settings file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{line}:{column}: {problem}")]
pub struct Mistake {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The violated rule.
    pub problem: Problem,
}

/// Violations of a settings file's format. Keys are dotted paths.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The text is not TOML.
    #[error("{0}")]
    Syntax(String),
    /// No setting has this name.
    #[error("unknown key {}{}; {}", quoted(.key), within(.table), suggestion(.key, .known))]
    UnknownKey {
        /// The key.
        key: String,
        /// The table that it stands in; empty for the file itself.
        table: String,
        /// Keys of that table.
        known: &'static [&'static str],
    },
    /// The value has another type.
    #[error("{}: expected {expected}, found {found}", quoted(.key))]
    WrongType {
        /// The key.
        key: String,
        /// The type of the setting.
        expected: &'static str,
        /// The type of the value.
        found: &'static str,
    },
    /// The value is none of the words that the setting knows.
    #[error("unknown value {} for {}; {}", quoted(.word), quoted(.key), suggestion(.word, .known))]
    UnknownWord {
        /// The key.
        key: String,
        /// The word.
        word: String,
        /// Words of the setting.
        known: &'static [&'static str],
    },
    /// A table lacks a key.
    #[error("{} needs `{missing}`", quoted(.table))]
    Missing {
        /// The table.
        table: String,
        /// The key.
        missing: &'static str,
    },
    /// The value has the right type, and cannot be used.
    #[error("{}: {reason}", quoted(.key))]
    Unusable {
        /// The key.
        key: String,
        /// The reason.
        reason: String,
    },
}

fn within(table: &str) -> String {
    if table.is_empty() { String::new() } else { format!(" in {}", quoted(table)) }
}

fn suggestion(word: &str, known: &[&str]) -> String {
    match proctor_core::nearest(word, known) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("known are {}", known.join(", ")),
    }
}

/// Reads a settings file. Returns every mistake in it, sorted by position, at most [`MAX_MISTAKES`].
pub fn read<T: DeserializeOwned>(text: &str) -> Result<T, Vec<Mistake>> {
    let (root, errors) = DeTable::parse_recoverable(text);
    let place = Places { text };
    if !errors.is_empty() {
        let mistakes = errors.iter().take(MAX_MISTAKES).map(|error| {
            let offset = error.span().map_or(0, |span| span.start);
            place.mistake(offset, Problem::Syntax(error.message().to_owned()))
        });
        return Err(mistakes.collect());
    }
    let span = root.span();
    let root = DeValue::Table(root.into_inner());
    let notes = Notes::default();
    // Each round finds at most one value that cannot be read, and leaves it out from then on.
    for _ in 0..MAX_MISTAKES {
        match T::deserialize(Walker { value: &root, offset: span.start, path: String::new(), notes: &notes })
        {
            Ok(read) if notes.mistakes.borrow().is_empty() => return Ok(read),
            Ok(_) => break,
            Err(failed) => {
                let is_placed = failed.key_offset.is_some();
                notes.take(failed);
                if !is_placed {
                    break;
                }
            }
        }
    }
    let mistakes = notes.mistakes.into_inner();
    Err(mistakes
        .into_iter()
        .map(|(offset, problem)| place.mistake(offset, problem))
        .take(MAX_MISTAKES)
        .collect())
}

/// Mistakes by offset, and the offsets of keys that are left out.
#[derive(Default)]
struct Notes {
    mistakes: RefCell<BTreeMap<usize, Problem>>,
    left_out: RefCell<BTreeSet<usize>>,
    /// Paths of values that could not be read: their tables lack them only for that reason.
    unread: RefCell<BTreeSet<String>>,
}

impl Notes {
    fn add(&self, offset: usize, problem: Problem) {
        self.mistakes.borrow_mut().entry(offset).or_insert(problem);
    }

    fn take(&self, failed: Failed) {
        if let Some(offset) = failed.key_offset {
            self.left_out.borrow_mut().insert(offset);
        }
        let is_consequence = match &*failed.problem {
            Problem::Missing { table, missing } => {
                self.unread.borrow().contains(&format!("{table}.{missing}"))
            }
            _ => false,
        };
        if !is_consequence {
            self.add(failed.offset.or(failed.key_offset).unwrap_or_default(), *failed.problem);
        }
        self.unread.borrow_mut().insert(failed.path);
    }
}

/// Lines and columns of offsets.
struct Places<'t> {
    text: &'t str,
}

impl Places<'_> {
    fn mistake(&self, offset: usize, problem: Problem) -> Mistake {
        let before = self.text.get(..offset).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        Mistake { line, column, problem }
    }
}

#[cfg(test)]
mod tests;
