//! JSON kept as it was sent: member order, and numbers as their literal text.
//!
//! The parser is strict (RFC 8259), refuses duplicate member names, and is bounded in depth, so that what a rule saw,
//! what was hashed and what the agent meant cannot differ.
//!
//! ```
//! use proctor_core::json::Json;
//! let value = Json::parse(br#"{"amount": 12345678901234567890.10}"#).unwrap();
//! assert_eq!(value.get("amount").unwrap().to_string(), "12345678901234567890.10");
//! assert!(Json::parse(br#"{"a": 1, "a": 2}"#).is_err());
//! ```

mod parse;
mod print;
#[cfg(feature = "serde")]
mod serde;

pub(crate) use print::write_string;

#[cfg(feature = "serde")]
pub use self::serde::{FromTypeError, ShapeError};
pub use parse::{JsonError, JsonProblem, MAX_DEPTH};

/// A JSON value. Numbers keep their literal text; members keep the order in which they were sent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Json {
    /// `null`
    #[default]
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number, as its literal text.
    Number(Box<str>),
    /// A string, decoded.
    String(String),
    /// An array.
    Array(Vec<Json>),
    /// An object. Names are unique.
    Object(Vec<(String, Json)>),
}

impl Json {
    /// Parses one JSON text. Nothing but white space may follow it.
    pub fn parse(text: &[u8]) -> Result<Json, JsonError> {
        parse::parse(text)
    }

    /// [`Json::parse`] for a text that holds at most so many values, containers included.
    pub fn parse_bounded(text: &[u8], values: usize) -> Result<Json, JsonError> {
        parse::parse_bounded(text, values)
    }

    /// An object without members.
    pub fn object() -> Json {
        Json::Object(Vec::new())
    }

    /// The member of that name, if this is an object that has it.
    pub fn get(&self, name: &str) -> Option<&Json> {
        match self {
            Json::Object(members) => members.iter().find(|(key, _)| key == name).map(|(_, value)| value),
            _ => None,
        }
    }

    /// The value at an RFC 6901 pointer (`/a/0/b`); the empty pointer is the value itself.
    pub fn pointer(&self, pointer: &str) -> Option<&Json> {
        let mut current = self;
        for token in pointer_tokens(pointer)? {
            current = match current {
                Json::Object(_) => current.get(&token)?,
                Json::Array(items) => items.get(array_index(&token)?)?,
                _ => return None,
            };
        }
        Some(current)
    }

    /// Puts `value` at an RFC 6901 pointer: replaces what is there, adds a missing last member. False if the way there
    /// does not exist.
    pub fn set_pointer(&mut self, pointer: &str, value: Json) -> bool {
        let Some(tokens) = pointer_tokens(pointer) else { return false };
        let mut current = self;
        let last = tokens.len();
        for (depth, token) in tokens.into_iter().enumerate() {
            let is_last = depth + 1 == last;
            current = match current {
                Json::Object(members) => {
                    let position = match members.iter().position(|(key, _)| *key == token) {
                        Some(position) => position,
                        None if is_last => {
                            members.push((token, Json::Null));
                            members.len() - 1
                        }
                        None => return false,
                    };
                    match members.get_mut(position) {
                        Some((_, member)) => member,
                        None => return false,
                    }
                }
                Json::Array(items) => match array_index(&token).and_then(|index| items.get_mut(index)) {
                    Some(item) => item,
                    None => return false,
                },
                _ => return false,
            };
        }
        *current = value;
        true
    }

    /// The string, if this is one.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Json::String(text) => Some(text),
            _ => None,
        }
    }

    /// The boolean, if this is one.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Json::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// The number as an unsigned integer, if it is written as one that fits.
    pub fn as_u64(&self) -> Option<u64> {
        match self {
            Json::Number(text) => text.parse().ok(),
            _ => None,
        }
    }

    /// The number as a signed integer, if it is written as one that fits.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Json::Number(text) => text.parse().ok(),
            _ => None,
        }
    }

    /// The items, if this is an array.
    pub fn as_array(&self) -> Option<&[Json]> {
        match self {
            Json::Array(items) => Some(items),
            _ => None,
        }
    }

    /// The members, if this is an object.
    pub fn as_object(&self) -> Option<&[(String, Json)]> {
        match self {
            Json::Object(members) => Some(members),
            _ => None,
        }
    }

    /// Whether this is `null`.
    pub fn is_null(&self) -> bool {
        matches!(self, Json::Null)
    }

    /// Name of the value's type, for messages.
    pub fn type_name(&self) -> &'static str {
        match self {
            Json::Null => "null",
            Json::Bool(_) => "a boolean",
            Json::Number(_) => "a number",
            Json::String(_) => "a string",
            Json::Array(_) => "an array",
            Json::Object(_) => "an object",
        }
    }

    /// Appends a member to an object that does not have it yet (which the caller ensures); other values stay unchanged.
    pub fn push(&mut self, name: &str, value: impl Into<Json>) {
        if let Json::Object(members) = self {
            members.push((name.to_owned(), value.into()));
        }
    }

    /// [`Json::push`] for building an object in one expression.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Json>) -> Json {
        self.push(name, value);
        self
    }
}

/// `value["name"]`: the member, or `null` where there is none.
impl std::ops::Index<&str> for Json {
    type Output = Json;

    fn index(&self, name: &str) -> &Json {
        self.get(name).unwrap_or(&Json::Null)
    }
}

impl PartialEq<&str> for Json {
    fn eq(&self, text: &&str) -> bool {
        self.as_str() == Some(*text)
    }
}

impl From<&str> for Json {
    fn from(text: &str) -> Json {
        Json::String(text.to_owned())
    }
}

impl From<String> for Json {
    fn from(text: String) -> Json {
        Json::String(text)
    }
}

impl From<bool> for Json {
    fn from(value: bool) -> Json {
        Json::Bool(value)
    }
}

impl From<Vec<Json>> for Json {
    fn from(items: Vec<Json>) -> Json {
        Json::Array(items)
    }
}

impl<T: Into<Json>> From<Option<T>> for Json {
    fn from(value: Option<T>) -> Json {
        value.map_or(Json::Null, Into::into)
    }
}

macro_rules! number_into_json {
    ($($number:ty),*) => {$(
        impl From<$number> for Json {
            fn from(number: $number) -> Json {
                Json::Number(number.to_string().into())
            }
        }
    )*};
}
number_into_json!(u8, u16, u32, u64, usize, i32, i64);

fn pointer_tokens(pointer: &str) -> Option<Vec<String>> {
    if pointer.is_empty() {
        return Some(Vec::new());
    }
    let rest = pointer.strip_prefix('/')?;
    Some(rest.split('/').map(|token| token.replace("~1", "/").replace("~0", "~")).collect())
}

fn array_index(token: &str) -> Option<usize> {
    if token.len() > 1 && token.starts_with('0') {
        return None;
    }
    token.parse().ok()
}

#[cfg(test)]
mod tests;
