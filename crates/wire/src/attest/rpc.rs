//! The JSON-RPC layer of Attest: requests, and error replies.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// A request.
#[derive(Debug, Clone)]
pub struct Request<'a> {
    /// The request's id; 0 if it has none.
    pub id: i64,
    /// The method.
    pub method: Cow<'a, str>,
    /// Parameters.
    pub params: Params<'a>,
}

/// The parameters of a request, as raw JSON.
#[derive(Debug, Clone, Copy)]
pub enum Params<'a> {
    /// Absent.
    Missing,
    /// `null`: all members at their defaults.
    Null,
    /// An object.
    Object(&'a RawValue),
    /// Not an object.
    Other,
}

impl<'a> Params<'a> {
    /// Deserialises the parameters; absent ones are an error, `null` is an empty object.
    pub fn read<T: Deserialize<'a>>(self) -> Result<T, ParamsError> {
        let text = match self {
            Params::Missing => return Err(ParamsError::Unfit("`params` is missing".to_owned())),
            Params::Other => return Err(ParamsError::NotAnObject),
            Params::Null => "{}",
            Params::Object(raw) => raw.get(),
        };
        serde_json::from_str(text).map_err(|error| ParamsError::Unfit(error.to_string()))
    }
}

/// Error in parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParamsError {
    /// Parameters are not an object.
    NotAnObject,
    /// Required members are missing or invalid.
    Unfit(String),
}

/// A refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Code of the error.
    pub code: Code,
    /// Message, in one line.
    pub message: String,
    /// The cause and the remedy.
    pub detail: String,
    /// Whether the same request may succeed later.
    pub retryable: bool,
}

/// The codes of refusals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// The line is not JSON.
    Parse,
    /// The message is not a request.
    InvalidRequest,
    /// The method is unknown.
    MethodNotFound,
    /// `params` is not an object.
    InvalidParams,
    /// A defect of the engine.
    Internal,
    /// The trace cannot be used.
    InvalidTrace,
    /// An assertion cannot be used.
    Assertion,
    /// A model did not answer.
    Provider,
    /// The engine failed.
    Engine,
    /// The deadline passed.
    Timeout,
    /// Wrong session state.
    Session,
}

impl Code {
    /// The JSON-RPC error code.
    pub fn number(self) -> i64 {
        match self {
            Code::Parse => -32700,
            Code::InvalidRequest => -32600,
            Code::MethodNotFound => -32601,
            Code::InvalidParams => -32602,
            Code::Internal => -32603,
            Code::InvalidTrace => 1001,
            Code::Assertion => 1002,
            Code::Provider => 2001,
            Code::Engine => 3001,
            Code::Timeout => 3002,
            Code::Session => 3003,
        }
    }

    /// The error's name.
    pub fn name(self) -> &'static str {
        match self {
            Code::Parse => "PARSE_ERROR",
            Code::InvalidRequest => "INVALID_REQUEST",
            Code::MethodNotFound => "METHOD_NOT_FOUND",
            Code::InvalidParams => "INVALID_PARAMS",
            Code::Internal => "INTERNAL_ERROR",
            Code::InvalidTrace => "INVALID_TRACE",
            Code::Assertion => "ASSERTION_ERROR",
            Code::Provider => "PROVIDER_ERROR",
            Code::Engine => "ENGINE_ERROR",
            Code::Timeout => "TIMEOUT",
            Code::Session => "SESSION_ERROR",
        }
    }
}

impl Refusal {
    /// A refusal that is not retryable.
    pub fn new(code: Code, message: impl Into<String>, detail: impl Into<String>) -> Refusal {
        Refusal { code, message: message.into(), detail: detail.into(), retryable: false }
    }

    /// Marks the refusal as retryable.
    #[must_use]
    pub fn retryable(mut self) -> Refusal {
        self.retryable = true;
        self
    }
}

