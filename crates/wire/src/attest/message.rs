//! Parameters and results of the Attest methods.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// Parameters of `initialize`. The version of the client is ignored.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Initialize {
    /// Name of the client, which says how long a line it reads; a name of another type is ignored, as released.
    #[serde(default, deserialize_with = "text_or_nothing")]
    pub sdk_name: Option<String>,
    /// Proctor extension: the longest reply that the client reads, in bytes.
    #[serde(default)]
    pub max_response_bytes: Option<u64>,
    /// Version of the protocol; 0 if it is absent.
    #[serde(default)]
    pub protocol_version: Option<i64>,
    /// The required capabilities.
    #[serde(default)]
    pub required_capabilities: Option<Vec<String>>,
    /// Proctor extension: whether the client reads `drift_alert` notifications. Official ones do not, and break on them.
    #[serde(default)]
    pub drift_alerts: Option<bool>,
}

/// A text; anything else is nothing.
fn text_or_nothing<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    match serde_json::Value::deserialize(deserializer)? {
        serde_json::Value::String(text) => Ok(Some(text)),
        _ => Ok(None),
    }
}

/// The answer to `initialize`.
#[derive(Debug, Clone, Serialize)]
pub struct Initialized {
    /// Version of the engine.
    pub engine_version: &'static str,
    /// Version of the protocol.
    pub protocol_version: i64,
    /// The capabilities of the engine.
    pub capabilities: Vec<&'static str>,
    /// The required capabilities that the engine lacks.
    pub missing: Vec<String>,
    /// Whether nothing is missing.
    pub compatible: bool,
    /// Always `json`.
    pub encoding: &'static str,
    /// Number of requests that are worked on at a time.
    pub max_concurrent_requests: usize,
    /// Size limit of a trace.
    pub max_trace_size_bytes: usize,
    /// Limit of a trace's steps.
    pub max_steps_per_trace: usize,
    /// The longest reply that will be sent, if the client said what it reads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_response_bytes: Option<usize>,
}

/// Parameters of `evaluate_batch`. Generic over the types of trace and assertion.
#[derive(Debug, Clone, Deserialize)]
#[serde(bound(deserialize = "T: Default + Deserialize<'de>, A: Deserialize<'de>"))]
pub struct EvaluateBatch<'a, T, A> {
    /// The trace.
    #[serde(default)]
    pub trace: T,
    /// The assertions.
    #[serde(default = "Option::default")]
    pub assertions: Option<Vec<A>>,
    /// Proctor extension, if negotiated: a session of the ledger instead of a trace.
    #[serde(borrow, default)]
    pub session: Option<Cow<'a, str>>,
}

/// Parameters of `validate_trace_tree`.
#[derive(Debug, Clone, Deserialize)]
#[serde(bound(deserialize = "T: Default + Deserialize<'de>"))]
pub struct ValidateTree<T> {
    /// The trace.
    #[serde(default)]
    pub trace: T,
}

/// The answer to `validate_trace_tree`.
#[derive(Debug, Clone, Serialize)]
pub struct TreeAnswer {
    /// Whether the tree has no problem.
    pub valid: bool,
    /// The first problem found.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<String>,
    /// Depth of nested traces; one alone has depth 0.
    pub depth: usize,
    /// Traces that name their agent.
    pub agent_count: usize,
    /// Agent ids, depth first; `null` if there are none.
    pub agent_ids: Option<Vec<String>>,
    /// Tokens of all traces.
    pub aggregate_tokens: Number,
    /// Money of all traces.
    pub aggregate_cost_usd: f64,
    /// Time of all traces, in milliseconds.
    pub aggregate_latency_ms: Number,
}

/// A sum of whole numbers, written without a fraction if it has none.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Number(pub f64);

impl Serialize for Number {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Below 2^53 a whole float is the number that it looks like.
        if self.0.fract() == 0.0 && self.0.abs() < 9_007_199_254_740_992.0 {
            #[expect(clippy::cast_possible_truncation, reason = "whole and below 2^53")]
            return serializer.serialize_i64(self.0 as i64);
        }
        serializer.serialize_f64(self.0)
    }
}

