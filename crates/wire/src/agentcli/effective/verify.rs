//! Verification command of a task.

use proctor_core::json::Json;

use super::members::member;

/// `{shell, timeout_seconds, on_failure}` with defaults. A task's block replaces its workflow's as a whole.
pub(in crate::agentcli) fn merged(task: &Json, workflow: &Json) -> Option<Json> {
    let block = member(task, "verify").or_else(|| member(workflow, "verify"))?;
    let own = |name: &str| member(block, name).cloned();
    Some(
        Json::object()
            .with("shell", own("shell"))
            .with("timeout_seconds", own("timeout_seconds").unwrap_or_else(|| 30u8.into()))
            .with("on_failure", own("on_failure").unwrap_or_else(|| "error".into())),
    )
}
