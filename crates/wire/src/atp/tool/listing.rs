//! Replies of the released platform's other routes: discovery, records and health.

use proctor_core::json::Json;
use proctor_core::time::Timestamp;

use super::{Call, Outcome, Reply};
use crate::atp::object::put;

/// A tool in a listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolInfo<'a> {
    /// Name of the tool.
    pub name: &'a str,
    /// Description of the tool.
    pub description: Option<&'a str>,
}

/// A recorded call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Time of the call.
    pub timestamp: Timestamp,
    /// The call.
    pub call: Call,
    /// Its reply.
    pub reply: Reply,
}

impl ToolInfo<'_> {
    /// The reply to `GET /tools/{tool}`.
    pub fn to_json(&self) -> Json {
        let mut json = Json::object().with("name", self.name);
        put(&mut json, "description", self.description);
        json
    }
}

impl Record {
    /// An entry of the reply to `GET /records`.
    pub fn to_json(&self) -> Json {
        let mut json = Json::object()
            .with("timestamp", self.timestamp.to_string())
            .with("tool", self.call.tool.as_str());
        put(&mut json, "input", self.call.input.clone());
        match &self.reply.outcome {
            Outcome::Success { output } => {
                json.push("output", output.clone());
                json.push("status", "success");
            }
            Outcome::Error { error, output, .. } => {
                put(&mut json, "output", output.clone());
                json.push("error", error.as_str());
                json.push("status", "error");
            }
        }
        put(&mut json, "duration_ms", self.reply.duration_ms.clone());
        put(&mut json, "task_id", self.call.task_id.as_deref());
        json
    }
}

/// The reply to `GET /tools`.
pub fn tools<'a>(tools: impl IntoIterator<Item = ToolInfo<'a>>) -> Json {
    let items: Vec<Json> = tools.into_iter().map(|tool| tool.to_json()).collect();
    Json::object().with("tools", items)
}

/// The reply to `GET /records`, with records that were filtered already.
pub fn records<'a>(records: impl IntoIterator<Item = &'a Record>) -> Json {
    let items: Vec<Json> = records.into_iter().map(Record::to_json).collect();
    let total = items.len();
    Json::object().with("records", items).with("total", total)
}

/// The reply to `DELETE /records`.
pub fn cleared(count: usize) -> Json {
    Json::object().with("cleared", count)
}

/// The reply to `GET /health`.
pub fn healthy() -> Json {
    Json::object().with("status", "healthy")
}

/// The body of HTTP 404 to `GET /tools/{tool}`.
pub fn not_found(tool: &str) -> Json {
    Json::object().with("detail", format!("Tool not found: {tool}"))
}
