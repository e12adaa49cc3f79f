//! The reply of an agent to one request: messages, failure of the transport, end of the process.

use std::time::Duration;

use proctor_clients::atp::client::{ExecuteError, Item, OutputError};
use proctor_core::json::Json;
use proctor_sandbox::Status as ProcessStatus;
use proctor_wire::atp::conversation::{ConversationProblem, Transcript};
use proctor_wire::atp::{Response, Status};

use crate::execute::crash;
use crate::secrets::Secrets;

/// Everything that came back for one request.
#[derive(Debug, Default)]
pub(super) struct Reply {
    /// What the request was, for reasons.
    pub(super) label: &'static str,
    pub(super) task_id: String,
    pub(super) messages: Transcript,
    pub(super) failure: Option<Failure>,
    /// End of the process, if the agent is one and ended by itself.
    pub(super) status: Option<ProcessStatus>,
    /// Whether the process still ran after it had closed its output.
    pub(super) lingered: bool,
    /// Where a secret was seen.
    pub(super) leaked: Option<&'static str>,
    /// Last lines of standard error that are no messages.
    pub(super) last_lines: Vec<String>,
}

/// The reason why an exchange did not end in good order.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error("no answer within {} s", .0.as_secs())]
    TimedOut(Duration),
    #[error("more than 32 MiB of messages and log lines")]
    TooMuch,
    #[error(transparent)]
    Exchange(#[from] ExecuteError),
    #[error(transparent)]
    Start(#[from] crate::execute::StartError),
}

/// What an agent made of a request that it should refuse.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Handling {
    /// A response that is not `failed`.
    Executed(String),
    /// A failed response, or the transport's own way to refuse.
    Refused,
    /// The connection broke, which is a refusal only of input that is too large.
    Cut(String),
    /// No answer, or one that shows a crash.
    Broken(String),
}

impl Reply {
    /// Looks for secrets in an element as it came.
    pub(super) fn look_for_secrets(&mut self, item: &Item, secrets: &Secrets) {
        let (text, place) = match item {
            Item::Message(message) if message.is_response() => (&message.text, "in a response"),
            Item::Message(message) => (&message.text, "in an event"),
            Item::Line(line) => (line, "on standard error"),
            Item::End => return,
        };
        self.look_in(&String::from_utf8_lossy(text), place, secrets);
    }

    pub(super) fn look_in(&mut self, text: &str, place: &'static str, secrets: &Secrets) {
        if self.leaked.is_none() && !secrets.cut(text).1.is_empty() {
            self.leaked = Some(place);
        }
    }

    /// The response as it came, valid or not.
    pub(super) fn response(&self) -> Option<&Json> {
        let valid = self.messages.response.as_ref().map(Response::as_json);
        valid.or(self.messages.refused_response.as_ref())
    }

    /// The status word of the response.
    pub(super) fn status_word(&self) -> Option<&str> {
        self.response().and_then(|response| response.get("status")).and_then(Json::as_str)
    }

    /// Whether the agent took the request: a response whose status is one of the document, but not `failed`.
    pub(super) fn is_executed(&self) -> bool {
        self.status_word().and_then(Status::parse).is_some_and(|status| status != Status::Failed)
    }

    /// The reason why this is not exactly one response.
    pub(super) fn missing_response(&self) -> Option<String> {
        let second = self.messages.problems.iter().find(|problem| {
            !matches!(
                problem,
                ConversationProblem::NoResponse { .. }
                    | ConversationProblem::InvalidResponse(_)
                    | ConversationProblem::ForeignTaskId { .. }
            )
        });
        let reason = match (second, &self.failure, self.response()) {
            (_, Some(Failure::TimedOut(limit)), _) => Failure::TimedOut(*limit).to_string(),
            (Some(problem), ..) => problem.to_string(),
            (None, Some(failure), _) => failure.to_string(),
            (None, None, None) => "agent sent no response".to_owned(),
            (None, None, Some(_)) => return None,
        };
        Some(match self.status.and_then(crash) {
            Some(crash) => format!("{reason}; {crash}"),
            None => reason,
        })
    }

