//! The `context` member of events: session statistics, facts and memory.

use proctor_core::json::Json;
use serde::{Deserialize, Serialize};

/// The agent's situation.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct EventContext {
    /// Facts that the agent learnt lately.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recent_facts: Option<Vec<Fact>>,
    /// The agent's memory, summarised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_summary: Option<MemorySummary>,
    /// Counters of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_stats: Option<SessionStats>,
    /// The current task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_task: Option<String>,
    /// The tools that the agent can call; an object defined by the agent.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "object")]
    pub capabilities: Option<Json>,
}

/// A fact with source and confidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fact {
    /// The fact.
    pub content: String,
    /// Source.
    pub source: String,
    /// Confidence, from 0 to 1.
    pub confidence: f32,
}

/// A summary of the agent's memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemorySummary {
    /// The kind of memory.
    pub memory_type: String,
    /// Number of items.
    pub total_items: u64,
    /// The topics of recent entries.
    pub recent_topics: Vec<String>,
}

/// Counters of a session.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SessionStats {
    /// Actions so far.
    pub total_actions: u64,
    /// Tokens so far.
    pub total_tokens: i32,
    /// Milliseconds so far.
    pub duration_ms: u64,
    /// Errors so far.
    pub error_count: u64,
}

/// Reads an optional object of any content.
pub(super) fn object<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Json>, D::Error> {
    match Option::<Json>::deserialize(deserializer)? {
        None | Some(Json::Null) => Ok(None),
        Some(value @ Json::Object(_)) => Ok(Some(value)),
        Some(other) => {
            Err(serde::de::Error::custom(format!("expected an object, found {}", other.type_name())))
        }
    }
}
