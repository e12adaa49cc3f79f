//! JSON values: paths, comparison, text form.

use std::fmt::Write;

use proctor_core::json::Json;

/// A path into a JSON value: `$`, then `.name` or `[index]`, nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonPath {
    steps: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Name(String),
    Index(usize),
}

/// A text that is no such path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a path is `$` followed by `.name` or `[index]`, such as `$.items[0].id`")]
pub struct JsonPathError;

impl JsonPath {
    /// Reads a path.
    pub fn parse(written: &str) -> Result<JsonPath, JsonPathError> {
        let mut rest = written.strip_prefix('$').ok_or(JsonPathError)?;
        let mut steps = Vec::new();
        while !rest.is_empty() {
            if let Some(after) = rest.strip_prefix('.') {
                let end = after.find(['.', '[']).unwrap_or(after.len());
                let (name, remaining) = after.split_at_checked(end).ok_or(JsonPathError)?;
                let is_identifier = !name.starts_with(|first: char| first.is_ascii_digit())
                    && name.chars().all(|part| part == '_' || part.is_alphanumeric());
                if name.is_empty() || !is_identifier {
                    return Err(JsonPathError);
                }
                steps.push(Step::Name(name.to_owned()));
                rest = remaining;
            } else {
                let after = rest.strip_prefix('[').ok_or(JsonPathError)?;
                let (index, remaining) = after.split_once(']').ok_or(JsonPathError)?;
                if index.is_empty() || !index.bytes().all(|byte| byte.is_ascii_digit()) {
                    return Err(JsonPathError);
                }
                steps.push(Step::Index(index.parse().map_err(|_| JsonPathError)?));
                rest = remaining;
            }
        }
        Ok(JsonPath { steps })
    }

    /// The value at the path.
    pub fn find<'v>(&self, value: &'v Json) -> Option<&'v Json> {
        self.steps.iter().try_fold(value, |value, step| match step {
            Step::Name(name) => value.get(name),
            Step::Index(index) => value.as_array().and_then(|items| items.get(*index)),
        })
    }
}

/// Whether two values are equal: numbers by value, members in any order.
pub(super) fn same(left: &Json, right: &Json) -> bool {
    match (left, right) {
        (Json::Number(left), Json::Number(right)) => same_number(left, right),
        (Json::Array(left), Json::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(left, right))
        }
        (Json::Object(members), Json::Object(others)) => {
            members.len() == others.len()
                && members.iter().all(|(name, value)| right.get(name).is_some_and(|other| same(value, other)))
        }
        _ => left == right,
    }
}

fn same_number(left: &str, right: &str) -> bool {
    if left == right {
        return true;
    }
    // Large integers are compared as such: as floating-point numbers, different ones would be equal.
    if let (Ok(left), Ok(right)) = (left.parse::<i128>(), right.parse::<i128>()) {
        return left == right;
    }
    matches!((left.parse::<f64>(), right.parse::<f64>()), (Ok(left), Ok(right)) if left.total_cmp(&right).is_eq())
}

/// The value as text with a space after each comma and colon: the text form of structured artifacts that suites are written against.
pub(super) fn spaced(value: &Json) -> String {
    let mut out = String::new();
    write_spaced(value, &mut out);
    out
}

/// Recursion is bounded by the depth that the JSON parser allows.
fn write_spaced(value: &Json, out: &mut String) {
    match value {
        Json::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index > 0 { ", " } else { "" });
                write_spaced(item, out);
            }
            out.push(']');
        }
        Json::Object(members) => {
            out.push('{');
            for (index, (name, member)) in members.iter().enumerate() {
                out.push_str(if index > 0 { ", " } else { "" });
                // Writing to a string cannot fail.
                let _ = write!(out, "{}: ", Json::from(name.as_str()));
                write_spaced(member, out);
            }
            out.push('}');
        }
        plain => {
            let _ = write!(out, "{plain}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Json {
        Json::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn paths_have_names_and_indexes_and_nothing_else() {
        let value = json(r#"{"a": [{"b": 1}], "ä_1": 2}"#);
        for (path, found) in
            [("$.a[0].b", Some("1")), ("$.ä_1", Some("2")), ("$.a[1]", None), ("$.a.b", None)]
        {
            let path = JsonPath::parse(path).unwrap();
            assert_eq!(path.find(&value).map(ToString::to_string).as_deref(), found);
        }
        assert_eq!(JsonPath::parse("$").unwrap().find(&value), Some(&value));
        for path in
            ["", "a", "$a", "$.", "$..a", "$.a[", "$.a[-1]", "$.a[*]", "$['a']", "$.1a", "$.a-b", "$.a[ 0]"]
        {
            assert!(JsonPath::parse(path).is_err(), "{path}");
        }
    }

    #[test]
    fn equality_is_by_value() {
        for (left, right, expected) in [
            ("1", "1.0", true),
            ("1e2", "100", true),
            ("9007199254740993", "9007199254740992", false),
            (r#"{"a":1,"b":2}"#, r#"{"b":2.0,"a":1}"#, true),
            (r#"{"a":1}"#, r#"{"a":1,"b":2}"#, false),
            ("[1,2]", "[2,1]", false),
            (r#""1""#, "1", false),
        ] {
            assert_eq!(same(&json(left), &json(right)), expected, "{left} {right}");
        }
    }

    #[test]
    fn text_form_has_spaces() {
        assert_eq!(spaced(&json(r#"{"a":[1,"ö"],"b":{}}"#)), r#"{"a": [1, "ö"], "b": {}}"#);
    }
}
