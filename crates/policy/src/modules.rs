//! Policies in other languages: Cedar and Rego. Both see the same record and give opinions that are combined with those of the
//! rules.
//!
//! The record has `action` (the facts, as conditions see them), `agent` (name, principal, team, org, and what the registry
//! knows: `risk_tier`, depth, parent, `parent_risk_tier`, children, `is_registered`, age in whole seconds, `team_agents`), `session`
//! (id) and `time` (now, hour, minute, weekday, date; UTC). What happened before is not in it: `session.called(…)`, marks and
//! budgets are for conditions, whose questions are known before they are asked.

pub mod cedar;
pub mod rego;

mod record;
mod shape;

use proctor_core::decision::Effect;

/// What a module says about an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opinion {
    /// What the action should get.
    pub effect: Effect,
    /// The rule that says so.
    pub rule: String,
    /// Why; may be empty.
    pub reason: String,
}

/// Something wrong with a module, and where: line and column count from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {message}")]
pub struct ModuleProblem {
    /// The file, as it was named.
    pub file: String,
    /// The line.
    pub line: usize,
    /// The column, in characters.
    pub column: usize,
    /// What is wrong.
    pub message: String,
}

impl ModuleProblem {
    /// A problem at a byte offset of the text.
    fn at(file: &str, text: &str, offset: usize, message: String) -> ModuleProblem {
        let mut end = offset.min(text.len());
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let before = text.get(..end).unwrap_or_default();
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        ModuleProblem {
            file: file.to_owned(),
            line: before.matches('\n').count() + 1,
            column: before.get(line_start..).unwrap_or_default().chars().count() + 1,
            message,
        }
    }
}

/// Whether a text can be the identifier of a rule.
fn is_rule_id(id: &str) -> bool {
    (1..=128).contains(&id.len())
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b':' | b'.' | b'_' | b'-'))
}

/// A text for a reason: long ones are cut.
fn cut(text: &str) -> String {
    const MAX: usize = 1000;
    if text.chars().count() > MAX { text.chars().take(MAX).chain(['…']).collect() } else { text.to_owned() }
}

#[cfg(test)]
mod tests;
