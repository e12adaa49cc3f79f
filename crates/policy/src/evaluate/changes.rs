//! Changes to actions that are let through: `redact` and `modify`.

use proctor_core::action::MemberRef;
use proctor_core::decision::{Change, Decision, Effect};
use proctor_core::json::Json;
use proctor_facts::{Fact, Facts};

use super::{Gathered, credential_action, is_additional_kind, is_soft_kind};
use crate::document::{CredentialAction, Document, Position};
use crate::input::Input;
use crate::json_path;

/// Applies `data.credential_action` to the scanner's findings.
pub(super) fn judge_findings(documents: &[&Document], input: &Input, gathered: &mut Gathered<'_>) {
    let (action, written) = credential_action(documents);
    let has_rules = documents.iter().any(|document| document.rules.is_some() || document.default.is_some());
    let counts = |kind: &str| written || (!is_additional_kind(kind) && (!has_rules || !is_soft_kind(kind)));
    let Some(first) = input.findings.iter().find(|finding| counts(&finding.kind)) else { return };
    match action {
        CredentialAction::Block => {
            if let Some(document) = documents.first() {
                let reason = format!("credential detected: {} at `{}`", first.kind, first.path);
                gathered.push(Effect::Deny, "data_pattern_scan", reason, document, Position::default());
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

/// Applies `redact` and `modify` rules to an action that is let through: the scanner first, then rules in document order. Every change is tried on
/// a copy; one that has no place to go would let the action run as it was, so it denies.
pub(super) fn apply(decision: &mut Decision, input: &Input, gathered: &Gathered<'_>) {
    // A redact rule without paths speaks for the scanner, under its own name.
    let scanner_rule =
        gathered.changing_rules.iter().find(|rule| rule.then == Effect::Redact && rule.paths.is_none());
    let redacts = (gathered.redact_findings || scanner_rule.is_some()) && !input.findings.is_empty();
    if !redacts && gathered.changing_rules.is_empty() {
        return;
    }
    let mut working = facts_json(&input.facts);
    if redacts {
        match finding_changes(input, &working) {
            Ok(changes) if changes.is_empty() => {}
            Ok(changes) => {
                decision.effect = Effect::Redact;
                "data_pattern_scan".clone_into(&mut decision.rule);
                decision.reason = format!("sensitive data detected: {}", kinds(input));
                if let Some(rule) = scanner_rule {
                    rename(decision, &rule.id, &rule.reason);
                }
                decision.changes = changes;
            }
            Err(Irreplaceable { path }) => {
                let reason = format!("sensitive data detected, and it cannot be cut out at `{path}`");
                *decision = Decision::deny("data_pattern_scan", reason, decision.policy);
                return;
            }
        }
    }
    for rule in &gathered.changing_rules {
        let changes: Vec<(String, Json)> = match (&rule.paths, rule.then) {
            (Some(paths), Effect::Redact) => paths
                .iter()
                .flat_map(|path| json_path::select(path, &working))
                .map(|path| (path, Json::from("[REDACTED]")))
                .collect(),
            (_, Effect::Modify) => rule
                .set
                .iter()
                .map(|(pointer, value)| (json_path::from_pointer(pointer), value.clone()))
                .collect(),
            _ => continue,
        };
        for (path, replacement) in &changes {
            if !json_path::put(path, &mut working, replacement.clone()) {
                let reason = format!("rule `{}` cannot change `{path}`: there is no such place", rule.id);
                *decision = Decision::deny(&rule.id, reason, decision.policy);
                return;
            }
            put(decision, path.clone(), replacement.clone());
        }
        if rule.then == Effect::Modify {
            // Agent Assembly can replace texts and nothing else: what it cannot say must not be let through as it was.
            let unsayable = changes.iter().find(|(_, value)| !matches!(value, Json::String(_)));
            if let Some((path, _)) = unsayable.filter(|_| input.facts.door == "assembly") {
                let reason =
                    format!("rule `{}` changes `{path}` in a way that this protocol cannot say", rule.id);
                *decision = Decision::deny(&rule.id, reason, decision.policy);
                return;
            }
            decision.effect = Effect::Modify;
            rename(decision, &rule.id, &rule.reason);
        } else if !changes.is_empty() && decision.effect == Effect::Allow {
            decision.effect = Effect::Redact;
            rename(decision, &rule.id, &rule.reason);
        }
    }
}

/// Sets rule and reason of the decision to those of the changing rule.
fn rename(decision: &mut Decision, rule: &str, reason: &str) {
    rule.clone_into(&mut decision.rule);
    decision.reason = if reason.is_empty() { format!("rule `{rule}`") } else { reason.to_owned() };
}

/// Adds a change; a later one at the same path wins.
fn put(decision: &mut Decision, path: String, replacement: Json) {
    decision.changes.retain(|change| change.path != path);
    decision.changes.push(Change { path, replacement });
}

/// A finding whose path leads nowhere, so that no change can remove it.
struct Irreplaceable<'i> {
    path: &'i str,
}

/// Changes for the findings, one for each path: the value after redaction. Where paths cannot be named one by one (a member's own name was
/// cut, a path is too long, there are too many), the whole field is replaced. The error is a path that cannot be replaced.
fn finding_changes<'i>(input: &'i Input, facts: &Json) -> Result<Vec<Change>, Irreplaceable<'i>> {
    let mut changes: Vec<Change> = Vec::new();
    for finding in &input.findings {
        let root = root_of(&finding.path);
        let named = !finding.path.contains("[REDACTED") && !finding.path.contains('…');
        let place = if named && json_path::get(&finding.path, facts).is_some() {
            finding.path.as_str()
        } else {
            root
        };
        if changes.iter().any(|change| change.path == place || change.path == root) {
            continue;
        }
        let value = json_path::get(place, facts).ok_or(Irreplaceable { path: &finding.path })?;
        // A kind that stays visible was not cut, so there is nothing to replace.
        if finding.kind == "EmailAddress" && !contains_label(value) {
            continue;
        }
        if place == root {
            changes.retain(|change| root_of(&change.path) != root);
        }
        changes.push(Change { path: place.to_owned(), replacement: value.clone() });
    }
    Ok(changes)
}

/// `$.args` of `$.args.list[0]`.
fn root_of(path: &str) -> &str {
    let path = path.trim_end_matches('…');
    let end =
        path.char_indices().skip(2).find(|(_, character)| matches!(character, '.' | '[')).map(|(at, _)| at);
    path.get(..end.unwrap_or(path.len())).unwrap_or(path)
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

/// The members of an action that paths can point into: JSON and texts, except the tool's canonical name, which is derived.
fn facts_json(facts: &Facts) -> Json {
    let mut out = Json::object();
    for fact in Fact::ALL.iter().filter(|fact| **fact != Fact::Tool) {
        match fact.get(facts) {
            MemberRef::Json(json) => out.push(fact.name(), json.clone()),
            MemberRef::Text(text) => out.push(fact.name(), text),
            _ => {}
        }
    }
    out
}
