//! Apply: compiled jobs are created, updated or adopted, parents first.
//!
//! The scheduler has no transaction across jobs. Everything that can be refused is refused before the first write: the manifest,
//! circles, ambiguous names, missing capabilities, secrets on a command line, proofs. A write that fails names those before it.

use std::collections::BTreeSet;

use proctor_core::json::Json;
use proctor_policy::scan::{FindingKind, Scanner};
use proctor_wire::agentcli::compile::{self, Target};
use proctor_wire::agentcli::error::Failure;

use super::capabilities::{Capabilities, job_name};
use super::changes::{self, AdoptBy, Match};
use super::client::Client;
use super::error::{ApplyError, CallError, ConsumeError};
use super::order;

/// Options of an apply or a plan.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Options {
    /// How jobs are matched with existing ones.
    pub adopt_by: AdoptBy,
    /// Whether nothing is written.
    pub dry_run: bool,
    /// Whether the result has the member `explain`.
    pub explain: bool,
}

/// Verification of proofs. A scheduler that says that it verifies them itself changes nothing: it would be trusted for a check of who may
/// change its jobs, and it does not know which proofs were used.
pub trait Proofs: Sync {
    /// Verifies the authorization proof of a task, as it is merged with its profile.
    fn verify(
        &self,
        workflow_id: &str,
        task_id: &str,
    ) -> impl Future<Output = Result<LocalProof, Failure>> + Send;
}

/// A proof that was verified here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalProof {
    /// Summary of the verification.
    pub summary: Json,
    /// Key that may be used once, for methods that have one.
    pub replay_key: Option<String>,
}

/// Memory of used proofs.
pub trait Replay: Sync {
    /// Records that these keys are used, all or none; fails if one was used before.
    fn consume(&self, keys: &[String]) -> impl Future<Output = Result<(), ConsumeError>> + Send;
}

/// Kind of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActionKind {
    /// A new job.
    Created,
    /// A job of the same id.
    Updated,
    /// A job of the same name, replaced.
    Adopted,
}

impl ActionKind {
    /// The word of results.
    pub const fn word(self) -> &'static str {
        match self {
            ActionKind::Created => "created",
            ActionKind::Updated => "updated",
            ActionKind::Adopted => "adopted",
        }
    }
}

/// One job's part of an apply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Action {
    /// Kind.
    pub kind: ActionKind,
    /// Id of the job.
    pub job_id: String,
    /// Id of the job that was replaced.
    pub adopted_from: Option<String>,
    /// Name of the job.
    pub name: String,
    /// Whether a parent triggers the job, rather than a schedule.
    pub is_triggered: bool,
    /// Summary of the proof, where it was verified here.
    pub proof: Option<Json>,
}

impl Action {
    /// The action as results have it.
    pub fn to_json(&self) -> Json {
        let mut json = Json::object().with("action", self.kind.word()).with("job_id", self.job_id.as_str());
        if let Some(from) = &self.adopted_from {
            json.push("adopted_from_job_id", from.as_str());
        }
        json.push("name", self.name.as_str());
        json.push("invocation_mode", invocation_mode(self.is_triggered));
        if let Some(proof) = &self.proof {
            json.push("authorization_proof_verification", proof.clone());
        }
        json
    }
}

pub(super) const fn invocation_mode(is_triggered: bool) -> &'static str {
    if is_triggered { "trigger" } else { "schedule" }
}

