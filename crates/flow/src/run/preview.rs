//! Dry run: what a run would do, from the manifest alone.

use std::path::Path;

use proctor_core::json::Json;
use proctor_wire::agentcli::binding::{effective_task_hash, execution_binding};
use proctor_wire::agentcli::effective::EffectiveTask;

use super::Options;
use super::describe::{command_of, declared_identity, source_of, timeout_of};
use super::read::{agent_id, member, shell, text};
use super::unapplied::unapplied;

/// Static preview of a run. Nothing is read, resolved, asked or recorded; the working directory is the declared one.
pub(super) fn preview(task: &EffectiveTask, directory: &Path, options: &Options) -> Json {
    let binding = execution_binding(task, None, None);
    let declared_cwd = shell(&task.task).and_then(|shell| text(shell, "cwd"));
    let cwd = directory.join(declared_cwd.unwrap_or("."));
    let mut steps = vec!["policy"];
    let has = |block: &Option<Json>| block.is_some();
    for (step, is_there) in [
        ("authorization_proof", has(&task.authorization_proof)),
        ("identity", has(&task.identity)),
        ("trust", text(&task.contract, "required_trust_level").is_some()),
        ("authorization", has(&task.authorization)),
        ("process", shell(&task.task).is_some()),
        ("agent", shell(&task.task).is_none()),
        ("verify", has(&task.verify)),
        ("evidence", has(&task.evidence) || options.require_evidence),
    ] {
        if is_there {
            steps.push(step);
        }
    }
    let steps: Vec<Json> = steps.into_iter().map(Json::from).collect();
    let warnings: Vec<Json> = unapplied(task, "").into_iter().map(Json::from).collect();
    let mut out = Json::object()
        .with("ok", true)
        .with("dry_run", true)
        .with("source", source_of(task))
        .with("effective_task_hash", effective_task_hash(&binding))
        .with("manifest_digest", task.manifest_digest.as_str())
        .with("command", command_of(&binding))
        .with("cwd", cwd.display().to_string())
        .with("timeout_ms", u64::try_from(timeout_of(task, options).as_millis()).unwrap_or(u64::MAX))
        .with("declared_identity", declared_identity(task, &binding))
        .with("contract", task.contract.clone())
        .with("approval", task.approval.clone())
        .with("steps", steps)
        .with("warnings", warnings);
    if shell(&task.task).is_none() {
        out.push("agent_id", agent_id(&task.task));
        out.push("prompt_hash", member(&binding, "prompt_hash").cloned());
    }
    out
}
