//! Typed payloads of events.

use proctor_core::json::Json;

use super::EventType;
use crate::atp::number::Number;
use crate::atp::object::{put, text};

/// The payload of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Payload<'a> {
    /// A call of a tool.
    ToolCall(ToolCall<'a>),
    /// A call of a model.
    LlmRequest(LlmRequest<'a>),
    /// The agent's reasoning.
    Reasoning(Reasoning<'a>),
    /// A transition between states.
    StateChange(StateChange<'a>),
    /// A new artifact.
    ArtifactCreated(ArtifactCreated<'a>),
    /// An error.
    Error(ErrorReport<'a>),
    /// Progress of the task.
    Progress(Progress<'a>),
    /// The payload of an event type that version 1.0 does not have.
    Opaque(Opaque<'a>),
}

/// A call of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ToolCall<'a> {
    /// Name of the tool.
    pub tool: &'a str,
    /// Arguments; of released agents also under the name `args`.
    pub input: Option<&'a Json>,
    /// Result.
    pub output: Option<&'a Json>,
    /// Duration in milliseconds.
    pub duration_ms: Option<Number<'a>>,
    /// Status, like `success`.
    pub status: Option<&'a str>,
    /// Error message.
    pub error: Option<&'a str>,
}

/// A call of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LlmRequest<'a> {
    /// Name of the model.
    pub model: &'a str,
    /// Tokens of the prompt.
    pub input_tokens: Option<u64>,
    /// Tokens of the answer.
    pub output_tokens: Option<u64>,
    /// Duration in milliseconds.
    pub duration_ms: Option<Number<'a>>,
    /// Sampling temperature.
    pub temperature: Option<Number<'a>>,
    /// Reason why the answer ended.
    pub stop_reason: Option<&'a str>,
}

/// The agent's reasoning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reasoning<'a> {
    /// A thought.
    pub thought: Option<&'a str>,
    /// The plan.
    pub plan: Option<Plan<'a>>,
    /// Name of the step.
    pub step: Option<&'a str>,
}

/// A plan: the document has a list, released agents send a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plan<'a> {
    /// Texts, one for each step.
    Steps(&'a [Json]),
    /// One text.
    Text(&'a str),
}

/// A transition between states of the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StateChange<'a> {
    /// State before.
    pub from_state: Option<&'a str>,
    /// State after.
    pub to_state: Option<&'a str>,
    /// Reason of the transition.
    pub reason: Option<&'a str>,
}

/// A new artifact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ArtifactCreated<'a> {
    /// Type of the artifact.
    pub artifact_type: Option<&'a str>,
    /// Path of the artifact.
    pub path: Option<&'a str>,
    /// Size of the artifact.
    pub size_bytes: Option<u64>,
}

/// An error that the agent met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ErrorReport<'a> {
    /// Type of the error.
    pub error_type: &'a str,
    /// Error message.
    pub message: &'a str,
    /// Whether the agent can go on.
    pub recoverable: Option<bool>,
    /// Delay before the next attempt, in milliseconds.
    pub retry_after_ms: Option<Number<'a>>,
}

/// Progress of the task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress<'a> {
    /// Number of the current step.
    pub current_step: Option<u64>,
    /// Number of all steps.
    pub total_steps: Option<u64>,
    /// Percentage from 0 to 100.
    pub percentage: Option<Number<'a>>,
    /// Description of the current work.
    pub message: Option<&'a str>,
}

/// The payload of an event type that version 1.0 does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opaque<'a> {
    /// The event type.
    pub event_type: &'a str,
    /// The payload as it was sent.
    pub payload: &'a Json,
}

