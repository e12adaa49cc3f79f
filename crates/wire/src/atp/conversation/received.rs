use proctor_core::json::Json;

use crate::atp::event::Event;
use crate::atp::findings::Problems;

/// An event that came, with its flaws.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceivedEvent {
    message: Received,
    /// Whether its sequence number is not higher than those before it.
    pub out_of_sequence: bool,
    /// Whether it came after the response on the same stream.
    pub after_response: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Received {
    Valid(Event),
    Invalid { json: Json, problems: Problems },
}

/// Numbers of events of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EventCounts {
    /// All events, dropped ones included.
    pub received: u64,
    /// Kept events that violate the protocol, or belong to another task.
    pub invalid: u64,
    /// Kept events out of sequence.
    pub out_of_sequence: u64,
    /// Kept events after the response.
    pub after_response: u64,
    /// Events beyond the limits.
    pub dropped: u64,
}

impl ReceivedEvent {
    pub(super) fn valid(event: Event, out_of_sequence: bool, after_response: bool) -> ReceivedEvent {
        ReceivedEvent { message: Received::Valid(event), out_of_sequence, after_response }
    }

    pub(super) fn invalid(json: Json, problems: Problems, after_response: bool) -> ReceivedEvent {
        ReceivedEvent {
            message: Received::Invalid { json, problems },
            out_of_sequence: false,
            after_response,
        }
    }

    /// The event, if it is valid.
    pub fn event(&self) -> Option<&Event> {
        match &self.message {
            Received::Valid(event) => Some(event),
            Received::Invalid { .. } => None,
        }
    }

    /// The event as JSON, valid or not.
    pub fn as_json(&self) -> &Json {
        match &self.message {
            Received::Valid(event) => event.as_json(),
            Received::Invalid { json, .. } => json,
        }
    }

    /// Problems of an invalid event.
    pub fn problems(&self) -> Option<&Problems> {
        match &self.message {
            Received::Valid(_) => None,
            Received::Invalid { problems, .. } => Some(problems),
        }
    }

    /// Whether a run under `strict: true` fails because of this event.
    pub fn is_flawed(&self) -> bool {
        self.event().is_none() || self.out_of_sequence || self.after_response
    }
}
