//! Bound on the size of compiled output.
//!
//! Every task prints the blocks of its workflow and its profiles: a manifest of one megabyte could compile to gigabytes.

use std::collections::HashMap;

use proctor_core::json::Json;

use super::plan::{Plan, TaskPlan};
use crate::agentcli::effective::members::member;
use crate::agentcli::finding::Finding;

/// Largest compiled output, in bytes of memory as estimated here.
const LARGEST: usize = 64 << 20;
/// Memory of one compiled task with all members but no long text.
const TASK: usize = 8 << 10;
/// Memory of one value and its name.
const VALUE: usize = 64;

/// Error at the task from which on the output would be too large.
pub(super) fn excess(plan: &Plan<'_>) -> Option<Finding> {
    let mut weights = Weights::default();
    let mut total = 0usize;
    for (workflow_index, workflow) in plan.workflows.iter().enumerate() {
        let inherited = weights.inherited(workflow.written);
        for (task_index, task) in workflow.tasks.iter().enumerate() {
            total =
                total.saturating_add(TASK).saturating_add(inherited).saturating_add(weights.profiles(task));
            if total > LARGEST {
                let path = format!("$.workflows[{workflow_index}].tasks[{task_index}]");
                let message = format!(
                    "the compiled form exceeds {} MiB: use fewer tasks, or smaller blocks and profiles",
                    LARGEST >> 20
                );
                return Some(Finding::new(path, "compile_too_large", message));
            }
        }
    }
    None
}

/// Weights of profiles, each computed once.
#[derive(Default)]
struct Weights {
    known: HashMap<*const Json, usize>,
}

impl Weights {
    /// Weight of what every task of a workflow inherits.
    fn inherited(&mut self, workflow: &Json) -> usize {
        let blocks = ["identity", "contract", "authorization_proof", "authorization", "evidence", "verify"];
        let weights =
            blocks.into_iter().filter_map(|name| member(workflow, name)).map(|block| self.printed(block));
        weights.fold(0, usize::saturating_add)
    }

    fn profiles(&mut self, task: &TaskPlan<'_>) -> usize {
        let profiles =
            [task.identity_profile, task.proof_profile, task.authorization_profile, task.evidence_profile];
        profiles.into_iter().flatten().map(|profile| self.printed(profile)).fold(0, usize::saturating_add)
    }

    /// Weight of a profile or block without what is never printed.
    fn printed(&mut self, block: &Json) -> usize {
        let place = std::ptr::from_ref(block);
        *self.known.entry(place).or_insert_with(|| {
            let mut total = 0usize;
            for (name, value) in block.as_object().unwrap_or_default() {
                total = total.saturating_add(match name.as_str() {
                    "provider_config" => 0,
                    "auth" => without(value, &["provider_config", "inputs"]),
                    "subject" => without(value, &["attributes"]),
                    _ => weight(value),
                });
            }
            total
        })
    }
}

fn without(block: &Json, names: &[&str]) -> usize {
    let members = block.as_object().unwrap_or_default().iter();
    members
        .filter(|(name, _)| !names.contains(&name.as_str()))
        .map(|(_, value)| weight(value))
        .fold(0, usize::saturating_add)
}

fn weight(value: &Json) -> usize {
    VALUE
        + match value {
            Json::Null | Json::Bool(_) => 0,
            Json::Number(literal) => literal.len(),
            Json::String(text) => text.len(),
            Json::Array(items) => items.iter().map(weight).fold(0, usize::saturating_add),
            Json::Object(members) => {
                members.iter().map(|(name, value)| name.len() + weight(value)).fold(0, usize::saturating_add)
            }
        }
}
