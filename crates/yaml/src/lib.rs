//! YAML (and so JSON) as a tree of nodes with positions, within limits that the caller sets.
//!
//! The tree is built from the parser's events without recursion. What YAML has beyond JSON and surprises people is refused: tags, merge
//! keys, keys that are not strings, duplicate keys, several documents in one source. Scalars follow the core schema of YAML 1.2.
//!
//! [`parse`] gives the tree, or every error with its position. [`parse_recovering`] gives both, for readers that report mistakes in the
//! YAML and mistakes in what it says together.
//!
//! ```
//! use proctor_yaml::{ErrorKind, Limits, Position, Value, parse};
//!
//! let limits = Limits { source_bytes: 1 << 20, depth: 64, nodes: 100_000, text_bytes: 1 << 20, errors: 100 };
//! let root = parse(b"name: nightly\nsteps: [build, test]\n", &limits).unwrap();
//! let (_, steps) = root.entry("steps").unwrap();
//! assert_eq!(steps.at, Position { line: 2, column: 8 });
//! assert!(matches!(&steps.value, Value::List(items) if items.len() == 2));
//! assert_eq!(root.to_json().to_string(), r#"{"name":"nightly","steps":["build","test"]}"#);
//!
//! let errors = parse(b"a: 1\na: 2\n", &limits).unwrap_err();
//! assert_eq!(errors[0].kind, ErrorKind::DuplicateKey { name: "a".to_owned(), first_line: 1 });
//! assert_eq!(errors[0].to_string(), "2:1: duplicate key `a`, first given at line 1");
//! ```

mod build;
mod error;
mod node;
mod position;
pub mod scalar;
mod source;

use std::rc::Rc;

use saphyr_parser::{Event, Parser};

use build::Builder;
use error::Errors;

pub use error::{Error, ErrorKind};
pub use node::{Key, Node, Value};
pub use position::Position;

/// Bounds of a source and of its tree. Aliases are counted as what they stand for, so that a few lines cannot become gigabytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the source.
    pub source_bytes: usize,
    /// Mappings and lists within each other.
    pub depth: usize,
    /// Values, aliases expanded.
    pub nodes: usize,
    /// Bytes of text, keys included, aliases expanded.
    pub text_bytes: usize,
    /// Errors that are collected; further ones are dropped.
    pub errors: usize,
}

/// A tree and the errors that did not prevent it.
#[derive(Debug)]
pub struct Parsed {
    /// The root; `None` only if there is at least one error.
    pub root: Option<Rc<Node>>,
    /// Errors, in the order in which they were found; at most [`Limits::errors`].
    pub errors: Vec<Error>,
}

/// Parses a source that must be free of errors. Those are sorted by position, each once; if some were dropped, the last one says so.
pub fn parse(source: &[u8], limits: &Limits) -> Result<Rc<Node>, Vec<Error>> {
    let Parsed { root, mut errors } = parse_recovering(source, limits);
    match root {
        Some(root) if errors.is_empty() => Ok(root),
        _ => {
            let dropped = errors.len() >= limits.errors;
            errors.sort_by_cached_key(|error| (error.at, error.kind.to_string()));
            errors.dedup();
            if dropped && let Some(at) = errors.last().map(|last| last.at) {
                errors.push(Error { at, kind: ErrorKind::TooManyErrors(limits.errors) });
            }
            Err(errors)
        }
    }
}

/// Parses as much of a source as possible. Entries whose key is refused are left out of the tree.
pub fn parse_recovering(source: &[u8], limits: &Limits) -> Parsed {
    let mut errors = Errors::new(limits.errors);
    let root = source::decode(source, limits.source_bytes, &mut errors).and_then(|text| {
        // The parser is not ours. Should it have a panic that we do not know of, a bad source must still be a refused source.
        let parsed =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| build_tree(text, limits, &mut errors)));
        parsed.unwrap_or_else(|_| {
            errors.add(Position::START, ErrorKind::ParserPanicked);
            None
        })
    });
    Parsed { root, errors: errors.into_vec() }
}

fn build_tree(source: &str, limits: &Limits, errors: &mut Errors) -> Option<Rc<Node>> {
    let mut parser = Parser::new_from_str(source);
    let mut builder = Builder::new(limits, errors);
    let mut documents = 0_usize;
    loop {
        let (event, span) = match parser.next_event() {
            Some(Ok(event)) => event,
            Some(Err(error)) => {
                let kind = ErrorKind::Syntax(error.info().to_owned());
                builder.refuse(source::position(*error.marker()), kind);
                return None;
            }
            None => break,
        };
        let at = source::position(span.start);
        match event {
            Event::DocumentStart(_) => {
                documents += 1;
                if documents > 1 {
                    builder.refuse(at, ErrorKind::SecondDocument);
                    break;
                }
            }
            Event::StreamEnd => break,
            event => builder.take(event, at).ok()?,
        }
    }
    let root = builder.root();
    if root.is_none() {
        errors.add(Position::START, ErrorKind::Empty);
    }
    root
}

#[cfg(test)]
mod tests;
