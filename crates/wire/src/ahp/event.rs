//! Events: the messages of an agent at its control points.

use std::fmt;

use proctor_core::json::Json;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{EventContext, MessageError};

/// An event.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AhpEvent {
    /// The kind of event.
    pub event_type: EventType,
    /// The session, as the agent calls it.
    pub session_id: String,
    /// The agent, as it calls itself.
    pub agent_id: String,
    /// Time of the event; any text.
    pub timestamp: String,
    /// Depth in nested agents; 0 is the top.
    pub depth: u32,
    /// The payload; its shape depends on the kind.
    pub payload: Json,
    /// The agent's situation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<EventContext>,
    /// Free-form metadata object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Json>,
}

impl AhpEvent {
    /// Reads an event; its payload is moved, not copied. With `lenient`, `timestamp` and `depth` may be missing, as agents of older
    /// dialects send them.
    pub fn from_json(value: Json, lenient: bool) -> Result<AhpEvent, MessageError> {
        let Json::Object(members) = value else {
            return Err(MessageError::not_an_object("an event", &value));
        };
        let (mut event_type, mut session_id, mut agent_id, mut timestamp) = (None, None, None, None);
        let (mut depth, mut payload, mut context, mut metadata) = (None, None, None, None);
        for (name, member) in members {
            match name.as_str() {
                "event_type" => event_type = Some(read("event_type", &member)?),
                "session_id" => session_id = Some(text("session_id", member)?),
                "agent_id" => agent_id = Some(text("agent_id", member)?),
                "timestamp" => timestamp = Some(text("timestamp", member)?),
                "depth" => depth = Some(read("depth", &member)?),
                "payload" => payload = Some(member),
                "context" if !member.is_null() => context = Some(read("context", &member)?),
                "metadata" if !member.is_null() => match member {
                    Json::Object(_) => metadata = Some(member),
                    other => {
                        return Err(MessageError::member_type("metadata", "an object or null", &other));
                    }
                },
                _ => {}
            }
        }
        if lenient {
            timestamp = timestamp.or_else(|| Some(String::new()));
            depth = depth.or(Some(0));
        }
        Ok(AhpEvent {
            event_type: event_type.ok_or(MessageError::Missing("event_type"))?,
            session_id: session_id.ok_or(MessageError::Missing("session_id"))?,
            agent_id: agent_id.ok_or(MessageError::Missing("agent_id"))?,
            timestamp: timestamp.ok_or(MessageError::Missing("timestamp"))?,
            depth: depth.ok_or(MessageError::Missing("depth"))?,
            payload: payload.ok_or(MessageError::Missing("payload"))?,
            context,
            metadata,
        })
    }
}

fn text(member: &'static str, value: Json) -> Result<String, MessageError> {
    match value {
        Json::String(text) => Ok(text),
        other => Err(MessageError::member_type(member, "a string", &other)),
    }
}

fn read<T: DeserializeOwned>(member: &'static str, value: &Json) -> Result<T, MessageError> {
    value.read().map_err(|error| MessageError::Member { member, error })
}

/// The 22 kinds of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "each is named after the thing that the agent says")]
pub enum EventType {
    Handshake,
    PreAction,
    PostAction,
    PrePrompt,
    PostResponse,
    SessionStart,
    SessionEnd,
    Error,
    Query,
    Heartbeat,
    Idle,
    ContextPerception,
    Success,
    MemoryRecall,
    Planning,
    Reasoning,
    RateLimit,
    Confirmation,
    IntentDetection,
    RunLifecycle,
    TaskList,
    Verification,
}

impl EventType {
    /// All event types, in the protocol's order.
    pub const ALL: [EventType; 22] = [
        EventType::Handshake,
        EventType::PreAction,
        EventType::PostAction,
        EventType::PrePrompt,
        EventType::PostResponse,
        EventType::SessionStart,
        EventType::SessionEnd,
        EventType::Error,
        EventType::Query,
        EventType::Heartbeat,
        EventType::Idle,
        EventType::ContextPerception,
        EventType::Success,
        EventType::MemoryRecall,
        EventType::Planning,
        EventType::Reasoning,
        EventType::RateLimit,
        EventType::Confirmation,
        EventType::IntentDetection,
        EventType::RunLifecycle,
        EventType::TaskList,
        EventType::Verification,
    ];

    /// The name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            EventType::Handshake => "handshake",
            EventType::PreAction => "pre_action",
            EventType::PostAction => "post_action",
            EventType::PrePrompt => "pre_prompt",
            EventType::PostResponse => "post_response",
            EventType::SessionStart => "session_start",
            EventType::SessionEnd => "session_end",
            EventType::Error => "error",
            EventType::Query => "query",
            EventType::Heartbeat => "heartbeat",
            EventType::Idle => "idle",
            EventType::ContextPerception => "context_perception",
            EventType::Success => "success",
            EventType::MemoryRecall => "memory_recall",
            EventType::Planning => "planning",
            EventType::Reasoning => "reasoning",
            EventType::RateLimit => "rate_limit",
            EventType::Confirmation => "confirmation",
            EventType::IntentDetection => "intent_detection",
            EventType::RunLifecycle => "run_lifecycle",
            EventType::TaskList => "task_list",
            EventType::Verification => "verification",
        }
    }

    /// Whether the agent waits for a decision: such an event is a request, all others are notifications.
    pub fn is_blocking(self) -> bool {
        matches!(self, EventType::Handshake | EventType::PreAction | EventType::PrePrompt | EventType::Query)
            || self.is_specialised()
    }

    /// Whether it gets a decision of its own shape instead of a generic one.
    pub fn is_specialised(self) -> bool {
        matches!(
            self,
            EventType::Idle
                | EventType::ContextPerception
                | EventType::MemoryRecall
                | EventType::Planning
                | EventType::Reasoning
                | EventType::RateLimit
                | EventType::Confirmation
                | EventType::IntentDetection
        )
    }

    /// Whether it may stand in a batch.
    pub fn is_batchable(self) -> bool {
        !self.is_specialised() && !matches!(self, EventType::Handshake | EventType::Query)
    }

    /// Whether its payload is a durable contract, which is checked in whatever form it comes.
    pub fn is_durable(self) -> bool {
        matches!(self, EventType::RunLifecycle | EventType::TaskList | EventType::Verification)
    }
}

impl fmt::Display for EventType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}
