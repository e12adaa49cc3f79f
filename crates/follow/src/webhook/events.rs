//! Mapping of ledger records to webhook events, with the member names of Agent Assembly's messages.

use std::collections::BTreeSet;

use proctor_core::decision::Effect;
use proctor_core::id::ApprovalId;
use proctor_core::json::Json;
use proctor_core::record::{Envelope, RecordKind};
use proctor_core::time::Timestamp;
use proctor_ledger::reader::{PageBound, Record};
use proctor_ledger::store::{Filter, Order};
use proctor_ledger::{ReadError, Reader};
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;

use proctor_policy::evaluate::anomaly_rule;

use super::EventKind;
use crate::agents::{Agents, StatusChange};
use crate::loaded_record::{LoadedRecord, assembly_decision, hex, short_hash};

/// Largest arguments in an event, in bytes; longer ones are only in the record.
const MAX_ARGUMENTS: usize = 256 * 1024;

/// Largest text in an alert's context, in bytes; longer ones are left out.
const MAX_CONTEXT: usize = 4096;

/// Serialised event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Event {
    /// Record identifier: the same at each retry, so that receivers can drop duplicates.
    pub id: String,
    /// JSON text.
    pub body: String,
}

/// Events of a record, of the `wanted` kinds. `agents` is the state before this record.
pub(super) fn of(
    record: &Record,
    reader: &Reader,
    agents: &Agents,
    wanted: &BTreeSet<EventKind>,
) -> Result<Vec<Event>, ReadError> {
    let envelope = &record.envelope;
    let status = agents.would_change(envelope);
    let mut kinds: Vec<EventKind> = match envelope.kind {
        RecordKind::Decision => vec![EventKind::ApprovalRequested, EventKind::AuditAction],
        RecordKind::Agent if status.is_some() => vec![EventKind::AgentStatusChanged],
        RecordKind::Alarm if envelope.code == "budget_threshold" => vec![EventKind::BudgetThresholdHit],
        RecordKind::Alarm if is_leak(&envelope.code) => vec![EventKind::AlertTriggered, EventKind::DataLeak],
        RecordKind::Alarm => vec![EventKind::AlertTriggered],
        RecordKind::Observation if is_reported(envelope) => vec![EventKind::AuditAction],
        _ => Vec::new(),
    };
    kinds.retain(|kind| wanted.contains(kind));
    if kinds.contains(&EventKind::ApprovalRequested) && !asks_first(record, reader)? {
        kinds.retain(|kind| *kind != EventKind::ApprovalRequested);
    }
    if kinds.is_empty() {
        return Ok(Vec::new());
    }
    let loaded = LoadedRecord::read(reader, record)?;
    Ok(kinds.into_iter().map(|kind| event(kind, &loaded, agents, status)).collect())
}

fn event(kind: EventKind, loaded: &LoadedRecord, agents: &Agents, status: Option<StatusChange>) -> Event {
    let payload = match kind {
        EventKind::ApprovalRequested => approval_requested(loaded),
        EventKind::BudgetThresholdHit => budget_threshold_hit(loaded),
        EventKind::AgentStatusChanged => agent_status_changed(loaded, status.unwrap_or_default()),
        EventKind::AlertTriggered => alert_triggered(loaded),
        EventKind::DataLeak => data_leak(loaded),
        EventKind::AuditAction if is_reported(&loaded.envelope) => reported_action(loaded),
        EventKind::AuditAction => audit_action(loaded, agents),
    };
    let id = loaded.envelope.id.to_string();
    let body = Json::object()
        .with("event_id", id.as_str())
        .with("event_type", kind.word())
        .with("published_at", moment(loaded.envelope.time))
        .with("source", "aa-gateway")
        .with("payload", payload)
        .to_string();
    Event { id, body }
}

/// Whether a record is an event that an agent reported.
fn is_reported(envelope: &Envelope) -> bool {
    envelope.kind == RecordKind::Observation && envelope.code == "event" && envelope.door == "assembly"
}

fn is_leak(code: &str) -> bool {
    matches!(code, "leak" | "exfiltration" | "credential_detected")
}

/// Whether a decision is the first to ask for its approval.
fn asks_first(record: &Record, reader: &Reader) -> Result<bool, ReadError> {
    let envelope = &record.envelope;
    let (Some(Effect::Ask), Some(approval)) = (envelope.decision, envelope.approval) else {
        return Ok(false);
    };
    let filter = Filter { approval: Some(approval), kinds: vec![RecordKind::Decision], ..Filter::default() };
    let one = PageBound { records: 1, ..PageBound::default() };
    match reader.records_in_pages(filter, Order::Ascending, one).next() {
        Some(first) => Ok(first?.seq == record.seq),
        None => Ok(true),
    }
}