/// Reads a line. On a refusal the number of the request comes along, 0 if it is not known.
pub fn read(line: &str) -> Result<Request<'_>, (i64, Refusal)> {
    #[derive(Deserialize)]
    struct Written<'a> {
        #[serde(borrow, default)]
        jsonrpc: Option<Cow<'a, str>>,
        #[serde(borrow, default)]
        id: Option<&'a RawValue>,
        #[serde(borrow, default)]
        method: Option<Cow<'a, str>>,
        #[serde(borrow, default, deserialize_with = "as_written")]
        params: Option<&'a RawValue>,
    }
    let unreadable =
        |detail: String| (0, Refusal::new(Code::Parse, "the line is not a JSON-RPC request", detail));
    // A list would be taken for the members in their order.
    if !line.trim_start().starts_with('{') {
        return Err(unreadable("a request is a JSON object".to_owned()));
    }
    let written: Written<'_> = serde_json::from_str(line).map_err(|error| unreadable(error.to_string()))?;
    let id = match written.id {
        None => 0,
        Some(raw) => raw.get().parse::<i64>().map_err(|_| {
            unreadable(format!("`id` must be a whole number of 64 bits, not {}", cut(raw.get(), 60)))
        })?,
    };
    let invalid = |detail: &str| (id, Refusal::new(Code::InvalidRequest, "the request is not valid", detail));
    if written.jsonrpc.as_deref() != Some("2.0") {
        return Err(invalid("`jsonrpc` must be \"2.0\""));
    }
    let method =
        written.method.filter(|method| !method.is_empty()).ok_or_else(|| invalid("`method` is missing"))?;
    let params = match written.params {
        None => Params::Missing,
        Some(raw) if raw.get() == "null" => Params::Null,
        Some(raw) if raw.get().starts_with('{') => Params::Object(raw),
        Some(_) => Params::Other,
    };
    Ok(Request { id, method, params })
}

/// Keeps `null` apart from an absent member.
fn as_written<'de: 'a, 'a, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<&'a RawValue>, D::Error> {
    <&'a RawValue>::deserialize(deserializer).map(Some)
}

/// A line as text. Each byte that is no UTF-8 and each half of a surrogate pair that stands alone becomes U+FFFD: official clients
/// send them, and one bad character is no reason to refuse a trace.
pub fn repaired(line: &[u8]) -> Cow<'_, str> {
    let text = match std::str::from_utf8(line) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(decoded(line)),
    };
    if !has_lone_surrogate(&text) {
        return text;
    }
    Cow::Owned(without_lone_surrogates(&text))
}

fn decoded(mut line: &[u8]) -> String {
    let mut text = String::with_capacity(line.len());
    while !line.is_empty() {
        match std::str::from_utf8(line) {
            Ok(good) => {
                text.push_str(good);
                break;
            }
            Err(error) => {
                let (good, rest) = line.split_at(error.valid_up_to());
                text.push_str(std::str::from_utf8(good).unwrap_or_default());
                let bad = error.error_len().unwrap_or(rest.len()).min(rest.len());
                text.extend(std::iter::repeat_n('\u{fffd}', bad));
                line = rest.get(bad..).unwrap_or_default();
            }
        }
    }
    text
}

/// Whether an escape of a surrogate has no partner. Lines with many escapes are common, so nothing is copied to find out.
fn has_lone_surrogate(text: &str) -> bool {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'\\', bytes.get(at..).unwrap_or_default()) {
        at += found;
        let unit = text.get(at..).and_then(escape);
        match unit {
            Some(high) if is_high(high) => match text.get(at + 6..).and_then(escape) {
                Some(low) if is_low(low) => at += 12,
                _ => return true,
            },
            Some(low) if is_low(low) => return true,
            Some(_) => at += 6,
            None => at += 2,
        }
    }
    false
}

