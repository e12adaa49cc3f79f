use std::fmt;

use proctor_core::quoted;

use crate::atp::artifact::PathProblem;
use crate::atp::limits::MAX_LISTED;

/// A violated rule, at one position of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// JSON path of the position, like `$.artifacts[2].path`.
    pub path: String,
    /// The rule.
    pub kind: ProblemKind,
}

/// Rules that a message can violate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProblemKind {
    /// A required member is absent.
    #[error("required member is missing")]
    Missing,
    /// A value of another JSON type.
    #[error("expected {expected}, found {found}")]
    WrongType {
        /// The type that the member has.
        expected: &'static str,
        /// The type that was sent.
        found: &'static str,
    },
    /// A number outside of its range.
    #[error("must be from {least} to {most}")]
    OutOfRange {
        /// The smallest number.
        least: u64,
        /// The largest number.
        most: u64,
    },
    /// A number below zero where only others make sense.
    #[error("must not be negative")]
    Negative,
    /// A number that no type of 64 bits holds.
    #[error("number is too large")]
    NumberTooLarge,
    /// An empty text.
    #[error("must not be empty")]
    Empty,
    /// A text with more characters than its limit.
    #[error("longer than {most} characters")]
    TooLong {
        /// The limit.
        most: usize,
    },
    /// A list or object with more entries than its limit.
    #[error("has {found} entries, at most {most} are allowed")]
    TooMany {
        /// Number of entries.
        found: usize,
        /// The limit.
        most: usize,
    },
    /// A text that is none of the allowed ones.
    #[error("{} is not one of {}", quoted(found), allowed.join(", "))]
    NotOneOf {
        /// The text, shortened.
        found: String,
        /// The allowed ones.
        allowed: &'static [&'static str],
    },
    /// A version that is not `MAJOR.MINOR`.
    #[error("version {} is malformed, expected `MAJOR.MINOR`", quoted(.0))]
    MalformedVersion(String),
    /// A version with an unsupported major part.
    #[error("version {} is not supported, only major version 1 is", quoted(.0))]
    OtherMajor(String),
    /// A task id that is no UUID.
    #[error("not a UUID")]
    NotUuid,
    /// A task id that is neither a UUID nor a plain identifier.
    #[error("task id must be a UUID, or 1 to 128 characters of letters, digits, `_` and `-`")]
    MalformedTaskId,
    /// The task id of another run.
    #[error("task id {} is not the request's", quoted(.0))]
    ForeignTaskId(String),
    /// A text that is no URI.
    #[error("not a URI")]
    NotUri,
    /// A URI of another scheme.
    #[error("must begin with `http://` or `https://`")]
    NotHttp,
    /// A text that is no RFC 3339 date and time.
    #[error("not an RFC 3339 date and time, like `2025-01-21T10:30:45Z`")]
    NotDateTime,
    /// A path that a file artifact may not have.
    #[error(transparent)]
    Path(#[from] PathProblem),
    /// A NUL character.
    #[error("contains a NUL character")]
    Nul,
    /// A name with a character that it may not have.
    #[error("name must not contain `/`, `\\` or NUL")]
    SlashInName,
    /// An environment variable's name outside of its grammar.
    #[error("environment variable name must be letters, digits and `_`, and not begin with a digit")]
    EnvironmentName,
    /// A control character in a tool's name.
    #[error("name must not contain control characters")]
    Control,
    /// A tool's name in the body that differs from the one in the route.
    #[error("tool {} is not the one of the route", quoted(.0))]
    OtherTool(String),
}

/// The problems of one message: the first ones listed, all counted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Problems {
    listed: Vec<Problem>,
    total: usize,
}

impl Problems {
    /// The first [`MAX_LISTED`] problems, in the order of the rules.
    pub fn listed(&self) -> &[Problem] {
        &self.listed
    }

    /// Number of problems, listed or not.
    pub fn total(&self) -> usize {
        self.total
    }

    /// Whether there is no problem.
    pub fn is_empty(&self) -> bool {
        self.total == 0
    }

    pub(in crate::atp) fn add(&mut self, path: impl fmt::Display, kind: ProblemKind) {
        self.total += 1;
        if self.listed.len() < MAX_LISTED {
            self.listed.push(Problem { path: path.to_string(), kind });
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.path, self.kind)
    }
}

/// The first problem, and the number of others.
impl fmt::Display for Problems {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.listed.first() {
            None => out.write_str("no problem"),
            Some(first) if self.total == 1 => write!(out, "{first}"),
            Some(first) => write!(out, "{first}, and {} more", self.total - 1),
        }
    }
}
