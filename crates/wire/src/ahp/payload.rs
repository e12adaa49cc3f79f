//! Event payloads whose shape the protocol defines, except the durable contracts.

use proctor_core::json::Json;
use serde::{Deserialize, Serialize};

use super::context::object;

/// The agent has nothing to do and asks whether background work may run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IdleEvent {
    /// Idle time.
    pub idle_duration_ms: u64,
    /// Reason.
    pub idle_reason: String,
    /// The type of the last event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_event_type: Option<String>,
    /// The suggested next activity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggested_action: Option<String>,
}

/// A heartbeat.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HeartbeatEvent {
    /// Time since the agent's start, in milliseconds.
    pub uptime_ms: u64,
    /// Events so far.
    pub total_events_processed: u64,
    /// The agent's state.
    pub current_state: String,
    /// The processor usage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_percent: Option<f32>,
    /// The memory usage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Tools that run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_tools: Option<u64>,
    /// Actions that wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending_actions: Option<u64>,
    /// Pending tasks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_depth: Option<u64>,
    /// Tokens so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_used: Option<i32>,
}

/// A completed action.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SuccessEvent {
    /// The session.
    pub session_id: String,
    /// The kind of action.
    pub action_type: String,
    /// The action's summary.
    pub action_summary: String,
    /// Duration.
    pub duration_ms: u64,
}

/// A request for memories.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemoryRecallEvent {
    /// The session.
    pub session_id: String,
    /// The search query.
    pub query: String,
    /// Memory type.
    pub memory_type: String,
    /// Maximum of results.
    pub max_results: u64,
    /// Working directory of the agent.
    pub working_directory: String,
}

/// A request for planning advice.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlanningEvent {
    /// The session.
    pub session_id: String,
    /// The task to be planned.
    pub task_description: String,
    /// Planning strategies that the agent has.
    pub available_strategies: Vec<PlanningStrategy>,
    /// Constraints on the plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub constraints: Option<Json>,
}

/// A request for hints, or for the permission to reason at all.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReasoningEvent {
    /// The session.
    pub session_id: String,
    /// Reasoning mode of the agent.
    pub reasoning_type: ReasoningType,
    /// Topic.
    pub problem_statement: String,
    /// Hints that the agent has already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hints: Option<Vec<String>>,
}

/// A rate limit that the agent has hit, with a request for advice.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RateLimitEvent {
    /// The session.
    pub session_id: String,
    /// The limit that was hit.
    pub limit_type: RateLimitType,
    /// Retry delay, in milliseconds.
    pub retry_after_ms: u64,
    /// Used amount, as text.
    pub current_usage: String,
}

/// The agent asks for a confirmation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConfirmationEvent {
    /// The session.
    pub session_id: String,
    /// The kind of confirmation.
    pub confirmation_type: ConfirmationType,
    /// The question.
    pub message: String,
    /// The possible answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub options: Option<Vec<String>>,
}

/// The agent asks what a prompt is after.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IntentDetectionEvent {
    /// The session.
    pub session_id: String,
    /// The user's prompt.
    pub prompt: String,
    /// Workspace of the agent.
    pub workspace: String,
    /// The prompt's language.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language_hint: Option<String>,
}

/// The agent asks for context about its workspace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ContextPerceptionEvent {
    /// The session.
    pub session_id: String,
    /// The purpose.
    pub intent: PerceptionIntent,
    /// Topic.
    pub target: PerceptionTarget,
    /// Domain.
    #[serde(default)]
    pub domain: PerceptionDomain,
    /// Format.
    #[serde(default)]
    pub preferred_modality: PerceptionModality,
    /// Urgency.
    #[serde(default)]
    pub urgency: PerceptionUrgency,
    /// Freshness.
    #[serde(default)]
    pub freshness: PerceptionFreshness,
    /// Situation of the agent.
    pub context: PerceptionContext,
    /// Limits on the answer.
    #[serde(default)]
    pub constraints: PerceptionConstraints,
    /// Free-form metadata object.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "object")]
    pub metadata: Option<Json>,
}

