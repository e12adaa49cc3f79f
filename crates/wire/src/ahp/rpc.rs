//! The JSON-RPC layer of AHP: classifies messages and encodes replies.

use proctor_core::json::Json;
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use super::MessageError;

/// The longest identifier of a request.
pub const MAX_ID: usize = 4096;

/// Limit of values in a message, containers included.
pub const MAX_VALUES: usize = 50_000;

/// A message that an agent sent.
#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    /// A request, which gets a reply.
    Request {
        /// The caller's identifier; comes back as it was sent.
        id: Id,
        /// The method.
        method: String,
        /// Parameters.
        params: Json,
    },
    /// A notification, which gets none.
    Notification {
        /// The method.
        method: String,
        /// Parameters.
        params: Json,
    },
}

/// The identifier of a request. The protocol's own clients send strings; others are served as well.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Id {
    /// `null`, also where a message had none that could be read.
    #[default]
    Null,
    /// A number, as its literal text.
    Number(Box<str>),
    /// A string.
    String(String),
}

/// A JSON-RPC error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message} (code {code})")]
pub struct RpcError {
    /// The JSON-RPC error code.
    pub code: i32,
    /// The description.
    pub message: String,
    /// Details.
    pub data: Option<Json>,
}

/// The message is not JSON.
pub const PARSE_ERROR: i32 = -32700;
/// The message is JSON, but no JSON-RPC message.
pub const INVALID_REQUEST: i32 = -32600;
/// No such method.
pub const METHOD_NOT_FOUND: i32 = -32601;
/// The params do not fit, or break a rule.
pub const INVALID_PARAMS: i32 = -32602;
/// The handler failed, or a specialised payload cannot be read.
pub const INTERNAL_ERROR: i32 = -32603;
/// The major version is another one.
pub const UNSUPPORTED_VERSION: i32 = -32000;

/// A message that is none, with the identifier that its reply gets.
#[derive(Debug, Clone, PartialEq)]
pub struct Unreadable {
    /// The request's id, as far as it could be read.
    pub id: Id,
    /// The error to reply with.
    pub error: RpcError,
}

/// Reads one message. Duplicate members, too much depth and anything after the value are refused.
pub fn read(text: &[u8]) -> Result<Message, Unreadable> {
    let value = Json::parse_bounded(text, MAX_VALUES).map_err(|error| Unreadable {
        id: Id::Null,
        error: RpcError::new(PARSE_ERROR, format!("Parse error: {error}")),
    })?;
    message(value)
}

/// [`read`] for a value that is parsed already.
pub fn message(value: Json) -> Result<Message, Unreadable> {
    let invalid = |id: &Id, what: &str| Unreadable {
        id: id.clone(),
        error: RpcError::new(INVALID_REQUEST, format!("Invalid request: {what}")),
    };
    let Json::Object(members) = value else {
        return Err(invalid(&Id::Null, "a message is one JSON object"));
    };
    let (mut id, mut method, mut params, mut version) = (None, None, None, None);
    for (name, member) in members {
        match name.as_str() {
            "id" => id = Some(member),
            "method" => method = Some(member),
            "params" => params = Some(member),
            "jsonrpc" => version = Some(member),
            _ => {}
        }
    }
    let id = match id {
        None => None,
        Some(Json::Null) => Some(Id::Null),
        Some(Json::Number(literal)) if literal.len() <= MAX_ID => Some(Id::Number(literal)),
        Some(Json::String(text)) if text.len() <= MAX_ID => Some(Id::String(text)),
        Some(Json::Number(_) | Json::String(_)) => {
            return Err(invalid(&Id::Null, &format!("`id` is longer than {MAX_ID} bytes")));
        }
        Some(_) => return Err(invalid(&Id::Null, "`id` is a string, a number or null")),
    };
    let known = id.clone().unwrap_or_default();
    // Any version text is accepted, as by the protocol's own server; replies say 2.0.
    if !matches!(version, Some(Json::String(_))) {
        return Err(invalid(&known, "`jsonrpc` is missing or no string"));
    }
    let Some(Json::String(method)) = method else {
        return Err(invalid(&known, "`method` is missing or no string"));
    };
    let Some(params) = params else { return Err(invalid(&known, "`params` is missing")) };
    Ok(match id {
        Some(id) => Message::Request { id, method, params },
        None => Message::Notification { method, params },
    })
}

/// A reply with a result, as one line without its end.
pub fn respond<T: Serialize + ?Sized>(id: &Id, result: &T) -> Result<String, RpcError> {
    let reply = Reply { id, outcome: Ok(result) };
    serde_json::to_string(&reply)
        .map_err(|error| RpcError::new(INTERNAL_ERROR, format!("Internal error: {error}")))
}

/// A reply with an error, as one line without its end.
pub fn refuse(id: &Id, error: &RpcError) -> String {
    let reply: Reply<'_, ()> = Reply { id, outcome: Err(error) };
    serde_json::to_string(&reply).unwrap_or_else(|_| {
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"Internal error"}}"#.to_owned()
    })
}

struct Reply<'a, T: ?Sized> {
    id: &'a Id,
    outcome: Result<&'a T, &'a RpcError>,
}

impl<T: Serialize + ?Sized> Serialize for Reply<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("Reply", 3)?;
        out.serialize_field("jsonrpc", "2.0")?;
        out.serialize_field("id", self.id)?;
        match self.outcome {
            Ok(result) => out.serialize_field("result", result)?,
            Err(error) => out.serialize_field("error", error)?,
        }
        out.end()
    }
}

impl Id {
    /// Converts the message to JSON.
    pub fn to_json(&self) -> Json {
        match self {
            Id::Null => Json::Null,
            Id::Number(literal) => Json::Number(literal.clone()),
            Id::String(text) => Json::from(text.as_str()),
        }
    }
}

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Id::String(text) => serializer.serialize_str(text),
            other => other.to_json().serialize(serializer),
        }
    }
}

impl From<&str> for Id {
    fn from(text: &str) -> Id {
        Id::String(text.to_owned())
    }
}

impl RpcError {
    /// An error without data.
    pub fn new(code: i32, message: impl Into<String>) -> RpcError {
        RpcError { code, message: message.into(), data: None }
    }

    /// Reads the `error` member of a reply.
    pub fn from_json(value: &Json) -> Result<RpcError, MessageError> {
        let code = value.get("code").and_then(Json::as_i64).and_then(|code| i32::try_from(code).ok());
        let message = value.get("message").and_then(Json::as_str);
        match (code, message) {
            (Some(code), Some(message)) => {
                Ok(RpcError { code, message: message.to_owned(), data: value.get("data").cloned() })
            }
            _ => Err(MessageError::NoCodeOrMessage),
        }
    }
}

impl Serialize for RpcError {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("RpcError", 3)?;
        out.serialize_field("code", &self.code)?;
        out.serialize_field("message", &self.message)?;
        if let Some(data) = &self.data {
            out.serialize_field("data", data)?;
        }
        out.end()
    }
}
