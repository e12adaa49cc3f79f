//! Execution binding of a task, and its digest, the effective task hash.
//!
//! Approvals and proofs refer to the hash: a change of anything that a run depends on gives another one. Values that may hold
//! secrets enter as digests.

use proctor_core::json::Json;

use super::canonical;
use super::effective::EffectiveTask;
use super::effective::members::{member, object, text};

/// Version of the binding's member set.
const BINDING_VERSION: u8 = 1;

/// The binding of one execution. `cwd` is the working directory after symbolic links, where the caller could resolve it;
/// otherwise the declared one stands.
pub fn execution_binding(task: &EffectiveTask, cwd: Option<&str>, instance_id: Option<&str>) -> Json {
    let written = |name: &str| member(&task.task, name).cloned();
    object([
        ("binding_version", BINDING_VERSION.into()),
        ("manifest_version", task.manifest_version.word().into()),
        ("manifest_digest", task.manifest_digest.as_str().into()),
        (
            "source",
            object([
                ("workflow_id", task.workflow_id.as_str().into()),
                ("task_id", task.task_id.as_str().into()),
            ]),
        ),
        ("enabled", task.enabled.into()),
        ("target", written("target").into()),
        ("command", command(&task.task, cwd).into()),
        ("prompt_hash", hash(member(&task.task, "prompt"))),
        ("runtime", object([("timeout_ms", task.timeout_ms.into()), ("instance_id", instance_id.into())])),
        ("approval", task.approval.clone()),
        ("identity", identity(task)),
        ("contract", task.contract.clone()),
        (
            "authorization_proof",
            hashed(
                task.authorization_proof.as_ref(),
                &["public_key", "ca_certificate", "ca_certificate_from", "proof", "claims"],
            ),
        ),
        ("authorization", hashed(task.authorization.as_ref(), &["provider_config"])),
        ("evidence", hashed(task.evidence.as_ref(), &["provider_config"])),
        ("child_credential_policy", task.child_credential_policy.as_deref().into()),
        ("verify", task.verify.clone().into()),
        ("output", written("output").into()),
        ("intent", written("intent").into()),
        ("delete_after_run", written("delete_after_run").into()),
    ])
}

/// Digest of an execution binding.
pub fn effective_task_hash(binding: &Json) -> String {
    digest(binding)
}

/// The identity of a binding: every member of the 0.2 shape, also for a flat identity, whose principal is not part of it.
pub fn identity(task: &EffectiveTask) -> Json {
    let merged = match &task.identity {
        Some(identity) => identity.clone(),
        None => with_provider(&task.declared_identity),
    };
    let Json::Object(members) = merged else { return merged };
    let bind = |(name, value): (String, Json)| {
        let value = match name.as_str() {
            "subject" => hashed(Some(&value), &["attributes"]),
            "auth" => hashed(Some(&value), &["provider_config", "inputs"]),
            _ => value,
        };
        (name, value)
    };
    Json::Object(members.into_iter().map(bind).collect())
}

/// A declared identity with the provider that it lacks.
fn with_provider(declared: &Json) -> Json {
    let mut identity = declared.clone();
    if let Json::Object(members) = &mut identity {
        members.insert(members.len().min(2), ("provider".to_owned(), Json::Null));
    }
    identity
}

fn command(task: &Json, cwd: Option<&str>) -> Option<Json> {
    let shell = member(task, "shell")?;
    let args = member(shell, "args").and_then(Json::as_array).unwrap_or_default();
    let mut env: Vec<&(String, Json)> =
        member(shell, "env").and_then(Json::as_object).unwrap_or_default().iter().collect();
    env.sort_unstable_by(|(left, _), (right, _)| left.cmp(right));
    let env_hashes = env.iter().map(|(name, value)| (name.clone(), hash(Some(value)))).collect();
    Some(object([
        ("program", text(shell, "program").into()),
        ("args_hashes", args.iter().map(|argument| hash(Some(argument))).collect::<Vec<_>>().into()),
        ("args_count", args.len().into()),
        ("cwd", cwd.or_else(|| text(shell, "cwd")).into()),
        ("env_keys", env.iter().map(|(name, _)| Json::from(name.as_str())).collect::<Vec<_>>().into()),
        ("env_hashes", Json::Object(env_hashes)),
        ("stdin_hash", hash(member(shell, "stdin"))),
    ]))
}

/// The block with each of these members replaced by its digest, under its name and `_hash`.
fn hashed(block: Option<&Json>, names: &[&str]) -> Json {
    let Some(Json::Object(members)) = block else { return block.cloned().unwrap_or_default() };
    let replace = |(name, value): &(String, Json)| {
        if names.contains(&name.as_str()) {
            (format!("{name}_hash"), hash(Some(value)))
        } else {
            (name.clone(), value.clone())
        }
    };
    Json::Object(members.iter().map(replace).collect())
}

/// Digest of a value; `null` for none.
fn hash(value: Option<&Json>) -> Json {
    value.filter(|value| !value.is_null()).map(digest).into()
}

fn digest(value: &Json) -> String {
    // INVARIANT: a selected task comes from a manifest with a canonical text, so that each part of it has one too.
    canonical::digest(value).unwrap_or_else(|_| canonical::text_digest(&value.to_string()))
}

#[cfg(test)]
mod tests;
