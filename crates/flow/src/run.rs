//! Runs of tasks: one task now ([`Runner::exec`]), or the shell tasks of a workflow in order ([`Runner::run_workflow`]).
//!
//! A run is an action of the principal `job:<workflow>/<task>`, in a session of its own. Its steps:
//!
//! | Step | Refusal |
//! |---|---|
//! | validate the manifest, select the task | `validation_error`, `invalid_argument` (nothing is on record: there is no principal) |
//! | working directory within `allowed_paths` | `sandbox_path_escape`, `sandbox_path_invalid` |
//! | approval policy `auto-reject` | `approval_auto_rejected` |
//! | agent of a prompt task; sandbox | `no_runtime`; `sandbox_enforcement_unavailable`, `sandbox_unavailable` |
//! | policy, with the approval that the task requires | `authorization_denied`, `approval_required` |
//! | proof, verified again without consuming it | `authorization_proof_failed` |
//! | identity and its delegation chain | the provider's code |
//! | trust level | `trust_level_insufficient` |
//! | authorization provider; its escalation is an approval | `authorization_denied`, `authorization_escalation_required`, `authorization_error` |
//! | key of evidence that is required | `evidence_failed` |
//! | credentials for the process | `presentation_…` |
//! | process, verify command, outcome, evidence, end | a result with `ok` false |
//!
//! Policy stands before the proof, because everything from there on reads credentials, uses the network or runs `command` sources. The
//! decision covers the task's own command and the verify command; each `command` source is decided on its own, right before it runs. The
//! decision covers the effective task hash too, so that an approval is good for one run of the task as it is written. A run that is refused after the decision has an outcome that says so;
//! an approval that it rested on is used up.
//!
//! A run that failed is repeated as `reliability.max_retries` says; each attempt goes through all steps. Members of the manifest that a
//! run does not apply are warnings of its result.

mod action;
pub mod adapters;
mod agent;
mod capture;
mod condition;
mod contract;
mod describe;
mod environment;
mod evidence;
mod examine;
mod execute;
mod format;
mod parts;
mod preview;
mod process;
mod read;
mod recorder;
mod refusal;
mod result;
mod retry;
mod trust;
mod unapplied;
mod workflow;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use proctor_core::json::Json;
use proctor_core::random::Randomness;
use proctor_core::time::Clock;
use proctor_sandbox::Features;
use proctor_system::private::{self, PrivateError};
use proctor_wire::agentcli::effective::{EffectiveTask, select};
use proctor_wire::agentcli::error::Failure;
use proctor_wire::agentcli::validate::validate;
use tokio::sync::watch;

pub use condition::{ConditionError, holds};
pub use examine::{ExaminedIdentity, ExaminedProof, Examiner, Question};
pub use execute::SourceGate;
pub use parts::{
    AgentAnswer, AgentFailure, AgentRequest, AgentRuntime, Authorized, Authorizer, BoxFuture, Cleanup,
    EvidenceSigner, Identities, Presented, Proofs, ResolvedIdentity, RuntimeTimer, Subject, Timer, Verdict,
};
pub use recorder::{Approval, DOOR, JOBS, JobKey, RecordError, Recorder, RelayedJobs, RelayedRecorder};
pub use refusal::Refusal;
pub use result::Execution;
pub use workflow::{WorkflowRun, preview_workflow};

use contract::Sandboxes;
use retry::{Attempts, Next};

/// Parts of a runner.
pub struct Parts {
    /// Decisions and records.
    pub recorder: Recorder,
    /// Verifier of proofs.
    pub proofs: Arc<dyn Proofs>,
    /// Resolver of identities.
    pub identities: Arc<dyn Identities>,
    /// Authorization providers.
    pub authorizer: Arc<dyn Authorizer>,
    /// Signer of evidence.
    pub signer: Arc<dyn EvidenceSigner>,
    /// Agents for prompt tasks; `None`: there are none.
    pub agents: Option<Arc<dyn AgentRuntime>>,
    /// Time of delays.
    pub timer: Arc<dyn Timer>,
    /// Time of records and evidence.
    pub clock: Arc<dyn Clock>,
    /// Randomness of identifiers.
    pub randomness: Arc<dyn Randomness>,
    /// Environment of this process, of which tasks get the operational variables.
    pub variables: Vec<(OsString, OsString)>,
    /// Folder that relative paths of manifests start from.
    pub directory: PathBuf,
    /// State directory.
    pub state: PathBuf,
    /// Kernel features that confinement may use.
    pub features: Features,
    /// `user@host`, the principal of tasks that declare none.
    pub local_principal: String,
}

