//! Typed access to a mapping whose keys are known; each mistake is noted.

use std::rc::Rc;

use proctor_core::json::Json;
use proctor_core::quoted;
use proctor_yaml::scalar::json_number;
use proctor_yaml::{Key, Node, Position, Value};

use super::keys::Keys;
use super::path::Path;
use super::problem::suggestion;
use super::reader::Reader;

/// A mapping with known keys.
#[derive(Clone, Copy)]
pub(super) struct Object<'n, 'p> {
    pub(super) at: Position,
    pub(super) path: &'p Path<'p>,
    what: &'static str,
    entries: &'n [(Key, Rc<Node>)],
}

impl<'n, 'p> Object<'n, 'p> {
    /// The node as a mapping with these keys; others are mistakes.
    pub(super) fn read(
        node: &'n Node,
        path: &'p Path<'p>,
        keys: &Keys,
        reader: &mut Reader<'_>,
    ) -> Option<Object<'n, 'p>> {
        let object = Object::open(node, path, keys.what, reader)?;
        for (key, _) in object.entries {
            let name = key.name.as_str();
            if keys.names.contains(&name) || keys.ignored.contains(&name) || reader.is_full() {
                continue;
            }
            match keys.refused.iter().find(|(refused, _)| *refused == name) {
                Some((_, why)) => reader.mistake(key.at, path, *why, ""),
                None => {
                    let message = format!("unknown key {} in {}", quoted(name), keys.what);
                    reader.mistake(key.at, path, message, suggestion(name, keys.names));
                }
            }
        }
        Some(object)
    }

    /// The node as a mapping with any keys.
    pub(super) fn open(
        node: &'n Node,
        path: &'p Path<'p>,
        what: &'static str,
        reader: &mut Reader<'_>,
    ) -> Option<Object<'n, 'p>> {
        let Value::Map(entries) = &node.value else {
            reader.wrong_type(node, path, "a mapping");
            return None;
        };
        Some(Object { at: node.at, path, what, entries })
    }