/// Situation of the agent when it asks for context.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PerceptionContext {
    /// The workspace's folder.
    pub workspace: String,
    /// The current task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_task: Option<String>,
    /// The open question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// The history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relevant_history: Option<Vec<HistoryItem>>,
}

/// A history item.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HistoryItem {
    /// The kind of item.
    pub item_type: String,
    /// The content.
    pub content: String,
    /// Time of the item.
    pub timestamp: i64,
}

/// Limits on injected context.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PerceptionConstraints {
    /// Maximum of results.
    #[serde(default)]
    pub max_results: Option<u64>,
    /// Maximum length of the context.
    #[serde(default)]
    pub max_context_length: Option<u64>,
    /// Whether sources are named.
    #[serde(default = "yes")]
    pub include_sources: bool,
}

impl Default for PerceptionConstraints {
    fn default() -> PerceptionConstraints {
        PerceptionConstraints { max_results: None, max_context_length: None, include_sources: true }
    }
}

fn yes() -> bool {
    true
}

/// A span of time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TimeRange {
    /// Start of the range.
    #[serde(default)]
    pub from: Option<i64>,
    /// End of the range.
    #[serde(default)]
    pub to: Option<i64>,
    /// Description of the range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relative: Option<String>,
}

/// The target of a context request: an object with exactly one member, which names the variant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum PerceptionTarget {
    Entity {
        name: String,
        entity_type: String,
        #[serde(default)]
        identifier: Option<String>,
    },
    Location {
        path: String,
        location_type: String,
    },
    Event {
        description: String,
        event_type: String,
        #[serde(default)]
        time_range: Option<TimeRange>,
    },
    Relation {
        entities: Vec<String>,
        relation_type: String,
    },
    Rule {
        name: String,
        rule_type: String,
        #[serde(default)]
        scope: Option<String>,
    },
    State {
        target: String,
        aspect: String,
        include_history: bool,
    },
    Resource {
        name: String,
        resource_type: String,
        #[serde(default)]
        constraints: Option<Json>,
    },
    Pattern {
        pattern: String,
        pattern_type: String,
    },
}

/// The purpose of a context request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum PerceptionIntent {
    Recognize,
    Understand,
    Locate,
    Retrieve,
    Explore,
    Reason,
    Validate,
    Compare,
    Track,
}

/// The field that context is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum PerceptionDomain {
    Coding,
    Writing,
    DataAnalysis,
    Research,
    ProjectManagement,
    Conversation,
    Operations,
    Security,
    #[default]
    General,
}

/// The form that context should have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum PerceptionModality {
    Text,
    Code,
    StructuredData,
    Table,
    Chart,
    Image,
    Audio,
    Video,
    #[default]
    Any,
}

/// Urgency of context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum PerceptionUrgency {
    Critical,
    High,
    #[default]
    Normal,
    Low,
}

/// Required freshness of context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum PerceptionFreshness {
    Realtime,
    Recent,
    #[default]
    Static,
}

/// Planning strategy of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum PlanningStrategy {
    None,
    StepByStep,
    TreeOfThoughts,
    GraphPlanning,
    /// A name of the agent's own.
    Custom(String),
}

/// Reasoning mode of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum ReasoningType {
    ChainOfThought,
    TreeOfThoughts,
    ReAct,
    Reflexion,
    /// A name of the agent's own.
    Other(String),
}

/// The limit that was hit.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum RateLimitType {
    LlmTokenLimit,
    LlmRequestLimit,
    ApiRequestLimit,
    ToolExecutionLimit,
    /// A name of the agent's own.
    Custom(String),
}

/// The kind of confirmation.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum ConfirmationType {
    SafetyConfirm,
    UserConfirm,
    CostConfirm,
    /// A name of the agent's own.
    Custom(String),
}
