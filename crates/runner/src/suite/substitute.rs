//! Environment variables in the strings of a suite: `${NAME}` and `${NAME:default}`.

use std::rc::Rc;

use proctor_yaml::{Node, Value};

use super::path::Path;
use super::reader::Reader;

/// Replaces variables in every string value, at any depth; keys stay as they are. The result is always a string. Subtrees without
/// variables are shared with the original.
pub(super) struct Substitution<'o> {
    environment: &'o dyn Fn(&str) -> Option<String>,
    /// Bytes that replaced texts may still have. A large variable, used often, must not fill the memory.
    left: usize,
    limit: usize,
}

impl<'o> Substitution<'o> {
    pub(super) fn new(environment: &'o dyn Fn(&str) -> Option<String>, limit: usize) -> Substitution<'o> {
        Substitution { environment, left: limit, limit }
    }

    /// Recursion is bounded by the depth limit of the YAML parser.
    pub(super) fn apply(&mut self, node: &Rc<Node>, path: &Path<'_>, reader: &mut Reader<'_>) -> Rc<Node> {
        match &node.value {
            Value::Text(text) if text.contains("${") => {
                let replaced = self.replace(node, text, path, reader);
                if replaced == *text {
                    return Rc::clone(node);
                }
                reader.substituted.insert(node.at, text.clone());
                with_value(node, Value::Text(replaced))
            }
            Value::List(items) => {
                let new: Vec<Rc<Node>> = items
                    .iter()
                    .enumerate()
                    .map(|(index, item)| self.apply(item, &path.index(index), reader))
                    .collect();
                if new.iter().zip(items).all(|(new, old)| Rc::ptr_eq(new, old)) {
                    return Rc::clone(node);
                }
                with_value(node, Value::List(new))
            }
            Value::Map(entries) => {
                let new: Vec<Rc<Node>> = entries
                    .iter()
                    .map(|(key, value)| self.apply(value, &path.key(&key.name), reader))
                    .collect();
                if new.iter().zip(entries).all(|(new, (_, old))| Rc::ptr_eq(new, old)) {
                    return Rc::clone(node);
                }
                let keys = entries.iter().map(|(key, _)| key.clone());
                with_value(node, Value::Map(keys.zip(new).collect()))
            }
            _ => Rc::clone(node),
        }
    }

    fn replace(&mut self, node: &Node, text: &str, path: &Path<'_>, reader: &mut Reader<'_>) -> String {
        let mut out = String::new();
        let mut rest = text;
        while let Some(start) = rest.find("${") {
            let (before, from) = rest.split_at_checked(start).unwrap_or((rest, ""));
            out.push_str(before);
            let Some((whole, name, default)) = reference(from) else {
                out.push_str("${");
                rest = from.get(2..).unwrap_or_default();
                continue;
            };
            match (self.environment)(name).or_else(|| default.map(str::to_owned)) {
                Some(value) => out.push_str(&value),
                None => {
                    let message = format!("the environment variable `{name}` is not set");
                    let advice = format!("set it, or write a default: `${{{name}:…}}`");
                    reader.mistake(node.at, path, message, advice);
                }
            }
            rest = from.get(whole..).unwrap_or_default();
        }
        out.push_str(rest);
        if out.len() > self.left {
            let message = format!("the values of variables have more than {} bytes together", self.limit);
            reader.mistake(node.at, path, message, "");
            return text.to_owned();
        }
        self.left -= out.len();
        out
    }
}

/// The variable at the start of a text: its length, its name, and its default. Names are upper-case letters, digits and underscores; other
/// names are no variables and stay.
fn reference(text: &str) -> Option<(usize, &str, Option<&str>)> {
    let inner = text.strip_prefix("${")?;
    let (inner, _) = inner.split_once('}')?;
    let (name, default) = match inner.split_once(':') {
        Some((name, default)) => (name, Some(default)),
        None => (inner, None),
    };
    let first = name.bytes().next()?;
    let is_name = (first == b'_' || first.is_ascii_uppercase())
        && name.bytes().all(|byte| byte == b'_' || byte.is_ascii_uppercase() || byte.is_ascii_digit());
    is_name.then_some((inner.len() + 3, name, default))
}

fn with_value(node: &Node, value: Value) -> Rc<Node> {
    let mut new = node.clone();
    new.value = value;
    Rc::new(new)
}
