//! One rule of a Rego module over an input of the caller's.

use std::sync::Arc;

use regorus::rvm::program::Program;
use regorus::{CompiledPolicy, Value};

use proctor_core::json::Json;

use super::super::{ModuleProblem, truncate};
use super::{compile_checked, json_value, measure, reason_of};

/// Longest name of a rule.
const MAX_QUERY_BYTES: usize = 256;
/// Largest result, as JSON text.
const MAX_RESULT_BYTES: usize = 1 << 20;

/// A rule that could not be evaluated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QueryFailure {
    /// An error of evaluation, or too many instructions.
    #[error("the module could not be evaluated: {0}")]
    Evaluation(String),
    /// The result is too large, or no JSON.
    #[error("the module's result cannot be read")]
    Result,
}

/// A Rego module with one rule to ask for, compiled once. Bounds are those of [`super::RegoModule`].
pub struct RegoQuery {
    program: Arc<Program>,
    policy: CompiledPolicy,
    query: String,
}

impl std::fmt::Debug for RegoQuery {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("RegoQuery").field("query", &self.query).finish_non_exhaustive()
    }
}

impl RegoQuery {
    /// Compiles a module for a query: the full name of one of its rules, such as `data.deploy.allow`.
    pub fn compile(file: &str, text: &str, query: &str) -> Result<RegoQuery, Vec<ModuleProblem>> {
        if !is_rule_name(query) {
            let message =
                format!("the query `{}` has to name a rule, such as `data.deploy.allow`", truncate(query));
            return Err(vec![ModuleProblem::at(file, text, 0, message)]);
        }
        let (program, policy) = compile_checked(file, text, query, None)?;
        Ok(RegoQuery { program, policy, query: query.to_owned() })
    }

    /// The rule's value for an input; `None` if it is undefined.
    pub fn evaluate(&self, input: &Json) -> Result<Option<Json>, QueryFailure> {
        let input = json_value(input);
        measure(&self.program, &self.query, input.clone())
            .map_err(|error| QueryFailure::Evaluation(truncate(&error.to_string())))?;
        let value = self
            .policy
            .eval_with_input(input)
            .map_err(|error| QueryFailure::Evaluation(truncate(reason_of(&format!("{error:#}")))))?;
        if value == Value::Undefined {
            return Ok(None);
        }
        let text = value.to_json_str().map_err(|_| QueryFailure::Result)?;
        if text.len() > MAX_RESULT_BYTES {
            return Err(QueryFailure::Result);
        }
        Json::parse(text.as_bytes()).map(Some).map_err(|_| QueryFailure::Result)
    }
}

/// Whether a text is `data.` and names with dots between them.
fn is_rule_name(text: &str) -> bool {
    let is_name = |name: &str| {
        name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
            && name.chars().all(|next| next.is_ascii_alphanumeric() || next == '_')
    };
    text.len() <= MAX_QUERY_BYTES
        && text.strip_prefix("data.").is_some_and(|rest| rest.contains('.') && rest.split('.').all(is_name))
}
