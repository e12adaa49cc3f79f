//! Responses: the result of a task.

mod check;

use proctor_core::json::Json;

use super::VERSION;
use super::artifact::Artifact;
use super::error_code::ErrorCode;
use super::metrics::Metrics;
use super::object::{member_mut, text};
use super::read::message;

/// The result of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    pub(super) json: Json,
}

message!(Response, "a response");

/// The status of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// The task was finished.
    Completed,
    /// The task failed.
    Failed,
    /// The task exceeded its time limit.
    Timeout,
    /// The task was cancelled.
    Cancelled,
    /// The task was finished in part.
    Partial,
}

impl Status {
    /// All statuses.
    pub const ALL: [Status; 5] =
        [Status::Completed, Status::Failed, Status::Timeout, Status::Cancelled, Status::Partial];

    /// The status as it is written in messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Completed => "completed",
            Status::Failed => "failed",
            Status::Timeout => "timeout",
            Status::Cancelled => "cancelled",
            Status::Partial => "partial",
        }
    }

    /// The status of that name.
    pub fn parse(text: &str) -> Option<Status> {
        Status::ALL.into_iter().find(|status| status.as_str() == text)
    }
}

impl Response {
    /// A response of version 1.0 without artifacts and metrics.
    pub fn new(task_id: &str, status: Status) -> Response {
        let json = Json::object()
            .with("version", VERSION)
            .with("task_id", task_id)
            .with("status", status.as_str())
            .with("artifacts", Vec::new())
            .with("metrics", Json::object());
        Response { json }
    }

    /// Appends an artifact.
    #[must_use]
    pub fn with_artifact(mut self, artifact: &Artifact<'_>) -> Response {
        match member_mut(&mut self.json, "artifacts") {
            Some(Json::Array(items)) => {
                items.push(artifact.to_json());
                self
            }
            _ => self.with_member("artifacts", vec![artifact.to_json()]),
        }
    }

    /// Sets `metrics`.
    #[must_use]
    pub fn with_metrics(self, metrics: &Metrics<'_>) -> Response {
        self.with_member("metrics", metrics.to_json())
    }

    /// Sets `error`, and `error_code` and `error_details` (an object) if they are given.
    #[must_use]
    pub fn with_error(self, error: &str, code: Option<&ErrorCode>, details: Option<Json>) -> Response {
        let mut response = self.with_member("error", error);
        if let Some(code) = code {
            response = response.with_member("error_code", code.as_str());
        }
        match details {
            Some(details) => response.with_member("error_details", details),
            None => response,
        }
    }

    /// Sets `trace_id`.
    #[must_use]
    pub fn with_trace_id(self, trace_id: &str) -> Response {
        self.with_member("trace_id", trace_id)
    }

    /// The status.
    pub fn status(&self) -> Status {
        // Reading refuses other texts, and building takes a `Status`; a replaced member counts as a failure.
        text(&self.json, "status").and_then(Status::parse).unwrap_or(Status::Failed)
    }

    /// Produced artifacts.
    pub fn artifacts(&self) -> impl Iterator<Item = Artifact<'_>> {
        let items = self.json.get("artifacts").and_then(Json::as_array).unwrap_or_default();
        items.iter().filter_map(Artifact::view)
    }

    /// Metrics of the execution.
    pub fn metrics(&self) -> Metrics<'_> {
        self.json.get("metrics").map(Metrics::view).unwrap_or_default()
    }

    /// Error message.
    pub fn error(&self) -> Option<&str> {
        text(&self.json, "error")
    }

    /// Error code.
    pub fn error_code(&self) -> Option<ErrorCode> {
        text(&self.json, "error_code").map(ErrorCode::from)
    }

    /// Details of the error, an object.
    pub fn error_details(&self) -> Option<&Json> {
        self.json.get("error_details")
    }

    /// Identifier of the agent's own trace.
    pub fn trace_id(&self) -> Option<&str> {
        text(&self.json, "trace_id")
    }
}

#[cfg(test)]
mod tests;
