//! An execution as a sequence of messages.

use std::fmt;
use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use proctor_wire::atp::limits::MAX_MESSAGE;
use proctor_wire::atp::{ErrorCode, Response};
use tokio::sync::mpsc::Receiver;

use super::refusal::failed;

/// A message to the caller, as one line of JSON without its newline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outgoing {
    /// An event.
    Event(String),
    /// The response: the last message.
    Response(String),
}

/// A running execution. Dropping it cancels the agent's work.
pub struct Execution {
    /// None once it has given its response.
    work: Option<BoxFuture<'static, String>>,
    /// The response, while there are events before it.
    response: Option<String>,
    events: Receiver<String>,
}

impl Execution {
    pub(super) fn new(
        task_id: String,
        work: impl Future<Output = Response> + Send + 'static,
        events: Receiver<String>,
    ) -> Execution {
        let work = async move {
            let Ok(response) = AssertUnwindSafe(work).catch_unwind().await else {
                return failed(&task_id, &ErrorCode::InternalError, "the agent failed inside");
            };
            let text = response.with_member("task_id", task_id.as_str()).to_string();
            if text.len() > MAX_MESSAGE {
                let problem = format!("the response is longer than {MAX_MESSAGE} bytes");
                return failed(&task_id, &ErrorCode::InternalError, &problem);
            }
            text
        };
        Execution { work: Some(work.boxed()), response: None, events }
    }

    /// The next message; none after the response. Cancelling loses nothing.
    pub async fn next(&mut self) -> Option<Outgoing> {
        if let Some(work) = &mut self.work {
            tokio::select! {
                biased;
                Some(event) = self.events.recv() => return Some(Outgoing::Event(event)),
                response = work => {
                    self.work = None;
                    self.response = Some(response);
                    // Tasks that the agent left behind can send nothing more.
                    self.events.close();
                }
            }
        }
        // After the agent's last event there are none: the channel is closed, and what it holds was sent before the response.
        match self.events.recv().await {
            Some(event) => Some(Outgoing::Event(event)),
            None => self.response.take().map(Outgoing::Response),
        }
    }

    /// The response alone; events are dropped.
    pub async fn response(mut self) -> String {
        while let Some(message) = self.next().await {
            if let Outgoing::Response(text) = message {
                return text;
            }
        }
        String::new()
    }
}

impl fmt::Debug for Execution {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Execution").field("is_running", &self.work.is_some()).finish_non_exhaustive()
    }
}
