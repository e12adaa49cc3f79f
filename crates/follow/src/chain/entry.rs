//! Mapping of ledger records to entries of Agent Assembly's audit log.

use std::collections::HashMap;

use proctor_core::decision::Effect;
use proctor_core::json::Json;
use proctor_core::record::{Envelope, RecordKind};
use proctor_wire::assembly::chain::{Chain, Entry, EventType, Finding, SealError, Sealed};

use crate::agents::{Agents, Lineage};
use crate::loaded_record::{ACTION_TYPES, LoadedRecord, assembly_decision, hex, short_hash};

/// Whether records of this kind have a line in the log.
pub(super) fn has_line(envelope: &Envelope) -> bool {
    match envelope.kind {
        RecordKind::Decision
        | RecordKind::Approval
        | RecordKind::Alarm
        | RecordKind::Policy
        | RecordKind::Retracted
        | RecordKind::Agent => true,
        RecordKind::Observation => envelope.code == "event" && envelope.door == "assembly",
        RecordKind::Outcome
        | RecordKind::Settlement
        | RecordKind::Erasure
        | RecordKind::Gap
        | RecordKind::Session
        | RecordKind::Run => false,
    }
}

/// Seals a record's entry as the next line of the chain. None for a kind without a line.
pub(super) fn sealed(
    chain: &Chain,
    loaded: &LoadedRecord,
    agents: &Agents,
) -> Result<Option<Sealed>, SealError> {
    if !has_line(&loaded.envelope) {
        return Ok(None);
    }
    let mut entry = entry(loaded, agents);
    match chain.seal(entry.clone()) {
        // A payload beyond the line limit stays in the ledger only; a line with its size takes its position in the chain.
        Err(SealError::TooLong { bytes }) => {
            entry.redacted_payload = None;
            entry.credential_findings.truncate(1000);
            entry.payload = Json::object()
                .with("kind", loaded.envelope.kind.word())
                .with("code", loaded.envelope.code.as_str())
                .with("left_out_bytes", bytes)
                .to_string();
            chain.seal(entry).map(Some)
        }
        outcome => outcome.map(Some),
    }
}

fn entry(loaded: &LoadedRecord, agents: &Agents) -> Entry {
    let envelope = &loaded.envelope;
    let lineage = agents.lineage(&envelope.principal);
    let (event_type, payload) = match envelope.kind {
        RecordKind::Decision => decision(loaded, lineage.as_ref()),
        RecordKind::Retracted => retraction(loaded, lineage.as_ref()),
        RecordKind::Observation => (EventType::ToolCallIntercepted, report(loaded)),
        RecordKind::Approval => approval(loaded),
        RecordKind::Agent => agent(loaded, lineage.as_ref()),
        RecordKind::Alarm => alarm(loaded),
        _ => (EventType::GovernanceMutation, policy(loaded)),
    };
    let micros = u64::try_from(envelope.time.micros()).unwrap_or(0);
    let mut entry = Entry::new(
        event_type,
        micros.saturating_mul(1000),
        short_hash(agent_id(envelope)),
        short_hash(&trace_id(loaded)),
        payload.to_string(),
    );
    if let Some(lineage) = lineage {
        entry.root_agent_id = Some(short_hash(&lineage.root));
        entry.parent_agent_id = lineage.parent.as_deref().map(short_hash);
        entry.depth = Some(lineage.depth);
        entry.delegation_reason = lineage.reason;
        entry.spawned_by_tool = lineage.tool;
    }
    let filled = |text: &String| (!text.is_empty()).then(|| text.clone());
    entry.team_id = filled(&envelope.team);
    entry.org_id = filled(&envelope.org);
    if matches!(envelope.kind, RecordKind::Decision | RecordKind::Retracted) {
        let kinds = loaded.finding_kinds();
        if !kinds.is_empty() {
            entry.redacted_payload = loaded.arguments();
        }
        entry.credential_findings = findings(&kinds, entry.redacted_payload.as_deref().unwrap_or_default());
    }
    entry.policy_doc_id = loaded.policy_doc();
    entry.decision_id = Some(envelope.id.to_string());
    entry
}