fn approval_requested(loaded: &LoadedRecord) -> Json {
    let envelope = &loaded.envelope;
    let decision = loaded.decision();
    let approvers = decision.map(|decision| decision.approvers).unwrap_or_default();
    Json::object()
        .with("approval_id", envelope.approval.as_ref().map(ApprovalId::to_string))
        .with("agent_id", agent_id(envelope))
        .with("action_summary", summary(loaded))
        .with("action_context_json", arguments(loaded))
        .with("expires_at_unix_ms", envelope.expires.map_or(0, millis))
        .with("notify_user_ids", approvers.into_iter().map(Json::from).collect::<Vec<_>>())
}

fn budget_threshold_hit(loaded: &LoadedRecord) -> Json {
    let member = |name: &str| loaded.body.get(name).cloned().unwrap_or(Json::Null);
    Json::object()
        .with("agent_id", agent_id(&loaded.envelope))
        .with("current_spend", number(&member("spent")))
        .with("budget_limit", number(&member("limit")))
        .with("percent_used", member("percent"))
        .with("unit", member("unit"))
        .with("account", member("account"))
        .with("budget", member("key"))
}

fn agent_status_changed(loaded: &LoadedRecord, (old, new): StatusChange) -> Json {
    Json::object()
        .with("agent_id", agent_id(&loaded.envelope))
        .with("old_status", old)
        .with("new_status", new)
        .with("reason", loaded.envelope.rule.as_str())
}

fn alert_triggered(loaded: &LoadedRecord) -> Json {
    let envelope = &loaded.envelope;
    let about = loaded.linked.as_deref();
    let rule = about.map_or(&envelope.rule, |about| &about.envelope.rule);
    let rule = if rule.is_empty() { &envelope.code } else { rule };
    // The rule that raised the alarm, not the one that decided the action.
    let rule = anomaly_rule(&envelope.code).unwrap_or(rule);
    let (severity, meaning) = alert(&envelope.code);
    let action = about.map_or(envelope.tool.as_str(), LoadedRecord::action_name);
    let problem = loaded.body.get("problem").and_then(Json::as_str).filter(|text| text.len() <= MAX_CONTEXT);
    let description = match problem {
        Some(problem) => problem.to_owned(),
        None if action.is_empty() => meaning.to_owned(),
        None => format!("{meaning}: {action}"),
    };
    let mut context = Json::object().with("door", envelope.door.as_str());
    if !action.is_empty() {
        context.push("action", action);
    }
    if let Some(about) = about {
        context.push("decision_id", about.envelope.id.to_string());
    }
    for (name, value) in loaded.body.as_object().unwrap_or_default() {
        if let Some(text) = value.as_str()
            && text.len() <= MAX_CONTEXT
            && !["door", "action", "decision_id"].contains(&name.as_str())
        {
            context.push(name, text);
        }
    }
    Json::object()
        .with("alert_rule_id", rule)
        .with("alert_name", envelope.code.as_str())
        .with("severity", severity)
        .with("agent_id", agent_id(envelope))
        .with("description", description)
        .with("context", context)
}

/// Severity and description of an alarm's code.
fn alert(code: &str) -> (&'static str, &'static str) {
    match code {
        "exfiltration" => ("CRITICAL", "an action that reaches a host carries a secret"),
        "denied_but_done" => ("CRITICAL", "an action was done although it was denied"),
        "leak" => ("HIGH", "several secrets were found in one action"),
        "credential_detected" => ("HIGH", "a secret was found in an action"),
        "unknown_host" => ("HIGH", "an action reaches a host that no allowlist names"),
        "loop" => ("MEDIUM", "an agent repeats the same action"),
        "spike" => ("MEDIUM", "an agent acts far more often than usual"),
        "malformed" => ("MEDIUM", "something was sent that is no action"),
        _ => ("MEDIUM", "something happened that should not have"),
    }
}

fn data_leak(loaded: &LoadedRecord) -> Json {
    let envelope = &loaded.envelope;
    let about = loaded.linked.as_deref().unwrap_or(loaded);
    let found = about.finding_kinds();
    let kinds: BTreeSet<&str> = found.iter().copied().collect();
    let nanos = u64::try_from(envelope.time.micros()).unwrap_or(0).saturating_mul(1000);
    Json::object()
        .with("agent_id", envelope.agent.as_str())
        .with("session_id", session_id(about))
        .with("timestamp_ns", nanos)
        .with("finding_count", found.len())
        .with("credential_kinds", kinds.into_iter().map(Json::from).collect::<Vec<_>>())
        .with("policy_name", about.policy_doc())
}

