//! Nodes of the tree.

use std::rc::Rc;

use proctor_core::json::Json;

use crate::Position;

/// A value with its position.
#[derive(Debug, Clone)]
pub struct Node {
    /// Start of the value, with its quote; a block scalar begins with its first line that is not empty. For a value that an alias
    /// repeats, where the value itself was written.
    pub at: Position,
    /// Start of a string's content.
    pub content: Position,
    /// The position of the alias that stands for this value, if one does.
    pub alias: Option<Position>,
    /// The value.
    pub value: Value,
    /// Number of nodes in this subtree, aliases expanded.
    pub(crate) nodes: usize,
    /// Bytes of text in this subtree, aliases expanded.
    pub(crate) text: usize,
    /// Depth of this subtree, itself included.
    pub(crate) height: usize,
}

/// A value. Children are shared, because an alias repeats them.
#[derive(Debug, Clone)]
pub enum Value {
    /// `null`, `~` or nothing.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number's literal text; [`json_number`](crate::scalar::json_number) translates it.
    Number(String),
    /// A string.
    Text(String),
    /// A list.
    List(Vec<Rc<Node>>),
    /// A mapping, in the order in which it was written. Keys are unique.
    Map(Vec<(Key, Rc<Node>)>),
}

/// A key of a mapping.
#[derive(Debug, Clone)]
pub struct Key {
    /// The key.
    pub name: String,
    /// Start of the key.
    pub at: Position,
}

impl Node {
    /// The type of the value, for messages: `a string`, `a list`, …
    pub fn type_name(&self) -> &'static str {
        match self.value {
            Value::Null => "nothing",
            Value::Bool(_) => "a boolean",
            Value::Number(_) => "a number",
            Value::Text(_) => "a string",
            Value::List(_) => "a list",
            Value::Map(_) => "a mapping",
        }
    }

    /// The entry of that name, if this is a mapping that has it.
    pub fn entry(&self, name: &str) -> Option<(&Key, &Node)> {
        let Value::Map(entries) = &self.value else { return None };
        entries.iter().find(|(key, _)| key.name == name).map(|(key, node)| (key, &**node))
    }

    /// The value as JSON. A number that JSON cannot write (octal, infinity) stays the text that it was.
    pub fn to_json(&self) -> Json {
        // Recursion is bounded by `Limits::depth`.
        match &self.value {
            Value::Null => Json::Null,
            Value::Bool(value) => Json::Bool(*value),
            Value::Number(literal) => {
                Json::parse(literal.as_bytes()).unwrap_or_else(|_| Json::from(literal.as_str()))
            }
            Value::Text(text) => Json::from(text.as_str()),
            Value::List(items) => Json::Array(items.iter().map(|item| item.to_json()).collect()),
            Value::Map(entries) => {
                Json::Object(entries.iter().map(|(key, value)| (key.name.clone(), value.to_json())).collect())
            }
        }
    }
}
