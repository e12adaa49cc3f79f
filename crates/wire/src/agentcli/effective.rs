//! One task with everything it inherits: profile, workflow and task merged.

mod approval;
mod identity;
mod layers;
pub(super) mod members;
mod profiles;
mod references;
mod verify;

use proctor_core::json::Json;

pub(super) use self::approval::{Approval, TIMEOUT_S as APPROVAL_TIMEOUT_S};
pub(super) use self::identity::{Declared, Form, merged, presents_nothing, provider};
pub(super) use self::layers::Layers;
use self::members::{integer, items, member, text, without};
pub(super) use self::profiles::Profiles;
pub(super) use self::references::{
    Config, declared_authorization, declared_evidence, declared_proof, merged_authorization, merged_evidence,
    merged_proof,
};
pub(super) use self::verify::merged as merged_verify;
use super::canonical::{self, NotCanonical};
use super::error::Failure;
use super::expand::{self, compiled_id};

/// Version of a manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Version {
    /// `0.1`: flat identities, unknown members are warnings.
    V01,
    /// `0.2`: profiles, unknown members are errors.
    V02,
}

impl Version {
    /// The version of a valid manifest.
    pub fn of(manifest: &Json) -> Version {
        if text(manifest, "version") == Some("0.1") { Version::V01 } else { Version::V02 }
    }

    /// The version as manifests write it.
    pub fn word(self) -> &'static str {
        match self {
            Version::V01 => "0.1",
            Version::V02 => "0.2",
        }
    }
}

/// Members of a contract, in the order of outputs.
pub(super) const CONTRACT: [&str; 7] = [
    "sandbox",
    "allowed_paths",
    "network",
    "max_cost_usd",
    "audit",
    "required_trust_level",
    "trust_enforcement",
];

/// A task after expansion, with its inherited blocks merged. Configuration and inputs are unredacted: the value is for
/// resolving and running, not for answers.
#[derive(Clone, PartialEq, Eq)]
pub struct EffectiveTask {
    /// Version of the manifest.
    pub manifest_version: Version,
    /// Digest of the manifest as it was given.
    pub manifest_digest: String,
    /// Canonical text of the manifest as it was given.
    pub manifest_text: String,
    /// Identifier of the workflow.
    pub workflow_id: String,
    /// Name of the workflow.
    pub workflow_name: String,
    /// Identifier of the task, after expansion.
    pub task_id: String,
    /// Identifier of the compiled task.
    pub compiled_id: String,
    /// The task as it is written, after expansion.
    pub task: Json,
    /// Flat identity `{principal, run_as, attestation}`, merged. `None` where none of the three is declared.
    pub flat_identity: Option<Json>,
    /// What workflow and task declare in the 0.2 shape, with every member, without the profile and its provider.
    pub declared_identity: Json,
    /// Identity merged with its profile: `{ref, scope, provider, subject, auth, trust, presentation}` with every member.
    /// `None` without a reference.
    pub identity: Option<Json>,
    /// Model policy `{provider, model, thinking}` of task and workflow, merged by member.
    pub model_policy: Json,
    /// Contract with all seven members.
    pub contract: Json,
    /// Authorization proof merged with its profile. `None` without a reference.
    pub authorization_proof: Option<Json>,
    /// Authorization merged with its profile. `None` without a reference.
    pub authorization: Option<Json>,
    /// Evidence merged with its profile. `None` without a reference.
    pub evidence: Option<Json>,
    /// Credential policy for children: the task's, else the workflow's.
    pub child_credential_policy: Option<String>,
    /// Verification `{shell, timeout_seconds, on_failure}`.
    pub verify: Option<Json>,
    /// Normalised approval `{required, timeout_s, auto, policy, risk_level, approver_scope}`.
    pub approval: Json,
    /// Time limit of a run.
    pub timeout_ms: Option<u64>,
    /// Whether the task may run.
    pub enabled: bool,
}

/// Shows which task it is, and nothing of its content: configuration, inputs, environment and prompts may hold secrets.
impl std::fmt::Debug for EffectiveTask {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("EffectiveTask")
            .field("manifest_digest", &self.manifest_digest)
            .field("workflow_id", &self.workflow_id)
            .field("task_id", &self.task_id)
            .field("compiled_id", &self.compiled_id)
            .finish_non_exhaustive()
    }
}

/// Failure to select a task of a manifest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectError {
    /// Several workflows, and none is named.
    #[error("the manifest has several workflows: name one of {}", .0.join(", "))]
    WorkflowRequired(Vec<String>),
    /// No workflow of that name.
    #[error("the manifest has no workflow `{name}`: it has {}", known.join(", "))]
    UnknownWorkflow {
        /// Identifier that was asked for.
        name: String,
        /// Identifiers that exist, quoted; the first ones.
        known: Vec<String>,
    },
    /// No task of that name in the workflow, expanded handlers included.
    #[error("workflow `{workflow}` has no task `{task}`: it has {}", known.join(", "))]
    UnknownTask {
        /// Identifier of the workflow.
        workflow: String,
        /// Identifier that was asked for.
        task: String,
        /// Identifiers that exist, quoted; the first ones.
        known: Vec<String>,
    },
    /// The manifest has no canonical text.
    #[error(transparent)]
    NotCanonical(#[from] NotCanonical),
}

