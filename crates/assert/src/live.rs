//! Incremental evaluation, step by step, of a trace that grows.

use crate::check::{Assertion, Compiled};
use crate::tools::Tools;
use crate::trace::{Head, Step};
use crate::verdict::Verdict;

/// Assertions that see the steps of a trace as they come. At every moment their verdicts are those that the whole trace seen so far
/// would get at once.
///
/// ```
/// use proctor_assert::{Assertion, Head, Live, Step, Tools};
///
/// let spec = r#"{"check": "forbidden_tools", "tools": ["delete"]}"#;
/// let mut live = Live::new(&[Assertion::new("a", "trace", spec).unwrap()], &Tools::default());
/// live.step(&Step::parse(r#"{"type": "tool_call", "name": "read"}"#).unwrap());
/// assert!(live.verdicts(&Head::default())[0].as_ref().unwrap().status.passed());
/// live.step(&Step::parse(r#"{"type": "tool_call", "name": "delete"}"#).unwrap());
/// assert!(live.verdicts(&Head::default())[0].as_ref().unwrap().status.is_hard());
/// ```
pub struct Live {
    checks: Vec<Compiled>,
}

impl Live {
    /// Compiles the assertions.
    pub fn new(assertions: &[Assertion<'_>], tools: &Tools) -> Live {
        Live { checks: assertions.iter().map(|assertion| assertion.compile(tools)).collect() }
    }

    /// Folds the next step.
    pub fn step(&mut self, step: &Step<'_>) {
        for compiled in &mut self.checks {
            if let Compiled::Check(check) = compiled {
                check.step(step);
            }
        }
    }

    /// The verdicts on the trace so far, in the order of the assertions; `None` for those that need a model or a plugin.
    pub fn verdicts(&self, head: &Head<'_>) -> Vec<Option<Verdict>> {
        self.checks
            .iter()
            .map(|compiled| match compiled {
                Compiled::Check(check) => Some(check.verdict(head)),
                Compiled::Failed(verdict) => Some(verdict.clone()),
                _ => None,
            })
            .collect()
    }
}
