//! The operator's own patterns.

use regex::{Regex, RegexBuilder};
use thiserror::Error;

use super::{Finding, FindingKind};

/// The most patterns one scanner takes.
const MAX_PATTERNS: usize = 256;
/// The longest pattern, in bytes.
const MAX_PATTERN_BYTES: usize = 4096;
/// The most memory one compiled pattern may take, in bytes.
const MAX_COMPILED_BYTES: usize = 1 << 20;
/// Maximum of matches of one pattern, after which the rest of the text is one finding: a pattern may look at all of the rest for each
/// match, and the text's author must not be able to make that slow.
const MAX_MATCHES: usize = 1000;

/// A pattern that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("sensitive pattern {index} cannot be used: {problem}")]
pub struct PatternError {
    /// The index of the pattern.
    pub index: usize,
    /// Description of the problem.
    pub problem: PatternProblem,
}

/// Reasons why a pattern cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PatternProblem {
    /// The number of patterns is over the limit.
    #[error("{0} patterns given, at most {MAX_PATTERNS} allowed")]
    TooMany(usize),
    /// An empty pattern, which would match everywhere.
    #[error("the pattern is empty")]
    Empty,
    /// A pattern of too many bytes.
    #[error("the pattern has {0} bytes, at most {MAX_PATTERN_BYTES} allowed")]
    TooLong(usize),
    /// A pattern whose automaton exceeds its limit.
    #[error("`{pattern}` takes more than {limit} bytes when compiled; use smaller repetitions")]
    TooLarge {
        /// The pattern.
        pattern: String,
        /// The limit in bytes.
        limit: usize,
    },
    /// A pattern that is not a regular expression.
    #[error("`{pattern}` is not a regular expression: {message}")]
    Syntax {
        /// The pattern.
        pattern: String,
        /// The parser's message.
        message: String,
    },
}

#[derive(Debug)]
pub(super) struct CustomPatterns {
    patterns: Vec<Regex>,
}

impl CustomPatterns {
    pub(super) fn none() -> CustomPatterns {
        CustomPatterns { patterns: Vec::new() }
    }

    pub(super) fn compile(sources: &[String]) -> Result<CustomPatterns, PatternError> {
        if sources.len() > MAX_PATTERNS {
            return Err(PatternError {
                index: MAX_PATTERNS,
                problem: PatternProblem::TooMany(sources.len()),
            });
        }
        let patterns = sources
            .iter()
            .enumerate()
            .map(|(index, source)| compile_one(source).map_err(|problem| PatternError { index, problem }))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(CustomPatterns { patterns })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    pub(super) fn find(&self, text: &str, findings: &mut Vec<Finding>) {
        for pattern in &self.patterns {
            let matches = pattern.find_iter(text).filter(|found| !found.is_empty()).take(MAX_MATCHES + 1);
            for (count, found) in matches.enumerate() {
                let end = if count == MAX_MATCHES { text.len() } else { found.end() };
                findings.push(Finding { kind: FindingKind::Custom, offset: found.start(), end });
            }
        }
    }
}

fn compile_one(source: &str) -> Result<Regex, PatternProblem> {
    if source.is_empty() {
        return Err(PatternProblem::Empty);
    }
    if source.len() > MAX_PATTERN_BYTES {
        return Err(PatternProblem::TooLong(source.len()));
    }
    RegexBuilder::new(source)
        .size_limit(MAX_COMPILED_BYTES)
        .dfa_size_limit(MAX_COMPILED_BYTES)
        .build()
        .map_err(|error| match error {
            regex::Error::CompiledTooBig(limit) => {
                PatternProblem::TooLarge { pattern: source.to_owned(), limit }
            }
            other => {
                PatternProblem::Syntax { pattern: source.to_owned(), message: one_line(&other.to_string()) }
            }
        })
}

/// The parser's message shows the pattern over several lines; only its last line says what is wrong.
fn one_line(message: &str) -> String {
    let last = message.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or_default();
    last.strip_prefix("error: ").unwrap_or(last).to_owned()
}