/// Identifiers that an error lists, at most.
const MAX_KNOWN: usize = 10;

impl SelectError {
    /// No task of that name among these.
    pub fn unknown_task<'a>(
        workflow: &str,
        task: &str,
        tasks: impl ExactSizeIterator<Item = &'a Json>,
    ) -> SelectError {
        let known = listed(tasks);
        SelectError::UnknownTask { workflow: workflow.to_owned(), task: task.to_owned(), known }
    }
}

impl From<SelectError> for Failure {
    fn from(error: SelectError) -> Failure {
        Failure::invalid_argument(error.to_string())
    }
}

/// Selects a task of a valid manifest and merges what it inherits. The workflow may be left out where there is only one.
pub fn select(manifest: &Json, workflow: Option<&str>, task: &str) -> Result<EffectiveTask, SelectError> {
    let workflow = pick_workflow(manifest, workflow)?;
    let workflow_id = text(workflow, "id").unwrap_or_default();
    let tasks = expand::tasks(workflow);
    let unknown = || SelectError::unknown_task(workflow_id, task, tasks.iter().map(AsRef::as_ref));
    let selected = tasks.iter().find(|candidate| text(candidate, "id") == Some(task)).ok_or_else(unknown)?;
    let manifest_text = canonical::text(manifest)?;
    let profiles = Profiles::of(manifest);
    Ok(effective(manifest, manifest_text, workflow, selected, &profiles))
}

/// The workflow of this name; without a name the only one.
pub fn pick_workflow<'a>(manifest: &'a Json, name: Option<&str>) -> Result<&'a Json, SelectError> {
    let workflows = items(manifest, "workflows");
    match (name, workflows) {
        (None, [only]) => Ok(only),
        (None, _) => Err(SelectError::WorkflowRequired(listed(workflows.iter()))),
        (Some(name), _) => {
            workflows.iter().find(|workflow| text(workflow, "id") == Some(name)).ok_or_else(|| {
                SelectError::UnknownWorkflow { name: name.to_owned(), known: listed(workflows.iter()) }
            })
        }
    }
}

/// The first identifiers of a list, quoted; a last word says that there are more.
fn listed<'a>(items: impl ExactSizeIterator<Item = &'a Json>) -> Vec<String> {
    let more = items.len().saturating_sub(MAX_KNOWN);
    let ids = items.filter_map(|item| text(item, "id"));
    let mut known: Vec<String> = ids.take(MAX_KNOWN).map(|id| format!("`{id}`")).collect();
    if more > 0 {
        known.push(format!("and {more} more"));
    }
    known
}

fn effective(
    manifest: &Json,
    manifest_text: String,
    workflow: &Json,
    task: &Json,
    profiles: &Profiles<'_>,
) -> EffectiveTask {
    let workflow_id = text(workflow, "id").unwrap_or_default();
    let task_id = text(task, "id").unwrap_or_default();
    let declared = Declared::of(task, workflow);
    let flat_identity = declared
        .flat()
        .filter(|flat| flat.as_object().is_some_and(|all| all.iter().any(|(_, value)| !value.is_null())));
    let profile = profiles.identity(declared.reference());
    let identity = declared
        .reference()
        .map(|_| merged(declared.profiled().over(profile), Some(&provider(profile)), Form::Full));
    let block = |name| Layers::of(task, workflow, name);
    let (proof, authorization, evidence) =
        (block("authorization_proof"), block("authorization"), block("evidence"));
    EffectiveTask {
        manifest_version: Version::of(manifest),
        manifest_digest: canonical::text_digest(&manifest_text),
        manifest_text,
        workflow_id: workflow_id.to_owned(),
        workflow_name: text(workflow, "name").unwrap_or_default().to_owned(),
        task_id: task_id.to_owned(),
        compiled_id: compiled_id(workflow_id, task_id),
        flat_identity,
        declared_identity: merged(declared.profiled(), None, Form::Full),
        identity,
        model_policy: block("model_policy").object(&["provider", "model", "thinking"]),
        contract: block("contract").object(&CONTRACT),
        authorization_proof: merged_proof(proof, profiles.proof(proof.text("ref"))),
        authorization: merged_authorization(
            authorization,
            profiles.authorization(authorization.text("ref")),
            Config::Kept,
        ),
        evidence: merged_evidence(evidence, profiles.evidence(evidence.text("ref")), Config::Kept),
        child_credential_policy: text(task, "child_credential_policy")
            .or_else(|| text(workflow, "child_credential_policy"))
            .map(str::to_owned),
        verify: merged_verify(task, workflow),
        approval: Approval::of(task).to_json(),
        timeout_ms: member(task, "runtime")
            .and_then(|runtime| member(runtime, "timeout_ms"))
            .and_then(integer),
        enabled: member(task, "enabled").and_then(Json::as_bool).unwrap_or(true),
        task: without(task, "on_failure"),
    }
}

#[cfg(test)]
mod tests;
