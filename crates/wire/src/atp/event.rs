//! Events: what an agent reports while it executes a task.

mod check;
mod payload;

use proctor_core::json::Json;
use proctor_core::time::Timestamp;

use super::VERSION;
use super::format::{DateTime, date_time};
use super::number::Number;
use super::object::text;
use super::read::message;

pub use payload::{
    ArtifactCreated, ErrorReport, LlmRequest, Opaque, Payload, Plan, Progress, Reasoning, StateChange,
    ToolCall,
};

/// A report of an agent while it executes a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub(super) json: Json,
}

message!(Event, "an event");

/// The type of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventType {
    /// A call of a tool.
    ToolCall,
    /// A call of a model.
    LlmRequest,
    /// The agent's reasoning.
    Reasoning,
    /// A transition between states of the agent.
    StateChange,
    /// A new artifact.
    ArtifactCreated,
    /// An error.
    Error,
    /// Progress of the task.
    Progress,
}

impl EventType {
    /// All types of version 1.0.
    pub const ALL: [EventType; 7] = [
        EventType::ToolCall,
        EventType::LlmRequest,
        EventType::Reasoning,
        EventType::StateChange,
        EventType::ArtifactCreated,
        EventType::Error,
        EventType::Progress,
    ];

    /// The type as it is written in messages.
    pub fn as_str(self) -> &'static str {
        match self {
            EventType::ToolCall => "tool_call",
            EventType::LlmRequest => "llm_request",
            EventType::Reasoning => "reasoning",
            EventType::StateChange => "state_change",
            EventType::ArtifactCreated => "artifact_created",
            EventType::Error => "error",
            EventType::Progress => "progress",
        }
    }

    /// The type of that name; none for those of other versions.
    pub fn parse(text: &str) -> Option<EventType> {
        EventType::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

impl Event {
    /// An event of version 1.0.
    pub fn new(task_id: &str, sequence: u64, timestamp: Timestamp, payload: &Payload<'_>) -> Event {
        let json = Json::object()
            .with("version", VERSION)
            .with("task_id", task_id)
            .with("timestamp", timestamp.to_string())
            .with("sequence", sequence)
            .with("event_type", payload.event_type_name())
            .with("payload", payload.to_json());
        Event { json }
    }

    /// The type; none if it is one of a higher minor version.
    pub fn event_type(&self) -> Option<EventType> {
        EventType::parse(self.event_type_name())
    }

    /// The type as it was sent.
    pub fn event_type_name(&self) -> &str {
        text(&self.json, "event_type").unwrap_or_default()
    }

    /// The sequence number.
    pub fn sequence(&self) -> Option<u64> {
        self.json.get("sequence").and_then(Number::of).and_then(Number::as_u64)
    }

    /// The time as it was sent.
    pub fn timestamp(&self) -> Option<&str> {
        text(&self.json, "timestamp")
    }

    /// The moment of the event; UTC is assumed for a time without zone.
    pub fn time(&self) -> Option<Timestamp> {
        let text = self.timestamp()?;
        match date_time(text) {
            DateTime::Zoned => Timestamp::parse(text),
            DateTime::Local => Timestamp::parse(&format!("{text}Z")),
            DateTime::Malformed => None,
        }
    }

    /// The payload, by the type of the event.
    pub fn payload(&self) -> Payload<'_> {
        static EMPTY: Json = Json::Null;
        Payload::view(self.event_type_name(), self.json.get("payload").unwrap_or(&EMPTY))
    }
}

#[cfg(test)]
mod tests;
