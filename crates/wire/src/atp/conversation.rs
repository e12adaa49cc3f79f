//! The messages of one run: events, then one response, on any transport.
//!
//! ```
//! use proctor_wire::atp::{Conversation, Source};
//!
//! let mut conversation = Conversation::new("t-1");
//! conversation.feed(Source::StderrLine, b"loading the model");
//! conversation.feed(
//!     Source::StderrLine,
//!     br#"{"version": "1.0", "task_id": "t-1", "timestamp": "2025-01-21T10:30:45Z", "sequence": 0, "event_type": "progress", "payload": {}}"#,
//! );
//! conversation.feed_output(br#"{"version": "1.0", "task_id": "t-1", "status": "completed", "artifacts": [], "metrics": {}}"#);
//! let transcript = conversation.finish();
//! assert_eq!(transcript.events.len(), 1);
//! assert!(transcript.problems.is_empty() && transcript.response.is_some());
//! ```

mod output;
mod problem;
mod received;

use proctor_core::json::{Json, JsonError, JsonProblem};

use super::Strictness;
use super::event::Event;
use super::findings::{ProblemKind, Problems, Warnings};
use super::limits::{MAX_EVENT_BYTES, MAX_EVENT_VALUES, MAX_EVENTS, MAX_LISTED};
use super::object::count_values;
use super::read::{ReadError, parse_json, read};
use super::response::Response;

pub use problem::{ConversationProblem, MessageKind};
pub use received::{EventCounts, ReceivedEvent};

/// The origin of a message, which decides how it is classified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source<'a> {
    /// A line of standard error: events among log lines, never a response.
    StderrLine,
    /// A framed message that is an event or a response, like one of WebSocket.
    Message,
    /// The data of a block of server-sent events.
    Sse {
        /// Name of the event, empty if it has none. `response` marks the response.
        event: &'a str,
    },
    /// A message that its envelope calls an event.
    Event,
    /// A message that its envelope calls a response, or the JSON body of an HTTP reply.
    Response,
}

/// The classification of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fed {
    /// An event, which was kept. It is the last one of [`Conversation::events`].
    Event,
    /// An event beyond the limits, which was counted and dropped.
    Dropped,
    /// The response, valid or not.
    Response,
    /// A log line, or a message that says nothing of the run.
    Other,
    /// A message that is refused. The reason is the last one of [`Conversation::problems`], if there is room.
    Refused,
}

/// State machine over the messages of one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conversation {
    task_id: String,
    state: Transcript,
    /// Whether a response came, valid or not.
    responded: bool,
    highest_sequence: Option<u64>,
    kept_bytes: usize,
    kept_values: usize,
    /// Whether a flood of events was named as a problem.
    is_flooded: bool,
    /// The last text that looked like a message and was none: it explains an absent response.
    syntax_error: Option<JsonError>,
}

/// The messages of a conversation, read: its response, its events, and what was wrong.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Transcript {
    /// The response, if a valid one with the right task id came.
    pub response: Option<Response>,
    /// The first response that was refused, as it was sent.
    pub refused_response: Option<Json>,
    /// Events in order of arrival, flawed ones included.
    pub events: Vec<ReceivedEvent>,
    /// Numbers of events.
    pub counts: EventCounts,
    /// Warnings of all messages.
    pub warnings: Warnings,
    /// Reasons to fail the run; at most [`MAX_LISTED`].
    pub problems: Vec<ConversationProblem>,
    /// Number of problems, listed or not.
    pub total_problems: usize,
}

impl Conversation {
    /// The conversation about the request with this task id.
    pub fn new(task_id: &str) -> Conversation {
        Conversation {
            task_id: task_id.to_owned(),
            state: Transcript::default(),
            responded: false,
            highest_sequence: None,
            kept_bytes: 0,
            kept_values: 0,
            is_flooded: false,
            syntax_error: None,
        }
    }

    /// Takes one message or line, without its terminator.
    pub fn feed(&mut self, source: Source<'_>, text: &[u8]) -> Fed {
        let text = text.trim_ascii();
        let may_be_other = matches!(source, Source::StderrLine | Source::Sse { .. });
        let is_named_response = matches!(source, Source::Sse { event: "response" });
        if may_be_other && !is_named_response && text.first() != Some(&b'{') {
            // Also a line without end counts, although it is no message: nobody may flood a reader.
            return match parse_size(text) {
                Ok(()) => Fed::Other,
                Err(error) => self.refuse_unreadable(source, error),
            };
        }
        match parse_json(text) {
            Ok(json) => self.feed_json(source, json, text.len()),
            Err(error) => self.refuse_unreadable(source, error),
        }
    }

    /// Takes a message that its transport discarded because it was over the limit of bytes.
    pub fn feed_too_large(&mut self, bytes: u64) -> Fed {
        self.refuse(ConversationProblem::TooLarge { bytes })
    }

    /// Takes all of standard output, at its end: one JSON text, or lines of which one is the response.
    pub fn feed_output(&mut self, output: &[u8]) {
        output::feed(self, output);
    }

    /// Events so far.
    pub fn events(&self) -> &[ReceivedEvent] {
        &self.state.events
    }

    /// Numbers of events so far.
    pub fn counts(&self) -> EventCounts {
        self.state.counts
    }

    /// The response, if a valid one came.
    pub fn response(&self) -> Option<&Response> {
        self.state.response.as_ref()
    }

    /// Whether a response came, valid or not.
    pub fn has_responded(&self) -> bool {
        self.responded
    }

    /// Problems so far.
    pub fn problems(&self) -> &[ConversationProblem] {
        &self.state.problems
    }

