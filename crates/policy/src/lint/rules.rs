//! Rules that never matter, or that guard nothing.

use std::collections::BTreeSet;

use proctor_core::decision::Effect;

use super::Warnings;
use crate::condition::{Condition, Shape};
use crate::document::{Document, DocumentScope, Position, Rule};
use crate::policy::CompiledRule;

/// Most steps of comparing conditions with each other: some tens of milliseconds.
const MAX_STEPS: usize = 500_000;

/// A rule with its document and the shape of its condition.
struct Shaped<'a> {
    document: &'a Document,
    rule: &'a Rule,
    shape: Shape,
}

pub(super) fn lint(documents: &[Document], compiled: &[CompiledRule], warnings: &mut Warnings) {
    let rules: Vec<Shaped<'_>> = compiled
        .iter()
        .filter_map(|compiled| {
            let document = documents.get(compiled.document)?;
            let shape = compiled.condition.as_ref().map_or(Shape::Always, Condition::shape);
            Some(Shaped { document, rule: &compiled.rule, shape })
        })
        .collect();
    for compiled in compiled {
        lint_vacuous(documents, compiled, warnings);
    }
    let mut steps = MAX_STEPS;
    let mut seen = BTreeSet::new();
    for (number, own) in rules.iter().enumerate() {
        let (document, rule) = (own.document, own.rule);
        let outweighed = rules
            .iter()
            .enumerate()
            .filter(|(other, _)| *other != number)
            .find_map(|(_, other)| own.is_outweighed_by(other, &mut steps).then_some(other));
        let written = rule.when.as_ref().map_or("", |when| when.value.trim());
        if let Some(other) = outweighed {
            warnings.add(document, rule.at, own.never_matters(other, &mut steps));
        } else if !seen.insert((&document.scope, rule.id.as_str(), written, rule.then.word()))
            && !matches!(rule.then, Effect::Modify | Effect::Redact)
        {
            let message = format!("rule `{}` is written twice with the same condition and effect", rule.id);
            warnings.add(document, rule.at, message);
        }
    }
}

impl Shaped<'_> {
    /// Whether another rule decides wherever this one speaks.
    fn is_outweighed_by(&self, other: &Shaped<'_>, steps: &mut usize) -> bool {
        let covers =
            other.document.scope == DocumentScope::Global || other.document.scope == self.document.scope;
        // One deny of everything is enough.
        let is_total = other.rule.then == Effect::Deny && other.shape == Shape::Always;
        let is_stronger = match (other.rule.then, self.rule.then) {
            (Effect::Deny, own) => own != Effect::Deny || is_total,
            (_, Effect::Modify | Effect::Redact) => false,
            // What is asked or deferred may still run later, with the taint.
            (stronger, own) => strength(stronger) > strength(own) && self.rule.taints.is_empty(),
        };
        covers && is_stronger && self.shape.implies(&other.shape, steps)
    }

    fn never_matters(&self, other: &Shaped<'_>, steps: &mut usize) -> String {
        let does = match other.rule.then {
            Effect::Ask => "asks about",
            Effect::Defer => "defers",
            _ => "denies",
        };
        let when = if other.shape == Shape::Always {
            "everything"
        } else if other.shape.implies(&self.shape, steps) {
            "all that it matches, under the same condition"
        } else {
            "all that it matches"
        };
        let (id, by) = (&self.rule.id, &other.rule.id);
        format!(
            "rule `{id}` never matters: rule `{by}` at {}:{} {does} {when}; remove `{id}`, or exclude its case from `{by}`",
            other.document.file, other.rule.at.line
        )
    }
}

/// The order in which opinions count.
fn strength(effect: Effect) -> u8 {
    match effect {
        Effect::Deny => 3,
        Effect::Ask => 2,
        Effect::Defer => 1,
        Effect::Allow | Effect::Modify | Effect::Redact => 0,
    }
}

/// An allow that is true of every action of which nothing was found.
fn lint_vacuous(documents: &[Document], compiled: &CompiledRule, warnings: &mut Warnings) {
    let rule = &compiled.rule;
    let (Some(document), Some(condition), Some(when)) =
        (documents.get(compiled.document), &compiled.condition, &rule.when)
    else {
        return;
    };
    if rule.then != Effect::Allow || !condition.holds_without_anything() {
        return;
    }
    let Some(dot) = when.value.find(".all(") else { return };
    let before = when.value.get(..dot).unwrap_or_default();
    let is_name = |character: char| character.is_alphanumeric() || matches!(character, '.' | '_');
    let list = before.get(before.trim_end_matches(is_name).len()..).unwrap_or_default();
    warnings.add(
        document,
        position_in(when, dot + 1),
        format!(
            "rule `{}` allows every action without {}: `all` is true for an empty list; write `size({list}) > 0 && {list}.all(…)`",
            rule.id,
            list.rsplit('.').next().unwrap_or(list)
        ),
    );
}

/// The position in the file of a byte of a condition.
fn position_in(when: &crate::document::Located<String>, offset: usize) -> Position {
    let before = when.value.get(..offset).unwrap_or_default();
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    when.inside(
        before.matches('\n').count() + 1,
        before.get(line_start..).unwrap_or_default().chars().count() + 1,
    )
}

#[cfg(test)]
mod tests;
