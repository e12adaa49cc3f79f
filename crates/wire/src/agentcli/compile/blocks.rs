//! Blocks of a plan that several outputs print alike.

use proctor_core::json::Json;

use super::plan::{Budgets, Model, Output, TaskPlan};
use crate::agentcli::effective::members::object;

/// `{provider, model, thinking, scheduler_model}`
pub(super) fn model_policy(model: &Model<'_>) -> Json {
    object([
        ("provider", model.provider.into()),
        ("model", model.name.into()),
        ("thinking", model.thinking.into()),
        ("scheduler_model", model.qualified().into()),
    ])
}

/// `{mode, read_only}`
pub(super) fn intent(task: &TaskPlan<'_>) -> Json {
    object([("mode", task.intent_mode.into()), ("read_only", task.read_only.into())])
}

/// `{format, preview_bytes, offload, retrieve}`
pub(super) fn output(output: &Output<'_>) -> Json {
    object([
        ("format", output.format.into()),
        ("preview_bytes", output.preview_bytes.into()),
        ("offload", output.offload.into()),
        ("retrieve", output.retrieve.into()),
    ])
}

/// Limits of a task, all five.
pub(super) fn budgets(budgets: &Budgets<'_>) -> Json {
    object([
        ("max_iterations", budgets.iterations.cloned().into()),
        ("max_fanout", budgets.fanout.into()),
        ("max_context_items", budgets.context_items.into()),
        ("max_pending_approvals", budgets.pending_approvals.into()),
        ("max_queued_dispatches", budgets.queued_dispatches.into()),
    ])
}

/// Identifiers of the workflow and the task in the manifest.
pub(super) fn source(task: &TaskPlan<'_>) -> Json {
    object([("workflow_id", task.workflow_id.into()), ("task_id", task.task_id.into())])
}

/// The part of an explanation that all targets have.
pub(super) fn explanation(task: &TaskPlan<'_>, target: &str, notes: &[&str]) -> Json {
    object([
        ("workflow_id", task.workflow_id.into()),
        ("task_id", task.task_id.into()),
        ("compiled_id", task.compiled_id.as_str().into()),
        ("target", target.into()),
        ("invocation_mode", task.invocation_mode().into()),
        ("notes", notes.iter().map(|note| Json::from(*note)).collect::<Vec<_>>().into()),
    ])
}
