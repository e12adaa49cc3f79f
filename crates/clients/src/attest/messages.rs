//! Messages of the protocol. Bodies stay raw JSON, which the caller interprets.

use std::fmt;
use std::io::{self, Write};

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

/// The version of the protocol that this client speaks.
pub const PROTOCOL_VERSION: i64 = 1;

/// The engine's answer to `initialize`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct InitializeResult {
    /// The engine's version. Some engines report an older one than they are.
    pub engine_version: String,
    /// The engine's version of the protocol.
    pub protocol_version: i64,
    /// Whether the engine has all required capabilities.
    pub compatible: bool,
    /// The engine's capabilities.
    #[serde(default, deserialize_with = "or_default")]
    pub capabilities: Vec<String>,
    /// Required capabilities that the engine lacks.
    #[serde(default, deserialize_with = "or_default")]
    pub missing: Vec<String>,
    /// The encoding of messages: `json`.
    #[serde(default = "json")]
    pub encoding: String,
    /// The maximum number of concurrent requests.
    #[serde(default = "sixty_four")]
    pub max_concurrent_requests: u64,
    /// The maximum size of a trace.
    #[serde(default = "ten_mebibytes")]
    pub max_trace_size_bytes: u64,
    /// The maximum number of steps of a trace.
    #[serde(default = "ten_thousand")]
    pub max_steps_per_trace: u64,
}

/// The engine's answer to `shutdown`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct ShutdownResult {
    /// The number of sessions.
    #[serde(default)]
    pub sessions_completed: u64,
    /// The number of evaluated assertions.
    #[serde(default)]
    pub assertions_evaluated: u64,
}

/// An engine's error answer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EngineError {
    /// The numeric code.
    pub code: i64,
    /// The message.
    pub message: String,
    /// The symbolic code; empty if there is none.
    pub error_type: String,
    /// Whether a retry may succeed.
    pub retryable: bool,
    /// Details; empty if there are none.
    pub detail: String,
}

impl fmt::Display for EngineError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} (code {}", self.message, self.code)?;
        if !self.error_type.is_empty() {
            write!(out, ", {}", self.error_type)?;
        }
        out.write_str(")")?;
        if !self.detail.is_empty() {
            write!(out, ": {}", self.detail)?;
        }
        Ok(())
    }
}

impl EngineError {
    /// Reads an error object; none if it is none. Details that cannot be read are left out.
    fn read(raw: &RawValue) -> Option<EngineError> {
        #[derive(Deserialize)]
        struct Envelope<'a> {
            code: i64,
            #[serde(default, deserialize_with = "or_default")]
            message: String,
            #[serde(borrow, default, deserialize_with = "present")]
            data: Option<&'a RawValue>,
        }
        #[derive(Deserialize, Default)]
        struct Data {
            #[serde(default, deserialize_with = "or_default")]
            error_type: String,
            #[serde(default, deserialize_with = "or_default")]
            retryable: bool,
            #[serde(default, deserialize_with = "or_default")]
            detail: String,
        }
        let Envelope { code, message, data } = object(raw.get().as_bytes())?;
        let Data { error_type, retryable, detail } =
            data.and_then(|data| object(data.get().as_bytes())).unwrap_or_default();
        Some(EngineError { code, message, error_type, retryable, detail })
    }
}

/// The parameters of `initialize`.
#[derive(Debug, Serialize)]
pub(super) struct InitializeParams<'a> {
    pub(super) sdk_name: &'a str,
    pub(super) sdk_version: &'a str,
    pub(super) protocol_version: i64,
    pub(super) required_capabilities: &'a [String],
    pub(super) preferred_encoding: &'a str,
    /// Extension: the longest answer that is read. Other engines ignore it.
    pub(super) max_response_bytes: usize,
}

/// A request that cannot be encoded.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum EncodeError {
    TooLong,
    Invalid(String),
}

/// Encodes a request as one line with its newline; without it the line has at most `max` bytes.
pub(super) fn request(
    id: u64,
    method: &str,
    params: &(impl Serialize + ?Sized),
    max: usize,
) -> Result<Vec<u8>, EncodeError> {
    #[derive(Serialize)]
    struct Request<'a, P: ?Sized> {
        jsonrpc: &'static str,
        id: u64,
        method: &'a str,
        params: &'a P,
    }
    let mut line = Bounded { bytes: Vec::new(), max, full: false };
    let written = serde_json::to_writer(&mut line, &Request { jsonrpc: "2.0", id, method, params });
    if line.full {
        return Err(EncodeError::TooLong);
    }
    written.map_err(|error| EncodeError::Invalid(error.to_string()))?;
    let mut bytes = line.bytes;
    // Raw JSON of the caller may span several lines. JSON strings contain no newlines, so all of them are whitespace.
    for byte in &mut bytes {
        if matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
    bytes.push(b'\n');
    Ok(bytes)
}

