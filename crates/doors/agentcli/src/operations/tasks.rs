//! Questions about one task: identity, delegation, proof, authorization.

use proctor_core::json::Json;
use proctor_flow::run::{Question, Verdict};
use proctor_wire::agentcli::error::Failure;

use super::ok;
use crate::door::Door;

pub(crate) async fn resolve(door: &Door, question: Question<'_>) -> Result<Json, Failure> {
    let identity = door.examiner(question.allow_commands)?.identity(question).await?;
    Ok(ok()
        .with("declared_identity", identity.declared)
        .with("resolved_identity", identity.resolved)
        .with("principal_used", identity.principal))
}

pub(crate) async fn validate_delegation(door: &Door, question: Question<'_>) -> Result<Json, Failure> {
    let delegation = door.examiner(question.allow_commands)?.delegation(question).await?;
    Ok(ok().with("delegation", delegation))
}

pub(crate) async fn verify_proof(door: &Door, question: Question<'_>) -> Result<Json, Failure> {
    let proof = door.examiner(question.allow_commands)?.proof(question).await?;
    Ok(ok()
        .with("authorization_proof", proof.summary)
        .with("effective_task_hash", proof.task_hash)
        .with("manifest_digest", proof.manifest_digest))
}

pub(crate) async fn evaluate(door: &Door, question: Question<'_>) -> Result<Json, Failure> {
    let authorized = door.examiner(question.allow_commands)?.authorization(question).await?;
    let decision = Json::object()
        .with("allowed", authorized.verdict == Verdict::Permit)
        .with("reason", authorized.reason.as_str());
    Ok(ok().with("decision", decision).with("authorization", authorized.summary))
}

/// The principal that a task would run as, with its trust level and provider.
pub(crate) async fn whoami(door: &Door, question: Question<'_>) -> Result<Json, Failure> {
    let identity = door.examiner(question.allow_commands)?.identity(question).await?;
    let effective = identity.resolved.pointer("/trust/effective_level").cloned().unwrap_or_default();
    Ok(ok()
        .with("principal_used", identity.principal)
        .with("provider", identity.declared.get("provider").cloned())
        .with("trust_level", effective)
        .with("declared_identity", identity.declared)
        .with("resolved_identity", identity.resolved))
}
