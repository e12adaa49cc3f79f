//! Typed access to a mapping whose keys are checked against a table; each mistake is reported.

use std::rc::Rc;

use proctor_core::quoted;
use proctor_yaml::scalar::{Plain, json_number, resolve};
use proctor_yaml::{Key, Node, Value};
use rust_decimal::Decimal;

use super::problems::{Problems, suggestion};
use super::{Located, Position};
use crate::duration::parse_micros;

/// A mapping whose keys are known.
pub(super) struct Fields<'node> {
    /// Position of the mapping.
    pub(super) at: Position,
    /// Name in messages: `tools.shell`, `rules[3]`; empty for the document itself.
    path: String,
    entries: &'node [(Key, Rc<Node>)],
}

impl<'node> Fields<'node> {
    /// The node as a mapping with these keys. Keys that are not among them are noted, unless `explain` has noted
    /// something better.
    pub(super) fn of(
        node: &'node Node,
        path: impl Into<String>,
        keys: &[&str],
        problems: &mut Problems,
        explain: &dyn Fn(&Key, &Node) -> Option<String>,
    ) -> Option<Fields<'node>> {
        let path = path.into();
        let entries = entries(node, &path, problems)?;
        for (key, value) in entries {
            if keys.contains(&key.name.as_str()) || problems.is_full() {
                continue;
            }
            let message = explain(key, value).unwrap_or_else(|| {
                let place = if path.is_empty() { String::new() } else { format!(" in `{path}`") };
                format!("unknown key {}{place}; {}", quoted(&key.name), suggestion(&key.name, keys))
            });
            problems.add(key.at, message);
        }
        Some(Fields { at: node.at, path, entries })
    }

    /// [`Fields::of`] without explanations.
    pub(super) fn closed(
        node: &'node Node,
        path: impl Into<String>,
        keys: &[&str],
        problems: &mut Problems,
    ) -> Option<Fields<'node>> {
        Fields::of(node, path, keys, problems, &|_, _| None)
    }

    pub(super) fn get(&self, key: &str) -> Option<&'node Node> {
        self.entries.iter().find(|(found, _)| found.name == key).map(|(_, node)| &**node)
    }

    pub(super) fn key_at(&self, key: &str) -> Option<Position> {
        self.entries.iter().find(|(found, _)| found.name == key).map(|(found, _)| found.at)
    }

    /// The key's name for messages.
    pub(super) fn name(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    pub(super) fn text(&self, key: &str, problems: &mut Problems) -> Option<Located<&'node str>> {
        text(self.get(key)?, &self.name(key), problems)
    }

    /// A string that is more than white space.
    pub(super) fn nonblank(&self, key: &str, problems: &mut Problems) -> Option<Located<&'node str>> {
        nonblank(self.get(key)?, &self.name(key), problems)
    }

    pub(super) fn boolean(&self, key: &str, problems: &mut Problems) -> Option<bool> {
        let node = self.get(key)?;
        if let Value::Bool(value) = node.value {
            return Some(value);
        }
        wrong_type(node, &self.name(key), "`true` or `false`", problems);
        None
    }

    /// A whole number from 1.
    pub(super) fn count(&self, key: &str, problems: &mut Problems) -> Option<u32> {
        let node = self.get(key)?;
        let Value::Number(literal) = &node.value else {
            wrong_type(node, &self.name(key), "a whole number", problems);
            return None;
        };
        match literal.parse::<u32>() {
            Ok(number) if number > 0 => Some(number),
            _ => {
                let message = format!("`{}` must be a whole number from 1 to {}", self.name(key), u32::MAX);
                problems.add(node.at, format!("{message}, found {}", quoted(literal)));
                None
            }
        }
    }

    /// A number above zero, from its literal text.
    pub(super) fn amount(&self, key: &str, whole: bool, problems: &mut Problems) -> Option<Decimal> {
        let node = self.get(key)?;
        let Value::Number(literal) = &node.value else {
            wrong_type(node, &self.name(key), "a number", problems);
            return None;
        };
        let amount = json_number(literal).and_then(|literal| exact(&literal));
        let what = if whole { "a whole number" } else { "a number" };
        match amount {
            Some(amount) if amount > Decimal::ZERO && (!whole || amount.fract().is_zero()) => Some(amount),
            Some(_) => {
                let message =
                    format!("`{}` must be {what} above 0, found {}", self.name(key), quoted(literal));
                problems.add(node.at, message);
                None
            }
            None => {
                let message = format!("`{}` has more digits than an amount can hold", self.name(key));
                problems.add(node.at, format!("{message}: {}", quoted(literal)));
                None
            }
        }
    }

    /// A duration, in microseconds.
    pub(super) fn duration(&self, key: &str, problems: &mut Problems) -> Option<u64> {
        let node = self.get(key)?;
        let Value::Text(written) = &node.value else {
            wrong_type(node, &self.name(key), "a duration such as `30s` or `1h30m`", problems);
            return None;
        };
        match parse_micros(written) {
            Ok(micros) => Some(micros),
            Err(error) => {
                problems.add(node.at, format!("`{}`: {error}, found {}", self.name(key), quoted(written)));
                None
            }
        }
    }

    /// Reads a word of a fixed set.
    pub(super) fn word(
        &self,
        key: &str,
        words: &[&str],
        problems: &mut Problems,
    ) -> Option<Located<&'node str>> {
        let found = self.text(key, problems)?;
        if words.contains(&found.value) {
            return Some(found);
        }
        let at = self.get(key).map_or(found.at, |node| node.at);
        let message = format!(
            "unknown value {} for `{}`; {}",
            quoted(found.value),
            self.name(key),
            suggestion(found.value, words)
        );
        problems.add(at, message);
        None
    }

    /// The items of a list with the name of each.
    pub(super) fn list(&self, key: &str, problems: &mut Problems) -> Option<Vec<(String, &'node Node)>> {
        let node = self.get(key)?;
        list(node, &self.name(key), problems)
    }

    /// A list of strings that are more than white space.
    pub(super) fn texts(&self, key: &str, problems: &mut Problems) -> Option<Vec<Located<String>>> {
        let items = self.list(key, problems)?;
        Some(
            items
                .into_iter()
                .filter_map(|(name, item)| nonblank(item, &name, problems))
                .map(|found| owned(&found))
                .collect(),
        )
    }
}

