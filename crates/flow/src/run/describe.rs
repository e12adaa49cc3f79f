//! Descriptions of a task in results, previews and evidence.

use std::time::Duration;

use proctor_core::json::Json;
use proctor_wire::agentcli::effective::{EffectiveTask, Version};

use super::Options;
use super::read::{member, text};

/// Time limit of a task that names none.
const TIMEOUT: Duration = Duration::from_secs(300);

/// Time limit of a run.
pub(super) fn timeout_of(task: &EffectiveTask, options: &Options) -> Duration {
    options.timeout.or(task.timeout_ms.map(Duration::from_millis)).unwrap_or(TIMEOUT)
}

/// Origin of a run in results.
pub(super) fn source_of(task: &EffectiveTask) -> Json {
    Json::object()
        .with("workflow_id", task.workflow_id.as_str())
        .with("task_id", task.task_id.as_str())
        .with("compiled_id", task.compiled_id.as_str())
        .with("manifest_version", task.manifest_version.word())
}

/// The command of a binding: digests of arguments, variables and input.
pub(super) fn command_of(binding: &Json) -> Json {
    binding.get("command").cloned().unwrap_or_default()
}

/// Identity as the manifest declares it.
pub(super) fn declared_identity(task: &EffectiveTask, binding: &Json) -> Json {
    if task.manifest_version == Version::V01 {
        return task
            .flat_identity
            .clone()
            .unwrap_or_else(|| binding.get("identity").cloned().unwrap_or_default());
    }
    let Some(identity) = &task.identity else { return Json::object().with("provider", "none") };
    let of = |block: &str, name: &str| member(identity, block).and_then(|block| text(block, name));
    let subject = Json::object()
        .with("principal", of("subject", "principal"))
        .with("kind", of("subject", "kind"))
        .with("issuer", of("subject", "issuer"));
    Json::object()
        .with("provider", text(identity, "provider"))
        .with("subject", subject)
        .with("trust_level", of("trust", "level"))
}

/// Claims of a proof that say whose request a run serves.
const ACTOR: [&str; 7] =
    ["sub", "org_id", "on_behalf_of_user_id", "delegation_grant_id", "agent_id", "session_id", "request_id"];
/// Claims of a proof that say how the requester was verified.
const STEP_UP: [&str; 4] =
    ["verification_ref", "verification_level", "verification_verified_at", "step_up_policy"];

/// Section `actor` of a request: claims from the summary of its verified proof; empty without one.
pub(super) fn actor_context(proof: &Json) -> Json {
    claims(proof, &ACTOR)
}

/// Step-up verification of a run, from the summary of its verified proof; empty without one.
pub(super) fn step_up_context(proof: &Json) -> Json {
    claims(proof, &STEP_UP)
}

fn claims(proof: &Json, names: &[&str]) -> Json {
    let mut out = Json::object();
    let is_verified = proof.get("verified").and_then(Json::as_bool) == Some(true);
    let claims = member(proof, "claims").filter(|_| is_verified);
    for name in names {
        if let Some(value) = claims.and_then(|claims| member(claims, name)) {
            out.push(name, value.clone());
        }
    }
    out
}