/// Applies a manifest. The result is that of `agentcli.apply`.
pub async fn apply(
    client: &Client,
    manifest: &Json,
    options: Options,
    proofs: &impl Proofs,
    replay: &impl Replay,
) -> Result<Json, ApplyError> {
    let prepared = Prepared::of(client, manifest, options).await?;
    let jobs = prepared.jobs();
    refuse_secrets(&jobs)?;
    let rows = client.jobs().await?;
    let matches = changes::matches(&jobs, &rows, options.adopt_by)?;
    let verified = prepared.verify_proofs(&jobs, proofs).await?;

    if !options.dry_run && prepared.changes_anything(&jobs, &matches) {
        let keys: BTreeSet<String> =
            verified.iter().flatten().filter_map(|proof| proof.replay_key.clone()).collect();
        if !keys.is_empty() {
            // Before the first write: two applies at once must not both pass.
            replay.consume(&keys.into_iter().collect::<Vec<String>>()).await?;
        }
    }

    let mut actions = Vec::with_capacity(jobs.len());
    for ((job, found), proof) in jobs.iter().zip(&matches).zip(&verified) {
        let action = action(job, found, proof.as_ref());
        if !options.dry_run
            && let Err(error) = write(client, job, found, &prepared.capabilities, &action).await
        {
            return Err(error.after(job_name(job), actions));
        }
        actions.push(action);
    }
    Ok(prepared.result(client, options, &actions, &jobs, &verified))
}

/// Inputs of an apply that do not depend on the scheduler's rows.
pub(super) struct Prepared {
    compiled: Vec<Json>,
    order: Vec<usize>,
    explain: Option<Json>,
    pub(super) capabilities: Capabilities,
}

impl Prepared {
    pub(super) async fn of(
        client: &Client,
        manifest: &Json,
        options: Options,
    ) -> Result<Prepared, ApplyError> {
        let output = compile::compile(manifest, Target::OpenclawScheduler, options.explain)
            .map_err(ApplyError::Manifest)?;
        let explain = output.get("explain").cloned();
        let compiled = output.get("jobs").and_then(Json::as_array).unwrap_or_default().to_vec();
        let order = order::parents_first(&compiled)?;
        let capabilities = Capabilities::negotiate(client, &compiled).await?;
        Ok(Prepared { compiled, order, explain, capabilities })
    }

    /// The jobs, parents first.
    pub(super) fn jobs(&self) -> Vec<&Json> {
        self.order.iter().filter_map(|position| self.compiled.get(*position)).collect()
    }

    async fn verify_proofs(
        &self,
        jobs: &[&Json],
        proofs: &impl Proofs,
    ) -> Result<Vec<Option<LocalProof>>, ApplyError> {
        let mut verified = Vec::with_capacity(jobs.len());
        for job in jobs {
            let proof = &job["authorization_proof"];
            let is_wanted = !proof.is_null()
                && (proof["method"] != "none"
                    || proof.pointer("/verify/required") == Some(&Json::Bool(true)));
            verified.push(if is_wanted {
                let source = &job["source"];
                let id = |name: &str| source[name].as_str().unwrap_or_default();
                Some(proofs.verify(id("workflow_id"), id("task_id")).await.map_err(ApplyError::Proof)?)
            } else {
                None
            });
        }
        Ok(verified)
    }

