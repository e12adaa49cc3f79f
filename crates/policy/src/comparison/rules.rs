//! Comparison of rules. A rule is what it does: its identifier, its reason and its place in the file do not count.

use proctor_core::decision::Effect;
use proctor_core::json::Json;

use super::{Before, Changes, strictness};
use crate::document::{Document, DocumentScope, Rule};
use crate::evaluate::APPROVAL_SECONDS;
use crate::policy::Policy;

/// Compares the rules of a document that decide.
pub(super) fn compare(context: &Before, old: &Document, new: &Document, found: &mut Changes) {
    let (before, after) = (deciding(old), deciding(new));
    for rule in &before {
        let is_kept = after.iter().any(|other| covers(other, rule, new, old));
        let may_go = rule.then == Effect::Allow && rule.taints.is_empty();
        if !is_kept && !may_go {
            found.add(old, format!("rule `{}` ({}) is gone, or less strict", rule.id, rule.then.word()));
        }
    }
    for rule in &after {
        let is_known = before.iter().any(|other| is_same(other, rule, old, new));
        if !is_known && !may_come(context, rule, &before) {
            found.add(old, format!("rule `{}` ({}) is new or changed", rule.id, rule.then.word()));
        }
    }
}

/// Compares the rules that change actions, of all documents: their order decides what an action becomes.
pub(super) fn compare_changing(before: &Policy, after: &Policy, found: &mut Changes) {
    let (old, new) = (changing(before), changing(after));
    if old == new {
        return;
    }
    let all = before.documents().iter().chain(after.documents());
    if let Some(document) = all.into_iter().next() {
        found.add(document, "rules that `redact` or `modify` changed");
    }
}

type Changing<'a> =
    (&'a DocumentScope, Option<&'a str>, Effect, &'a [(String, Json)], Option<&'a [String]>, &'a [String]);

fn changing(policy: &Policy) -> Vec<Changing<'_>> {
    let rules = policy
        .documents()
        .iter()
        .flat_map(|document| document.rules.iter().flatten().map(move |rule| (&document.scope, rule)));
    rules
        .filter(|(_, rule)| matches!(rule.then, Effect::Redact | Effect::Modify))
        .map(|(scope, rule)| {
            (scope, when(rule), rule.then, rule.set.as_slice(), rule.paths.as_deref(), rule.taints.as_slice())
        })
        .collect()
}

fn deciding(document: &Document) -> Vec<&Rule> {
    let rules = document.rules.iter().flatten();
    rules.filter(|rule| !matches!(rule.then, Effect::Redact | Effect::Modify)).collect()
}

fn when(rule: &Rule) -> Option<&str> {
    rule.when.as_ref().map(|when| when.value.trim())
}

/// Whether both rules match the same actions and leave the same taints.
fn same_match(rule: &Rule, other: &Rule) -> bool {
    when(rule) == when(other) && rule.taints == other.taints
}

fn is_same(rule: &Rule, other: &Rule, document: &Document, other_document: &Document) -> bool {
    covers(rule, other, document, other_document) && covers(other, rule, other_document, document)
}

/// Whether a rule says at least what the other said about the same actions.
fn covers(rule: &Rule, other: &Rule, document: &Document, other_document: &Document) -> bool {
    if !same_match(rule, other) || strictness(rule.then) < strictness(other.then) {
        return false;
    }
    if rule.then != Effect::Ask || other.then != Effect::Ask {
        return true;
    }
    let (approvers, others) = (approvers(rule, document), approvers(other, other_document));
    let is_narrower =
        others.is_empty() || (!approvers.is_empty() && approvers.iter().all(|name| others.contains(name)));
    is_narrower && wait(rule, document) <= wait(other, other_document)
}

/// Whether a rule that was not there makes no decision weaker.
fn may_come(context: &Before, rule: &Rule, before: &[&Rule]) -> bool {
    let stood = |effects: &[Effect]| {
        before.iter().any(|other| same_match(other, rule) && effects.contains(&other.then))
    };
    // A new taint may be what another rule waits for.
    let taints_nothing_new = rule.taints.is_empty() || before.iter().any(|other| same_match(other, rule));
    taints_nothing_new
        && match rule.then {
            Effect::Deny => true,
            Effect::Ask => {
                !context.ask_may_lift()
                    || stood(&[Effect::Ask])
                    || (!context.defers && stood(&[Effect::Allow]))
            }
            Effect::Defer => {
                !context.denies_by_default || stood(&[Effect::Allow, Effect::Ask, Effect::Defer])
            }
            // Every other effect outranks it, and the default allows already.
            Effect::Allow => context.allows_by_default,
            Effect::Redact | Effect::Modify => false,
        }
}

/// Permitted approvers of a rule's ask; empty: anybody.
fn approvers<'a>(rule: &'a Rule, document: &'a Document) -> Vec<&'a str> {
    if rule.approvers.is_empty() {
        document.escalation_role.iter().map(String::as_str).collect()
    } else {
        rule.approvers.iter().map(String::as_str).collect()
    }
}

/// Microseconds for which a rule's ask can be answered.
fn wait(rule: &Rule, document: &Document) -> u64 {
    let seconds = document.approval_timeout_secs.unwrap_or(APPROVAL_SECONDS);
    rule.expires_micros.unwrap_or(u64::from(seconds) * 1_000_000)
}
