//! Explanations of rules that did not speak.

mod operands;

use proctor_core::decision::Effect;
use proctor_facts::Facts;

use crate::condition::{Activation, Condition, Truth};
use crate::document::{Document, DocumentScope, Position};
use crate::input::Input;
use crate::policy::{CompiledRule, Policy, applies};
use crate::question::AnswerSource;

/// Limit of causes that are told of one rule.
const MAX_CAUSES: usize = 8;

/// A rule without an opinion on an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SilentRule {
    /// The rule's name.
    pub rule: String,
    /// The effect that it would have had.
    pub effect: Effect,
    /// The source it stands in.
    pub file: String,
    /// Position in it.
    pub at: Position,
    /// The causes, in the order of the condition; at least one.
    pub causes: Vec<String>,
}

/// The rules that have no opinion on an action, in document order, and why. Questions about the past are asked of `answers`, those that
/// the decision itself did not need too.
pub fn silent_rules(policy: &Policy, input: &Input, answers: &dyn AnswerSource) -> Vec<SilentRule> {
    let activation = Activation::new(input, answers);
    let silent = |compiled: &CompiledRule| {
        let document = policy.documents().get(compiled.document)?;
        let causes = causes(document, compiled, input, &activation)?;
        let rule = &compiled.rule;
        Some(SilentRule {
            rule: rule.id.clone(),
            effect: rule.then,
            file: document.file.clone(),
            at: rule.at,
            causes,
        })
    };
    policy.rules().iter().filter_map(silent).collect()
}

/// Why a rule does not speak; `None` if it does.
fn causes(
    document: &Document,
    compiled: &CompiledRule,
    input: &Input,
    activation: &Activation<'_>,
) -> Option<Vec<String>> {
    if !applies(&document.scope, input) {
        return Some(vec![format!("its document is {}", scope(&document.scope))]);
    }
    let condition = compiled.condition.as_ref()?;
    if let Some(cause) = not_indexed(condition, &input.facts) {
        return Some(vec![cause]);
    }
    if matches!(condition.evaluate(activation), Truth::True | Truth::Error(_)) {
        return None;
    }
    let text = compiled.rule.when.as_ref().map_or("", |when| when.value.as_str());
    let mut causes = operands::causes(text, activation);
    causes.truncate(MAX_CAUSES);
    if causes.is_empty() {
        causes.push("its condition is false".to_owned());
    }
    Some(causes)
}

/// Why the index of rules leaves a rule out: it is about other kinds of actions, or other tools.
fn not_indexed(condition: &Condition, facts: &Facts) -> Option<String> {
    let index = condition.index();
    if let Some(kinds) = index.kinds.as_ref().filter(|kinds| !kinds.contains(&facts.kind)) {
        if kinds.is_empty() {
            return Some("its condition is never true".to_owned());
        }
        let kinds: Vec<&str> = kinds.iter().map(|kind| kind.word()).collect();
        return Some(format!(
            "it is only about actions of the kind {}; this is {}",
            kinds.join(", "),
            facts.kind.word()
        ));
    }
    let name = facts.name.to_lowercase();
    let tools =
        index.tools.as_ref().filter(|tools| !tools.contains(&facts.tool) && !tools.contains(&name))?;
    let tool = if facts.tool.is_empty() { "no tool" } else { facts.tool.as_str() };
    Some(format!("it is only about the tool {}; this is {tool}", tools.join(", ")))
}

fn scope(scope: &DocumentScope) -> String {
    match scope {
        DocumentScope::Global => "for everybody".to_owned(),
        DocumentScope::Org(name) => format!("only for the organisation `{name}`"),
        DocumentScope::Team(name) => format!("only for the team `{name}`"),
        DocumentScope::Agent(name) => format!("only for the agent `{name}`"),
        DocumentScope::Tool(name) => format!("only for the tool `{name}`"),
    }
}

#[cfg(test)]
mod tests;