/// A decoded line of the engine.
#[derive(Debug)]
pub(super) enum Incoming<'a> {
    /// An answer to the call of this id.
    Answer(u64, Answer<'a>),
    /// A notification.
    Notification { method: String, params: Option<&'a RawValue> },
    /// A message without a call: an id that this client never uses, or none.
    Unroutable,
    /// A line that is no message of the protocol.
    Unreadable,
}

/// The content of an answer.
#[derive(Debug)]
pub(super) enum Answer<'a> {
    Result(&'a RawValue),
    Error(EngineError),
    Malformed(&'static str),
}

/// Decodes a line.
pub(super) fn incoming(line: &[u8]) -> Incoming<'_> {
    #[derive(Deserialize)]
    struct Envelope<'a> {
        #[serde(borrow)]
        jsonrpc: &'a RawValue,
        #[serde(borrow, default, deserialize_with = "present")]
        id: Option<&'a RawValue>,
        #[serde(default)]
        method: Option<String>,
        #[serde(borrow, default, deserialize_with = "present")]
        params: Option<&'a RawValue>,
        #[serde(borrow, default, deserialize_with = "present")]
        result: Option<&'a RawValue>,
        #[serde(borrow, default, deserialize_with = "present")]
        error: Option<&'a RawValue>,
    }
    let Some(message) = object::<Envelope<'_>>(line).filter(|message| message.jsonrpc.get() == r#""2.0""#)
    else {
        return Incoming::Unreadable;
    };
    let given = |value: Option<&&RawValue>| value.is_some_and(|value| value.get() != "null");
    match (message.method, message.id) {
        (Some(method), id) if !given(id.as_ref()) => {
            Incoming::Notification { method, params: message.params }
        }
        // Requests of the engine: this client answers none.
        (Some(_), _) | (None, None) => Incoming::Unroutable,
        (None, Some(id)) => {
            let Ok(id) = id.get().parse() else { return Incoming::Unroutable };
            let answer = match (message.result, message.error.filter(|error| given(Some(error)))) {
                (result, Some(_)) if given(result.as_ref()) => {
                    Answer::Malformed("it has both a result and an error")
                }
                (_, Some(error)) => EngineError::read(error)
                    .map_or(Answer::Malformed("its error cannot be read"), Answer::Error),
                (Some(result), None) => Answer::Result(result),
                (None, None) => Answer::Malformed("it has neither a result nor an error"),
            };
            Incoming::Answer(id, answer)
        }
    }
}

/// Decodes a JSON object, and only an object: derived deserializers accept arrays of the fields' values as well.
fn object<'a, T: Deserialize<'a>>(text: &'a [u8]) -> Option<T> {
    (text.trim_ascii_start().first() == Some(&b'{')).then(|| serde_json::from_slice(text).ok()).flatten()
}

/// A body that is not of the expected type.
#[derive(Debug, thiserror::Error)]
pub(super) enum BodyError {
    #[error("it is not an object")]
    NotAnObject,
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

/// Reads a body as the expected type.
pub(super) fn body<'a, T: Deserialize<'a>>(raw: &'a RawValue) -> Result<T, BodyError> {
    if !raw.get().starts_with('{') {
        return Err(BodyError::NotAnObject);
    }
    Ok(serde_json::from_str(raw.get())?)
}

/// Distinguishes a `null` field from a missing one.
fn present<'de, D: Deserializer<'de>>(input: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(input).map(Some)
}

/// Reads `null` as the default.
fn or_default<'de, T: Deserialize<'de> + Default, D: Deserializer<'de>>(input: D) -> Result<T, D::Error> {
    Option::deserialize(input).map(Option::unwrap_or_default)
}

fn json() -> String {
    "json".to_owned()
}

fn sixty_four() -> u64 {
    64
}

fn ten_mebibytes() -> u64 {
    10 * 1024 * 1024
}

fn ten_thousand() -> u64 {
    10_000
}

/// A writer of at most `max` bytes.
struct Bounded {
    bytes: Vec<u8>,
    max: usize,
    full: bool,
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() > self.max.saturating_sub(self.bytes.len()) {
            self.full = true;
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