    pub(super) fn entries(&self) -> &'n [(Key, Rc<Node>)] {
        self.entries
    }

    pub(super) fn get(&self, key: &str) -> Option<&'n Node> {
        self.entries.iter().find(|(found, _)| found.name == key).map(|(_, node)| &**node)
    }

    pub(super) fn key_at(&self, key: &str) -> Position {
        self.entries.iter().find(|(found, _)| found.name == key).map_or(self.at, |(found, _)| found.at)
    }

    /// The value, if it is there and not null.
    pub(super) fn given(&self, key: &str) -> Option<&'n Node> {
        self.get(key).filter(|node| !matches!(node.value, Value::Null))
    }

    /// The value of a key that must be there.
    pub(super) fn required(&self, key: &str, reader: &mut Reader<'_>) -> Option<&'n Node> {
        let found = self.get(key);
        if found.is_none() {
            reader.mistake(self.at, self.path, format!("`{key}` is missing in {}", self.what), "");
        }
        found
    }

    pub(super) fn text(&self, key: &str, reader: &mut Reader<'_>) -> Option<&'n str> {
        text(self.get(key)?, &self.path.key(key), reader)
    }

    /// A string that is more than white space.
    pub(super) fn nonblank(&self, key: &str, reader: &mut Reader<'_>) -> Option<&'n str> {
        nonblank(self.get(key)?, &self.path.key(key), reader)
    }

    pub(super) fn required_text(&self, key: &str, reader: &mut Reader<'_>) -> Option<&'n str> {
        let node = self.required(key, reader)?;
        nonblank(node, &self.path.key(key), reader)
    }

    pub(super) fn boolean(&self, key: &str, reader: &mut Reader<'_>) -> Option<bool> {
        let node = self.get(key)?;
        if let Value::Bool(value) = node.value {
            return Some(value);
        }
        reader.wrong_type(node, &self.path.key(key), "`true` or `false`");
        None
    }

    /// A whole number in a range.
    pub(super) fn whole(&self, key: &str, range: (u64, u64), reader: &mut Reader<'_>) -> Option<u64> {
        whole(self.get(key)?, &self.path.key(key), range, reader)
    }

    /// A number in a range.
    pub(super) fn number(&self, key: &str, range: (f64, f64), reader: &mut Reader<'_>) -> Option<f64> {
        number(self.get(key)?, &self.path.key(key), range, reader)
    }

    pub(super) fn list(&self, key: &str, reader: &mut Reader<'_>) -> Option<&'n [Rc<Node>]> {
        list(self.get(key)?, &self.path.key(key), reader)
    }

    /// Number of items of a list; 0 if it is absent or no list.
    pub(super) fn list_length(&self, key: &str) -> usize {
        match self.get(key).map(|node| &node.value) {
            Some(Value::List(items)) => items.len(),
            _ => 0,
        }
    }

    /// A list of strings that are more than white space.
    pub(super) fn texts(&self, key: &str, reader: &mut Reader<'_>) -> Option<Vec<String>> {
        texts(self.get(key)?, &self.path.key(key), reader)
    }

    /// A list of strings that must have one.
    pub(super) fn some_texts(&self, key: &str, reader: &mut Reader<'_>) -> Option<Vec<String>> {
        let node = self.get(key)?;
        let found = texts(node, &self.path.key(key), reader)?;
        if matches!(&node.value, Value::List(items) if items.is_empty()) {
            reader.mistake(node.at, &self.path.key(key), "the list is empty: nothing would be checked", "");
            return None;
        }
        Some(found)
    }

    /// One of a few words.
    pub(super) fn word(&self, key: &str, words: &[&str], reader: &mut Reader<'_>) -> Option<&'n str> {
        let node = self.get(key)?;
        let found = text(node, &self.path.key(key), reader)?;
        if words.contains(&found) {
            return Some(found);
        }
        let message = format!("unknown value {}", reader.shown(node));
        reader.mistake(node.at, &self.path.key(key), message, suggestion(found, words));
        None
    }

    /// A mapping with any keys, as JSON.
    pub(super) fn json_object(&self, key: &str, reader: &mut Reader<'_>) -> Option<Json> {
        let node = self.get(key)?;
        if matches!(node.value, Value::Map(_)) {
            return Some(node.to_json());
        }
        reader.wrong_type(node, &self.path.key(key), "a mapping");
        None
    }
}

pub(super) fn text<'n>(node: &'n Node, path: &Path<'_>, reader: &mut Reader<'_>) -> Option<&'n str> {
    if let Value::Text(text) = &node.value {
        return Some(text);
    }
    reader.wrong_type(node, path, "a string");
    None
}

pub(super) fn nonblank<'n>(node: &'n Node, path: &Path<'_>, reader: &mut Reader<'_>) -> Option<&'n str> {
    let found = text(node, path, reader)?;
    if found.trim().is_empty() {
        reader.mistake(node.at, path, "the text is blank", "write something");
        return None;
    }
    Some(found)
}

pub(super) fn list<'n>(node: &'n Node, path: &Path<'_>, reader: &mut Reader<'_>) -> Option<&'n [Rc<Node>]> {
    if let Value::List(items) = &node.value {
        return Some(items);
    }
    reader.wrong_type(node, path, "a list");
    None
}

pub(super) fn texts(node: &Node, path: &Path<'_>, reader: &mut Reader<'_>) -> Option<Vec<String>> {
    let items = list(node, path, reader)?;
    let read =
        |(index, item): (usize, &Rc<Node>)| nonblank(item, &path.index(index), reader).map(str::to_owned);
    Some(items.iter().enumerate().filter_map(read).collect())
}

pub(super) fn whole(
    node: &Node,
    path: &Path<'_>,
    (least, most): (u64, u64),
    reader: &mut Reader<'_>,
) -> Option<u64> {
    let Value::Number(literal) = &node.value else {
        reader.wrong_type(node, path, "a whole number");
        return None;
    };
    let found = json_number(literal).and_then(|literal| literal.parse::<u64>().ok());
    match found {
        Some(number) if (least..=most).contains(&number) => Some(number),
        _ => {
            let bounds = match most {
                u64::MAX => format!("from {least} on"),
                _ => format!("from {least} to {most}"),
            };
            let message = format!("expected a whole number {bounds}, found {}", reader.shown(node));
            reader.mistake(node.at, path, message, "");
            None
        }
    }
}

pub(super) fn number(
    node: &Node,
    path: &Path<'_>,
    (least, most): (f64, f64),
    reader: &mut Reader<'_>,
) -> Option<f64> {
    let Value::Number(literal) = &node.value else {
        reader.wrong_type(node, path, "a number");
        return None;
    };
    let found = json_number(literal).and_then(|literal| literal.parse::<f64>().ok());
    match found {
        Some(number) if (least..=most).contains(&number) && number.is_finite() => Some(number),
        _ => {
            let bounds =
                if most.is_finite() { format!("from {least} to {most}") } else { format!("from {least} on") };
            let message = format!("expected a number {bounds}, found {}", reader.shown(node));
            reader.mistake(node.at, path, message, "");
            None
        }
    }
}