/// Findings with the offsets of their labels in the redacted payload, in order. No finding holds a secret.
fn findings(kinds: &[&str], redacted: &str) -> Vec<Finding> {
    let mut passed: HashMap<&str, usize> = HashMap::new();
    let mut findings = Vec::with_capacity(kinds.len());
    for kind in kinds {
        let label = format!("[REDACTED:{kind}]");
        let from = passed.get(kind).copied().unwrap_or(0);
        let found = redacted.get(from..).and_then(|rest| rest.find(&label)).map(|at| from + at);
        passed.extend(found.map(|at| (*kind, at + label.len())));
        findings.push(Finding::new(kind, found.and_then(|at| u64::try_from(at).ok()).unwrap_or(0)));
    }
    findings
}

/// Agent id of a record: as claimed by the agent, else the authenticated principal.
fn agent_id(envelope: &Envelope) -> &str {
    if envelope.agent.is_empty() { &envelope.principal } else { &envelope.agent }
}

/// Trace id of a record, else of the record it links to.
fn trace_id(loaded: &LoadedRecord) -> String {
    let reported = loaded.body.pointer("/data/trace_id").and_then(Json::as_str);
    if let Some(trace) = reported {
        return trace.to_owned();
    }
    let own = loaded.metadata("trace_id");
    if own.is_empty() {
        loaded.linked.as_ref().map_or(own, |linked| linked.metadata("trace_id"))
    } else {
        own
    }
}

fn decision(loaded: &LoadedRecord, lineage: Option<&Lineage>) -> (EventType, Json) {
    // A decision without an effect cannot be recorded; deny is what it would mean.
    let effect = loaded.envelope.decision.unwrap_or(Effect::Deny);
    let caller = loaded.metadata("caller_agent_id");
    let event_type = match effect {
        Effect::Allow if !caller.is_empty() && caller != loaded.envelope.agent => {
            EventType::A2ACallIntercepted
        }
        Effect::Allow => EventType::ToolCallIntercepted,
        Effect::Deny | Effect::Defer => EventType::PolicyViolation,
        Effect::Redact | Effect::Modify => EventType::CredentialLeakBlocked,
        Effect::Ask => EventType::ApprovalRequested,
    };
    let decision = loaded.decision();
    let reason = decision.as_ref().map_or("", |decision| decision.reason.as_str());
    let mut payload = check(loaded, lineage, effect, reason);
    if let Some(shadow) = decision.and_then(|decision| decision.shadow) {
        payload.push("dry_run", true);
        payload.push("shadow_decision", verdict(shadow.effect));
        payload.push("shadow_reason", shadow.reason);
    }
    (event_type, payload)
}

/// Entry of a retraction: its record was committed after the caller had been answered deny, so the log says deny.
fn retraction(loaded: &LoadedRecord, lineage: Option<&Lineage>) -> (EventType, Json) {
    let retracted = loaded.linked.as_ref();
    let what = retracted.map_or("record", |linked| linked.envelope.kind.word());
    let reason = format!("retracted: the {what} was recorded after its caller had been told deny");
    let mut payload = check(loaded, lineage, Effect::Deny, &reason);
    payload.push("retracts", retracted.map(|linked| linked.envelope.id.to_string()));
    (EventType::PolicyViolation, payload)
}

