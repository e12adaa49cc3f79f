//! Strict, bounded JSON parser. Its stack is on the heap and bounded, so that nesting never overflows the thread's stack.

use std::collections::HashSet;

use super::Json;

/// Deepest nesting of arrays and objects.
pub const MAX_DEPTH: usize = 128;

/// A JSON syntax error, with its position.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem} at line {line}, column {column}")]
pub struct JsonError {
    /// Description of the problem.
    pub problem: JsonProblem,
    /// Line, from 1.
    pub line: usize,
    /// Column in bytes, from 1.
    pub column: usize,
}

/// Kinds of JSON syntax errors.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JsonProblem {
    /// The text is not UTF-8.
    #[error("invalid UTF-8")]
    NotUtf8,
    /// The text has more values than the caller allowed.
    #[error("there are too many values")]
    TooManyValues,
    /// Arrays and objects are nested deeper than [`MAX_DEPTH`].
    #[error("nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
    /// The text is empty or ends after `,`, `:` or `[`.
    #[error("the text ends where a value should be")]
    MissingValue,
    /// A character that begins no value.
    #[error("unexpected character where a value should be")]
    NotAValue,
    /// Text after the value.
    #[error("something follows the value")]
    TrailingText,
    /// A character differs from the one that the grammar needs.
    #[error("expected {0}")]
    Expected(&'static str),
    /// A member name that the object has already, shortened.
    #[error("duplicate member `{0}`")]
    DuplicateMember(String),
    /// A control character in a string.
    #[error("control character in a string")]
    ControlCharacter,
    /// A string without its closing quote.
    #[error("the text ends inside a string")]
    UnclosedString,
    /// An escape that JSON does not have.
    #[error("unknown escape in a string")]
    UnknownEscape,
}

pub(super) fn parse(text: &[u8]) -> Result<Json, JsonError> {
    parse_bounded(text, usize::MAX)
}

/// Parses a text with at most so many values: a value costs far more memory than the bytes that it is written with.
pub(super) fn parse_bounded(text: &[u8], values: usize) -> Result<Json, JsonError> {
    let text = match std::str::from_utf8(text) {
        Ok(text) => text,
        Err(error) => return Err(error_at(text, error.valid_up_to(), JsonProblem::NotUtf8)),
    };
    let mut reader = Reader { text, bytes: text.as_bytes(), at: 0, values_left: values };
    reader.document().map_err(|problem| error_at(reader.bytes, reader.at, problem))
}

fn error_at(bytes: &[u8], at: usize, problem: JsonProblem) -> JsonError {
    let before = bytes.get(..at).unwrap_or(bytes);
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    let column = before.iter().rev().take_while(|byte| **byte != b'\n').count() + 1;
    JsonError { problem, line, column }
}

/// A container that is not closed yet.
enum Open {
    Array(Vec<Json>),
    Object { members: Vec<(String, Json)>, name: String, seen: Option<HashSet<String>> },
}

/// Number of members above which a set finds duplicates; below, a scan is faster.
const SCAN_LIMIT: usize = 16;

const FOUR_DIGITS: JsonProblem = JsonProblem::Expected("four hexadecimal digits after `\\u`");

struct Reader<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    values_left: usize,
}

