//! Exact comparison of JSON values: numbers by their decimal digits, and no duplicate member names.

use std::collections::BTreeMap;
use std::fmt;

use crate::text::Text;

/// Depth limit of a value.
const DEEPEST: usize = 127;

/// A JSON value.
#[derive(Debug, Clone)]
pub(crate) enum Exact {
    Null,
    Bool(bool),
    Number(ExactNumber),
    Text(String),
    List(Vec<Exact>),
    Members(BTreeMap<String, Exact>),
}

/// Cause for which a value cannot be compared.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Incomparable {
    /// A member is there twice, so that it has no one value.
    DuplicateName(String),
    /// The value is nested too deeply.
    Deep,
    /// The text is not JSON, or has a number or string without a value.
    Unreadable,
}

impl fmt::Display for Incomparable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Incomparable::DuplicateName(name) => {
                write!(formatter, "the member `{}` is there twice", super::part::brief(name))
            }
            Incomparable::Deep => write!(formatter, "it is deeper than {DEEPEST} levels"),
            Incomparable::Unreadable => {
                formatter.write_str("it has a number or a string that stands for nothing")
            }
        }
    }
}

impl Exact {
    /// Reads a value.
    pub(crate) fn read(text: &str) -> Result<Exact, Incomparable> {
        let mut reader = Reader { rest: text };
        let value = reader.value(DEEPEST)?;
        reader.space();
        if reader.rest.is_empty() { Ok(value) } else { Err(Incomparable::Unreadable) }
    }

    /// Whether this is another value, or an object that has all its members and maybe more.
    pub(crate) fn contains(&self, part: &Exact) -> bool {
        match (self, part) {
            (Exact::Members(whole), Exact::Members(part)) => {
                part.iter().all(|(name, part)| whole.get(name).is_some_and(|whole| whole.contains(part)))
            }
            _ => self.same(part),
        }
    }

    /// Whether this says what is sought somewhere: an object has its members, a list an item for each of its items; a text occurs in a
    /// text, however deep; anything else is the same.
    pub(crate) fn mentions(&self, sought: &Exact) -> bool {
        match (self, sought) {
            (Exact::Members(whole), Exact::Members(part)) => {
                part.iter().all(|(name, part)| whole.get(name).is_some_and(|whole| whole.mentions(part)))
            }
            (Exact::List(whole), Exact::List(part)) => {
                part.iter().all(|part| whole.iter().any(|whole| whole.mentions(part)))
            }
            (Exact::Text(whole), Exact::Text(part)) => whole.contains(part.as_str()),
            (Exact::List(items), _) => items.iter().any(|item| item.mentions(sought)),
            (Exact::Members(members), Exact::Text(_)) => members.values().any(|value| value.mentions(sought)),
            _ => self.same(sought),
        }
    }

    /// The same value with texts in lower case; names of members stay as they are.
    #[must_use]
    pub(crate) fn lowered(self) -> Exact {
        match self {
            Exact::Text(text) => Exact::Text(crate::content::lowered(&text).into_owned()),
            Exact::List(items) => Exact::List(items.into_iter().map(Exact::lowered).collect()),
            Exact::Members(members) => {
                Exact::Members(members.into_iter().map(|(name, value)| (name, value.lowered())).collect())
            }
            other => other,
        }
    }

    fn same(&self, other: &Exact) -> bool {
        match (self, other) {
            (Exact::Null, Exact::Null) => true,
            (Exact::Bool(left), Exact::Bool(right)) => left == right,
            (Exact::Number(left), Exact::Number(right)) => left.same(right),
            (Exact::Text(left), Exact::Text(right)) => left == right,
            (Exact::List(left), Exact::List(right)) => {
                left.len() == right.len() && left.iter().zip(right).all(|(left, right)| left.same(right))
            }
            (Exact::Members(left), Exact::Members(right)) => {
                left.len() == right.len()
                    && left.iter().zip(right).all(|(left, right)| left.0 == right.0 && left.1.same(right.1))
            }
            _ => false,
        }
    }
}

/// A number as it is written: some digits, of which neither the first nor the last is 0, and how many places they are moved.
#[derive(Debug, Clone)]
pub(crate) struct ExactNumber {
    negative: bool,
    digits: String,
    places: i64,
    /// Nearest float.
    float: f64,
}

