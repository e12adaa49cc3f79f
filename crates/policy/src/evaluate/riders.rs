//! Redact and modify: what is changed in an action that is let through.

use proctor_core::decision::{Change, Decision, Effect};
use proctor_core::json::Json;
use proctor_core::normalise::Facts;

use super::{Gathered, credential_action, is_soft_kind};
use crate::document::{CredentialAction, Document, Position};
use crate::input::Input;
use crate::json_path;
use crate::policy::Policy;

/// What the scanner's findings mean for the answer.
pub(super) fn judge_findings(
    policy: &Policy,
    documents: &[&Document],
    input: &Input,
    gathered: &mut Gathered<'_>,
) {
    let (action, written) = credential_action(policy);
    let has_rules = documents.iter().any(|document| document.rules.is_some() || document.default.is_some());
    let counts = |kind: &str| written || !has_rules || !is_soft_kind(kind);
    let Some(first) = input.findings.iter().find(|finding| counts(&finding.kind)) else { return };
    match action {
        CredentialAction::Block => {
            if let Some(document) = documents.first() {
                let reason = format!("credential detected: {} at `{}`", first.kind, first.path);
                gathered.say(Effect::Deny, "data_pattern_scan", reason, document, Position::default());
            }
        }
        CredentialAction::RedactOnly => gathered.redact_findings = true,
        CredentialAction::AlertOnly => gathered.alarms.push("credential_detected"),
        CredentialAction::AlertAndRedact => {
            gathered.redact_findings = true;
            gathered.alarms.push("credential_detected");
        }
    }
}

/// Applies the riders to an action that is let through: the scanner first, then rules in document order.
pub(super) fn apply(decision: &mut Decision, input: &Input, gathered: &Gathered<'_>) {
    // A redact rule without paths speaks for the scanner, under its own name.
    let speaker = gathered.riders.iter().find(|rule| rule.then == Effect::Redact && rule.paths.is_none());
    if gathered.redact_findings || speaker.is_some() {
        let changes = finding_changes(input);
        if !changes.is_empty() {
            decision.effect = Effect::Redact;
            "data_pattern_scan".clone_into(&mut decision.rule);
            decision.reason = format!("sensitive data detected: {}", kinds(input));
            if let Some(rule) = speaker {
                rename(decision, &rule.id, &rule.reason);
            }
            decision.changes = changes;
        }
    }
    for rule in &gathered.riders {
        match (&rule.paths, rule.then) {
            (Some(paths), Effect::Redact) => {
                let mut changed = false;
                for path in paths {
                    for concrete in json_path::select(path, &facts_json(&input.facts)) {
                        put(decision, concrete, Json::from("[REDACTED]"));
                        changed = true;
                    }
                }
                if changed && decision.effect == Effect::Allow {
                    decision.effect = Effect::Redact;
                    rename(decision, &rule.id, &rule.reason);
                }
            }
            (_, Effect::Modify) => {
                for (pointer, value) in &rule.set {
                    let path = json_path::from_pointer(pointer);
                    // A change that has no place to go would let the action run as it was.
                    if !json_path::put(&path, &mut facts_json(&input.facts), value.clone()) {
                        let reason =
                            format!("rule `{}` cannot change `{path}`: there is no such place", rule.id);
                        *decision = Decision::deny(&rule.id, reason, decision.policy);
                        return;
                    }
                    put(decision, path, value.clone());
                }
                decision.effect = Effect::Modify;
                rename(decision, &rule.id, &rule.reason);
            }
            _ => {}
        }
    }
}

/// The rider speaks for the decision from now on.
fn rename(decision: &mut Decision, rule: &str, reason: &str) {
    rule.clone_into(&mut decision.rule);
    decision.reason = if reason.is_empty() { format!("rule `{rule}`") } else { reason.to_owned() };
}

/// A later change at the same place wins.
fn put(decision: &mut Decision, path: String, replacement: Json) {
    decision.changes.retain(|change| change.path != path);
    decision.changes.push(Change { path, replacement });
}

/// One change for each place where something was found: the value as it stands after cutting.
fn finding_changes(input: &Input) -> Vec<Change> {
    let facts = facts_json(&input.facts);
    let mut changes: Vec<Change> = Vec::new();
    for finding in &input.findings {
        if changes.iter().any(|change| change.path == finding.path) {
            continue;
        }
        // A kind that stays visible was not cut, so there is nothing to replace.
        if let Some(value) = json_path::get(&finding.path, &facts)
            && (finding.kind != "EmailAddress" || contains_label(value))
        {
            changes.push(Change { path: finding.path.clone(), replacement: value.clone() });
        }
    }
    changes
}

fn contains_label(value: &Json) -> bool {
    value.to_string().contains("[REDACTED")
}

fn kinds(input: &Input) -> String {
    let mut kinds: Vec<&str> = input.findings.iter().map(|finding| finding.kind.as_str()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds.join(", ")
}

/// The parts of an action that paths can point into.
fn facts_json(facts: &Facts) -> Json {
    Json::object()
        .with("args", facts.args.clone())
        .with("result", facts.result.clone())
        .with("metadata", facts.metadata.clone())
        .with("text", facts.text.as_str())
        .with("path", facts.path.as_str())
        .with("command", facts.command.as_str())
        .with("url", facts.url.as_str())
        .with("host", facts.host.as_str())
        .with("model", facts.model.as_str())
        .with("name", facts.name.as_str())
        .with("cwd", facts.cwd.as_str())
        .with("operation", facts.operation.as_str())
}
