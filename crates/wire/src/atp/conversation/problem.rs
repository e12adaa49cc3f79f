use std::fmt;

use proctor_core::json::{JsonError, JsonProblem};
use proctor_core::quoted;

use crate::atp::findings::Problems;
use crate::atp::limits::{MAX_EVENT_BYTES, MAX_EVENT_VALUES, MAX_EVENTS, MAX_MESSAGE};

/// A reason to fail a run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConversationProblem {
    /// A message with the task id of another run.
    #[error("{message} has task id {}, which is not the request's", quoted(found))]
    ForeignTaskId {
        /// The kind of the message.
        message: MessageKind,
        /// The task id that was sent.
        found: String,
    },
    /// More than one response.
    #[error("agent sent a second response")]
    SecondResponse,
    /// A response that violates the protocol.
    #[error("response is not valid: {0}")]
    InvalidResponse(Problems),
    /// A message that is no JSON, or beyond its limits.
    #[error("message is not valid JSON: {0}")]
    NotJson(JsonError),
    /// A message that is neither event nor response.
    #[error("message is neither an event nor a response: it has neither `event_type` nor `status`")]
    Unrecognised,
    /// A message or line with too many bytes.
    #[error("message of {bytes} bytes is longer than {MAX_MESSAGE}")]
    TooLarge {
        /// Length of the message, or of the part that was read.
        bytes: u64,
    },
    /// More events than a run may have; the others were dropped.
    #[error("agent sent more than {MAX_EVENTS} events")]
    TooManyEvents,
    /// Events that need more memory than a run may have; the others were dropped.
    #[error("events of the agent have more than {MAX_EVENT_BYTES} bytes or {MAX_EVENT_VALUES} values")]
    EventsTooLarge,
    /// No response.
    #[error("agent sent no response{}", syntax.as_ref().map(|error| format!(", but a text that is not valid JSON: {error}")).unwrap_or_default())]
    NoResponse {
        /// The error in the last text that looked like a message.
        syntax: Option<JsonError>,
    },
}

/// A kind of message that agents send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageKind {
    /// An event.
    Event,
    /// A response.
    Response,
}

impl ConversationProblem {
    /// Whether a limit was exceeded, so that the agent should be stopped at once.
    pub fn is_limit(&self) -> bool {
        match self {
            ConversationProblem::TooLarge { .. }
            | ConversationProblem::TooManyEvents
            | ConversationProblem::EventsTooLarge => true,
            ConversationProblem::NotJson(error) => {
                matches!(error.problem, JsonProblem::TooDeep | JsonProblem::TooManyValues)
            }
            ConversationProblem::ForeignTaskId { .. }
            | ConversationProblem::SecondResponse
            | ConversationProblem::InvalidResponse(_)
            | ConversationProblem::Unrecognised
            | ConversationProblem::NoResponse { .. } => false,
        }
    }
}

impl fmt::Display for MessageKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            MessageKind::Event => "event",
            MessageKind::Response => "response",
        })
    }
}
