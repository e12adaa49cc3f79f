//! Interfaces of a run to identity, proof, authorization, signatures and agents.
//!
//! The sequence of a run is tested without networks and keys behind these; [`super::adapters`] connects the crates that do the work.

use std::path::{Path, PathBuf};
use std::time::Duration;

use proctor_core::json::Json;
use proctor_identity::session::Trust;
use proctor_identity::sources::Commands;
use proctor_proof::secret::Secret;
use proctor_wire::agentcli::effective::EffectiveTask;
use proctor_wire::agentcli::error::Failure;

pub use proctor_proof::sources::BoxFuture;

/// Facts about a run that every check may need.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    /// The task with everything that it inherits.
    pub task: &'a EffectiveTask,
    /// Digest of the task's execution binding.
    pub task_hash: &'a str,
    /// Whether `command` value sources may be run, and the policy that decides on each.
    pub commands: Commands<'a>,
}

/// Verifier of authorization proofs.
pub trait Proofs: Send + Sync {
    /// Verifies the proof of a task again, without consuming it. Returns its summary.
    fn verify<'a>(&'a self, subject: Subject<'a>) -> BoxFuture<'a, Result<Json, Failure>>;
}

/// Resolver of identities.
pub trait Identities: Send + Sync {
    /// Resolves the identity of a task, and validates its delegation chain.
    fn resolve<'a>(
        &'a self,
        subject: Subject<'a>,
    ) -> BoxFuture<'a, Result<Box<dyn ResolvedIdentity>, Failure>>;

    /// Removes files of presentations that no living process owns. Called once before the first run of a process.
    fn sweep(&self, folder: &Path);
}

/// Identity with its credentials.
pub trait ResolvedIdentity: Send + Sync {
    /// Redacted description.
    fn describe(&self) -> Json;

    /// Principal that the credentials belong to.
    fn principal(&self) -> Option<String>;

    /// Declared and effective trust level.
    fn trust(&self) -> Trust;

    /// Token of the session, for policy engines that read it themselves.
    fn token(&self) -> Option<Secret>;

    /// Values that must not appear in any output.
    fn secrets(&self) -> Vec<Secret>;

    /// Materialises the credentials for the process of a task. Files go to `folder`, which is private.
    fn present<'a>(
        &'a self,
        task: &'a EffectiveTask,
        folder: &'a Path,
    ) -> BoxFuture<'a, Result<Presented, Failure>>;
}

/// Credentials as a process gets them.
#[derive(Debug, Default)]
pub struct Presented {
    /// Variables of the process.
    pub variables: Vec<(String, Secret)>,
    /// Standard input of the process.
    pub stdin: Option<Secret>,
    /// Values as they are presented, in whatever format and place: none of them may appear in output.
    pub values: Vec<Secret>,
    /// Targets without values, for people.
    pub description: Json,
    /// Folder of the files, readable by the process.
    pub folder: Option<PathBuf>,
    /// Owner of the files: told how the run ended, removes them as the manifest says.
    pub cleanup: Option<Box<dyn Cleanup>>,
}

/// Removal of presented files.
pub trait Cleanup: Send + std::fmt::Debug {
    /// Removes the files, depending on how the run ended.
    fn clean(self: Box<Self>, succeeded: bool);
}

/// Authorization provider.
pub trait Authorizer: Send + Sync {
    /// Asks the provider of a task. `proof` is the summary of its verified proof, or null.
    fn evaluate<'a>(
        &'a self,
        subject: Subject<'a>,
        identity: Option<&'a dyn ResolvedIdentity>,
        proof: &'a Json,
    ) -> BoxFuture<'a, Result<Authorized, Failure>>;
}

/// Answer of an authorization provider.
#[derive(Debug, Clone, PartialEq)]
pub struct Authorized {
    /// Permission, refusal, or escalation.
    pub verdict: Verdict,
    /// Reason of the provider.
    pub reason: String,
    /// The answer as results carry it.
    pub summary: Json,
    /// Whether an error was taken for a permission, as `on_error: warn` says.
    pub is_weakened: bool,
}

/// Verdict of an authorization provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The run may go on.
    Permit,
    /// The run is refused.
    Deny,
    /// An approver decides.
    Escalate,
}

/// Signer of evidence envelopes.
pub trait EvidenceSigner: Send + Sync {
    /// Whether a payload could be signed: a run that must have evidence does not start without its key.
    fn check<'a>(&'a self, evidence: &'a Json) -> BoxFuture<'a, Result<(), Failure>>;

    /// Signs a payload as the task's evidence profile says. Returns the envelope.
    fn sign<'a>(&'a self, payload: &'a Json, evidence: &'a Json) -> BoxFuture<'a, Result<Json, Failure>>;
}

/// Runtime of prompt tasks: hands prompts to agents.
pub trait AgentRuntime: Send + Sync {
    /// Whether an agent is configured under this identifier.
    fn has(&self, agent_id: &str) -> bool;

    /// Hands over a prompt, and waits for the answer. Dropping the future cancels the agent's run.
    fn run<'a>(&'a self, request: AgentRequest<'a>) -> BoxFuture<'a, Result<AgentAnswer, AgentFailure>>;
}

/// Prompt for an agent.
#[derive(Debug, Clone, Copy)]
pub struct AgentRequest<'a> {
    /// Identifier of the agent.
    pub agent_id: &'a str,
    /// Identifier of the run, a UUID without dashes.
    pub execution_id: &'a str,
    /// Prompt of the task.
    pub prompt: &'a str,
    /// The task as it is written, for hints such as `model_policy` and `intent`.
    pub task: &'a Json,
    /// Time limit.
    pub timeout: Duration,
}

/// Answer of an agent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AgentAnswer {
    /// Whether the agent says that it completed the task.
    pub is_ok: bool,
    /// Output of the agent, as text.
    pub output: String,
    /// Problem that the agent reports.
    pub error: String,
    /// Tokens that the agent reports.
    pub tokens: Option<u64>,
    /// Cost in USD that the agent reports.
    pub cost_usd: Option<rust_decimal::Decimal>,
}

/// Failure to reach an agent, or to understand it.
#[derive(Debug, thiserror::Error)]
#[error("the agent `{agent}` could not be run: {source}")]
pub struct AgentFailure {
    /// Identifier of the agent.
    pub agent: String,
    /// Cause.
    pub source: Box<dyn std::error::Error + Send + Sync>,
}

/// Time of a workflow run: delays really wait.
pub trait Timer: Send + Sync {
    /// Monotonic time since some fixed moment.
    fn elapsed(&self) -> Duration;

    /// Waits until that time.
    fn until(&self, time: Duration) -> BoxFuture<'_, ()>;
}

/// Timer of the runtime.
#[derive(Debug)]
pub struct RuntimeTimer(tokio::time::Instant);

impl RuntimeTimer {
    /// Timer that begins now.
    #[must_use]
    pub fn start() -> RuntimeTimer {
        RuntimeTimer(tokio::time::Instant::now())
    }
}

impl Timer for RuntimeTimer {
    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }

    fn until(&self, time: Duration) -> BoxFuture<'_, ()> {
        let left = time.saturating_sub(self.0.elapsed());
        Box::pin(tokio::time::sleep(left))
    }
}
