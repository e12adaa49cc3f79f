//! What the protocols on JSON-RPC share: requests, and replies compared with expectations.

use proctor_core::json::Json;

use super::Cause;
use super::case::{COMMAND, Expectation, Kind, Step};
use super::matcher::compare;
use super::values::Values;
use crate::support::Folder;

/// The text of a request.
pub fn request(id: &Json, method: &str, params: &Json) -> String {
    crate::support::harness::request(id, method, params)
}

/// The text of a notification.
pub fn notification(method: &str, params: &Json) -> String {
    Json::object().with("jsonrpc", "2.0").with("method", method).with("params", params.clone()).to_string()
}

/// Method and params of a `request` step.
pub fn method_and_params(sent: &Json) -> Result<(&str, &Json), Cause> {
    let method = sent.get("method").and_then(Json::as_str);
    match (method, sent.get("params"), sent.as_object().map(<[_]>::len)) {
        (Some(method), Some(params), Some(2)) => Ok((method, params)),
        _ => Err(Cause::Unusable("a request has `method`, `params` and nothing else")),
    }
}

/// Compares a reply with what a step expects, and gives the part that `keep` refers to.
pub fn check<'a>(expected: &Expectation, reply: &'a Json, values: &Values) -> Result<&'a Json, Cause> {
    let answer = |expected| Cause::Answer { expected, found: reply.to_string() };
    if reply.get("jsonrpc").and_then(Json::as_str) != Some("2.0") {
        return Err(answer("a JSON-RPC 2.0 reply"));
    }
    let part = match (expected.kind, reply.get("result"), reply.get("error")) {
        (Kind::Result | Kind::Verdict, Some(result), None) => result,
        (Kind::Error | Kind::Refusal, None, Some(error)) => error,
        (Kind::Result | Kind::Verdict, ..) => return Err(answer("a result and no error")),
        (Kind::Error | Kind::Refusal, ..) => return Err(answer("an error and no result")),
        (Kind::NoReply, ..) => return Err(answer("no reply")),
    };
    compare(&values.fill(&expected.pattern)?, part)?;
    Ok(part)
}

/// Runs a `run` step: a command of the binary, in the folder of the server. It must succeed.
pub fn run_command(folder: &Folder, step: &Step, values: &Values) -> Result<(), Cause> {
    assert_eq!(step.action, COMMAND);
    let words = values.fill(&step.sent)?;
    let words: Option<Vec<&str>> =
        words.as_array().and_then(|words| words.iter().map(Json::as_str).collect());
    let words = words.ok_or(Cause::Unusable("`run` is a list of texts"))?;
    let output = folder.run(&words);
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(Cause::Command { command: words.join(" "), said })
}
