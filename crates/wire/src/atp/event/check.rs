//! The rules of events.

use proctor_core::json::Json;

use super::{Event, EventType};
use crate::atp::check::{Basis, Checker, Fields, shortened, wrong_type};
use crate::atp::findings::{ProblemKind, WarningKind};
use crate::atp::format::{DateTime, date_time};
use crate::atp::limits::{MAX_CONTENT, MAX_PATH, MAX_TOOL_NAME};
use crate::atp::object::{member_mut, remove_nulls, text};
use crate::atp::path::Path;
use crate::atp::read::Message;
use crate::atp::version::Version;

const TYPES: &[&str] =
    &["tool_call", "llm_request", "reasoning", "state_change", "artifact_created", "error", "progress"];
const TOP: [&str; 3] = ["version", "sequence", "timestamp"];

impl Message for Event {
    fn check(json: &Json, checker: &mut Checker) {
        let Some(mut fields) = checker.object(Basis::Schema, json, &Path::Root) else { return };
        let version = fields.version();
        fields.task_id();
        check_timestamp(&mut fields);
        if fields.expected("sequence", WarningKind::NoSequence).is_some() {
            check_sequence(&mut fields);
        }
        let kind = check_type(&mut fields, version);
        let payload = fields.required("payload");
        let path = Path::Root.member("payload");
        if let Some(value) = payload
            && let Some(mut payload) = checker.object(Basis::Schema, value, &path)
            && let Some(kind) = kind
        {
            // The document's schema accepts any object as payload.
            payload.basis = Basis::Rule;
            check_payload(&mut payload, kind);
        }
    }

    fn normalise(json: &mut Json) {
        remove_nulls(json, &TOP);
        let kind = text(json, "event_type").and_then(EventType::parse);
        if let (Some(kind), Some(payload)) = (kind, member_mut(json, "payload")) {
            remove_nulls(payload, optional_members(kind));
        }
    }

    fn from_valid(json: Json) -> Event {
        Event { json }
    }
}

fn check_timestamp(fields: &mut Fields<'_, '_, '_>) {
    let Some(value) = fields.expected("timestamp", WarningKind::NoTimestamp) else { return };
    let Some(timestamp) = fields.as_text("timestamp", value) else { return };
    match date_time(timestamp) {
        DateTime::Zoned => {}
        DateTime::Local => {
            let path = fields.path.member("timestamp");
            fields.checker.tolerate(&path, WarningKind::TimeWithoutZone, ProblemKind::NotDateTime);
        }
        DateTime::Malformed => fields.problem_at("timestamp", Basis::Schema, ProblemKind::NotDateTime),
    }
}

/// An integer that is not negative, by the schema. The upper bound is that of runs.
fn check_sequence(fields: &mut Fields<'_, '_, '_>) {
    let is_negative = fields
        .find("sequence")
        .and_then(crate::atp::number::Number::of)
        .is_some_and(|number| number.is_integer() && number.is_negative());
    if is_negative {
        fields.problem_at("sequence", Basis::Schema, ProblemKind::Negative);
    } else {
        fields.count("sequence");
    }
}

/// The event type, if it is known. Only a higher minor version may have others.
fn check_type(fields: &mut Fields<'_, '_, '_>, version: Version) -> Option<EventType> {
    let value = fields.required("event_type")?;
    let name = fields.as_text("event_type", value)?;
    let kind = EventType::parse(name);
    if kind.is_none() {
        let problem = ProblemKind::NotOneOf { found: shortened(name), allowed: TYPES };
        if version.is_newer() && !name.is_empty() {
            let path = fields.path.member("event_type");
            fields.checker.tolerate(&path, WarningKind::UnknownEventType, problem);
        } else {
            fields.problem_at("event_type", Basis::Schema, problem);
        }
    }
    kind
}

/// Members of a payload that may be absent.
fn optional_members(kind: EventType) -> &'static [&'static str] {
    match kind {
        EventType::ToolCall => &["input", "args", "output", "duration_ms", "status", "error"],
        EventType::LlmRequest => {
            &["input_tokens", "output_tokens", "duration_ms", "temperature", "stop_reason"]
        }
        EventType::Reasoning => &["thought", "plan", "step"],
        EventType::StateChange => &["from_state", "to_state", "reason"],
        EventType::ArtifactCreated => &["artifact_type", "path", "size_bytes"],
        EventType::Error => &["recoverable", "retry_after_ms"],
        EventType::Progress => &["current_step", "total_steps", "percentage", "message"],
    }
}

fn check_payload(payload: &mut Fields<'_, '_, '_>, kind: EventType) {
    match kind {
        EventType::ToolCall => {
            payload.required_text("tool", MAX_TOOL_NAME);
            let has_input = payload.optional("input").is_some();
            if payload.optional("args").is_some() && !has_input {
                payload.checker.warn(&payload.path.member("args"), WarningKind::LegacyArgs);
            }
            payload.optional("output");
            payload.amount("duration_ms", Basis::Rule);
            payload.text("status", MAX_TOOL_NAME);
            // The document's own example has `null` here.
            if let Some(error) = payload.nullable("error") {
                payload.as_text("error", error);
            }
        }
        EventType::LlmRequest => {
            payload.required_text("model", MAX_TOOL_NAME);
            payload.count("input_tokens");
            payload.count("output_tokens");
            payload.amount("duration_ms", Basis::Rule);
            payload.amount("temperature", Basis::Rule);
            payload.text("stop_reason", MAX_TOOL_NAME);
        }
        EventType::Reasoning => {
            payload.text("thought", MAX_CONTENT);
            check_plan(payload);
            payload.text("step", MAX_CONTENT);
        }
        EventType::StateChange => {
            for name in ["from_state", "to_state", "reason"] {
                payload.text(name, MAX_CONTENT);
            }
        }
        EventType::ArtifactCreated => {
            payload.text("artifact_type", MAX_TOOL_NAME);
            payload.text("path", MAX_PATH);
            payload.count("size_bytes");
        }
        EventType::Error => {
            payload.required_text("error_type", MAX_CONTENT);
            payload.required_text("message", MAX_CONTENT);
            payload.boolean("recoverable");
            payload.amount("retry_after_ms", Basis::Rule);
        }
        EventType::Progress => {
            payload.count("current_step");
            payload.count("total_steps");
            if payload.amount("percentage", Basis::Rule).is_some_and(|percentage| percentage.as_f64() > 100.0)
            {
                payload.problem_at(
                    "percentage",
                    Basis::Rule,
                    ProblemKind::OutOfRange { least: 0, most: 100 },
                );
            }
            payload.text("message", MAX_CONTENT);
        }
    }
}

fn check_plan(payload: &mut Fields<'_, '_, '_>) {
    let Some(plan) = payload.optional("plan") else { return };
    let path = payload.path.member("plan");
    match plan {
        Json::String(_) => payload.checker.warn(&path, WarningKind::PlanAsText),
        Json::Array(steps) => {
            for (index, step) in steps.iter().enumerate() {
                if step.as_str().is_none() {
                    payload.checker.problem(Basis::Rule, &path.index(index), wrong_type("a string", step));
                }
            }
        }
        other => payload.checker.problem(Basis::Rule, &path, wrong_type("an array", other)),
    }
}