fn audit_action(loaded: &LoadedRecord, agents: &Agents) -> Json {
    let envelope = &loaded.envelope;
    let effect = envelope.decision.unwrap_or(Effect::Deny);
    let decision = loaded.decision();
    let lineage = agents.lineage(&envelope.principal);
    let lineage = lineage.as_ref();
    let mut out = Json::object()
        .with("event_id", envelope.id.to_string())
        .with("agent_id", agent_id(envelope))
        .with("occurred_at", moment(envelope.time))
        .with("action_type", loaded.action_type())
        .with("decision", assembly_decision(effect).1)
        .with("trace_id", loaded.metadata("trace_id"))
        .with("span_id", loaded.metadata("span_id"));
    if effect.lets_through() {
        let detail =
            Json::object().with("tool_name", loaded.action_name()).with("args_json", arguments(loaded));
        out.push("tool_call", detail);
    } else {
        let reason = decision.as_ref().map_or("", |decision| decision.reason.as_str());
        let detail = Json::object()
            .with("policy_rule", envelope.rule.as_str())
            .with("blocked_action", loaded.action_name())
            .with("reason", reason);
        out.push("violation", detail);
    }
    out.push("labels", Json::object().with("door", envelope.door.as_str()));
    out.push("root_agent_id", lineage.map(|lineage| lineage.root.clone()));
    out.push("parent_agent_id", lineage.and_then(|lineage| lineage.parent.clone()));
    out.push("team_id", envelope.team.as_str());
    out.push("session_id", session_id(loaded));
    out.push("delegation_reason", lineage.and_then(|lineage| lineage.reason.clone()));
    out.push("spawned_by_tool", lineage.and_then(|lineage| lineage.tool.clone()));
    out.push("depth", lineage.map(|lineage| lineage.depth));
    let shadow = decision.and_then(|decision| decision.shadow);
    out.push("dry_run", shadow.is_some());
    out.push("shadow_decision", shadow.map(|shadow| assembly_decision(shadow.effect).1));
    out.push("matched_rule_id", envelope.rule.as_str());
    out
}

/// Payload of an event that an agent reported, with the message's member names.
fn reported_action(loaded: &LoadedRecord) -> Json {
    let envelope = &loaded.envelope;
    let data = loaded.body.get("data");
    let said = |name: &str| data.and_then(|data| data.get(name));
    let id = said("event_id").and_then(Json::as_str).map_or_else(|| envelope.id.to_string(), str::to_owned);
    let seconds = said("occurred_at_s").and_then(|at| Decimal::from_str_exact(&at.to_string()).ok());
    let occurred = seconds.and_then(|at| at.checked_mul(Decimal::ONE_THOUSAND)?.trunc().to_i64());
    let mut out = Json::object()
        .with("event_id", id)
        .with("agent_id", agent_id(envelope))
        .with("occurred_at", Json::object().with("unix_ms", occurred.unwrap_or(millis(envelope.time))));
    for (name, value) in data.and_then(Json::as_object).unwrap_or_default() {
        if !["event_id", "occurred_at_s", "detail_kind", "detail"].contains(&name.as_str()) {
            out.push(name, value.clone());
        }
    }
    if let (Some(kind), Some(detail)) = (said("detail_kind").and_then(Json::as_str), said("detail")) {
        let members = detail.as_object().unwrap_or_default().iter();
        let members = members.map(|(name, value)| match (kind, name.as_str(), value) {
            ("tool_call", "args_text", text) => ("args_json".to_owned(), text.clone()),
            ("tool_call", "args", Json::String(text)) => ("args_json".to_owned(), Json::from(text.as_str())),
            ("tool_call", "args", value) => ("args_json".to_owned(), Json::from(value.to_string())),
            _ => (name.clone(), value.clone()),
        });
        let mut members: Vec<(String, Json)> = members.collect();
        for (name, value) in &mut members {
            if name == "args_json" && value.as_str().is_some_and(|text| text.len() > MAX_ARGUMENTS) {
                *value = Json::from("");
            }
        }
        out.push(kind, Json::Object(members));
    }
    out
}

fn agent_id(envelope: &Envelope) -> Json {
    Json::object()
        .with("org_id", envelope.org.as_str())
        .with("team_id", envelope.team.as_str())
        .with("agent_id", if envelope.agent.is_empty() { &*envelope.principal } else { &*envelope.agent })
}

/// Session id as in the audit log, so that both can be joined; else the ledger's session.
fn session_id(loaded: &LoadedRecord) -> String {
    let trace = loaded.metadata("trace_id");
    if trace.is_empty() {
        return loaded.envelope.session.map(|session| session.to_string()).unwrap_or_default();
    }
    hex(short_hash(&trace))
}

fn summary(loaded: &LoadedRecord) -> String {
    let kind = loaded.action_text("kind").replace('_', " ");
    let name = loaded.action_name();
    if kind.is_empty() { name.to_owned() } else { format!("{kind}: {name}") }
}

fn arguments(loaded: &LoadedRecord) -> String {
    loaded.arguments().filter(|text| text.len() <= MAX_ARGUMENTS).unwrap_or_default()
}

fn moment(time: Timestamp) -> Json {
    Json::object().with("unix_ms", millis(time))
}

fn millis(time: Timestamp) -> i64 {
    time.micros().div_euclid(1000)
}

/// Converts a decimal in a string to a JSON number.
fn number(value: &Json) -> Json {
    match value.as_str().and_then(|text| Decimal::from_str_exact(text).ok()) {
        Some(amount) => Json::Number(amount.to_string().into()),
        None => value.clone(),
    }
}
