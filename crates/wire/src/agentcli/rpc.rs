//! JSON-RPC envelopes: reading of lines, replies, the ready notification.

use proctor_core::json::Json;

use super::error::{Code, Failure, INTERNAL_ERROR, INVALID_REQUEST, PARSE_ERROR};

/// Limit of bytes in a line.
pub const MAX_LINE: usize = 8 << 20;

/// Limit of values in a line, containers included: a value costs far more memory than the bytes that it is written with.
pub const MAX_VALUES: usize = 250_000;

/// The version of manifests that the server announces.
pub const MANIFEST_VERSION: &str = "0.2";

/// A line that was read.
#[derive(Debug, Clone, PartialEq)]
pub enum Line {
    /// White space only: skipped without a reply.
    Blank,
    /// A request or notification.
    Call(Call),
    /// No request: the reply, without its line end. `None` where the message is a notification.
    Refused(Option<String>),
}

/// A request, or without an id a notification.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The caller's identifier, of any type; comes back as it was sent. `None` for notifications, which get no reply.
    pub id: Option<Json>,
    /// The method.
    pub method: String,
    /// Parameters: always an object.
    pub params: Json,
}

/// Reads one line. Duplicate members, too much depth and anything after the value are parse errors.
pub fn read(line: &[u8]) -> Line {
    if line.len() > MAX_LINE {
        return Line::Refused(Some(too_long()));
    }
    if is_blank(line) {
        return Line::Blank;
    }
    let members = match Json::parse_bounded(line, MAX_VALUES) {
        Ok(Json::Object(members)) => members,
        Ok(Json::Array(_)) => {
            let message = "batches are not supported: send one request a line";
            return Line::Refused(Some(invalid_request(&Json::Null, message)));
        }
        Ok(_) => {
            return Line::Refused(Some(invalid_request(&Json::Null, "a request must be a JSON object")));
        }
        Err(error) => return Line::Refused(Some(parse_error(&error.to_string()))),
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
    if version.as_ref().and_then(Json::as_str) != Some("2.0") {
        return refused(id.as_ref(), |id| invalid_request(id, "`jsonrpc` must be \"2.0\""));
    }
    let Some(Json::String(method)) = method else {
        return refused(id.as_ref(), |id| invalid_request(id, "`method` must be a string"));
    };
    let params = match params {
        None | Some(Json::Null) => Json::object(),
        Some(params @ Json::Object(_)) => params,
        Some(_) => {
            let failure = Failure::invalid_argument("`params` must be an object");
            return refused(id.as_ref(), |id| refuse(id, &failure));
        }
    };
    Line::Call(Call { id, method, params })
}

impl Call {
    /// The reply of this call, without its line end. `None` for notifications.
    pub fn reply(&self, outcome: Result<Json, Failure>) -> Option<String> {
        let id = self.id.as_ref()?;
        Some(match outcome {
            Ok(result) => respond(id, &result),
            Err(failure) => refuse(id, &failure),
        })
    }

    /// The parameter, unless it is absent or `null`.
    pub fn param(&self, name: &str) -> Option<&Json> {
        self.params.get(name).filter(|value| !value.is_null())
    }

    /// A required parameter. As in JavaScript, `null`, `false`, zero and the empty string count as missing.
    pub fn required(&self, name: &str) -> Result<&Json, Failure> {
        self.params
            .get(name)
            .filter(|value| is_truthy(value))
            .ok_or_else(|| Failure::invalid_argument(format!("`params.{name}` is required")))
    }

    /// A required parameter that is a string.
    pub fn required_text(&self, name: &str) -> Result<&str, Failure> {
        self.required(name)?.as_str().ok_or_else(|| must_be(name, "a string"))
    }

    /// A parameter that is a string where it is given.
    pub fn text(&self, name: &str) -> Result<Option<&str>, Failure> {
        self.param(name).map(|value| value.as_str().ok_or_else(|| must_be(name, "a string"))).transpose()
    }

    /// A parameter that is a boolean where it is given; false otherwise.
    pub fn flag(&self, name: &str) -> Result<bool, Failure> {
        self.param(name).map_or(Ok(false), |value| value.as_bool().ok_or_else(|| must_be(name, "a boolean")))
    }
}

/// Whether JavaScript takes the value for true.
pub fn is_truthy(value: &Json) -> bool {
    match value {
        Json::Null => false,
        Json::Bool(value) => *value,
        Json::Number(literal) => literal.parse::<f64>().is_ok_and(|number| number != 0.0),
        Json::String(text) => !text.is_empty(),
        Json::Array(_) | Json::Object(_) => true,
    }
}

/// The first line of a server.
pub fn ready() -> String {
    let params = Json::object().with("ok", true).with("manifest_version", MANIFEST_VERSION);
    Json::object().with("jsonrpc", "2.0").with("method", "agentcli.ready").with("params", params).to_string()
}

/// A reply with a result, without its line end.
pub fn respond(id: &Json, result: &Json) -> String {
    // Printed piece by piece: results can be large, and are not copied for the envelope.
    let mut reply = String::from(r#"{"jsonrpc":"2.0","id":"#);
    id.write_to(&mut reply);
    reply.push_str(r#","result":"#);
    result.write_to(&mut reply);
    reply.push('}');
    reply
}

/// A reply with a failure, without its line end.
pub fn refuse(id: &Json, failure: &Failure) -> String {
    let code = failure.code.rpc_code();
    let mut data = failure.to_data();
    let message = if code == INTERNAL_ERROR {
        // What went wrong inside is no business of the client, except for the scheduler's own words, which it can act on.
        if failure.code == Code::SchedulerError {
            data.push("details", failure.message.as_str());
        }
        "internal error"
    } else {
        &failure.message
    };
    error(id, code, message, data)
}

/// The reply to a line that is longer than [`MAX_LINE`], without its line end.
pub fn too_long() -> String {
    parse_error(&format!("the line is longer than {MAX_LINE} bytes"))
}

fn refused(id: Option<&Json>, reply: impl FnOnce(&Json) -> String) -> Line {
    Line::Refused(id.map(reply))
}

fn parse_error(details: &str) -> String {
    let data = Failure::new(Code::ParseError, "").to_data().with("details", details);
    error(&Json::Null, PARSE_ERROR, "parse error", data)
}

fn invalid_request(id: &Json, message: &str) -> String {
    let data = Failure::invalid_argument("").to_data();
    error(id, INVALID_REQUEST, &format!("invalid request: {message}"), data)
}

fn error(id: &Json, code: i32, message: &str, data: Json) -> String {
    let error = Json::object().with("code", code).with("message", message).with("data", data);
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#)
}

fn must_be(name: &str, kind: &str) -> Failure {
    Failure::invalid_argument(format!("`params.{name}` must be {kind}"))
}

fn is_blank(line: &[u8]) -> bool {
    std::str::from_utf8(line).is_ok_and(|text| text.trim().is_empty())
}

#[cfg(test)]
mod tests;