impl ExactNumber {
    /// Reads a JSON number.
    pub(crate) fn read(text: &str) -> Option<ExactNumber> {
        let (negative, unsigned) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
        let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
        let (whole, fraction) = match mantissa.split_once('.') {
            Some((_, "")) => return None,
            Some(parts) => parts,
            None => (mantissa, ""),
        };
        let only_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let leading_zero = whole.len() > 1 && whole.starts_with('0');
        if whole.is_empty() || leading_zero || !only_digits(whole) || !only_digits(fraction) {
            return None;
        }
        let all = format!("{whole}{fraction}");
        let digits = all.trim_end_matches('0');
        let dropped = i64::try_from(all.len().checked_sub(digits.len())?).ok()?;
        let moved = exponent.parse::<i64>().ok()?.checked_sub(i64::try_from(fraction.len()).ok()?)?;
        let digits = digits.trim_start_matches('0').to_owned();
        let places = if digits.is_empty() { 0 } else { moved.checked_add(dropped)? };
        Some(ExactNumber {
            negative: negative && !digits.is_empty(),
            digits,
            places,
            float: text.parse().ok()?,
        })
    }

    /// Whether two numbers are the same, however they are written. Fractions may be written with more digits than were meant, so that
    /// they are the same if they are the same float.
    pub(crate) fn same(&self, other: &ExactNumber) -> bool {
        match (self.places >= 0, other.places >= 0) {
            (false, false) => self.float.partial_cmp(&other.float).is_some_and(std::cmp::Ordering::is_eq),
            (true, true) => {
                (self.negative, self.places, &self.digits) == (other.negative, other.places, &other.digits)
            }
            _ => false,
        }
    }
}

/// A cursor over JSON text.
struct Reader<'t> {
    rest: &'t str,
}

impl<'t> Reader<'t> {
    /// Reads a value in which at most so many others lie in each other.
    fn value(&mut self, depth: usize) -> Result<Exact, Incomparable> {
        self.space();
        match self.rest.bytes().next() {
            Some(b'{') => self.members(depth.checked_sub(1).ok_or(Incomparable::Deep)?),
            Some(b'[') => self.list(depth.checked_sub(1).ok_or(Incomparable::Deep)?),
            Some(b'"') => self.string().map(Exact::Text),
            _ => {
                let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
                let end = self.rest.bytes().position(|byte| !is_part(byte)).unwrap_or(self.rest.len());
                match self.take(end)? {
                    "null" => Ok(Exact::Null),
                    "true" => Ok(Exact::Bool(true)),
                    "false" => Ok(Exact::Bool(false)),
                    number => ExactNumber::read(number).map(Exact::Number).ok_or(Incomparable::Unreadable),
                }
            }
        }
    }

    fn list(&mut self, depth: usize) -> Result<Exact, Incomparable> {
        let mut items = Vec::new();
        self.expect('[')?;
        if self.is_next(']') {
            return Ok(Exact::List(items));
        }
        loop {
            items.push(self.value(depth)?);
            if self.is_next(']') {
                return Ok(Exact::List(items));
            }
            self.expect(',')?;
        }
    }

    fn members(&mut self, depth: usize) -> Result<Exact, Incomparable> {
        let mut members = BTreeMap::new();
        self.expect('{')?;
        if self.is_next('}') {
            return Ok(Exact::Members(members));
        }
        loop {
            self.space();
            let name = self.string()?;
            self.expect(':')?;
            let value = self.value(depth)?;
            if members.contains_key(&name) {
                return Err(Incomparable::DuplicateName(name));
            }
            members.insert(name, value);
            if self.is_next('}') {
                return Ok(Exact::Members(members));
            }
            self.expect(',')?;
        }
    }

    fn string(&mut self) -> Result<String, Incomparable> {
        let mut escaped = false;
        let end = self.rest.bytes().skip(1).position(|byte| {
            let ends = byte == b'"' && !escaped;
            escaped = byte == b'\\' && !escaped;
            ends
        });
        let text = self.take(end.ok_or(Incomparable::Unreadable)? + 2)?;
        serde_json::from_str::<Text<'_>>(text).map(Text::into_owned).map_err(|_| Incomparable::Unreadable)
    }

    fn space(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\n', '\r']);
    }