/// Payload members of a policy check, in the log's order.
fn check(loaded: &LoadedRecord, lineage: Option<&Lineage>, effect: Effect, reason: &str) -> Json {
    let envelope = &loaded.envelope;
    let action_type = loaded.action_type();
    let number = ACTION_TYPES.iter().position(|word| *word == action_type).unwrap_or(0);
    let caller = loaded.metadata("caller_agent_id");
    let assurance = loaded.metadata("assurance");
    Json::object()
        .with("action_type", number)
        .with("action", loaded.action_name())
        .with("decision", assembly_decision(effect).0)
        .with("verdict", verdict(effect))
        // How long the answer took is not on record.
        .with("latency_ms", 0u8)
        .with("latency_us", 0u8)
        .with("reason", reason)
        .with("policy_rule", envelope.rule.as_str())
        .with("policy_doc_id", loaded.policy_doc())
        .with("agent_id_claimed", envelope.agent.as_str())
        .with("agent_identity_assurance", if assurance.is_empty() { "unattributed" } else { &assurance })
        .with("caller_agent_id", filled(&caller))
        .with("callee_agent_id", filled(&caller).map(|_| envelope.agent.as_str()))
        .with("trace_id", filled(&loaded.metadata("trace_id")))
        .with("span_id", filled(&loaded.metadata("span_id")))
        .with("org_id", filled(&envelope.org))
        .with("team_id", filled(&envelope.team))
        .with("agent_id_hex", hex(short_hash(agent_id(envelope))))
        .with("session_id_hex", hex(short_hash(&trace_id(loaded))))
        .with("root_agent_id", lineage.map(|lineage| hex(short_hash(&lineage.root))))
        .with(
            "parent_agent_id",
            lineage.and_then(|lineage| lineage.parent.as_deref()).map(|parent| hex(short_hash(parent))),
        )
        .with("depth", lineage.map(|lineage| lineage.depth))
        .with("delegation_reason", lineage.and_then(|lineage| lineage.reason.clone()))
        .with("spawned_by_tool", lineage.and_then(|lineage| lineage.tool.clone()))
}

/// The log's verdict word for an effect.
const fn verdict(effect: Effect) -> &'static str {
    match effect {
        Effect::Allow => "allow",
        Effect::Deny | Effect::Defer => "deny",
        Effect::Ask => "pending",
        Effect::Redact => "scrub",
        Effect::Modify => "narrow",
    }
}

/// Payload of a reported event: the log's members, and the whole event.
fn report(loaded: &LoadedRecord) -> Json {
    let data = loaded.body.get("data").cloned().unwrap_or(Json::Null);
    let member = |name: &str| data.get(name).cloned().unwrap_or(Json::Null);
    let mut payload = Json::object()
        .with("event_id", member("event_id"))
        .with("action_type", member("action_type"))
        .with("span_id", member("span_id"))
        .with("parent_span_id", member("parent_span_id"))
        .with("action", reported_tool(&data))
        .with("trace_id", member("trace_id"));
    payload.push("event", data);
    payload
}

/// Tool name of a reported event, from its detail or one level below.
fn reported_tool(data: &Json) -> Option<&str> {
    let detail = data.get("detail")?;
    let named = |value: &'_ Json| value.get("tool_name").is_some();
    let holder =
        if named(detail) { detail } else { &detail.as_object()?.iter().find(|(_, value)| named(value))?.1 };
    holder.get("tool_name")?.as_str()
}

fn approval(loaded: &LoadedRecord) -> (EventType, Json) {
    let envelope = &loaded.envelope;
    let is_granted = envelope.code == "allow";
    let event_type = match envelope.code.as_str() {
        "allow" => EventType::ApprovalGranted,
        "expired" => EventType::ApprovalTimedOut,
        _ => EventType::ApprovalDenied,
    };
    let payload = Json::object()
        .with("approval_id", envelope.approval.map(|id| id.to_string()))
        .with("approved", is_granted)
        .with("approver_id", envelope.principal.as_str())
        .with("reason", envelope.rule.as_str())
        .with("action", loaded.linked.as_ref().map_or(envelope.tool.as_str(), |ask| ask.action_name()))
        .with("agent_id_claimed", envelope.agent.as_str())
        .with("requested_by", loaded.linked.as_ref().map(|ask| ask.envelope.id.to_string()));
    (event_type, payload)
}

fn agent(loaded: &LoadedRecord, lineage: Option<&Lineage>) -> (EventType, Json) {
    let envelope = &loaded.envelope;
    let mut payload = Json::object()
        .with("event", format!("agent.{}", envelope.code))
        .with("agent_id_claimed", envelope.agent.as_str())
        .with("cause", envelope.name.as_str())
        .with("reason", envelope.rule.as_str())
        .with("org_id", envelope.org.as_str())
        .with("team_id", envelope.team.as_str())
        .with("parent_agent_id", lineage.and_then(|lineage| lineage.parent.clone()))
        .with("depth", lineage.map(|lineage| lineage.depth));
    if let Some(registration) = &envelope.registration {
        payload.push("name", registration.name.as_str());
        payload.push("risk_tier", registration.risk.as_str());
    }
    payload.push("detail", loaded.body.clone());
    let is_forced = envelope.code == "forgotten";
    let event_type =
        if is_forced { EventType::AgentForceDeregistered } else { EventType::GovernanceMutation };
    (event_type, payload)
}

