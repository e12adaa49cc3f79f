//! Policy modules in other languages: Cedar (feature `cedar`) and Rego (feature `rego`). Both see the same record and give opinions
//! that are combined with those of the rules. A document that names a module whose language was not compiled in is refused.
//!
//! The record has `action` (the facts, as conditions see them), `agent` (name, principal, team, org, and what the registry
//! knows: `risk_tier`, depth, parent, `parent_risk_tier`, children, `is_registered`, age in whole seconds, `team_agents`), `session`
//! (id) and `time` (now, hour, minute, weekday, date; UTC). What happened before is not in it: `session.called(…)`, taints and
//! budgets are for conditions, whose questions are known before they are asked.

#[cfg(feature = "cedar")]
pub mod cedar;
#[cfg(feature = "rego")]
pub mod rego;

#[cfg(any(feature = "cedar", feature = "rego"))]
mod bounds;
#[cfg(any(feature = "cedar", feature = "rego"))]
mod record;

use proctor_core::decision::Effect;

use crate::input::Input;
use crate::question::AnswerSource;

/// The language of a module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    Cedar,
    Rego,
}

impl Language {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Language::Cedar => "Cedar",
            Language::Rego => "Rego",
        }
    }

    /// Whether the cargo feature of the language is on.
    pub(crate) const fn is_compiled_in(self) -> bool {
        match self {
            Language::Cedar => cfg!(feature = "cedar"),
            Language::Rego => cfg!(feature = "rego"),
        }
    }
}

/// A compiled module.
pub(crate) trait Engine: Send + Sync {
    /// The module's opinions about an action.
    fn evaluate(&self, input: &Input, answers: &dyn AnswerSource) -> Vec<Opinion>;
}

/// Compiles a module.
pub(crate) fn compile(
    language: Language,
    file: &str,
    text: &str,
) -> Result<Box<dyn Engine>, Vec<ModuleProblem>> {
    match language {
        #[cfg(feature = "cedar")]
        Language::Cedar => Ok(Box::new(cedar::CedarModule::compile(file, text)?)),
        #[cfg(feature = "rego")]
        Language::Rego => Ok(Box::new(rego::RegoModule::compile(file, text)?)),
        #[cfg(not(all(feature = "cedar", feature = "rego")))]
        _ => {
            let message = format!("this build reads no {} modules", language.name());
            Err(vec![ModuleProblem::at(file, text, 0, message)])
        }
    }
}

/// A module's statement about an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opinion {
    /// Effect.
    pub effect: Effect,
    /// The rule that says so.
    pub rule: String,
    /// Reason; may be empty.
    pub reason: String,
}

/// A problem in a module's text; line and column count from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {message}")]
pub struct ModuleProblem {
    /// The file, as it was named.
    pub file: String,
    /// The line.
    pub line: usize,
    /// The column, in characters.
    pub column: usize,
    /// Description of the problem.
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
#[cfg(any(feature = "cedar", feature = "rego"))]
fn is_rule_id(id: &str) -> bool {
    (1..=128).contains(&id.len())
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b':' | b'.' | b'_' | b'-'))
}

/// Truncates a reason to 1000 characters.
#[cfg(any(feature = "cedar", feature = "rego"))]
fn truncate(text: &str) -> String {
    const MAX: usize = 1000;
    if text.chars().count() > MAX { text.chars().take(MAX).chain(['…']).collect() } else { text.to_owned() }
}

#[cfg(test)]
#[cfg(any(feature = "cedar", feature = "rego"))]
mod tests;
