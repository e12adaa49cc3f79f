//! Tools behind the endpoint.

mod forward;
mod recording;
mod replay;

use std::future::Future;
use std::pin::Pin;

use proctor_core::json::Json;
use proctor_wire::atp::{ErrorCode, tool};

pub use forward::{Forward, ForwardOptions};
pub use recording::Recorder;
pub use replay::{Replay, ReplayError};

/// A set of tools that carries out calls.
pub trait ToolBackend: Send + Sync {
    /// Calls a tool. The future is dropped when the time limit passes or the run ends.
    fn call<'a>(&'a self, tool: &'a str, input: &'a Json) -> CallFuture<'a>;

    /// The tools, for listings. A backend that does not know its tools lists none, and is called all the same.
    fn tools(&self) -> Vec<ToolInfo>;
}

/// The future of a call.
pub type CallFuture<'a> = Pin<Box<dyn Future<Output = ToolResult> + Send + 'a>>;

/// The result of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolResult {
    /// The tool's output.
    Success(Json),
    /// The tool failed.
    Failed {
        /// Error message.
        error: String,
        /// Error code; `TOOL_ERROR` if there is none.
        code: Option<ErrorCode>,
        /// Details, an object.
        details: Option<Json>,
        /// What the tool returned nevertheless.
        output: Option<Json>,
    },
    /// There is no such tool.
    UnknownTool,
}

impl ToolResult {
    /// A failure with nothing but a message and a code.
    pub fn failed(error: impl Into<String>, code: ErrorCode) -> ToolResult {
        ToolResult::Failed { error: error.into(), code: Some(code), details: None, output: None }
    }
}

/// A tool in a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolInfo {
    /// Name of the tool.
    pub name: String,
    /// Description of the tool.
    pub description: Option<String>,
}

impl ToolInfo {
    pub(crate) fn as_wire(&self) -> tool::ToolInfo<'_> {
        tool::ToolInfo { name: &self.name, description: self.description.as_deref() }
    }
}

/// The result that a reply of the protocol carries.
fn from_reply(reply: tool::Reply) -> ToolResult {
    match reply.outcome {
        tool::Outcome::Success { output } => ToolResult::Success(output),
        tool::Outcome::Error { error, code, details, output } => {
            ToolResult::Failed { error, code, details, output }
        }
    }
}

/// The reply of the protocol that carries a result; none for an unknown tool.
fn to_reply(result: &ToolResult) -> Option<tool::Reply> {
    let outcome = match result.clone() {
        ToolResult::Success(output) => tool::Outcome::Success { output },
        ToolResult::Failed { error, code, details, output } => {
            tool::Outcome::Error { error, code, details, output }
        }
        ToolResult::UnknownTool => return None,
    };
    Some(tool::Reply { outcome, duration_ms: None })
}
