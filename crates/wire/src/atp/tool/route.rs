//! Routes below the tools endpoint.

use super::listing::Record;
use crate::atp::check::is_longer;
use crate::atp::limits::{MAX_TASK_ID, MAX_TOOL_NAME};

/// A route below the tools endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Route {
    /// `POST /{tool}`: the document's call.
    CallNamed {
        /// The tool, percent-decoded.
        tool: String,
    },
    /// `POST /tools/call`: the released platform's call, which names the tool in its body.
    Call,
    /// `GET /tools`: list of tools.
    Tools,
    /// `GET /tools/{tool}`: one tool.
    Tool {
        /// The tool, percent-decoded.
        tool: String,
    },
    /// `GET /records`: recorded calls.
    Records(RecordFilter),
    /// `DELETE /records`: clears the recorded calls.
    ClearRecords,
    /// `GET /health`.
    Health,
}

/// The query of `GET /records`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecordFilter {
    /// Only calls of this tool.
    pub tool: Option<String>,
    /// Only calls of this task.
    pub task_id: Option<String>,
    /// Only so many of the last calls.
    pub limit: Option<usize>,
}

/// A request that no route serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RouteError {
    /// No route has this path: HTTP 404.
    #[error("no such route, call a tool with `POST /TOOL` or `POST /tools/call`")]
    UnknownPath,
    /// The route serves another method: HTTP 405.
    #[error("method is not allowed here, it must be {allowed}")]
    WrongMethod {
        /// The allowed method.
        allowed: &'static str,
    },
    /// A malformed percent-encoding, an empty or overlong name, or an unreadable query: HTTP 400.
    #[error("path or query is malformed")]
    Malformed,
}

impl Route {
    /// The route of a method, a path below the endpoint (with or without its leading slash) and a query without `?`.
    pub fn parse(method: &str, path: &str, query: &str) -> Result<Route, RouteError> {
        let path = path.strip_prefix('/').unwrap_or(path);
        let mut segments = path.split('/');
        match (segments.next(), segments.next(), segments.next()) {
            (Some("tools"), None, _) if method == "GET" => Ok(Route::Tools),
            (Some("tools"), Some("call"), None) if method == "POST" => Ok(Route::Call),
            (Some("tools"), Some(tool), None) => {
                allow(method, "GET")?;
                Ok(Route::Tool { tool: tool_name(tool)? })
            }
            (Some("records"), None, _) if method == "GET" => Ok(Route::Records(RecordFilter::parse(query)?)),
            (Some("records"), None, _) if method == "DELETE" => Ok(Route::ClearRecords),
            (Some("health"), None, _) if method == "GET" => Ok(Route::Health),
            (Some(""), None, _) => Err(RouteError::UnknownPath),
            (Some(tool), None, _) => {
                allow(method, "POST")?;
                Ok(Route::CallNamed { tool: tool_name(tool)? })
            }
            _ => Err(RouteError::UnknownPath),
        }
    }
}

impl RecordFilter {
    /// The records that the filter selects, in order. A limit keeps the last ones.
    pub fn select<'a>(&self, records: &'a [Record]) -> Vec<&'a Record> {
        let is_selected = |record: &&Record| {
            self.tool.as_ref().is_none_or(|tool| *tool == record.call.tool)
                && self.task_id.as_ref().is_none_or(|task| record.call.task_id.as_ref() == Some(task))
        };
        let mut selected: Vec<&Record> =
            records.iter().rev().filter(is_selected).take(self.limit.unwrap_or(usize::MAX)).collect();
        selected.reverse();
        selected
    }

    fn parse(query: &str) -> Result<RecordFilter, RouteError> {
        let mut filter = RecordFilter::default();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = decode(&value.replace('+', " "))?;
            match name {
                "tool" => filter.tool = Some(value),
                "task_id" if !is_longer(&value, MAX_TASK_ID) => filter.task_id = Some(value),
                "task_id" => return Err(RouteError::Malformed),
                "limit" => filter.limit = Some(value.parse().map_err(|_| RouteError::Malformed)?),
                _ => {}
            }
        }
        Ok(filter)
    }
}

fn allow(method: &str, allowed: &'static str) -> Result<(), RouteError> {
    if method == allowed { Ok(()) } else { Err(RouteError::WrongMethod { allowed }) }
}

fn tool_name(segment: &str) -> Result<String, RouteError> {
    decode(segment).and_then(|name| if is_tool_name(&name) { Ok(name) } else { Err(RouteError::Malformed) })
}

/// Whether a tool can have this name.
pub(super) fn is_tool_name(name: &str) -> bool {
    !name.is_empty() && !is_longer(name, MAX_TOOL_NAME) && !name.contains(char::is_control)
}

fn decode(text: &str) -> Result<String, RouteError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let (digits, after) = after.split_at_checked(2).ok_or(RouteError::Malformed)?;
        let mut byte = [0u8];
        proctor_core::hex::decode_to_slice(digits, &mut byte).map_err(|_| RouteError::Malformed)?;
        bytes.extend(byte);
        rest = after;
    }
    String::from_utf8(bytes).map_err(|_| RouteError::Malformed)
}