    fn changes_anything(&self, jobs: &[&Json], matches: &[Match<'_>]) -> bool {
        jobs.iter().zip(matches).any(|(job, found)| match found {
            Match::SameId(row) => !changes::differences(job, row, self.capabilities.fields).is_empty(),
            Match::Missing | Match::SameName { .. } => true,
        })
    }

    fn result(
        &self,
        client: &Client,
        options: Options,
        actions: &[Action],
        jobs: &[&Json],
        verified: &[Option<LocalProof>],
    ) -> Json {
        let mut result = Json::object()
            .with("ok", true)
            .with("target", "openclaw-scheduler")
            .with("dry_run", options.dry_run)
            .with("scheduler", client.to_json())
            .with("capabilities", self.capabilities.to_json())
            .with("handoff", self.capabilities.fields.to_json())
            .with("job_count", jobs.len())
            .with("actions", actions.iter().map(Action::to_json).collect::<Vec<Json>>());
        let verifications: Vec<Json> = jobs
            .iter()
            .zip(verified)
            .filter_map(|(job, proof)| {
                Some(
                    Json::object()
                        .with("source", job["source"].clone())
                        .with("authorization_proof_ref", job["authorization_proof_ref"].clone())
                        .with("verification", proof.as_ref()?.summary.clone()),
                )
            })
            .collect();
        // The protocol has this member only for schedulers that do not verify proofs; actions have theirs always.
        if !verifications.is_empty() && !self.capabilities.verifies_proofs() {
            result.push("authorization_proof_verifications", verifications);
        }
        if options.explain {
            result.push("explain", self.explain.clone().unwrap_or_else(|| Json::Array(Vec::new())));
        }
        result
    }
}

pub(super) fn action(job: &Json, found: &Match<'_>, proof: Option<&LocalProof>) -> Action {
    let (kind, adopted_from) = match found {
        Match::Missing => (ActionKind::Created, None),
        Match::SameId(_) => (ActionKind::Updated, None),
        Match::SameName { id, .. } => (ActionKind::Adopted, Some((*id).to_owned())),
    };
    Action {
        kind,
        job_id: job["id"].as_str().unwrap_or_default().to_owned(),
        adopted_from,
        name: job["name"].as_str().unwrap_or_default().to_owned(),
        is_triggered: !job["parent_id"].is_null(),
        proof: proof.map(|proof| proof.summary.clone()),
    }
}

async fn write(
    client: &Client,
    job: &Json,
    found: &Match<'_>,
    capabilities: &Capabilities,
    action: &Action,
) -> Result<(), WriteError> {
    let fields = capabilities.fields;
    let id = action.job_id.as_str();
    match found {
        Match::Missing => client.add(id, &fields.creation(job, None)).await.map_err(WriteError::Call),
        Match::SameId(_) => client.update(id, &fields.update(job)).await.map_err(WriteError::Call),
        Match::SameName { id: old, row } => {
            let origin = row.get("origin").and_then(Json::as_str).unwrap_or("system");
            client.add(id, &fields.creation(job, Some(origin))).await.map_err(WriteError::Call)?;
            match remove(client, old).await {
                Ok(()) => Ok(()),
                Err(call) => {
                    let rollback = remove(client, id).await.err();
                    Err(WriteError::Adoption { new_id: id.to_owned(), call, rollback })
                }
            }
        }
    }
}

/// Deletes a job. An answer without `deleted: true` may mean that the job was not there or that it still is: the list decides.
async fn remove(client: &Client, id: &str) -> Result<(), CallError> {
    if client.delete(id).await? {
        return Ok(());
    }
    let is_gone = client.rows().await?.is_some_and(|rows| rows.iter().all(|row| row["id"] != id));
    if is_gone { Ok(()) } else { Err(CallError::not_deleted()) }
}

enum WriteError {
    Call(CallError),
    Adoption { new_id: String, call: CallError, rollback: Option<CallError> },
}

impl WriteError {
    fn after(self, job: String, written: Vec<Action>) -> ApplyError {
        match self {
            WriteError::Call(call) => ApplyError::Interrupted { job, call, written },
            WriteError::Adoption { new_id, call, rollback } => ApplyError::Adoption {
                job,
                new_id,
                call: Box::new(call),
                rollback: rollback.map(Box::new),
                written,
            },
        }
    }
}

/// Refuses jobs with credentials: every process of the machine can read the command line of the scheduler. Personal data and
/// random-looking words do not count, because ordinary prompts and digests have them.
fn refuse_secrets(jobs: &[&Json]) -> Result<(), ApplyError> {
    let is_harmless = |kind| {
        matches!(
            kind,
            FindingKind::EmailAddress
                | FindingKind::GenericHighEntropy
                | FindingKind::SsnPattern
                | FindingKind::Credential
                | FindingKind::CreditCardLuhn
        )
    };
    for job in jobs {
        let findings = Scanner::standard().scan_json(job, "$");
        if let Some(finding) = findings.iter().find(|finding| !is_harmless(finding.kind)) {
            return Err(ApplyError::Secret {
                job: job_name(job),
                field: finding.path.clone(),
                kind: finding.kind.name(),
            });
        }
    }
    Ok(())
}
