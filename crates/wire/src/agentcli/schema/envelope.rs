//! Descriptors of JSON-RPC envelopes.

use proctor_core::json::Json;

use super::compiled::{list, map, node, nullable, object};

pub(super) fn request() -> Json {
    object(
        "A request; without `id`, a notification.",
        &["jsonrpc", "method"],
        vec![
            ("jsonrpc", node("string").with("const", "2.0")),
            ("id", Json::object().with("note", "comes back as it was sent")),
            ("method", node("string")),
            ("params", nullable(map())),
        ],
    )
}

pub(super) fn response() -> Json {
    let data = map();
    object(
        "A response: a result or an error.",
        &["jsonrpc", "id"],
        vec![
            ("jsonrpc", node("string").with("const", "2.0")),
            ("id", Json::object().with("note", "the request's own; `null` where it could not be read")),
            ("result", Json::object().with("note", "an object with `ok`")),
            (
                "error",
                object(
                    "The failure, with `code` and `error_type` in its data.",
                    &["code", "message"],
                    vec![("code", node("integer")), ("message", node("string")), ("data", data)],
                ),
            ),
        ],
    )
}

/// The rule that a response has one of both.
pub(super) fn result_or_error() -> Vec<Json> {
    ["result", "error"].map(|name| Json::object().with("required", list(&[name]))).to_vec()
}