impl<'a> Payload<'a> {
    /// The payload of an event of that type.
    pub fn view(event_type: &'a str, json: &'a Json) -> Payload<'a> {
        let number = |name| json.get(name).and_then(Number::of);
        let count = |name| number(name).and_then(Number::as_u64);
        let text = |name| text(json, name);
        let required = |name| text(name).unwrap_or_default();
        let Some(kind) = EventType::parse(event_type) else {
            return Payload::Opaque(Opaque { event_type, payload: json });
        };
        match kind {
            EventType::ToolCall => Payload::ToolCall(ToolCall {
                tool: required("tool"),
                input: json.get("input").or_else(|| json.get("args")),
                output: json.get("output"),
                duration_ms: number("duration_ms"),
                status: text("status"),
                error: text("error"),
            }),
            EventType::LlmRequest => Payload::LlmRequest(LlmRequest {
                model: required("model"),
                input_tokens: count("input_tokens"),
                output_tokens: count("output_tokens"),
                duration_ms: number("duration_ms"),
                temperature: number("temperature"),
                stop_reason: text("stop_reason"),
            }),
            EventType::Reasoning => Payload::Reasoning(Reasoning {
                thought: text("thought"),
                plan: json.get("plan").and_then(Plan::view),
                step: text("step"),
            }),
            EventType::StateChange => Payload::StateChange(StateChange {
                from_state: text("from_state"),
                to_state: text("to_state"),
                reason: text("reason"),
            }),
            EventType::ArtifactCreated => Payload::ArtifactCreated(ArtifactCreated {
                artifact_type: text("artifact_type"),
                path: text("path"),
                size_bytes: count("size_bytes"),
            }),
            EventType::Error => Payload::Error(ErrorReport {
                error_type: required("error_type"),
                message: required("message"),
                recoverable: json.get("recoverable").and_then(Json::as_bool),
                retry_after_ms: number("retry_after_ms"),
            }),
            EventType::Progress => Payload::Progress(Progress {
                current_step: count("current_step"),
                total_steps: count("total_steps"),
                percentage: number("percentage"),
                message: text("message"),
            }),
        }
    }

    /// The event type as it is written in messages.
    pub fn event_type_name(&self) -> &'a str {
        match self {
            Payload::ToolCall(_) => EventType::ToolCall.as_str(),
            Payload::LlmRequest(_) => EventType::LlmRequest.as_str(),
            Payload::Reasoning(_) => EventType::Reasoning.as_str(),
            Payload::StateChange(_) => EventType::StateChange.as_str(),
            Payload::ArtifactCreated(_) => EventType::ArtifactCreated.as_str(),
            Payload::Error(_) => EventType::Error.as_str(),
            Payload::Progress(_) => EventType::Progress.as_str(),
            Payload::Opaque(opaque) => opaque.event_type,
        }
    }

    /// The payload's object; absent members are left out.
    pub fn to_json(&self) -> Json {
        let mut json = Json::object();
        let out = &mut json;
        match self {
            Payload::ToolCall(call) => {
                put(out, "tool", Some(call.tool));
                put(out, "input", call.input.cloned());
                put(out, "output", call.output.cloned());
                put(out, "duration_ms", call.duration_ms);
                put(out, "status", call.status);
                put(out, "error", call.error);
            }
            Payload::LlmRequest(request) => {
                put(out, "model", Some(request.model));
                put(out, "input_tokens", request.input_tokens);
                put(out, "output_tokens", request.output_tokens);
                put(out, "duration_ms", request.duration_ms);
                put(out, "temperature", request.temperature);
                put(out, "stop_reason", request.stop_reason);
            }
            Payload::Reasoning(reasoning) => {
                put(out, "thought", reasoning.thought);
                put(out, "plan", reasoning.plan.map(Plan::to_json));
                put(out, "step", reasoning.step);
            }
            Payload::StateChange(change) => {
                put(out, "from_state", change.from_state);
                put(out, "to_state", change.to_state);
                put(out, "reason", change.reason);
            }
            Payload::ArtifactCreated(created) => {
                put(out, "artifact_type", created.artifact_type);
                put(out, "path", created.path);
                put(out, "size_bytes", created.size_bytes);
            }
            Payload::Error(error) => {
                put(out, "error_type", Some(error.error_type));
                put(out, "message", Some(error.message));
                put(out, "recoverable", error.recoverable);
                put(out, "retry_after_ms", error.retry_after_ms);
            }
            Payload::Progress(progress) => {
                put(out, "current_step", progress.current_step);
                put(out, "total_steps", progress.total_steps);
                put(out, "percentage", progress.percentage);
                put(out, "message", progress.message);
            }
            Payload::Opaque(opaque) => return opaque.payload.clone(),
        }
        json
    }
}

impl<'a> Plan<'a> {
    fn view(json: &'a Json) -> Option<Plan<'a>> {
        match json {
            Json::Array(steps) => Some(Plan::Steps(steps)),
            Json::String(text) => Some(Plan::Text(text)),
            _ => None,
        }
    }

    fn to_json(self) -> Json {
        match self {
            Plan::Steps(steps) => Json::Array(steps.to_vec()),
            Plan::Text(text) => text.into(),
        }
    }
}