    /// Warnings so far.
    pub fn warnings(&self) -> &Warnings {
        &self.state.warnings
    }

    /// Ends the conversation. One without response has a problem.
    pub fn finish(mut self) -> Transcript {
        if !self.responded {
            let syntax = self.syntax_error.take();
            self.refuse(ConversationProblem::NoResponse { syntax });
        }
        self.state
    }

    fn feed_json(&mut self, source: Source<'_>, json: Json, bytes: usize) -> Fed {
        let has_type = json.get("event_type").is_some();
        let has_status = json.get("status").is_some();
        match source {
            Source::Response | Source::Sse { event: "response" } => self.take_response(json),
            Source::Event => self.take_event(source, json, bytes),
            _ if has_type => self.take_event(source, json, bytes),
            Source::StderrLine => Fed::Other,
            _ if has_status => self.take_response(json),
            Source::Sse { .. } => Fed::Other,
            Source::Message => self.refuse(ConversationProblem::Unrecognised),
        }
    }

    fn take_event(&mut self, source: Source<'_>, json: Json, bytes: usize) -> Fed {
        self.state.counts.received += 1;
        let values = count_values(&json);
        let is_over_limit = if self.state.events.len() >= MAX_EVENTS {
            Some(ConversationProblem::TooManyEvents)
        } else if self.kept_bytes + bytes > MAX_EVENT_BYTES || self.kept_values + values > MAX_EVENT_VALUES {
            Some(ConversationProblem::EventsTooLarge)
        } else {
            None
        };
        // Standard output and standard error have no common order, so a line of the latter is never late.
        let after_response = self.responded && source != Source::StderrLine;
        if let Some(problem) = is_over_limit {
            self.state.counts.dropped += 1;
            // A flood is one problem, not one for each event. How many come between the response and the end of reading depends on the
            // speed of both sides, so a flood there must not decide about the run.
            if !after_response && !self.is_flooded {
                self.is_flooded = true;
                self.refuse(problem);
            }
            return Fed::Dropped;
        }
        self.kept_bytes += bytes;
        self.kept_values += values;
        self.state.counts.after_response += u64::from(after_response);
        let received = match read::<Event>(json, Strictness::Lenient) {
            Ok(valid) => {
                self.state.warnings.extend(valid.warnings);
                self.place(valid.message, after_response)
            }
            Err((json, findings)) => {
                self.state.warnings.extend(findings.warnings);
                ReceivedEvent::invalid(json, findings.problems, after_response)
            }
        };
        self.state.counts.invalid += u64::from(received.event().is_none());
        self.state.events.push(received);
        Fed::Event
    }

    /// Checks a valid event against the conversation: task id and order.
    fn place(&mut self, event: Event, after_response: bool) -> ReceivedEvent {
        if event.task_id() != self.task_id {
            let found = event.task_id().to_owned();
            let mut problems = Problems::default();
            problems.add("$.task_id", ProblemKind::ForeignTaskId(found.clone()));
            self.refuse(ConversationProblem::ForeignTaskId { message: MessageKind::Event, found });
            return ReceivedEvent::invalid(event.into_json(), problems, after_response);
        }
        let sequence = event.sequence();
        let out_of_sequence = sequence.is_some() && sequence <= self.highest_sequence;
        self.state.counts.out_of_sequence += u64::from(out_of_sequence);
        self.highest_sequence = self.highest_sequence.max(sequence);
        ReceivedEvent::valid(event, out_of_sequence, after_response)
    }

    fn take_response(&mut self, json: Json) -> Fed {
        if self.responded {
            return self.refuse(ConversationProblem::SecondResponse);
        }
        self.responded = true;
        match read::<Response>(json, Strictness::Lenient) {
            Ok(valid) => {
                self.state.warnings.extend(valid.warnings);
                if valid.message.task_id() == self.task_id {
                    self.state.response = Some(valid.message);
                } else {
                    let found = valid.message.task_id().to_owned();
                    self.state.refused_response = Some(valid.message.into_json());
                    self.refuse(ConversationProblem::ForeignTaskId { message: MessageKind::Response, found });
                }
            }
            Err((json, findings)) => {
                self.state.warnings.extend(findings.warnings);
                self.state.refused_response = Some(json);
                self.refuse(ConversationProblem::InvalidResponse(findings.problems));
            }
        }
        Fed::Response
    }

    fn refuse_unreadable(&mut self, source: Source<'_>, error: ReadError) -> Fed {
        match error {
            ReadError::TooLarge { bytes } => self.feed_too_large(bytes),
            ReadError::Json(error) => {
                // A log line may begin like an object; one that only the limits make unreadable is cut off with a reason.
                let is_limit = matches!(error.problem, JsonProblem::TooDeep | JsonProblem::TooManyValues);
                if source == Source::StderrLine && !is_limit {
                    self.syntax_error = Some(error);
                    return Fed::Other;
                }
                self.refuse(ConversationProblem::NotJson(error))
            }
            ReadError::Invalid(findings) => {
                self.refuse(ConversationProblem::InvalidResponse(findings.problems))
            }
        }
    }

    fn refuse(&mut self, problem: ConversationProblem) -> Fed {
        self.state.total_problems += 1;
        if self.state.problems.len() < MAX_LISTED {
            self.state.problems.push(problem);
        }
        Fed::Refused
    }
}

/// The limit of bytes, for a text that is not parsed.
fn parse_size(text: &[u8]) -> Result<(), ReadError> {
    if text.len() > super::limits::MAX_MESSAGE {
        return Err(ReadError::TooLarge { bytes: text.len() as u64 });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