/// A located string of its own.
pub(super) fn owned(found: &Located<&str>) -> Located<String> {
    Located { value: found.value.to_owned(), at: found.at }
}

/// The entries of a mapping whose keys are free.
pub(super) fn entries<'node>(
    node: &'node Node,
    path: &str,
    problems: &mut Problems,
) -> Option<&'node [(Key, Rc<Node>)]> {
    if let Value::Map(entries) = &node.value {
        return Some(entries);
    }
    if path.is_empty() {
        problems.add(node.at, format!("a policy document is a mapping, found {}", node.type_name()));
    } else {
        wrong_type(node, path, "a mapping", problems);
    }
    None
}

/// The items of a list with the name of each.
pub(super) fn list<'node>(
    node: &'node Node,
    path: &str,
    problems: &mut Problems,
) -> Option<Vec<(String, &'node Node)>> {
    let Value::List(items) = &node.value else {
        wrong_type(node, path, "a list", problems);
        return None;
    };
    Some(items.iter().enumerate().map(|(index, item)| (format!("{path}[{index}]"), &**item)).collect())
}

/// A string.
pub(super) fn text<'node>(
    node: &'node Node,
    path: &str,
    problems: &mut Problems,
) -> Option<Located<&'node str>> {
    if let Value::Text(text) = &node.value {
        return Some(Located { value: text, at: node.content });
    }
    wrong_type(node, path, "a string", problems);
    None
}

/// A string that is more than white space.
pub(super) fn nonblank<'node>(
    node: &'node Node,
    path: &str,
    problems: &mut Problems,
) -> Option<Located<&'node str>> {
    let found = text(node, path, problems)?;
    if found.value.trim().is_empty() {
        problems.add(node.at, format!("`{path}` is blank; write something or remove it"));
        return None;
    }
    Some(found)
}

/// Notes that a value is of the wrong type.
pub(super) fn wrong_type(node: &Node, path: &str, expected: &str, problems: &mut Problems) {
    let advice = match &node.value {
        Value::Bool(_) | Value::Number(_) if expected == "a string" => "; put it in quotes",
        Value::Text(text) => match resolve(text) {
            Plain::Number if expected.ends_with("number") => "; take off the quotes",
            Plain::Bool(_) if expected.starts_with("`true`") => "; take off the quotes",
            _ => "",
        },
        _ => "",
    };
    problems.add(node.at, format!("`{path}`: expected {expected}, found {}{advice}", node.type_name()));
}

/// The decimal that a literal says, or nothing if it cannot be held exactly.
fn exact(literal: &str) -> Option<Decimal> {
    let Some((digits, exponent)) = literal.split_once(['e', 'E']) else {
        return Decimal::from_str_exact(literal).ok();
    };
    let digits = Decimal::from_str_exact(digits).ok()?;
    let exponent: i32 = exponent.parse().ok()?;
    if exponent.unsigned_abs() > 28 {
        return None;
    }
    let power = Decimal::try_from_i128_with_scale(10_i128.checked_pow(exponent.unsigned_abs())?, 0).ok()?;
    if exponent >= 0 { digits.checked_mul(power) } else { exact_quotient(digits, power) }
}

fn exact_quotient(digits: Decimal, power: Decimal) -> Option<Decimal> {
    let quotient = digits.checked_div(power)?;
    (quotient.checked_mul(power)? == digits).then_some(quotient)
}
