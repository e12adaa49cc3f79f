//! Serialization of reported events to JSON, without empty members.

use proctor_core::json::Json;
use proctor_wire::assembly::proto::audit::v1::audit_event::Detail;
use proctor_wire::assembly::proto::audit::v1::{AuditEvent, CallStackNode};
use proctor_wire::assembly::proto::common::v1::{ActionType, Decision};

/// Frames of a call stack that are kept.
const MAX_STACK: usize = 32;

/// Nesting depth of values that are kept as JSON. Event and record add levels of their own, and a record beyond the parser's depth limit
/// could not be read again.
const MAX_DEPTH: usize = 96;

/// Reports whether a value exceeds `MAX_DEPTH`.
pub(super) fn is_deep(value: &Json) -> bool {
    is_deeper(value, MAX_DEPTH)
}

fn is_deeper(value: &Json, levels: usize) -> bool {
    let Some(left) = levels.checked_sub(1) else { return true };
    match value {
        Json::Array(items) => items.iter().any(|item| is_deeper(item, left)),
        Json::Object(members) => members.iter().any(|(_, member)| is_deeper(member, left)),
        _ => false,
    }
}

/// Converts a value that exceeds `MAX_DEPTH` to text.
pub(super) fn shallow(value: Json) -> Json {
    if is_deep(&value) { Json::String(value.to_string()) } else { value }
}

struct Members(Json);

impl Members {
    fn new() -> Members {
        Members(Json::object())
    }

    fn text(mut self, name: &str, value: &str) -> Members {
        if !value.is_empty() {
            self.0.push(name, value);
        }
        self
    }

    fn number(mut self, name: &str, value: i64) -> Members {
        if value != 0 {
            self.0.push(name, value);
        }
        self
    }

    fn truth(mut self, name: &str, value: bool) -> Members {
        self.0.push(name, value);
        self
    }

    fn json(mut self, name: &str, value: Json) -> Members {
        self.0.push(name, value);
        self
    }
}

/// Serializes an event without the agent's key, which is in the envelope.
pub(super) fn event_json(event: &AuditEvent) -> Json {
    let kind = ActionType::try_from(event.action_type)
        .map_or_else(|_| event.action_type.to_string(), |kind| kind.as_str_name().to_owned());
    let decision = Decision::try_from(event.decision)
        .map_or_else(|_| event.decision.to_string(), |it| it.as_str_name().to_owned());
    let mut members = Members::new()
        .text("event_id", &event.event_id)
        .text("action_type", &kind)
        .text("decision", &decision)
        .text("trace_id", &event.trace_id)
        .text("span_id", &event.span_id)
        .text("parent_span_id", &event.parent_span_id)
        .text("root_agent_id", &event.root_agent_id)
        .text("parent_agent_id", &event.parent_agent_id)
        .text("team_id", &event.team_id)
        .text("session_id", &event.session_id)
        .text("delegation_reason", &event.delegation_reason)
        .text("spawned_by_tool", &event.spawned_by_tool)
        .number("depth", event.depth.into())
        .text("shadow_decision", &event.shadow_decision)
        .text("matched_rule_id", &event.matched_rule_id);
    if let Some(at) = &event.occurred_at {
        members = members.json("occurred_at_s", seconds(at.unix_ms));
    }
    if event.dry_run {
        members = members.truth("dry_run", true);
    }
    if !event.labels.is_empty() {
        let labels = event.labels.iter().map(|(name, value)| (name.clone(), Json::from(value.as_str())));
        members = members.json("labels", Json::Object(labels.collect()));
    }
    if !event.call_stack.is_empty() {
        let stack = event.call_stack.iter().map(|node| stack_json(node, MAX_STACK)).collect::<Vec<_>>();
        members = members.json("call_stack", Json::Array(stack));
    }
    if let Some(detail) = &event.detail {
        let (name, detail) = detail_json(detail);
        members = members.text("detail_kind", name).json("detail", detail);
    }
    members.0
}

/// Converts milliseconds to seconds: one in ten 13-digit timestamps passes the checksum of card numbers, and would be redacted.
fn seconds(millis: i64) -> Json {
    let sign = if millis < 0 { "-" } else { "" };
    let millis = millis.unsigned_abs();
    Json::Number(format!("{sign}{}.{:03}", millis / 1000, millis % 1000).into())
}

fn stack_json(node: &CallStackNode, left: usize) -> Json {
    let mut members = Members::new()
        .text("id", &node.id)
        .text("kind", &node.kind)
        .text("label", &node.label)
        .number("latency_ms", node.latency_ms);
    if !node.children.is_empty() {
        let children = match left.checked_sub(1) {
            Some(left) => Json::Array(node.children.iter().map(|node| stack_json(node, left)).collect()),
            None => Json::from("deeper calls are left out"),
        };
        members = members.json("children", children);
    }
    members.0
}

fn detail_json(detail: &Detail) -> (&'static str, Json) {
    match detail {
        Detail::LlmCall(call) => (
            "llm_call",
            Members::new()
                .text("model", &call.model)
                .text("provider", &call.provider)
                .number("prompt_tokens", call.prompt_tokens.into())
                .number("completion_tokens", call.completion_tokens.into())
                .number("latency_ms", call.latency_ms)
                .truth("pii_detected", call.pii_detected)
                .truth("pii_redacted", call.pii_redacted)
                .0,
        ),
        Detail::ToolCall(call) => {
            let members = Members::new()
                .text("tool_name", &call.tool_name)
                .text("tool_source", &call.tool_source)
                .number("latency_ms", call.latency_ms)
                .truth("succeeded", call.succeeded)
                .text("error_message", &call.error_message);
            let members = if call.args_json.is_empty() {
                members
            } else {
                let args = Json::parse(&call.args_json)
                    .unwrap_or_else(|_| Json::String(String::from_utf8_lossy(&call.args_json).into_owned()));
                members.json(if is_deep(&args) { "args_text" } else { "args" }, shallow(args))
            };
            ("tool_call", members.0)
        }
        Detail::FileOp(file) => (
            "file_op",
            Members::new()
                .text("operation", &file.operation)
                .text("path", &file.path)
                .number("bytes", file.bytes)
                .text("source", &file.source)
                .number("latency_ms", file.latency_ms)
                .truth("sensitive", file.sensitive)
                .0,
        ),
        Detail::Network(call) => (
            "network",
            Members::new()
                .text("host", &call.host)
                .number("port", call.port.into())
                .text("protocol", &call.protocol)
                .number("latency_ms", call.latency_ms)
                .number("status_code", call.status_code.into())
                .truth("succeeded", call.succeeded)
                .0,
        ),
        Detail::Process(process) => (
            "process",
            Members::new()
                .text("command", &process.command)
                .json(
                    "args",
                    Json::Array(process.args.iter().map(|word| Json::from(word.as_str())).collect()),
                )
                .number("exit_code", process.exit_code.into())
                .number("duration_ms", process.duration_ms)
                .truth("succeeded", process.succeeded)
                .0,
        ),
        Detail::Violation(violation) => (
            "violation",
            Members::new()
                .text("policy_rule", &violation.policy_rule)
                .text("blocked_action", &violation.blocked_action)
                .text("reason", &violation.reason)
                .number("latency_ms", violation.latency_ms)
                .0,
        ),
        Detail::Approval(approval) => (
            "approval",
            Members::new()
                .text("approval_id", &approval.approval_id)
                .text("approver_id", &approval.approver_id)
                .truth("approved", approval.approved)
                .text("reason", &approval.reason)
                .number("wait_time_ms", approval.wait_time_ms)
                .0,
        ),
    }
}
