//! Search for one agent's output in another agent's input.

use crate::raw::{normalised, plain};
use crate::sequence::ExactNumber;

/// A text that is looked for in JSON.
pub(super) struct Wanted {
    text: String,
    forms: Vec<String>,
    case_sensitive: bool,
}

impl Wanted {
    pub(super) fn new(text: &str, case_sensitive: bool) -> Wanted {
        let forms = with_escaped(text.to_owned());
        let forms = if case_sensitive { forms } else { forms.iter().map(|form| lowered(form)).collect() };
        Wanted { text: text.to_owned(), forms, case_sensitive }
    }

    /// The text as it was given.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Whether the JSON says it: as it came, or in the form that does not depend on its writer.
    pub(super) fn is_in(&self, json: &str) -> bool {
        self.is_in_form(json) || self.is_in_form(&normalised(json))
    }

    fn is_in_form(&self, json: &str) -> bool {
        if self.case_sensitive {
            self.forms.iter().any(|form| json.contains(form.as_str()))
        } else {
            let json = lowered(json);
            self.forms.iter().any(|form| json.contains(form.as_str()))
        }
    }
}

/// A value that is looked for in normalised JSON.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Needle {
    /// Texts, one of which occurs anywhere.
    Text(Vec<String>),
    /// A number, truth or untruth, which must stand alone: 4 is not in 45.
    Token(String),
}

impl Needle {
    /// The search pattern for a JSON value; none if the value is empty.
    pub(super) fn of(json: &str) -> Option<Needle> {
        let json = json.trim();
        match json.chars().next()? {
            '"' => {
                let text = plain(json);
                (!text.trim().is_empty()).then(|| Needle::Text(vec![escaped(&text)]))
            }
            '{' | '[' => {
                let json = normalised(json);
                (json.len() > 2).then(|| Needle::Text(with_escaped(json)))
            }
            'n' => None,
            _ => Some(Needle::Token(json.to_owned())),
        }
    }

    /// Whether normalised JSON has it.
    pub(super) fn is_in(&self, json: &str) -> bool {
        match self {
            Needle::Text(forms) => forms.iter().any(|form| json.contains(form.as_str())),
            Needle::Token(token) => has_token(json, token),
        }
    }
}

/// A text as it is, and as it is written within a JSON string if that differs.
fn with_escaped(text: String) -> Vec<String> {
    let within = escaped(&text);
    if within == text { vec![text] } else { vec![text, within] }
}

fn escaped(text: &str) -> String {
    // Writing a string to a `String` cannot fail.
    let quoted = serde_json::to_string(text).unwrap_or_default();
    quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default().to_owned()
}

/// Lower-cases each character by itself, so that a part of a text is lowered like the same part alone.
fn lowered(text: &str) -> String {
    text.chars().flat_map(char::to_lowercase).collect()
}

fn has_token(json: &str, token: &str) -> bool {
    let number = ExactNumber::read(token);
    let is_it = |found: &str| {
        // The stop that ends a sentence is no part of the number before it.
        let found = found.trim_end_matches(['.', '-', '+']);
        let may_be_number = found.trim_start_matches('-').starts_with(|first: char| first.is_ascii_digit());
        found == token
            || may_be_number
                && number
                    .as_ref()
                    .is_some_and(|number| ExactNumber::read(found).is_some_and(|found| found.same(number)))
    };
    let mut start = None;
    let mut characters = json.char_indices();
    while let Some((at, character)) = characters.next() {
        if character.is_alphanumeric() || matches!(character, '.' | '-' | '+' | '_') {
            start = start.or(Some(at));
            continue;
        }
        if start.take().and_then(|start| json.get(start..at)).is_some_and(is_it) {
            return true;
        }
        // What an escape stands for is no letter: normalised JSON escapes only quotes, backslashes and control characters.
        if character == '\\' && characters.next().is_some_and(|(_, escape)| escape == 'u') {
            characters.nth(3);
        }
    }
    start.and_then(|start| json.get(start..)).is_some_and(is_it)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn flows(value: &str, input: &str, expected: bool) {
        assert_eq!(
            Needle::of(value).is_some_and(|needle| needle.is_in(&normalised(input))),
            expected,
            "{value} in {input}"
        );
    }

    #[test]
    fn numbers_stand_alone() {
        for input in [
            "4",
            "[4]",
            r#"{"n": 4}"#,
            r#""order 4.""#,
            r#""a\n4""#,
            "4.0",
            r#"{"4": 1}"#,
            r#""\u00014 ""#,
            r#""(4)""#,
        ] {
            flows("4", input, true);
        }
        for input in [
            "45",
            "14",
            "-4",
            "4.5",
            "1.4",
            "4e1",
            r#""ORD-4""#,
            r#""v4""#,
            r#""4th""#,
            r#"{"a": [444]}"#,
            r#""""#,
        ] {
            flows("4", input, false);
        }
        flows("-4", "[-4]", true);
        flows("1.50", "1.5", true);
        flows("9007199254740993", "9007199254740992", false);
        flows("true", r#"{"a": true}"#, true);
        flows("true", r#""untrue""#, false);
    }

    #[test]
    fn texts_are_found_within_others() {
        flows(r#""ORD-4""#, r#"{"note": "see ORD-45"}"#, true);
        flows(r#""sch\u00f6n""#, r#""ganz schön hier""#, true);
        flows(r#""schön""#, r#""ganz sch\u00f6n hier""#, true);
        flows(r#""a \"b\"\n""#, r#"{"m": "x a \"b\"\n y"}"#, true);
        flows(r#""x""#, r#""X""#, false);
    }

    #[test]
    fn values_with_parts_are_found_however_they_are_spaced_and_quoted() {
        flows(r#"{"a": [1, 2]}"#, r#"{"given": {"a":[1,2]}}"#, true);
        flows(r#"{"a":[1,2]}"#, r#"{ "given": { "a" : [ 1, 2 ] } }"#, true);
        flows(r#"{"a": 1}"#, r#"{"text": "use {\"a\":1}"}"#, true);
        flows("[1, 2]", "[1, 3]", false);
    }

    #[test]
    fn what_says_nothing_is_not_looked_for() {
        for value in ["null", r#""""#, r#""  ""#, "{}", "[ ]", ""] {
            assert!(Needle::of(value).is_none(), "{value}");
        }
    }

    #[test]
    fn a_wanted_text_is_found_as_written_and_as_meant() {
        let found =
            |text: &str, case_sensitive: bool, json: &str| Wanted::new(text, case_sensitive).is_in(json);
        assert!(found("ö", true, r#"{"a": "\u00f6"}"#));
        assert!(found("Ö", false, r#"{"a": "\u00f6"}"#));
        assert!(!found("Ö", true, r#"{"a": "\u00f6"}"#));
        assert!(found("\\u00f6", true, r#"{"a": "\u00f6"}"#));
        assert!(found(r#"say "hi""#, false, r#"{"a": "Say \"hi\" now"}"#));
        assert!(found(r#""a": 1"#, true, r#"{"a": 1}"#));
        assert!(found(r#""a":1"#, true, r#"{"a": 1}"#));
        assert!(!found("b", true, r#"{"a": 1}"#));
    }
}
