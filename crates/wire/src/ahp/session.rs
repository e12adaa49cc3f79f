//! Messages of handshake, query and batch.

use proctor_core::json::Json;
use serde::{Deserialize, Serialize};

use super::{AhpEvent, Decision, MessageError};

/// The handshake of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandshakeRequest {
    /// Protocol version of the agent.
    pub protocol_version: String,
    /// The agent's software.
    pub agent_info: AgentInfo,
    /// The session id of the agent.
    pub session_id: String,
    /// The id that the agent claims.
    pub agent_id: String,
}

/// Framework, version and capabilities of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentInfo {
    /// The framework.
    pub framework: String,
    /// Version of the framework.
    pub version: String,
    /// The events that the agent will send.
    pub capabilities: Vec<String>,
}

/// The harness's reply to a handshake.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandshakeResponse {
    /// Protocol version of the harness.
    pub protocol_version: String,
    /// The harness's software.
    pub harness_info: HarnessInfo,
    /// Reserved by the protocol; clients do not send it back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_token: Option<String>,
    /// The limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<HarnessConfig>,
}

/// Name, version and capabilities of a harness.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HarnessInfo {
    /// The name.
    pub name: String,
    /// The version.
    pub version: String,
    /// The events that the harness answers.
    pub capabilities: Vec<String>,
}

/// The limits that a harness advertises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct HarnessConfig {
    /// The reply timeout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Maximum of events in a batch.
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
    /// The type of the query; any text.
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
    /// Reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Alternatives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alternatives: Option<Vec<String>>,
}

/// Several events at once.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BatchRequest {
    /// The events.
    pub events: Vec<AhpEvent>,
}

/// The reply to a batch: one decision for each event, in order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BatchResponse {
    /// The decisions.
    pub decisions: Vec<Decision>,
}

impl BatchResponse {
    /// Reads the reply to a batch. Payloads that the agent is to use keep every digit.
    pub fn from_json(value: &Json) -> Result<BatchResponse, MessageError> {
        let decisions = value.get("decisions").and_then(Json::as_array);
        let decisions = decisions.ok_or(MessageError::NoDecisions)?;
        let read = decisions.iter().enumerate().map(|(index, decision)| {
            Decision::from_json(decision).map_err(|error| MessageError::item("decisions", index, error))
        });
        Ok(BatchResponse { decisions: read.collect::<Result<_, _>>()? })
    }
}
