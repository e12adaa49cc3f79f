//! YAML (and so JSON) as a tree of nodes with positions.
//!
//! Built from the parser's events without recursion, and bounded: the size of the source, the depth, the number of nodes
//! and the amount of text once aliases are expanded. What YAML has beyond JSON and has surprised people is refused: tags,
//! merge keys, keys that are not strings, duplicate keys, several documents.

mod build;
mod text;

use std::rc::Rc;

use saphyr_parser::{Event, Parser};

use super::Position;
use super::problems::Problems;
use build::Builder;

/// The largest source, in bytes.
pub const MAX_SOURCE_BYTES: usize = 1 << 20;
/// How deep mappings and lists may be nested.
pub const MAX_DEPTH: usize = 64;
/// How many values a document may have, aliases expanded.
pub const MAX_NODES: usize = 100_000;
/// How much text a document may hold, aliases expanded, in bytes.
pub const MAX_TEXT_BYTES: usize = MAX_SOURCE_BYTES;

/// A value and where it stands.
#[derive(Debug)]
pub(super) struct Node {
    /// Where it begins, with its quote; a block begins with its first line that is not empty.
    pub(super) at: Position,
    /// Where the content of a string begins.
    pub(super) content: Position,
    pub(super) value: Value,
    /// Values in it, itself included, aliases expanded.
    nodes: usize,
    /// Bytes of text in it, aliases expanded.
    text: usize,
    /// Mappings and lists nested in it, itself included.
    height: usize,
}

/// A value. Shared, because an alias is the same node again.
#[derive(Debug)]
pub(super) enum Value {
    Null,
    Bool(bool),
    /// The number's literal text.
    Number(String),
    Text(String),
    List(Vec<Rc<Node>>),
    Map(Vec<(Key, Rc<Node>)>),
}

/// A key of a mapping.
#[derive(Debug)]
pub(super) struct Key {
    pub(super) name: String,
    pub(super) at: Position,
}

impl Node {
    /// What it is, for messages.
    pub(super) fn found(&self) -> &'static str {
        match self.value {
            Value::Null => "nothing",
            Value::Bool(_) => "a boolean",
            Value::Number(_) => "a number",
            Value::Text(_) => "a string",
            Value::List(_) => "a list",
            Value::Map(_) => "a mapping",
        }
    }
}

/// Reads a source. `None` if it is so broken that no tree can be had; then there is at least one problem.
pub(super) fn parse(source: &[u8], problems: &mut Problems) -> Option<Rc<Node>> {
    let source = text::decode(source, problems)?;
    // The parser is not ours. Should it have a panic that we do not know of, a bad policy must still be a refused policy.
    let parsed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| build_tree(source, problems)));
    parsed.unwrap_or_else(|_| {
        problems.add(Position { line: 1, column: 1 }, "cannot be read as YAML: the YAML parser failed on it");
        None
    })
}

fn build_tree(source: &str, problems: &mut Problems) -> Option<Rc<Node>> {
    let mut parser = Parser::new_from_str(source);
    let mut builder = Builder::new();
    let mut documents = 0_usize;
    loop {
        let (event, span) = match parser.next_event() {
            Some(Ok(event)) => event,
            Some(Err(error)) => {
                problems.add(text::position(*error.marker()), format!("is not valid YAML: {}", error.info()));
                return None;
            }
            None => break,
        };
        let at = text::position(span.start);
        match event {
            Event::DocumentStart(_) => {
                documents += 1;
                if documents > 1 {
                    problems.add(
                        at,
                        "a second document begins here; put each policy document in a file of its own",
                    );
                    break;
                }
            }
            Event::StreamEnd => break,
            event => builder.take(event, at, problems).ok()?,
        }
    }
    let root = builder.root();
    if root.is_none() {
        problems.add(Position { line: 1, column: 1 }, "the document is empty");
    }
    root
}

#[cfg(test)]
mod tests;
