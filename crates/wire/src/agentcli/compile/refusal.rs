//! Refusals of valid manifests that a target cannot express.

use proctor_core::json::Json;

use super::plan::{Invocation, Payload, Plan, TaskPlan};
use super::scheduler::{SENTINEL_CRON, identity_scope, payload_message, schedule};
use super::{Target, size};
use crate::agentcli::finding::Finding;

/// Errors for everything in the plan that the target cannot express, in the order of expanded tasks.
pub(super) fn refusals(plan: &Plan<'_>, target: Target) -> Vec<Finding> {
    let mut errors = Vec::new();
    for (workflow_index, workflow) in plan.workflows.iter().enumerate() {
        for (task_index, task) in workflow.tasks.iter().enumerate() {
            let mut refuse = |field: &str, code, message: String| {
                let path = format!("$.workflows[{workflow_index}].tasks[{task_index}].{field}");
                errors.push(Finding::new(path, code, message));
            };
            refuse_payload_kind(task, &mut refuse);
            match target {
                Target::Standalone => {}
                Target::OpenclawScheduler => refuse_job(task, &mut refuse),
            }
        }
    }
    errors.extend(size::excess(plan));
    errors
}

type Refuse<'r> = dyn FnMut(&str, &'static str, String) + 'r;

fn refuse_payload_kind(task: &TaskPlan<'_>, refuse: &mut Refuse<'_>) {
    if matches!(task.payload, Payload::Prompt(_)) && task.payload_kind == "shellCommand" {
        let message = format!("must not be shellCommand for session_target {}", task.session_target);
        refuse("target.payload_kind", "compile_payload_kind", message);
    }
}

fn refuse_job(task: &TaskPlan<'_>, refuse: &mut Refuse<'_>) {
    refuse_long_strings(task, refuse);
    if let Invocation::Schedule { cron: SENTINEL_CRON, .. } = task.invocation {
        let message = format!("must not be `{SENTINEL_CRON}`, which marks triggered jobs");
        refuse("schedule.cron", "compile_sentinel_cron", message);
    }
    if let Payload::Shell { env, stdin, .. } = &task.payload {
        if env.and_then(Json::as_object).is_some_and(|env| !env.is_empty()) {
            refuse("shell.env", "compile_shell_env", "is not supported by openclaw-scheduler".to_owned());
        }
        if stdin.is_some() {
            refuse("shell.stdin", "compile_shell_stdin", "is not supported by openclaw-scheduler".to_owned());
        }
    }
    if let Invocation::Trigger { parent_policy, .. } = &task.invocation {
        let own = task.written.get("child_credential_policy").and_then(Json::as_str);
        let effective = own.or(*parent_policy).or(task.child_credential_policy);
        if effective == Some("downscope") && identity_scope(task).is_none() {
            let message = "is required because child_credential_policy is downscope".to_owned();
            refuse("identity.scope", "compile_scope_required", message);
        }
    }
}

/// Columns of limited length, counted in UTF-16 code units as the scheduler counts them.
fn refuse_long_strings(task: &TaskPlan<'_>, refuse: &mut Refuse<'_>) {
    let (cron, tz) = schedule(task);
    let condition = match task.invocation {
        Invocation::Schedule { .. } => None,
        Invocation::Trigger { condition, .. } => condition,
    };
    let model = task.model.qualified();
    let mut check = |field: &str, value: Option<&str>, limit: usize| {
        // No text has more code units than bytes: most need no counting.
        let Some(value) = value.filter(|value| value.len() > limit) else { return };
        let length = value.encode_utf16().count();
        if length > limit {
            refuse(field, "compile_too_long", format!("must be at most {limit} characters, is {length}"));
        }
    };
    check("name", Some(&task.name), 200);
    check("payload_message", Some(&payload_message(&task.payload)), 100_000);
    check("agent_id", Some(task.agent_id), 128);
    check("schedule_cron", Some(cron), 128);
    check("schedule_tz", Some(tz), 128);
    check("delivery_channel", task.delivery.channel, 64);
    check("delivery_to", task.delivery.to, 256);
    check("trigger_condition", condition, 1024);
    check("payload_model", model.as_deref(), 256);
    check("payload_thinking", task.model.thinking, 64);
    check("preferred_session_key", task.preferred_key, 512);
}
