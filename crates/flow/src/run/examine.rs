//! Questions about a task that is not run: its identity, delegation chain, proof and authorization.
//!
//! Credentials are resolved live, as a run would; nothing is started, consumed or presented.

use std::path::PathBuf;
use std::sync::Arc;

use proctor_core::json::Json;
use proctor_core::random::Randomness;
use proctor_identity::sources::Commands;
use proctor_wire::agentcli::binding::{effective_task_hash, execution_binding};
use proctor_wire::agentcli::effective::{EffectiveTask, Version, select};
use proctor_wire::agentcli::error::{Code, Failure};
use proctor_wire::agentcli::validate::validate;

use super::contract::Confinement;
use super::describe::declared_identity;
use super::execute::{SourceGate, random_id};
use super::parts::{Authorized, Authorizer, Identities, Proofs, ResolvedIdentity, Subject};
use super::read::{member, shell, text};
use super::recorder::{JobKey, Recorder};
use super::trust;

/// Answers to questions about tasks, and the parts that they need.
pub struct Examiner {
    /// Verifier of proofs.
    pub proofs: Arc<dyn Proofs>,
    /// Resolver of identities.
    pub identities: Arc<dyn Identities>,
    /// Authorization providers.
    pub authorizer: Arc<dyn Authorizer>,
    /// Decisions on `command` sources, and records of failures; `None` without a state directory, and then no command runs.
    pub recorder: Option<Recorder>,
    /// Randomness of identifiers.
    pub randomness: Arc<dyn Randomness>,
    /// Folder that relative paths of manifests start from.
    pub directory: PathBuf,
    /// `user@host`, the principal of tasks that declare none.
    pub local_principal: String,
}

/// A task that a question is about.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// The manifest as it was written.
    pub manifest: &'a Json,
    /// The workflow; may be left out where there is only one.
    pub workflow: Option<&'a str>,
    /// The task.
    pub task: &'a str,
    /// Whether `command` value sources may be run, if the policy allows each.
    pub allow_commands: bool,
}

/// Identity of a task, declared and resolved.
#[derive(Debug, Clone, PartialEq)]
pub struct ExaminedIdentity {
    /// As the manifest declares it.
    pub declared: Json,
    /// As its provider resolved it, redacted; null without a provider.
    pub resolved: Json,
    /// The principal that a run would use.
    pub principal: String,
}

/// Proof of a task, verified without being consumed.
#[derive(Debug, Clone, PartialEq)]
pub struct ExaminedProof {
    /// Summary of the verification; null where the task has no proof.
    pub summary: Json,
    /// Digest of the execution binding.
    pub task_hash: String,
    /// Digest of the manifest.
    pub manifest_digest: String,
}

/// A task with what its checks need.
struct Selected {
    task: EffectiveTask,
    binding: Json,
    hash: String,
    key: JobKey,
}

impl Examiner {
    /// Resolves the identity of a task.
    pub async fn identity(&self, question: Question<'_>) -> Result<ExaminedIdentity, Failure> {
        let selected = self.selected(question)?;
        let task = &selected.task;
        if task.manifest_version == Version::V01 {
            let declared = selected.binding.get("identity").cloned().unwrap_or_default();
            let flat = task.flat_identity.as_ref().and_then(|identity| text(identity, "principal"));
            let principal = flat.unwrap_or(&self.local_principal).to_owned();
            return Ok(ExaminedIdentity { declared, resolved: Json::Null, principal });
        }
        let resolved = self.resolved(&selected, question).await?;
        let declared = declared_identity(task, &selected.binding);
        let named = member(&declared, "subject").and_then(|subject| text(subject, "principal"));
        let of_session = resolved.as_deref().and_then(ResolvedIdentity::principal);
        let principal =
            of_session.or_else(|| named.map(str::to_owned)).unwrap_or_else(|| self.local_principal.clone());
        let resolved = resolved.as_deref().map_or(Json::Null, ResolvedIdentity::describe);
        Ok(ExaminedIdentity { declared, resolved, principal })
    }

    /// Validates the delegation chain of a task's identity; null where there is none.
    pub async fn delegation(&self, question: Question<'_>) -> Result<Json, Failure> {
        let selected = self.selected(question)?;
        if selected.task.manifest_version == Version::V01 {
            return Ok(Json::Null);
        }
        let resolved = self.resolved(&selected, question).await?;
        let described = resolved.as_deref().map_or(Json::Null, ResolvedIdentity::describe);
        Ok(described.get("delegation_validation").cloned().unwrap_or_default())
    }

