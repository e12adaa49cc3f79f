//! Values while a condition is evaluated. They borrow from the action and the condition; only what is computed is owned.

use std::cmp::Ordering;
use std::rc::Rc;

use proctor_core::json::Json;

use super::node::{Constant, Kind};
use crate::input::FoundSecret;

#[derive(Debug, Clone)]
pub(super) enum Value<'v> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(&'v str),
    Built(Rc<str>),
    Bytes(&'v [u8]),
    BuiltBytes(Rc<[u8]>),
    /// Microseconds.
    Duration(i64),
    /// Microseconds since 1970.
    Timestamp(i64),
    /// An array or object of the action.
    Json(&'v Json),
    Texts(&'v [String]),
    /// Read as the list of their kinds.
    Findings(&'v [FoundSecret]),
    List(Rc<[Value<'v>]>),
    Map(Rc<[(Value<'v>, Value<'v>)]>),
}

impl<'v> Value<'v> {
    /// The value that CEL sees in a JSON value: integers are int, or uint if only that holds them; other numbers are double.
    pub(super) fn of_json(json: &'v Json) -> Value<'v> {
        match json {
            Json::Null => Value::Null,
            Json::Bool(value) => Value::Bool(*value),
            Json::Number(text) => number(text),
            Json::String(text) => Value::Text(text),
            Json::Array(_) | Json::Object(_) => Value::Json(json),
        }
    }

    pub(super) fn of_constant(constant: &'v Constant) -> Value<'v> {
        match constant {
            Constant::Null => Value::Null,
            Constant::Bool(value) => Value::Bool(*value),
            Constant::Int(value) => Value::Int(*value),
            Constant::Uint(value) => Value::Uint(*value),
            Constant::Double(value) => Value::Double(*value),
            Constant::Text(value) => Value::Text(value),
            Constant::Bytes(value) => Value::Bytes(value),
            Constant::Duration(value) => Value::Duration(*value),
            Constant::Timestamp(value) => Value::Timestamp(*value),
        }
    }

    pub(super) fn as_text(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            Value::Built(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Value::Bytes(bytes) => Some(bytes),
            Value::BuiltBytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    pub(super) fn kind(&self) -> Kind {
        match self {
            Value::Null => Kind::Null,
            Value::Bool(_) => Kind::Bool,
            Value::Int(_) => Kind::Int,
            Value::Uint(_) => Kind::Uint,
            Value::Double(_) => Kind::Double,
            Value::Text(_) | Value::Built(_) => Kind::Text,
            Value::Bytes(_) | Value::BuiltBytes(_) => Kind::Bytes,
            Value::Duration(_) => Kind::Duration,
            Value::Timestamp(_) => Kind::Timestamp,
            Value::Json(Json::Object(_)) | Value::Map(_) => Kind::Map,
            Value::Json(_) | Value::Texts(_) | Value::Findings(_) | Value::List(_) => Kind::List,
        }
    }

    /// Number of elements of a list or map.
    pub(super) fn length(&self) -> Option<usize> {
        match self {
            Value::Json(Json::Array(items)) => Some(items.len()),
            Value::Json(Json::Object(members)) => Some(members.len()),
            Value::Texts(texts) => Some(texts.len()),
            Value::Findings(findings) => Some(findings.len()),
            Value::List(items) => Some(items.len()),
            Value::Map(entries) => Some(entries.len()),
            _ => None,
        }
    }

    /// The element of a list, or the key of a map, at that index.
    pub(super) fn element(&self, index: usize) -> Option<Value<'v>> {
        match self {
            Value::Json(Json::Array(items)) => items.get(index).map(Value::of_json),
            Value::Json(Json::Object(members)) => members.get(index).map(|(name, _)| Value::Text(name)),
            Value::Texts(texts) => texts.get(index).map(|text| Value::Text(text)),
            Value::Findings(findings) => findings.get(index).map(|finding| Value::Text(&finding.kind)),
            Value::List(items) => items.get(index).cloned(),
            Value::Map(entries) => entries.get(index).map(|(key, _)| key.clone()),
            _ => None,
        }
    }

    /// Value of a map under that key.
    pub(super) fn lookup(&self, key: &Value<'_>) -> Option<Value<'v>> {
        match self {
            Value::Json(object @ Json::Object(_)) => object.get(key.as_text()?).map(Value::of_json),
            Value::Map(entries) => {
                entries.iter().find(|(name, _)| name.equals(key)).map(|(_, value)| value.clone())
            }
            _ => None,
        }
    }

    /// CEL's equality: numbers by value across types, lists and maps by content; other values of two types are unequal.
    pub(super) fn equals(&self, other: &Value<'_>) -> bool {
        if let (Some(left), Some(right)) = (self.as_text(), other.as_text()) {
            return left == right;
        }
        match (self, other) {
            (Value::Null, Value::Null) => true,
            (Value::Bool(left), Value::Bool(right)) => left == right,
            (Value::Duration(left), Value::Duration(right))
            | (Value::Timestamp(left), Value::Timestamp(right)) => left == right,
            _ => {
                if let (Some(left), Some(right)) = (self.as_bytes(), other.as_bytes()) {
                    return left == right;
                }
                match (self.kind(), other.kind()) {
                    (left, right) if left.is_number() && right.is_number() => {
                        compare_numbers(self, other) == Some(Ordering::Equal)
                    }
                    (Kind::List, Kind::List) => self.same_elements(other),
                    (Kind::Map, Kind::Map) => self.same_entries(other),
                    _ => false,
                }
            }
        }
    }

    fn same_elements(&self, other: &Value<'_>) -> bool {
        let length = self.length().unwrap_or(0);
        other.length() == Some(length)
            && (0..length).all(|index| match (self.element(index), other.element(index)) {
                (Some(left), Some(right)) => left.equals(&right),
                _ => false,
            })
    }

    fn same_entries(&self, other: &Value<'_>) -> bool {
        let length = self.length().unwrap_or(0);
        other.length() == Some(length)
            && (0..length).filter_map(|index| self.element(index)).all(|key| {
                match (self.lookup(&key), other.lookup(&key)) {
                    (Some(left), Some(right)) => left.equals(&right),
                    _ => false,
                }
            })
    }

    /// CEL's order; `None` for what has none.
    pub(super) fn compare(&self, other: &Value<'_>) -> Option<Ordering> {
        match (self, other) {
            (Value::Bool(left), Value::Bool(right)) => Some(left.cmp(right)),
            (Value::Duration(left), Value::Duration(right))
            | (Value::Timestamp(left), Value::Timestamp(right)) => Some(left.cmp(right)),
            _ => {
                if let (Some(left), Some(right)) = (self.as_text(), other.as_text()) {
                    return Some(left.cmp(right));
                }
                if let (Some(left), Some(right)) = (self.as_bytes(), other.as_bytes()) {
                    return Some(left.cmp(right));
                }
                compare_numbers(self, other)
            }
        }
    }

    /// Cost of comparing the value with another, in steps.
    pub(super) fn weight(&self) -> usize {
        match self {
            Value::Text(_) | Value::Built(_) => self.as_text().map_or(0, str::len) / 64,
            Value::Bytes(_) | Value::BuiltBytes(_) => self.as_bytes().map_or(0, <[u8]>::len) / 64,
            Value::Json(json) => json_weight(json),
            Value::Texts(texts) => texts.len(),
            Value::Findings(findings) => findings.len(),
            Value::List(items) => items.iter().map(|item| 1 + item.weight()).sum(),
            Value::Map(entries) => {
                // Finding a key looks at all of them.
                entries.len() * entries.len() + entries.iter().map(|(_, value)| value.weight()).sum::<usize>()
            }
            _ => 0,
        }
    }
}

fn json_weight(json: &Json) -> usize {
    match json {
        Json::Array(items) => items.len() + items.iter().map(json_weight).sum::<usize>(),
        Json::Object(members) => {
            members.len() * members.len() + members.iter().map(|(_, value)| json_weight(value)).sum::<usize>()
        }
        Json::String(text) => text.len() / 64,
        _ => 0,
    }
}

fn number<'v>(text: &str) -> Value<'v> {
    if let Ok(value) = text.parse::<i64>() {
        Value::Int(value)
    } else if let Ok(value) = text.parse::<u64>() {
        Value::Uint(value)
    } else {
        // INVARIANT: JSON's numbers are a part of what Rust reads as a float.
        Value::Double(text.parse().unwrap_or(f64::NAN))
    }
}

fn compare_numbers(left: &Value<'_>, right: &Value<'_>) -> Option<Ordering> {
    match (left, right) {
        (Value::Double(left), Value::Double(right)) => left.partial_cmp(right),
        (Value::Double(left), _) => compare_whole(whole(right)?, *left).map(Ordering::reverse),
        (_, Value::Double(right)) => compare_whole(whole(left)?, *right),
        _ => Some(whole(left)?.cmp(&whole(right)?)),
    }
}

fn whole(value: &Value<'_>) -> Option<i128> {
    match value {
        Value::Int(value) => Some(i128::from(*value)),
        Value::Uint(value) => Some(i128::from(*value)),
        _ => None,
    }
}

/// Compares exactly: turning the integer into a float would make neighbours equal.
fn compare_whole(whole: i128, double: f64) -> Option<Ordering> {
    if double.is_nan() {
        return None;
    }
    if double.abs() >= 1e20 {
        return Some(if double > 0.0 { Ordering::Less } else { Ordering::Greater });
    }
    #[expect(
        clippy::cast_possible_truncation,
        reason = "below 1e20, which an i128 holds; the fraction is compared next"
    )]
    let truncated = double.trunc() as i128;
    Some(whole.cmp(&truncated).then_with(|| 0.0f64.partial_cmp(&double.fract()).unwrap_or(Ordering::Equal)))
}