fn alarm(loaded: &LoadedRecord) -> (EventType, Json) {
    let envelope = &loaded.envelope;
    let payload = Json::object()
        .with("alarm", envelope.code.as_str())
        .with("agent_id_claimed", envelope.agent.as_str())
        .with("action", loaded.linked.as_ref().map_or(envelope.tool.as_str(), |about| about.action_name()))
        .with("policy_rule", envelope.rule.as_str())
        .with("about", loaded.linked.as_ref().map(|about| about.envelope.id.to_string()))
        .with("detail", loaded.body.clone());
    let event_type = match loaded.body.get("percent").and_then(Json::as_u64) {
        _ if envelope.code != "budget_threshold" => EventType::PolicyViolation,
        Some(percent) if percent < 100 => EventType::BudgetLimitApproached,
        // One whose body was erased is taken for the worse.
        _ => EventType::BudgetLimitExceeded,
    };
    (event_type, payload)
}

fn policy(loaded: &LoadedRecord) -> Json {
    Json::object()
        .with("event", format!("policy.{}", loaded.envelope.code))
        .with("policy_doc_id", loaded.policy_doc())
}

fn filled(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::envelope;

    #[test]
    fn findings_say_where_their_labels_are() {
        let redacted = r#"{"a":"[REDACTED:X]","b":"[REDACTED:Y] [REDACTED:X]"}"#;
        let places: Vec<u64> =
            findings(&["X", "X", "Y", "Z"], redacted).into_iter().map(|finding| finding.offset).collect();
        assert_eq!(places, [6, 38, 25, 0]);
    }

    fn decided(effect: Effect, body: &str) -> LoadedRecord {
        let mut envelope = envelope(RecordKind::Decision, "");
        envelope.decision = Some(effect);
        envelope.rule = "some-rule".to_owned();
        LoadedRecord { envelope, body: Json::parse(body.as_bytes()).unwrap(), linked: None }
    }

    fn line(loaded: &LoadedRecord) -> (Entry, Json) {
        let sealed = sealed(&Chain::default(), loaded, &Agents::default()).unwrap().unwrap();
        let payload = Json::parse(sealed.entry.payload.as_bytes()).unwrap();
        (sealed.entry, payload)
    }

    #[test]
    fn every_effect_has_its_type_and_its_words() {
        for (effect, number, decision, verdict) in [
            (Effect::Allow, 0, 1, "allow"),
            (Effect::Deny, 1, 2, "deny"),
            (Effect::Defer, 1, 2, "deny"),
            (Effect::Redact, 2, 4, "scrub"),
            (Effect::Modify, 2, 4, "narrow"),
            (Effect::Ask, 3, 3, "pending"),
        ] {
            let (entry, payload) = line(&decided(effect, "{}"));
            assert_eq!(entry.event_type.number(), number, "{effect}");
            assert_eq!(payload["decision"].as_u64(), Some(decision), "{effect}");
            assert_eq!(payload["verdict"].as_str(), Some(verdict), "{effect}");
        }
    }

    #[test]
    fn a_call_for_another_agent_is_told_apart() {
        let body = |caller: &str| {
            format!(
                r#"{{"read_set":{{"action":{{"kind":"tool_call","metadata":{{"caller_agent_id":"{caller}"}}}}}}}}"#
            )
        };
        let (entry, payload) = line(&decided(Effect::Allow, &body("did:key:zB")));
        assert_eq!(entry.event_type, EventType::A2ACallIntercepted);
        assert_eq!(payload["caller_agent_id"].as_str(), Some("did:key:zB"));
        assert_eq!(payload["callee_agent_id"].as_str(), Some("did:key:zA"));
        assert_eq!(line(&decided(Effect::Allow, &body("did:key:zA"))).0.event_type.number(), 0);
        assert_eq!(line(&decided(Effect::Deny, &body("did:key:zB"))).0.event_type.number(), 1);
    }

    #[test]
    fn what_is_only_observed_says_what_would_have_been() {
        let policy = "00".repeat(32);
        let body = format!(
            r#"{{"decision":{{"effect":"allow","rule":"observe","reason":"","policy":"{policy}","shadow":{{"effect":"ask","rule":"r","reason":"risky"}}}}}}"#
        );
        let (_, payload) = line(&decided(Effect::Allow, &body));
        assert_eq!(payload["dry_run"].as_bool(), Some(true));
        assert_eq!(payload["shadow_decision"].as_str(), Some("pending"));
        assert_eq!(payload["shadow_reason"].as_str(), Some("risky"));
    }

    #[test]
    fn an_approval_ends_in_one_of_three_ways() {
        for (code, number, approved) in [("allow", 4, true), ("deny", 5, false), ("expired", 8, false)] {
            let envelope = envelope(RecordKind::Approval, code);
            let (entry, payload) = line(&LoadedRecord { envelope, body: Json::Null, linked: None });
            assert_eq!(
                (entry.event_type.number(), payload["approved"].as_bool()),
                (number, Some(approved)),
                "{code}"
            );
        }
    }

    #[test]
    fn every_action_with_a_secret_has_its_text_as_json() {
        let found = r#""findings":[["AwsAccessKey","$.x"]]"#;
        for (member, expected) in [
            (r#""args":{"a":"[REDACTED]"}"#, r#"{"a":"[REDACTED]"}"#),
            (r#""args_text":"{\"a\":[1]}""#, r#"{"a":[1]}"#),
            (r#""args_text":"[REDACTED] \"a\"""#, r#"{"text":"[REDACTED] \"a\""}"#),
            (r#""result":"[REDACTED]""#, r#""[REDACTED]""#),
            (r#""command":"x [REDACTED]""#, r#"{"text":"x [REDACTED]"}"#),
            (r#""url":"https://[REDACTED]""#, r#"{"text":"https://[REDACTED]"}"#),
            (r#""path":"/a/[REDACTED]""#, r#"{"text":"/a/[REDACTED]"}"#),
            (r#""host":"[REDACTED]""#, r#"{"text":"[REDACTED]"}"#),
            (r#""model":"[REDACTED]""#, r#"{"text":"[REDACTED]"}"#),
        ] {
            let body = format!(r#"{{"read_set":{{{found},"action":{{"kind":"custom",{member}}}}}}}"#);
            let (entry, _) = line(&decided(Effect::Redact, &body));
            let text = entry.redacted_payload.unwrap();
            assert_eq!(text, expected);
            Json::parse(text.as_bytes()).unwrap();
        }
    }

    #[test]
    fn a_retraction_is_a_deny() {
        let body =
            r#"{"read_set":{"action":{"kind":"tool_call","name":"look","metadata":{"trace_id":"t"}}}}"#;
        let mut loaded = decided(Effect::Allow, body);
        let first = decided(Effect::Allow, body);
        let id = first.envelope.id.to_string();
        loaded.linked = Some(Box::new(first));
        loaded.envelope.kind = RecordKind::Retracted;
        let (entry, payload) = line(&loaded);
        assert_eq!(entry.event_type, EventType::PolicyViolation);
        assert_eq!(payload["verdict"].as_str(), Some("deny"));
        assert_eq!(payload["action"].as_str(), Some("look"));
        assert!(payload["reason"].as_str().unwrap().starts_with("retracted: the decision"));
        assert_eq!(payload["retracts"].as_str(), Some(id.as_str()));
        assert_eq!(entry.session_id, short_hash("t"));
    }

    #[test]
    fn what_is_too_long_for_a_line_keeps_its_place() {
        let mut loaded = decided(Effect::Allow, "{}");
        loaded.envelope.kind = RecordKind::Observation;
        loaded.envelope.code = "event".to_owned();
        // Each quotation mark is escaped twice.
        loaded.body = Json::object().with("data", "\"".repeat(6 << 20));
        let (entry, payload) = line(&loaded);
        assert_eq!(entry.decision_id, Some(loaded.envelope.id.to_string()));
        assert!(payload["left_out_bytes"].as_u64().unwrap() > 16 << 20);
    }
}
