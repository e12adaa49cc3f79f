//! Summary of a trace tree: depth, agents and totals.

use std::collections::HashSet;

use super::totals::Quantity;
use crate::trace::{Step, StepKind, Trace};

/// Depth limit of nested traces.
const DEEPEST: usize = 5;

/// The summary of a trace tree.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TreeReport {
    /// Whether nothing is wrong with it.
    pub valid: bool,
    /// The first problem, or none.
    pub errors: Vec<String>,
    /// Depth of nested traces; a trace alone has depth 0.
    pub depth: usize,
    /// Number of traces that name their agent; an agent counts each time.
    pub agent_count: usize,
    /// Agent ids, depth first; an agent is listed each time.
    pub agent_ids: Vec<String>,
    /// Tokens of all traces; one that does not say counts as 0.
    pub aggregate_tokens: f64,
    /// Money of all traces; one that does not say counts as 0.
    pub aggregate_cost_usd: f64,
    /// Milliseconds of all traces; one that does not say counts as 0.
    pub aggregate_latency_ms: f64,
}

/// Reports the structure and totals of a tree of traces. Whether its traces can be judged is another question, see [`crate::validate`].
pub fn inspect_tree(trace: &Trace<'_>) -> TreeReport {
    let mut report = TreeReport::default();
    trace.walk(&mut |trace, depth| {
        let head = &trace.head;
        report.depth = report.depth.max(depth);
        if !head.agent_id.is_empty() {
            report.agent_ids.push(head.agent_id.as_str().to_owned());
        }
        report.aggregate_tokens += Quantity::Tokens.of(&head.metadata).unwrap_or(0.0);
        report.aggregate_cost_usd += Quantity::Cost.of(&head.metadata).unwrap_or(0.0);
        report.aggregate_latency_ms += Quantity::Latency.of(&head.metadata).unwrap_or(0.0);
    });
    report.agent_count = report.agent_ids.len();
    report.errors.extend(problem(trace, None, "trace", 0, &mut HashSet::new()));
    report.valid = report.errors.is_empty();
    report
}

/// The first problem of a trace and those below it.
fn problem<'t>(
    trace: &'t Trace<'_>,
    above: Option<&str>,
    place: &str,
    depth: usize,
    known: &mut HashSet<&'t str>,
) -> Option<String> {
    let head = &trace.head;
    let id = head.trace_id.as_str();
    if depth > DEEPEST {
        return Some(format!("{place}: traces lie deeper in each other than {DEEPEST} levels"));
    }
    if !id.is_empty() && !known.insert(id) {
        return Some(format!("{place}.trace_id: another trace is also named `{id}`"));
    }
    let parent = head.parent_trace_id.as_str();
    if let Some(above) = above.filter(|above| !parent.is_empty() && parent != *above) {
        return Some(format!(
            "{place}.parent_trace_id: `{parent}` is not the trace above, which is `{above}`"
        ));
    }
    for (index, step) in trace.steps.iter().enumerate() {
        let place = format_args!("{place}.steps[{index}]");
        let found = match below(step) {
            Below::Nothing => None,
            Below::Missing => Some(format!("{place}.sub_trace: the agent call `{}` has no trace", step.name)),
            Below::Trace(trace) => problem(trace, Some(id), &format!("{place}.sub_trace"), depth + 1, known),
        };
        if found.is_some() {
            return found;
        }
    }
    None
}

enum Below<'t, 'a> {
    Nothing,
    Missing,
    Trace(&'t Trace<'a>),
}

fn below<'t, 'a>(step: &'t Step<'a>) -> Below<'t, 'a> {
    match (&step.kind, step.child()) {
        (_, Some(trace)) => Below::Trace(trace),
        (StepKind::AgentCall, None) => Below::Missing,
        _ => Below::Nothing,
    }
}
