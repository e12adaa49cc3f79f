//! Structural validation of a trace before it is evaluated.

use serde_json::value::RawValue;
use thiserror::Error;

use crate::trace::{Step, StepKind, Trace};

/// Size limits of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Steps of one trace, not counting those of the traces below it.
    pub steps: usize,
    /// Bytes of one step as it was sent, without the trace below it.
    pub step_bytes: usize,
    /// Depth limit of nested traces; the outermost has depth 0.
    pub depth: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { steps: 10_000, step_bytes: 1024 * 1024, depth: 5 }
    }
}

impl Limits {
    /// Limits of traces that are read from the ledger.
    pub const STORED: Limits = Limits { steps: 10_000_000, step_bytes: 64 * 1024 * 1024, depth: 64 };
}

/// Cause for which a trace is not judged.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{place}: {problem}")]
pub struct TraceProblem {
    /// Path from the outermost trace.
    pub place: String,
    /// The description of the problem.
    pub problem: String,
}

/// Checks a trace and all traces below it. The first problem found is the answer.
pub fn validate(trace: &Trace<'_>, limits: &Limits) -> Result<(), TraceProblem> {
    check_trace(trace, limits, "trace", 0)
}

fn check_trace(trace: &Trace<'_>, limits: &Limits, place: &str, depth: usize) -> Result<(), TraceProblem> {
    let problem = |member: &str, problem: String| TraceProblem { place: format!("{place}{member}"), problem };
    let version = trace.head.schema_version;
    if version != 0.0 && (version - 1.0).abs() > f64::EPSILON {
        return Err(problem(
            ".schema_version",
            format!("version {version} is not known; this engine reads version 1"),
        ));
    }
    if trace.head.trace_id.trim().is_empty() {
        return Err(problem(".trace_id", "a trace needs a name".to_owned()));
    }
    match trace.head.output.map(|output| output.get().trim()) {
        None => {
            return Err(problem(
                ".output",
                "a trace needs an output: an object with at least one member".to_owned(),
            ));
        }
        Some(output) if !output.starts_with('{') => {
            return Err(problem(
                ".output",
                "the output is not an object; wrap it, as in {\"message\": …}".to_owned(),
            ));
        }
        // It is JSON, so only space can stand before the end of an object without members.
        Some(output)
            if output.strip_prefix('{').is_some_and(|members| members.trim_start().starts_with('}')) =>
        {
            return Err(problem(".output", "the output is empty; it needs at least one member".to_owned()));
        }
        Some(_) => {}
    }
    if trace.steps.len() > limits.steps {
        let found = trace.steps.len();
        return Err(problem(
            ".steps",
            format!("{found} steps are more than the {} that a trace may have", limits.steps),
        ));
    }
    for (index, step) in trace.steps.iter().enumerate() {
        check_step(step, limits, &format_args!("{place}.steps[{index}]"))?;
    }
    if depth > limits.depth {
        return Err(problem("", format!("traces lie deeper in each other than {} levels", limits.depth)));
    }
    for (index, step) in trace.steps.iter().enumerate() {
        if let Some(below) = step.child() {
            check_trace(below, limits, &format!("{place}.steps[{index}].sub_trace"), depth + 1)?;
        }
    }
    Ok(())
}

fn check_step(step: &Step<'_>, limits: &Limits, place: &dyn std::fmt::Display) -> Result<(), TraceProblem> {
    let problem = |member: &str, problem: String| TraceProblem { place: format!("{place}{member}"), problem };
    if step.name.trim().is_empty() {
        return Err(problem(".name", "a step needs a name".to_owned()));
    }
    if let StepKind::Other(word) = &step.kind {
        return Err(problem(
            ".type",
            format!("`{word}` is not a type of step; use llm_call, tool_call, retrieval or agent_call"),
        ));
    }
    let size = |raw: Option<&RawValue>| raw.map_or(0, |raw| raw.get().len());
    let bytes =
        step.name.len() + step.agent_id.len() + size(step.args) + size(step.result) + size(step.metadata);
    if bytes > limits.step_bytes {
        return Err(problem(
            "",
            format!("{bytes} bytes are more than the {} that a step may have", limits.step_bytes),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