    fn is_next(&mut self, character: char) -> bool {
        self.space();
        let rest = self.rest.strip_prefix(character);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn expect(&mut self, character: char) -> Result<(), Incomparable> {
        if self.is_next(character) { Ok(()) } else { Err(Incomparable::Unreadable) }
    }

    fn take(&mut self, length: usize) -> Result<&'t str, Incomparable> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(Incomparable::Unreadable)?;
        self.rest = rest;
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::value::RawValue;
    use serde_json::{Value, json};

    use super::*;

    fn holds(whole: &str, part: &str) -> bool {
        Exact::read(whole).unwrap().contains(&Exact::read(part).unwrap())
    }

    #[test]
    fn objects_contain_and_everything_else_equals() {
        let whole = r#"{"a": {"b": 1, "c": [1, {"d": 2}]}, "e": null, "f": "x", "g": true}"#;
        for part in [
            "{}",
            r#"{"a": {}}"#,
            r#"{"a": {"b": 1.0}}"#,
            r#"{"a": {"c": [1.0, {"d": 2}]}, "e": null}"#,
            r#"{"\u0061": {}, "f": "\u0078", "g":true}"#,
        ] {
            assert!(holds(whole, part), "{part}");
        }
        for part in [
            r#"{"h": null}"#,
            r#"{"a": {"c": [1]}}"#,
            r#"{"a": {"c": [1, {}]}}"#,
            r#"{"f": "X"}"#,
            r#"{"e": false}"#,
            r#"{"g": "true"}"#,
            "[]",
        ] {
            assert!(!holds(whole, part), "{part}");
        }
    }

    #[test]
    fn numbers_are_compared_exactly() {
        for (left, right) in [
            ("1", "1.0"),
            ("0", "-0.0"),
            ("0", "0e7"),
            ("100", "1e2"),
            ("100", "1000E-1"),
            ("18446744073709551615", "18446744073709551615"),
            ("10000000000000000000000", "1e+22"),
            ("0.1", "0.10000000000000001"),
            ("0.5", "50e-2"),
            ("1e999", "10e998"),
        ] {
            assert!(holds(left, right) && holds(right, left), "{left} {right}");
        }
        for (left, right) in [
            ("9007199254740993", "9007199254740992"),
            ("9007199254740993.0", "9007199254740992"),
            ("9007199254740992.5", "9007199254740992"),
            ("123456789012345678901234567890", "123456789012345678901234567891"),
            ("-1", "1"),
            ("-1", "18446744073709551615"),
            ("0.1", "0.2"),
            ("1e999", "1e998"),
            ("1", "1.00000000000000000000000001"),
        ] {
            assert!(!holds(left, right) && !holds(right, left), "{left} {right}");
            let (left, right) = (format!(r#"[{{"n": {left}}}]"#), format!(r#"[{{"n": {right}}}]"#));
            assert!(!holds(&left, &right), "{left} {right}");
        }
    }

    #[test]
    fn what_has_no_one_value_cannot_be_compared() {
        let twice = |name: &str| Incomparable::DuplicateName(name.to_owned());
        assert_eq!(Exact::read(r#"{"a": 1, "a": 1}"#).unwrap_err(), twice("a"));
        assert_eq!(Exact::read(r#"[{"b": {"a": 1, "\u0061": 2}}]"#).unwrap_err(), twice("a"));
        let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(Exact::read(&deep(127)).is_ok());
        assert_eq!(Exact::read(&deep(128)).unwrap_err(), Incomparable::Deep);
        assert_eq!(Exact::read(&deep(100_000)).unwrap_err(), Incomparable::Deep);
        for text in [
            "",
            "{",
            "[1",
            r#"{"a"}"#,
            r#"{"a": 1,}"#,
            "[,]",
            "1 2",
            "nul",
            r#""\ud800""#,
            r#"""#,
            "01",
            "1.",
            ".5",
            "-",
            "+1",
            "1e",
            "1e99999999999999999999",
            "NaN",
            "infinity",
            "é",
            "[1}",
        ] {
            assert_eq!(Exact::read(text).unwrap_err(), Incomparable::Unreadable, "{text}");
        }
    }

    fn json_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            "\\PC{0,6}".prop_map(Value::from),
            "[\"\\\\/\n\t]{0,6}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::hash_map("[a-c\"\\\\]{0,2}", inner, 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn every_value_is_read_and_is_itself(value in json_value(), other in json_value()) {
            let (compact, pretty) = (value.to_string(), serde_json::to_string_pretty(&value).unwrap());
            prop_assert!(holds(&compact, &pretty) && holds(&pretty, &compact));
            prop_assert_eq!(holds(&json!([value]).to_string(), &json!([other]).to_string()), value == other);
        }

        #[test]
        fn no_text_breaks_it(text in "\\PC{0,24}", json in "[\\[\\]{}\",:0-9eE.+\\-a\\\\ ]{0,16}") {
            for text in [text, json] {
                match Exact::read(&text) {
                    Ok(_) => prop_assert!(serde_json::from_str::<&RawValue>(&text).is_ok(), "{}", text),
                    Err(Incomparable::DuplicateName(_)) => {}
                    Err(_) => prop_assert!(serde_json::from_str::<Value>(&text).is_err(), "{}", text),
                }
            }
        }
    }
}