    /// How the agent handled a request that it should refuse.
    pub(super) fn handling(&self) -> Handling {
        if let Some(Failure::TimedOut(_)) = self.failure {
            return Handling::Broken(self.failure_text());
        }
        if let Some(response) = self.response() {
            return match response.get("status").and_then(Json::as_str) {
                Some("failed") => Handling::Refused,
                Some(status) => Handling::Executed(status.chars().take(40).collect()),
                None => Handling::Broken("it sent a message that is no response".to_owned()),
            };
        }
        match &self.failure {
            Some(Failure::Exchange(error)) => self.judge(error),
            _ => Handling::Broken(self.missing_response().unwrap_or_else(|| self.failure_text())),
        }
    }

    fn judge(&self, error: &ExecuteError) -> Handling {
        match error {
            ExecuteError::Status { status: 400..=499, .. } | ExecuteError::ClosedBeforeResponse => {
                Handling::Refused
            }
            // UNKNOWN, DEADLINE_EXCEEDED, INTERNAL, UNAVAILABLE and DATA_LOSS are what servers say when a handler breaks.
            ExecuteError::GrpcStatus { code, .. } if ![2, 4, 13, 14, 15].contains(code) => Handling::Refused,
            ExecuteError::ConnectionLost | ExecuteError::Transport(_) => Handling::Cut(error.to_string()),
            ExecuteError::Output { problem: OutputError::NoResponse { .. } | OutputError::Empty, .. } => {
                let reason = "it gave no response".to_owned();
                Handling::Broken(match self.status.and_then(crash) {
                    Some(crash) => format!("{reason}; {crash}"),
                    None => reason,
                })
            }
            other => Handling::Broken(other.to_string()),
        }
    }

    fn failure_text(&self) -> String {
        self.failure.as_ref().map_or_else(|| "no answer".to_owned(), ToString::to_string)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(error: ExecuteError) -> Handling {
        Reply { failure: Some(error.into()), ..Reply::default() }.handling()
    }

    fn status(status: u16) -> ExecuteError {
        ExecuteError::Status { status, path: "/execute".to_owned(), body: Vec::new().into() }
    }

    fn grpc(code: i32) -> ExecuteError {
        ExecuteError::GrpcStatus { code, message: String::new() }
    }

    fn answered(response: &str) -> Reply {
        let response = Json::parse(response.as_bytes()).unwrap();
        let messages = Transcript { refused_response: Some(response), ..Transcript::default() };
        Reply { messages, ..Reply::default() }
    }

    #[test]
    fn refusals_of_transports_are_told_from_crashes() {
        for refusal in
            [status(400), status(413), status(422), grpc(3), grpc(8), ExecuteError::ClosedBeforeResponse]
        {
            assert_eq!(failed(refusal.clone()), Handling::Refused, "{refusal}");
        }
        for crash in [status(500), status(301), grpc(2), grpc(13), ExecuteError::TooLong] {
            assert!(matches!(failed(crash.clone()), Handling::Broken(_)), "{crash}");
        }
        assert!(matches!(failed(ExecuteError::ConnectionLost), Handling::Cut(_)));
    }

    #[test]
    fn a_failed_response_refuses_whatever_its_task_id() {
        assert_eq!(answered(r#"{"task_id":"unknown","status":"failed"}"#).handling(), Handling::Refused);
        let done = answered(r#"{"status":"completed"}"#);
        assert_eq!(done.handling(), Handling::Executed("completed".to_owned()));
        assert!(done.is_executed() && !answered(r#"{"status":"done"}"#).is_executed());
        assert!(matches!(answered("null").handling(), Handling::Broken(_)));
    }

    #[test]
    fn silence_outweighs_what_came_before() {
        let mut reply = answered(r#"{"status":"failed"}"#);
        reply.failure = Some(Failure::TimedOut(Duration::from_secs(3)));
        assert_eq!(reply.handling(), Handling::Broken("no answer within 3 s".to_owned()));
        assert_eq!(reply.missing_response().as_deref(), Some("no answer within 3 s"));
        reply.failure = None;
        reply.status = Some(ProcessStatus::Exited(3));
        assert_eq!(reply.missing_response(), None);
    }
}
