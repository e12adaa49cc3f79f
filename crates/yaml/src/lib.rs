//! YAML (and so JSON) as a tree of nodes with positions, within limits that the caller sets.
//!
//! The tree is built from the parser's events without recursion. What YAML has beyond JSON and surprises people is refused: tags, merge
//! keys, keys that are not strings, duplicate keys, several documents in one source. Scalars follow the core schema of YAML 1.2.
//!
//! [`parse`] gives the tree, or every error with its position. [`parse_recovering`] gives both, for readers that report mistakes in the
//! YAML and mistakes in what it says together. [`parse_without_items`] and [`items`] read a long list item by item: the tree of a large source
//! takes many times its bytes.
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
mod items;
mod node;
mod position;
pub mod scalar;
mod source;

use std::rc::Rc;

use error::Errors;
use items::Construction;

pub use error::{Error, ErrorKind};
pub use items::Items;
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
    parse_parts(source, limits, None).0
}

/// Parses like [`parse_recovering`], but leaves the items of the list under a key of the root out of the tree. Returns the number of
/// items; [`items`] gives them. A list with an anchor stays whole, because an alias may repeat it.
pub fn parse_without_items(source: &[u8], limits: &Limits, key: &str) -> (Parsed, usize) {
    parse_parts(source, limits, Some(key))
}

/// The items that [`parse_without_items`] left out of the tree of the same source. Errors are reported by that function only.
///
/// ```
/// use proctor_yaml::{Limits, items, parse_without_items};
///
/// let limits = Limits { source_bytes: 1 << 20, depth: 64, nodes: 100_000, text_bytes: 1 << 20, errors: 100 };
/// let source = b"tests: [one, two]\nname: nightly\n";
/// let (parsed, count) = parse_without_items(source, &limits, "tests");
/// assert_eq!(parsed.root.unwrap().to_json().to_string(), r#"{"tests":[],"name":"nightly"}"#);
/// assert_eq!(count, 2);
/// let found: Vec<String> = items(source, &limits, "tests").map(|item| item.to_json().to_string()).collect();
/// assert_eq!(found, [r#""one""#, r#""two""#]);
/// ```
pub fn items<'s>(source: &'s [u8], limits: &Limits, key: &'s str) -> Items<'s> {
    let mut errors = Errors::new(limits.errors);
    Items::new(source::decode(source, limits.source_bytes, &mut errors), limits, key)
}

fn parse_parts(source: &[u8], limits: &Limits, streamed: Option<&str>) -> (Parsed, usize) {
    let mut errors = Errors::new(limits.errors);
    let Some(text) = source::decode(source, limits.source_bytes, &mut errors) else {
        return (Parsed { root: None, errors: errors.into_vec() }, 0);
    };
    let (root, items, errors) = Construction::new(text, limits, streamed).run();
    (Parsed { root, errors: errors.into_vec() }, items)
}

#[cfg(test)]
mod tests;
