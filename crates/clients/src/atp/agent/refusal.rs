//! Requests that the agent is not asked about.

use proctor_core::json::Json;
use proctor_wire::atp::limits::{MAX_ERROR, MAX_TASK_ID};
use proctor_wire::atp::{ErrorCode, ReadError, Response, Status, parse_json};

/// The task id in the answer to a request that has none.
const UNKNOWN_TASK: &str = "unknown";

/// A request that is answered without the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The reason.
    pub reason: Reason,
    /// The failed response, as one line of JSON.
    pub response: String,
}

/// The reason of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The request is no JSON, or violates the protocol.
    Invalid,
    /// The request is longer than the server allows.
    TooLarge,
    /// As many executions are running as the server allows.
    Busy,
}

impl Refusal {
    pub(super) fn invalid(text: &[u8], error: &ReadError) -> Refusal {
        let json = parse_json(text).unwrap_or(Json::Null);
        let task_id = json.get("task_id").and_then(Json::as_str).unwrap_or(UNKNOWN_TASK);
        let response = failed(task_id, &ErrorCode::InvalidRequest, &error.to_string());
        Refusal { reason: Reason::Invalid, response }
    }

    /// The id of a request that was not read is not known.
    pub(super) fn too_large(limit: usize) -> Refusal {
        let problem = format!("a request is at most {limit} bytes long");
        let response = failed(UNKNOWN_TASK, &ErrorCode::InvalidRequest, &problem);
        Refusal { reason: Reason::TooLarge, response }
    }

    #[cfg(feature = "http")]
    pub(super) fn unreadable(problem: &str) -> Refusal {
        let response = failed(UNKNOWN_TASK, &ErrorCode::InvalidRequest, problem);
        Refusal { reason: Reason::Invalid, response }
    }

    pub(super) fn busy(task_id: &str) -> Refusal {
        let problem = "the agent executes as many tasks as it can; try again later";
        Refusal { reason: Reason::Busy, response: failed(task_id, &ErrorCode::InternalError, problem) }
    }
}

/// The text of a failed response.
pub(super) fn failed(task_id: &str, code: &ErrorCode, problem: &str) -> String {
    let cut = |text: &str, limit: usize| text.chars().take(limit).collect::<String>();
    Response::new(&cut(task_id, MAX_TASK_ID), Status::Failed)
        .with_error(&cut(problem, MAX_ERROR), Some(code), None)
        .to_string()
}