impl Parts {
    /// Account that processes run as.
    fn user(&self) -> &str {
        self.local_principal.split_once('@').map_or("", |(user, _)| user)
    }
}

/// Runner of tasks.
pub struct Runner {
    parts: Parts,
    folders: Folders,
    sandboxes: Sandboxes,
}

/// Private folders of runs, below the state directory.
#[derive(Debug, Clone)]
struct Folders {
    /// Presented credentials.
    presented: PathBuf,
    /// Output that is too long for results.
    output: PathBuf,
    /// Bundles.
    evidence: PathBuf,
}

/// Options of a run.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Whether `command` value sources may be run.
    pub allow_commands: bool,
    /// Time limit that replaces the task's own.
    pub timeout: Option<Duration>,
    /// Evidence provider that replaces the task's own.
    pub evidence_provider: Option<String>,
    /// Whether a run without evidence fails.
    pub require_evidence: bool,
    /// Whether a task without authorization is refused.
    pub require_authorization: bool,
    /// Identifier of this instance, a part of the execution binding.
    pub instance_id: Option<String>,
    /// Approval that the run must rest on.
    pub approval_id: Option<String>,
    /// Whether results have the merged identity, with digests in place of configuration.
    pub identity_debug: bool,
    /// Whether results say how credentials were presented, without values.
    pub presentation_debug: bool,
}

/// Order to stop a run: TERM to its processes, KILL after five seconds.
#[derive(Debug, Clone)]
pub struct Cancel(watch::Receiver<bool>);

impl Cancel {
    /// Order that is given when the channel says `true`.
    pub fn new(receiver: watch::Receiver<bool>) -> Cancel {
        Cancel(receiver)
    }

    /// Order that is never given.
    pub fn never() -> Cancel {
        Cancel(watch::channel(false).1)
    }

    fn is_given(&self) -> bool {
        *self.0.borrow()
    }

    async fn cancelled(&mut self) {
        if self.0.wait_for(|is_given| *is_given).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl Runner {
    /// Connects the parts, makes the private folders of runs, and removes what earlier processes left in them.
    pub fn new(parts: Parts) -> Result<Runner, PrivateError> {
        let base = parts.state.join("flow");
        let folder = |name: &str| {
            let path = base.join(name);
            private::create_folder(&path).map(|()| path)
        };
        let folders = Folders {
            presented: folder("presented")?,
            output: folder("output")?,
            evidence: folder("evidence")?,
        };
        let sandboxes = Sandboxes::new(&folder("scratch")?, parts.features);
        parts.identities.sweep(&folders.presented);
        Ok(Runner { parts, folders, sandboxes })
    }

    /// Runs one task of a manifest, again after a failure if `reliability.max_retries` says so.
    pub async fn exec(
        &self,
        manifest: &Json,
        workflow: Option<&str>,
        task: &str,
        options: &Options,
        cancel: &mut Cancel,
    ) -> Result<Execution, Refusal> {
        let task = selected(manifest, workflow, task)?;
        let timer = &*self.parts.timer;
        let mut attempts = Attempts::of(&task.task);
        loop {
            let ended = self.execute(&task, options, attempts.upcoming(), cancel).await;
            let delay = match attempts.ended(ended) {
                Next::Done(end) => return end,
                Next::Retry(delay) => delay,
            };
            tokio::select! {
                () = timer.until(timer.elapsed().saturating_add(delay)) => {}
                () = cancel.cancelled() => {
                    if let Some(execution) = attempts.give_up() {
                        return Ok(execution);
                    }
                }
            }
        }
    }

    fn state(&self) -> &Path {
        &self.parts.state
    }
}

/// Shows what running a task would do, from the manifest alone: nothing is read, resolved, asked or recorded.
pub fn preview(
    manifest: &Json,
    workflow: Option<&str>,
    task: &str,
    directory: &Path,
    options: &Options,
) -> Result<Json, Failure> {
    let task = selected(manifest, workflow, task)?;
    Ok(preview::preview(&task, directory, options))
}

fn selected(manifest: &Json, workflow: Option<&str>, task: &str) -> Result<EffectiveTask, Failure> {
    let validation = validate(manifest);
    if !validation.is_ok() {
        return Err(Failure::invalid_manifest(validation));
    }
    Ok(select(manifest, workflow, task)?)
}
