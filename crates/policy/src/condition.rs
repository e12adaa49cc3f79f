//! Conditions: CEL expressions over `action`, `agent`, `session` and `time`.
//!
//! The text is read by the CEL parser and compiled here to a small tree in which every name is resolved, so that an unknown
//! variable, member or function is an error at load, and evaluation borrows what it reads instead of building it.
//!
//! Deviations from plain CEL, all of them stricter or bounded: a name that does not exist, an operator that can never apply and
//! a comparison that can never be equal are errors at load; patterns and the members of the four variables are written, not
//! computed; `type()`, messages and optional values do not exist; durations and timestamps count in microseconds.
//!
//! Below `action.args`, `action.result` and `action.metadata` a member can be missing. Reading it is CEL's error, which `||` and
//! `&&` absorb; a condition that ends in it is false. When a missing member and another error meet, the error counts.

mod activation;
mod agent;
mod bounds;
mod evaluate;
mod functions;
mod index;
mod lower;
mod names;
mod node;
mod position;
mod shape;
mod time;
mod vacuous;
mod value;

use cel::common::ast::SourceInfo;

pub use activation::{Activation, NEVER_MICROS};
pub(crate) use agent::CallingAgent;
pub use bounds::{MAX_BYTES, MAX_CHOICES, MAX_NESTING, MAX_SIGNS};
pub use evaluate::{MAX_BUILT, MAX_STEPS};
pub use index::Index;
pub use shape::Shape;

use evaluate::{Evaluator, Fault};
use lower::{Lowered, Lowering};
use node::{Kind, Node};
use position::problem_at;

use crate::input::Input;
use crate::question::AnswerSource;

/// A condition, compiled once and evaluated often.
#[derive(Debug)]
pub struct Condition {
    node: Node,
    warnings: Vec<ConditionProblem>,
    index: Index,
    asks_past: bool,
}

/// Problem in a condition; line and column count from 1 within its text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {offset_line}, column {offset_column}: {message}")]
pub struct ConditionProblem {
    /// The line.
    pub offset_line: usize,
    /// The column, in characters.
    pub offset_column: usize,
    /// Description of the problem.
    pub message: String,
}

/// Result of a condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Truth {
    /// True.
    True,
    /// False.
    False,
    /// A member below `args`, `result` or `metadata` is missing: counts as false.
    Missing,
    /// Evaluation failed: the action is denied.
    Error(String),
}

impl Condition {
    /// Compiles a condition. All problems are reported at once.
    pub fn compile(text: &str) -> Result<Condition, Vec<ConditionProblem>> {
        bounds::check(text).map_err(|problem| vec![problem])?;
        let (expr, source) = parse(text)?;
        let mut lowering = Lowering::new(text, &source);
        let lowered = lowering.lower(&expr);
        let Lowering { mut problems, warnings, .. } = lowering;
        match lowered {
            Some(Lowered { node, kind: Kind::Bool | Kind::Any, asks, .. }) if problems.is_empty() => {
                let index = index::of(&node);
                Ok(Condition { node, warnings, index, asks_past: asks })
            }
            Some(lowered) if problems.is_empty() => {
                let message = format!("a condition is true or false, and this is {}", lowered.kind.words());
                Err(vec![problem_at(text, text.len() - text.trim_start().len(), message)])
            }
            _ => {
                problems.sort_by_key(|problem| (problem.offset_line, problem.offset_column));
                problems.dedup();
                Err(problems)
            }
        }
    }

    /// Warnings: constructs that are allowed and probably not meant.
    pub fn warnings(&self) -> Vec<ConditionProblem> {
        self.warnings.clone()
    }

    /// Necessary conditions, for the index of rules.
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// Logical shape, for comparisons between conditions.
    pub fn shape(&self) -> Shape {
        shape::of(&self.node)
    }

    /// Whether it holds for every action without commands, paths, hosts and so on, because of an `all` over such a list.
    pub fn holds_without_anything(&self) -> bool {
        vacuous::holds_without_anything(&self.node)
    }

    /// Whether it asks about the past.
    pub fn asks_past(&self) -> bool {
        self.asks_past
    }

    /// Evaluates it as one of the conditions of a decision, which share what was computed and asked once.
    pub fn evaluate(&self, activation: &Activation<'_>) -> Truth {
        match Evaluator::new(activation).truth(&self.node) {
            Ok(true) => Truth::True,
            Ok(false) => Truth::False,
            Err(Fault::Missing) => Truth::Missing,
            Err(Fault::Error(message)) => Truth::Error(message.into_owned()),
        }
    }

    /// Evaluates it alone.
    pub fn evaluate_alone(&self, input: &Input, answers: &dyn AnswerSource) -> Truth {
        self.evaluate(&Activation::new(input, answers))
    }
}

fn parse(text: &str) -> Result<(cel::IdedExpr, SourceInfo), Vec<ConditionProblem>> {
    if text.trim().is_empty() {
        return Err(vec![problem_at(text, 0, "the condition is empty; write `true` for always".to_owned())]);
    }
    // No macros: they are understood here, where their parts still have their places in the text.
    let parser = cel::Env::default().with_optional_support(false).parser();
    parser.parse_with_source_info(text).map_err(|errors| {
        let mut problems: Vec<ConditionProblem> = errors
            .errors
            .iter()
            .map(|error| ConditionProblem {
                offset_line: usize::try_from(error.pos.0).unwrap_or(1).max(1),
                offset_column: usize::try_from(error.pos.1).unwrap_or(1).max(1),
                message: syntax_message(&error.msg),
            })
            .collect();
        // The first says what is wrong; the others are what the parser stumbled over next.
        problems.truncate(3);
        problems
    })
}

/// The parser's message, without its list of everything that could have followed.
fn syntax_message(message: &str) -> String {
    let message = message.strip_prefix("Syntax error: ").unwrap_or(message);
    let message = match message.find("expecting {") {
        Some(end) => message.get(..end).unwrap_or(message).trim_end(),
        None => message,
    };
    let message = message.replace("'<EOF>'", "the end").replace("<EOF>", "the end").replace('\'', "`");
    let message: String = message.chars().take(200).collect();
    if message.contains("token recognition error at: `=") {
        return "cannot be read: a comparison is written `==`".to_owned();
    }
    format!("cannot be read: {}", message.replace("token recognition error at:", "unexpected"))
}

#[cfg(test)]
mod tests;