impl Reader<'_> {
    fn document(&mut self) -> Result<Json, JsonProblem> {
        let mut stack: Vec<Open> = Vec::new();
        loop {
            self.space();
            self.values_left = self.values_left.checked_sub(1).ok_or(JsonProblem::TooManyValues)?;
            // A value starts here: either a container, which is pushed, or a complete value.
            let mut value = match self.peek() {
                None => return Err(JsonProblem::MissingValue),
                Some(b'{') => {
                    self.at += 1;
                    deeper(&stack)?;
                    self.space();
                    if self.peek() == Some(b'}') {
                        self.at += 1;
                        Json::Object(Vec::new())
                    } else {
                        let name = self.member_name()?;
                        stack.push(Open::Object { members: Vec::new(), name, seen: None });
                        continue;
                    }
                }
                Some(b'[') => {
                    self.at += 1;
                    deeper(&stack)?;
                    self.space();
                    if self.peek() == Some(b']') {
                        self.at += 1;
                        Json::Array(Vec::new())
                    } else {
                        stack.push(Open::Array(Vec::new()));
                        continue;
                    }
                }
                Some(b'"') => Json::String(self.string()?),
                Some(b't') => self.word("true", Json::Bool(true))?,
                Some(b'f') => self.word("false", Json::Bool(false))?,
                Some(b'n') => self.word("null", Json::Null)?,
                Some(b'-' | b'0'..=b'9') => self.number()?,
                Some(_) => return Err(JsonProblem::NotAValue),
            };
            // A value is complete: give it to the container around it, and close what closes.
            loop {
                self.space();
                match stack.last_mut() {
                    None => {
                        return match self.peek() {
                            None => Ok(value),
                            Some(_) => Err(JsonProblem::TrailingText),
                        };
                    }
                    Some(Open::Array(items)) => {
                        items.push(value);
                        match self.next() {
                            Some(b',') => break,
                            Some(b']') => {}
                            _ => return Err(self.back(JsonProblem::Expected("`,` or `]`"))),
                        }
                    }
                    Some(Open::Object { members, name, seen }) => {
                        members.push((std::mem::take(name), value));
                        match self.next() {
                            Some(b',') => {
                                self.space();
                                let start = self.at;
                                *name = self.member_name()?;
                                if is_duplicate(members, seen, name) {
                                    self.at = start;
                                    return Err(JsonProblem::DuplicateMember(shorten(name)));
                                }
                                break;
                            }
                            Some(b'}') => {}
                            _ => return Err(self.back(JsonProblem::Expected("`,` or `}`"))),
                        }
                    }
                }
                value = match stack.pop() {
                    Some(Open::Array(items)) => Json::Array(items),
                    Some(Open::Object { members, .. }) => Json::Object(members),
                    // Not reached: the container that closes was found above.
                    None => return Err(JsonProblem::TrailingText),
                };
            }
        }
    }

    fn member_name(&mut self) -> Result<String, JsonProblem> {
        if self.peek() != Some(b'"') {
            return Err(JsonProblem::Expected("a member name in double quotes"));
        }
        let name = self.string()?;
        self.space();
        if self.next() != Some(b':') {
            return Err(self.back(JsonProblem::Expected("`:` after the member name")));
        }
        Ok(name)
    }

    fn string(&mut self) -> Result<String, JsonProblem> {
        self.at += 1;
        let mut out = String::new();
        loop {
            let start = self.at;
            let rest = self.bytes.get(start..).unwrap_or_default();
            let ends = |byte: &u8| *byte == b'"' || *byte == b'\\' || *byte < 0x20;
            self.at += rest.iter().position(ends).unwrap_or(rest.len());
            // Both ends lie beside ASCII bytes or the text's end, so this is always on character boundaries.
            out.push_str(self.text.get(start..self.at).unwrap_or_default());
            match self.next() {
                Some(b'"') => return Ok(out),
                Some(b'\\') => self.escape(&mut out)?,
                Some(_) => return Err(self.back(JsonProblem::ControlCharacter)),
                None => return Err(JsonProblem::UnclosedString),
            }
        }
    }

    fn escape(&mut self, out: &mut String) -> Result<(), JsonProblem> {
        let decoded = match self.next() {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => self.unicode_escape()?,
            _ => return Err(self.back(JsonProblem::UnknownEscape)),
        };
        out.push(decoded);
        Ok(())
    }

    /// A lone surrogate becomes U+FFFD: it cannot be told apart from text, and refusing it would lose the message.
    fn unicode_escape(&mut self) -> Result<char, JsonProblem> {
        let first = self.four_hex()?;
        if (0xD800..0xDC00).contains(&first) && self.bytes.get(self.at..self.at + 2) == Some(b"\\u") {
            let before = self.at;
            self.at += 2;
            let second = self.four_hex()?;
            if (0xDC00..0xE000).contains(&second) {
                let code = 0x1_0000 + ((first - 0xD800) << 10) + (second - 0xDC00);
                return Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            self.at = before;
        }
        Ok(char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    fn four_hex(&mut self) -> Result<u32, JsonProblem> {
        let digits = self.bytes.get(self.at..self.at + 4).unwrap_or_default();
        let mut code = 0;
        for digit in digits {
            let value = char::from(*digit).to_digit(16).ok_or(FOUR_DIGITS)?;
            code = code * 16 + value;
        }
        if digits.len() < 4 {
            return Err(FOUR_DIGITS);
        }
        self.at += 4;
        Ok(code)
    }

    fn number(&mut self) -> Result<Json, JsonProblem> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        match self.peek() {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits(),
            _ => return Err(JsonProblem::Expected("a digit")),
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.some_digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.some_digits()?;
        }
        Ok(Json::Number(self.text.get(start..self.at).unwrap_or_default().into()))
    }

    fn some_digits(&mut self) -> Result<(), JsonProblem> {
        if !matches!(self.peek(), Some(b'0'..=b'9')) {
            return Err(JsonProblem::Expected("a digit"));
        }
        self.digits();
        Ok(())
    }

    fn digits(&mut self) {
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
    }

    fn word(&mut self, word: &str, value: Json) -> Result<Json, JsonProblem> {
        if self.text.get(self.at..).is_some_and(|rest| rest.starts_with(word)) {
            self.at += word.len();
            Ok(value)
        } else {
            Err(JsonProblem::NotAValue)
        }
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek();
        if byte.is_some() {
            self.at += 1;
        }
        byte
    }

    /// Points the error at the character just read.
    fn back(&mut self, problem: JsonProblem) -> JsonProblem {
        self.at = self.at.saturating_sub(1);
        problem
    }
}

fn deeper(stack: &[Open]) -> Result<(), JsonProblem> {
    if stack.len() >= MAX_DEPTH {
        return Err(JsonProblem::TooDeep);
    }
    Ok(())
}

fn is_duplicate(members: &[(String, Json)], seen: &mut Option<HashSet<String>>, name: &str) -> bool {
    if members.len() <= SCAN_LIMIT {
        return members.iter().any(|(known, _)| known == name);
    }
    let seen = seen.get_or_insert_with(|| members.iter().map(|(known, _)| known.clone()).collect());
    if let Some((last, _)) = members.last() {
        seen.insert(last.clone());
    }
    seen.contains(name)
}

fn shorten(name: &str) -> String {
    let mut short: String = name.chars().take(64).collect();
    if short.len() < name.len() {
        short.push('…');
    }
    short
}