    /// Verifies the proof of a task.
    pub async fn proof(&self, question: Question<'_>) -> Result<ExaminedProof, Failure> {
        let selected = self.selected(question)?;
        let summary = self.verified(&selected, question).await?;
        let manifest_digest = selected.task.manifest_digest.clone();
        Ok(ExaminedProof { summary, task_hash: selected.hash, manifest_digest })
    }

    /// Asks the authorization provider of a task.
    pub async fn authorization(&self, question: Question<'_>) -> Result<Authorized, Failure> {
        let selected = self.selected(question)?;
        let task = &selected.task;
        if task.manifest_version == Version::V01 {
            return Err(Failure::invalid_argument(
                "a manifest of version 0.1 has no authorization: convert it first",
            ));
        }
        if task.authorization.is_none() {
            let message = format!("the task `{}` has no authorization", task.task_id);
            return Err(Failure::invalid_argument(message));
        }
        let identity = self.resolved(&selected, question).await?;
        trust::check(&task.contract, identity.as_deref().map(ResolvedIdentity::trust))?;
        let proof = self.verified(&selected, question).await?;
        let gate = self.gate(&selected, question)?;
        let subject = Subject { task, task_hash: &selected.hash, commands: commands(gate.as_ref()) };
        self.authorizer.evaluate(subject, identity.as_deref(), &proof).await
    }

    fn selected(&self, question: Question<'_>) -> Result<Selected, Failure> {
        let validation = validate(question.manifest);
        if !validation.is_ok() {
            return Err(Failure::invalid_manifest(validation));
        }
        let task = select(question.manifest, question.workflow, question.task)?;
        // A working directory that does not exist is no reason to refuse an answer about identity.
        let written = shell(&task.task).and_then(|shell| text(shell, "cwd"));
        let resolved = Confinement::read(&task.task, &task.contract, &self.directory).ok();
        let cwd = written.map(|written| {
            resolved.map_or_else(|| written.to_owned(), |found| found.directory.display().to_string())
        });
        let binding = execution_binding(&task, cwd.as_deref(), None);
        let hash = effective_task_hash(&binding);
        let session = random_id(&*self.randomness);
        let key = JobKey { job: format!("{}/{}", task.workflow_id, task.task_id), session };
        Ok(Selected { task, binding, hash, key })
    }

    fn gate<'a>(
        &'a self,
        selected: &'a Selected,
        question: Question<'_>,
    ) -> Result<Option<SourceGate<'a>>, Failure> {
        if !question.allow_commands {
            return Ok(None);
        }
        let recorder = self.recorder.as_ref().ok_or_else(|| {
            Failure::invalid_argument("commands need a state directory, since the policy decides on each")
        })?;
        Ok(Some(SourceGate::new(recorder, &selected.key, &selected.task, &self.directory)))
    }

    async fn resolved(
        &self,
        selected: &Selected,
        question: Question<'_>,
    ) -> Result<Option<Box<dyn ResolvedIdentity>>, Failure> {
        if selected.task.identity.is_none() {
            return Ok(None);
        }
        let gate = self.gate(selected, question)?;
        let subject =
            Subject { task: &selected.task, task_hash: &selected.hash, commands: commands(gate.as_ref()) };
        match self.identities.resolve(subject).await {
            Ok(identity) => Ok(Some(identity)),
            Err(failure) => {
                let failure = explained(gate.as_ref(), failure);
                self.record_failure(selected, &failure).await;
                Err(failure)
            }
        }
    }

    async fn verified(&self, selected: &Selected, question: Question<'_>) -> Result<Json, Failure> {
        let gate = self.gate(selected, question)?;
        let subject =
            Subject { task: &selected.task, task_hash: &selected.hash, commands: commands(gate.as_ref()) };
        self.proofs.verify(subject).await.map_err(|failure| explained(gate.as_ref(), failure))
    }

    /// Records a failed resolution, unless the contract asks for no audit. The answer is a failure either way.
    async fn record_failure(&self, selected: &Selected, failure: &Failure) {
        if text(&selected.task.contract, "audit") == Some("none") || failure.code == Code::InvalidArgument {
            return;
        }
        if let Some(recorder) = &self.recorder {
            let data =
                Json::object().with("code", failure.code.word()).with("error", failure.message.as_str());
            if let Err(error) = recorder.observe(&selected.key, "identity_failed", data).await {
                log::warn!("a failed identity resolution is not on record: {error}");
            }
        }
    }
}

fn commands<'a>(gate: Option<&'a SourceGate<'a>>) -> Commands<'a> {
    gate.map_or(Commands::Forbidden, |gate| Commands::Gated(gate))
}

fn explained(gate: Option<&SourceGate<'_>>, failure: Failure) -> Failure {
    match gate {
        Some(gate) => gate.explained(failure),
        None => failure,
    }
}