/// Writes `\ufffd` for each escape of a surrogate that has no partner.
fn without_lone_surrogates(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        match (escape(from), from.get(6..).and_then(escape)) {
            (Some(high), Some(low)) if is_high(high) && is_low(low) => {
                out.push_str(from.get(..12).unwrap_or_default());
                rest = from.get(12..).unwrap_or_default();
            }
            (Some(unit), _) if is_high(unit) || is_low(unit) => {
                out.push_str("\\ufffd");
                rest = from.get(6..).unwrap_or_default();
            }
            _ => {
                // The escape's own character goes along, so that an escaped backslash does not begin an escape.
                let end = from.char_indices().nth(2).map_or(from.len(), |(end, _)| end);
                out.push_str(from.get(..end).unwrap_or_default());
                rest = from.get(end..).unwrap_or_default();
            }
        }
    }
    out.push_str(rest);
    out
}

/// The unit that an escape `\uXXXX` at the beginning of this text stands for.
fn escape(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u16::from_str_radix(digits, 16).ok())?
}

fn is_high(unit: u16) -> bool {
    (0xd800..0xdc00).contains(&unit)
}

fn is_low(unit: u16) -> bool {
    (0xdc00..0xe000).contains(&unit)
}

/// The id of a request of which only the beginning is known, if it precedes all nested values.
pub fn number_at_the_beginning(beginning: &[u8]) -> i64 {
    let text = decoded(beginning);
    let before = text.find("\"params\"").map_or(text.as_str(), |at| text.get(..at).unwrap_or_default());
    let number = before.find("\"id\"").and_then(|at| {
        let rest = before.get(at + 4..)?.trim_start().strip_prefix(':')?.trim_start();
        let end = rest.find(|character: char| !character.is_ascii_digit() && character != '-')?;
        rest.get(..end)?.parse().ok()
    });
    number.unwrap_or_default()
}

/// The line that refuses a request.
pub fn refuse(id: i64, refusal: &Refusal) -> Vec<u8> {
    #[derive(Serialize)]
    struct Data<'a> {
        error_type: &'a str,
        retryable: bool,
        detail: &'a str,
    }
    #[derive(Serialize)]
    struct ErrorObject<'a> {
        code: i64,
        message: &'a str,
        data: Data<'a>,
    }
    #[derive(Serialize)]
    struct Response<'a> {
        jsonrpc: &'a str,
        id: i64,
        error: ErrorObject<'a>,
    }
    let data = Data {
        error_type: refusal.code.name(),
        retryable: refusal.retryable,
        detail: cut(&refusal.detail, 4_000),
    };
    let error = ErrorObject { code: refusal.code.number(), message: cut(&refusal.message, 1_000), data };
    // Writing plain members to memory cannot fail.
    let mut line = serde_json::to_vec(&Response { jsonrpc: "2.0", id, error }).unwrap_or_default();
    line.push(b'\n');
    line
}

/// The line that answers a request.
pub fn respond(id: i64, result: &impl Serialize) -> Vec<u8> {
    #[derive(Serialize)]
    struct Response<'a, T> {
        jsonrpc: &'a str,
        id: i64,
        result: &'a T,
    }
    match serde_json::to_vec(&Response { jsonrpc: "2.0", id, result }) {
        Ok(mut line) => {
            line.push(b'\n');
            line
        }
        Err(error) => {
            refuse(id, &Refusal::new(Code::Engine, "the answer cannot be written", error.to_string()))
        }
    }
}

/// A text that is cut at a character's border.
pub fn cut(text: &str, longest: usize) -> &str {
    let end = (0..=longest.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
    text.get(..end).unwrap_or_default()
}

/// Length of a text inside a JSON string.
pub fn written_length(text: &str) -> usize {
    text.bytes().map(written).sum()
}

/// A text that is cut so that inside a JSON string it is no longer than this.
pub fn cut_written(text: &str, longest: usize) -> &str {
    let mut room = longest;
    let end = text.bytes().position(|byte| match room.checked_sub(written(byte)) {
        Some(left) => {
            room = left;
            false
        }
        None => true,
    });
    cut(text, end.unwrap_or(text.len()))
}

fn written(byte: u8) -> usize {
    match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 8 | 12 => 2,
        0..=31 => 6,
        _ => 1,
    }
}

#[cfg(test)]
mod tests;
