//! Substrings and regular expressions of assertions.

use proctor_core::quoted;
use regex::{Regex, RegexBuilder};

/// Longest pattern in bytes.
const MAX_PATTERN_BYTES: usize = 16 * 1024;

/// Memory of a compiled pattern. A suite holds thousands of patterns; one alone must not take the memory of all.
const MAX_COMPILED_BYTES: usize = 1 << 20;

/// A substring or a regular expression; case-sensitive, unanchored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextPattern {
    /// The pattern as written.
    pub text: String,
    /// Whether it is a regular expression.
    pub regex: bool,
}

/// Problems of a pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// Too long.
    #[error("the pattern is longer than {MAX_PATTERN_BYTES} bytes")]
    TooLong,
    /// Too large when compiled.
    #[error("the pattern {} needs too much memory; use smaller repetitions", quoted(.0))]
    TooLarge(String),
    /// Not a regular expression.
    #[error("{} is not a regular expression: {reason}", quoted(.pattern))]
    Syntax {
        /// The pattern.
        pattern: String,
        /// The parser's reason.
        reason: String,
    },
}

impl TextPattern {
    /// Whether the pattern can be used.
    pub fn check(&self) -> Result<(), PatternError> {
        if self.regex { compile(&self.text).map(drop) } else { Ok(()) }
    }

    /// Whether the text contains a match.
    pub fn is_match(&self, text: &str) -> Result<bool, PatternError> {
        if self.regex { Ok(compile(&self.text)?.is_match(text)) } else { Ok(text.contains(&self.text)) }
    }
}

/// Compiles a regular expression within limits.
pub(crate) fn compile(pattern: &str) -> Result<Regex, PatternError> {
    if pattern.len() > MAX_PATTERN_BYTES {
        return Err(PatternError::TooLong);
    }
    let built = RegexBuilder::new(pattern)
        .size_limit(MAX_COMPILED_BYTES)
        .dfa_size_limit(2 * MAX_COMPILED_BYTES)
        .build();
    built.map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => PatternError::TooLarge(pattern.to_owned()),
        other => PatternError::Syntax { pattern: pattern.to_owned(), reason: reason(&other.to_string()) },
    })
}

/// The last line of the parser's message: the lines before it draw the pattern, which would not fit into one line.
fn reason(message: &str) -> String {
    let last = message.lines().last().unwrap_or(message).trim();
    last.strip_prefix("error: ").unwrap_or(last).to_owned()
}