/// `submit_plugin_result`.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct SubmitPluginResult {
    /// The trace that was judged.
    #[serde(default)]
    pub trace_id: Option<String>,
    /// The plugin.
    #[serde(default)]
    pub plugin_name: Option<String>,
    /// The assertion that waits for it.
    #[serde(default)]
    pub assertion_id: Option<String>,
    /// The plugin's result.
    #[serde(default)]
    pub result: Option<PluginResult>,
}

/// The result of a plugin assertion.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct PluginResult {
    /// Status.
    #[serde(default)]
    pub status: Option<String>,
    /// Score, from 0 to 1.
    #[serde(default)]
    pub score: Option<f64>,
    /// Explanation.
    #[serde(default)]
    pub explanation: Option<String>,
}

/// The answer to `submit_plugin_result`.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Accepted {
    /// Whether an assertion waited for it.
    pub accepted: bool,
}

/// Parameters of `query_drift`.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct QueryDrift {
    /// The assertion.
    #[serde(default)]
    pub assertion_id: Option<String>,
    /// Number of the newest scores that count; 50 if absent.
    #[serde(default)]
    pub window_size: Option<f64>,
}

/// Statistics of an assertion's scores.
#[derive(Debug, Clone, Serialize)]
pub struct DriftReport {
    /// The assertion.
    pub assertion_id: String,
    /// Mean of the scores.
    pub mean: f64,
    /// Standard deviation of the scores.
    pub stddev: f64,
    /// Number of scores.
    pub count: u64,
    /// Latest score.
    pub latest_score: f64,
    /// `latest_score - mean`.
    pub deviation: f64,
    /// `drift_detected` or `ok`.
    pub status: &'static str,
}

/// The answer to `query_drift`.
#[derive(Debug, Clone, Serialize)]
pub struct DriftAnswer {
    /// The report.
    pub report: DriftReport,
}

/// Parameters of `generate_user_message`.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct GenerateUserMessage {
    /// The persona of the simulated user.
    #[serde(default)]
    pub persona: Persona,
    /// The conversation so far.
    #[serde(default)]
    pub conversation_history: Option<Vec<Turn>>,
    /// Injected faults.
    #[serde(default)]
    pub fault_config: Option<Faults>,
}

/// A simulated user.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Persona {
    /// Name of the persona.
    #[serde(default)]
    pub name: Option<String>,
    /// The persona's system prompt.
    #[serde(default)]
    pub system_prompt: Option<String>,
    /// Writing style.
    #[serde(default)]
    pub style: Option<String>,
    /// Sampling temperature of the model.
    #[serde(default)]
    pub temperature: Option<f64>,
    /// Length limit of a message.
    #[serde(default)]
    pub max_tokens: Option<f64>,
}

/// A message of a conversation.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Turn {
    /// The role of the speaker.
    #[serde(default)]
    pub role: Option<String>,
    /// The text.
    #[serde(default)]
    pub content: Option<String>,
}

/// Injected faults.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Faults {
    /// Failure rate of the call, from 0 to 1.
    #[serde(default)]
    pub error_rate: Option<f64>,
    /// Maximum of the random delay of the call, in milliseconds.
    #[serde(default)]
    pub latency_jitter_ms: Option<f64>,
    /// Whether the reply's characters are shuffled.
    #[serde(default)]
    pub content_corruption: Option<bool>,
    /// Time after which the call fails, in milliseconds; 0 for never.
    #[serde(default)]
    pub timeout_after_ms: Option<f64>,
}

/// The answer to `generate_user_message`.
#[derive(Debug, Clone, Serialize)]
pub struct UserMessage {
    /// The user's next message.
    pub message: String,
}

/// The answer to `shutdown`.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Shutdown {
    /// Always 1: one process has one session.
    pub sessions_completed: u64,
    /// Results given, and plugin results taken.
    pub assertions_evaluated: u64,
}

/// A notification about a score that fell.
pub fn drift_alert(report: &DriftReport) -> Vec<u8> {
    #[derive(Serialize)]
    struct Alert<'a> {
        jsonrpc: &'a str,
        method: &'a str,
        params: &'a DriftReport,
    }
    let alert = Alert { jsonrpc: "2.0", method: "drift_alert", params: report };
    // Writing plain members to memory cannot fail.
    let mut line = serde_json::to_vec(&alert).unwrap_or_default();
    line.push(b'\n');
    line
}
