//! Errors, and their bounded collection.

use proctor_core::quoted;

use crate::Position;

/// An error in a source, displayed as `line:column: message`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}:{}: {kind}", at.line, at.column)]
pub struct Error {
    /// Position in the source.
    pub at: Position,
    /// Kind of the error; its text is the message without the position.
    pub kind: ErrorKind,
}

/// Kinds of errors.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ErrorKind {
    /// The source is larger than [`Limits::source_bytes`](crate::Limits::source_bytes) and was not read.
    #[error("the source has {bytes} bytes; at most {limit} are allowed, split it into several")]
    TooLarge {
        /// Bytes of the source.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// The source begins with a UTF-16 byte order mark.
    #[error("the source looks like UTF-16; save it as UTF-8")]
    Utf16,
    /// The source is not UTF-8.
    #[error("the source is not valid UTF-8 from here on; save it as UTF-8")]
    NotUtf8,
    /// A control character other than tab and line ends.
    #[error("control character U+{:04X} in the source; remove it", u32::from(*.0))]
    ControlCharacter(char),
    /// The parser refused the source.
    #[error("is not valid YAML: {0}")]
    Syntax(String),
    /// The parser panicked.
    #[error("cannot be read as YAML: the YAML parser failed on it")]
    ParserPanicked,
    /// The source has no value.
    #[error("the document is empty")]
    Empty,
    /// The source has more than one document.
    #[error("a second document begins here; put each document in a file of its own")]
    SecondDocument,
    /// The nesting is deeper than [`Limits::depth`](crate::Limits::depth).
    #[error("nested more than {0} deep")]
    TooDeep(usize),
    /// The values are more than [`Limits::nodes`](crate::Limits::nodes).
    #[error("more than {0} values, aliases counted as what they stand for")]
    TooManyNodes(usize),
    /// The text is longer than [`Limits::text_bytes`](crate::Limits::text_bytes).
    #[error("more than {0} bytes of text, aliases counted as what they stand for")]
    TooMuchText(usize),
    /// An alias inside the value that it stands for.
    #[error("this alias stands inside the value that it repeats")]
    RecursiveAlias,
    /// A tag, as written.
    #[error("tags are not supported: remove {} (a quoted scalar is a string)", quoted(.0))]
    Tag(String),
    /// A key that is a number or a boolean, as written.
    #[error("keys must be strings: put {} in quotes", quoted(.0))]
    KeyNotString(String),
    /// A key that is null.
    #[error("keys must be strings, and this one is null; put it in quotes")]
    KeyNull,
    /// A key that is a list, a mapping or an alias.
    #[error("keys must be strings written in place, not lists, mappings or aliases")]
    KeyNotScalar,
    /// A merge key.
    #[error("merge keys (`<<`) are not supported; write the keys out (an alias can stand for a whole value)")]
    MergeKey,
    /// A key that the mapping has already.
    #[error("duplicate key {}, first given at line {first_line}", quoted(name))]
    DuplicateKey {
        /// The key.
        name: String,
        /// The line of its first occurrence.
        first_line: usize,
    },
    /// Further errors were dropped.
    #[error("more than {0} problems; the others are not listed")]
    TooManyErrors(usize),
}

/// Errors found so far, at most `limit`.
pub(crate) struct Errors {
    found: Vec<Error>,
    limit: usize,
}

impl Errors {
    pub(crate) fn new(limit: usize) -> Errors {
        Errors { found: Vec::new(), limit }
    }

    pub(crate) fn add(&mut self, at: Position, kind: ErrorKind) {
        if self.found.len() < self.limit {
            self.found.push(Error { at, kind });
        }
    }

    pub(crate) fn into_vec(self) -> Vec<Error> {
        self.found
    }
}
