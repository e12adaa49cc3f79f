//! Handshake, query and batch.

use proctor_core::json::Json;
use serde::{Deserialize, Serialize};

use super::{AhpEvent, Decision};

/// What an agent says first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandshakeRequest {
    /// The version that it speaks.
    pub protocol_version: String,
    /// What it is.
    pub agent_info: AgentInfo,
    /// The session, as it calls it.
    pub session_id: String,
    /// The agent, as it calls itself.
    pub agent_id: String,
}

/// What an agent is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentInfo {
    /// What it is built with.
    pub framework: String,
    /// That one's version.
    pub version: String,
    /// What it will send.
    pub capabilities: Vec<String>,
}

/// What the harness says to that.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandshakeResponse {
    /// The version that it speaks.
    pub protocol_version: String,
    /// What it is.
    pub harness_info: HarnessInfo,
    /// Reserved by the protocol; clients do not send it back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_token: Option<String>,
    /// Its limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<HarnessConfig>,
}

/// What a harness is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HarnessInfo {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// What it answers.
    pub capabilities: Vec<String>,
}

/// The limits that a harness advertises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct HarnessConfig {
    /// It answers within this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// At most this many events in a batch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch_size: Option<u64>,
    /// Events at most this deep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_depth: Option<u32>,
}

/// A question of the agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct QueryRequest {
    /// The session, as the agent calls it.
    pub session_id: String,
    /// The agent, as it calls itself.
    pub agent_id: String,
    /// What kind of question; any text.
    pub query_type: String,
    /// The question's details.
    pub payload: Json,
}

/// The answer to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueryResponse {
    /// The answer; null where there is none.
    #[serde(deserialize_with = "Json::deserialize")]
    pub answer: Json,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What else could be done or asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alternatives: Option<Vec<String>>,
}

/// Several events at once.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BatchRequest {
    /// The events.
    pub events: Vec<AhpEvent>,
}

/// One decision for each of them, in order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BatchResponse {
    /// The decisions.
    pub decisions: Vec<Decision>,
}

impl BatchResponse {
    /// Reads the reply to a batch. Payloads that the agent is to use keep every digit.
    pub fn from_json(value: &Json) -> Result<BatchResponse, String> {
        let decisions = value.get("decisions").and_then(Json::as_array);
        let decisions = decisions.ok_or("a reply to a batch has an array `decisions`")?;
        let read = decisions.iter().enumerate().map(|(index, decision)| {
            Decision::from_json(decision).map_err(|problem| format!("{problem} at /decisions/{index}"))
        });
        Ok(BatchResponse { decisions: read.collect::<Result<_, _>>()? })
    }
}
