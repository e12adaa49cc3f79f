//! Checks of single values. Absent values and `null` are the same.

use proctor_core::json::Json;

use super::code;
use super::path::Path;
use super::walk::Walk;

/// Longest beginning of a file name, in characters.
const LONGEST_PREFIX: usize = 80;

impl Walk {
    /// A string that is not blank and has no control characters. Returns it if it is one.
    pub(super) fn text<'a>(
        &mut self,
        path: &Path<'_>,
        value: Option<&'a Json>,
        required: bool,
    ) -> Option<&'a str> {
        let value = match value {
            None | Some(Json::Null) => {
                if required {
                    self.error(path, code::REQUIRED, "is required");
                }
                return None;
            }
            Some(value) => value,
        };
        let Json::String(text) = value else {
            self.error(path, code::NOT_A_STRING, "must be a string");
            return None;
        };
        if is_blank(text) {
            self.error(path, code::EMPTY, "must not be empty");
            return None;
        }
        if has_control_characters(text) {
            self.error(path, code::CONTROL_CHARACTERS, "must not contain control characters");
            return None;
        }
        Some(text)
    }

    pub(super) fn identifier(&mut self, path: &Path<'_>, value: Option<&Json>, required: bool) {
        if let Some(text) = self.text(path, value, required)
            && !is_identifier(text)
        {
            let message =
                "must begin with a letter or digit and continue with letters, digits, `.`, `_` or `-`";
            self.error(path, code::INVALID_IDENTIFIER, message);
        }
    }

    pub(super) fn token(&mut self, path: &Path<'_>, value: Option<&Json>, required: bool) {
        if let Some(text) = self.text(path, value, required)
            && !text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"@:_./-".contains(&byte))
        {
            let message = "must consist of letters, digits, and the characters `@`, `:`, `_`, `.`, `/`, `-`";
            self.error(path, code::INVALID_TOKEN, message);
        }
    }

    pub(super) fn environment_name(&mut self, path: &Path<'_>, value: Option<&Json>, required: bool) {
        if let Some(text) = self.text(path, value, required)
            && !is_environment_name(text)
        {
            self.invalid_environment_name(path);
        }
    }

    pub(super) fn invalid_environment_name(&mut self, path: &Path<'_>) {
        let message = "must begin with a letter or `_` and continue with letters, digits or `_`";
        self.error(path, code::INVALID_ENVIRONMENT_NAME, message);
    }

    pub(super) fn file_prefix(&mut self, path: &Path<'_>, value: Option<&Json>, required: bool) {
        if let Some(text) = self.text(path, value, required)
            && (text.len() > LONGEST_PREFIX || !is_file_name(text))
        {
            let message = format!("must be at most {LONGEST_PREFIX} letters, digits, `.`, `_` or `-`");
            self.error(path, code::INVALID_PREFIX, message);
        }
    }

    pub(super) fn boolean(&mut self, path: &Path<'_>, value: Option<&Json>) {
        if !matches!(value, None | Some(Json::Null | Json::Bool(_))) {
            self.error(path, code::NOT_A_BOOLEAN, "must be a boolean");
        }
    }

    pub(super) fn integer(&mut self, path: &Path<'_>, value: Option<&Json>, least: u32) {
        let fits = |number: f64| number.fract() == 0.0 && number >= f64::from(least);
        if !is_number(value, fits) {
            self.error(path, code::NOT_AN_INTEGER, format!("must be an integer of at least {least}"));
        }
    }

    pub(super) fn amount(&mut self, path: &Path<'_>, value: Option<&Json>) {
        if !is_number(value, |number| number >= 0.0) {
            self.error(path, code::NOT_A_NUMBER, "must be a number that is not negative");
        }
    }

    pub(super) fn word(
        &mut self,
        path: &Path<'_>,
        value: Option<&Json>,
        required: bool,
        words: &'static [&'static str],
    ) {
        match value {
            None | Some(Json::Null) if required => self.error(path, code::REQUIRED, "is required"),
            None | Some(Json::Null) => {}
            Some(Json::String(text)) if words.contains(&text.as_str()) => {}
            Some(_) => {
                self.error(path, code::NOT_IN_LIST, format!("must be one of: {}", words.join(", ")));
            }
        }
    }

    /// The value, if it is an object.
    pub(super) fn object<'a>(
        &mut self,
        path: &Path<'_>,
        value: Option<&'a Json>,
        required: bool,
    ) -> Option<&'a Json> {
        match value {
            Some(value @ Json::Object(_)) => return Some(value),
            None | Some(Json::Null) if required => self.error(path, code::REQUIRED, "is required"),
            None | Some(Json::Null) => {}
            Some(_) => self.error(path, code::NOT_AN_OBJECT, "must be an object"),
        }
        None
    }

    /// The items, if the value is an array.
    pub(super) fn array<'a>(&mut self, path: &Path<'_>, value: Option<&'a Json>) -> Option<&'a [Json]> {
        match value {
            None | Some(Json::Null) => None,
            Some(Json::Array(items)) => Some(items),
            Some(_) => {
                self.error(path, code::NOT_AN_ARRAY, "must be an array");
                None
            }
        }
    }

    /// The items of a required array that has some.
    pub(super) fn full_array<'a>(&mut self, path: &Path<'_>, value: Option<&'a Json>) -> Option<&'a [Json]> {
        match value {
            Some(Json::Array(items)) if items.is_empty() => {
                self.error(path, code::EMPTY_ARRAY, "must have at least one item");
                None
            }
            None | Some(Json::Null) => {
                self.error(path, code::REQUIRED, "is required: an array with at least one item");
                None
            }
            other => self.array(path, other),
        }
    }
}

/// The value, unless it is `null`.
pub(super) fn given(value: Option<&Json>) -> Option<&Json> {
    value.filter(|value| !value.is_null())
}

/// Whether the value is absent or a finite double that fits.
fn is_number(value: Option<&Json>, fits: impl Fn(f64) -> bool) -> bool {
    match value {
        None | Some(Json::Null) => true,
        Some(Json::Number(literal)) => {
            literal.parse::<f64>().is_ok_and(|number| number.is_finite() && fits(number))
        }
        Some(_) => false,
    }
}

/// Whether JavaScript's `trim` leaves nothing.
pub(super) fn is_blank(text: &str) -> bool {
    // U+0085 is white space for Unicode, but not for JavaScript; with U+FEFF it is the other way round.
    text.chars()
        .all(|character| character == '\u{feff}' || (character.is_whitespace() && character != '\u{85}'))
}

/// Control characters other than tabulator and line ends.
pub(super) fn has_control_characters(text: &str) -> bool {
    text.bytes().any(|byte| matches!(byte, 0..=8 | 0x0b | 0x0c | 0x0e..=0x1f | 0x7f))
}

pub(super) fn is_identifier(text: &str) -> bool {
    text.bytes().next().is_some_and(|first| first.is_ascii_alphanumeric())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}

pub(super) fn is_environment_name(text: &str) -> bool {
    text.bytes().next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Whether the text can be a file's name in a folder of ours, on every system and in every listing.
pub(super) fn is_file_name(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 255
        && text != "."
        && text != ".."
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}

/// A text that is not blank.
pub(super) fn filled(value: Option<&Json>) -> Option<&str> {
    value.and_then(Json::as_str).filter(|text| !is_blank(text))
}
