//! Decisions on runs and their records: by the engine of this process, or that of the owner of the state directory.

mod relay;

use std::sync::Arc;

use proctor_core::action::Action;
use proctor_core::decision::Effect;
use proctor_core::id::{ApprovalId, RecordId};
use proctor_core::json::Json;
use proctor_core::record::RUN_ENDED;
use proctor_core::session::Caller;
use proctor_core::time::Timestamp;
use proctor_engine::access::{Access, RelayError};
use proctor_engine::{
    Answer, Ending, Engine, EngineError, Outcome, Proposal, Report, RunReport, Spent, Wait, to_its_end,
};
use proctor_ledger::NotRecorded;
use rust_decimal::Decimal;

pub use relay::{JOBS, RelayedJobs, RelayedRecorder};

/// Name of the door in actions and records.
pub const DOOR: &str = "agentcli";

/// Code of the record that a proof was used.
const PROOF_USED: &str = "proof_used";

/// Recorder of runs.
#[derive(Clone)]
pub enum Recorder {
    /// The engine of this process.
    Engine(Arc<Engine>),
    /// The engine of another process.
    Relay(Arc<RelayedRecorder>),
}

impl From<Access> for Recorder {
    /// Takes over an access that was opened in the mode [`JOBS`].
    fn from(access: Access) -> Recorder {
        match access {
            Access::Owner(engine) => Recorder::Engine(engine),
            Access::Relay(relay) => Recorder::Relay(Arc::new(RelayedRecorder::new(relay))),
        }
    }
}

/// Principal, agent and session of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobKey {
    /// `<workflow>/<task>`: the principal is `job:<workflow>/<task>`, and the agent has this name.
    pub job: String,
    /// Identifier of the run, which is a session of its own.
    pub session: String,
}

impl JobKey {
    fn caller(&self) -> Caller {
        Caller { principal: format!("job:{}", self.job), team: String::new(), org: String::new() }
    }
}

/// Decision on a run.
#[derive(Debug, Clone)]
pub struct Decided {
    /// Effect.
    pub effect: Effect,
    /// Rule that decided.
    pub rule: String,
    /// Reason, for people.
    pub reason: String,
    /// Approval that the decision asks for, or rests on.
    pub approval: Option<Approval>,
    /// Delay before another attempt, for `defer`.
    pub retry_after_ms: Option<u64>,
    /// Identifier and sequence of the record; a deny may have none.
    pub record: Option<(RecordId, u64)>,
}

/// Approval of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    /// Identifier, as `proctor approve` takes it.
    pub id: ApprovalId,
    /// Expiry, where an approver is still asked.
    pub expires: Option<Timestamp>,
}

/// Outcome of a run that was let through.
#[derive(Debug)]
pub struct JobOutcome {
    /// The decision.
    pub decision: (RecordId, u64),
    /// Whether the run succeeded.
    pub is_ok: bool,
    /// Result, masked.
    pub result: Json,
    /// Tokens really used.
    pub tokens: Option<u64>,
    /// Money really spent.
    pub cost_usd: Option<Decimal>,
}

/// Error of recording anything but a decision.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The queue of the ledger is full.
    #[error("too many records wait to be written")]
    QueueFull,
    /// The engine did not record it.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The ledger did not sign a checkpoint.
    #[error(transparent)]
    Checkpoint(#[from] NotRecorded),
    /// The owner of the state directory did not record it.
    #[error(transparent)]
    Owner(#[from] RelayError),
    /// The answer of the owner is none that this version knows.
    #[error("the owner of the state directory gave an answer that cannot be read")]
    Answer,
    /// The task that waits for the owner was ended.
    #[error("waiting for the owner of the state directory was interrupted")]
    Interrupted,
}

impl Recorder {
    /// Decides on an action. Never fails: what cannot be decided is denied.
    pub async fn decide(&self, key: &JobKey, action: Action) -> Decided {
        match self {
            Recorder::Engine(engine) => decide(engine, key, action).await,
            Recorder::Relay(relay) => relay.decide(key, action).await.unwrap_or_else(|error| Decided {
                effect: Effect::Deny,
                rule: "not-recorded".to_owned(),
                reason: error.to_string(),
                approval: None,
                retry_after_ms: None,
                record: None,
            }),
        }
    }

    /// Records the outcome of a run. Returns its sequence.
    pub async fn outcome(&self, key: &JobKey, outcome: JobOutcome) -> Result<u64, RecordError> {
        match self {
            Recorder::Engine(engine) => report(engine, key, outcome_report(outcome)).await,
            Recorder::Relay(relay) => relay.outcome(key, outcome).await,
        }
    }

    /// Records an observation in the session of a run. Returns its sequence.
    pub async fn observe(&self, key: &JobKey, code: &str, data: Json) -> Result<u64, RecordError> {
        match self {
            Recorder::Engine(engine) => report(engine, key, observation(code, data)).await,
            Recorder::Relay(relay) => relay.observe(key, code, data).await,
        }
    }

    /// Records the end of a run, after which its session is closed. Returns its sequence.
    pub async fn end(&self, key: &JobKey, data: Json) -> Result<u64, RecordError> {
        match self {
            Recorder::Engine(engine) => report(engine, key, run_end(key, data)).await,
            Recorder::Relay(relay) => relay.end(key, data).await,
        }
    }

    /// Records that a key is used; `Ok(false)` if it was used before.
    pub async fn consume(&self, key: &str) -> Result<bool, RecordError> {
        match self {
            Recorder::Engine(engine) => {
                let job = consumer();
                match report(engine, &job, consumption(key)).await {
                    Ok(_) => Ok(true),
                    Err(RecordError::Engine(EngineError::Known { .. })) => Ok(false),
                    Err(error) => Err(error),
                }
            }
            Recorder::Relay(relay) => relay.consume(key).await,
        }
    }

    /// Signs the ledger as it is now. Returns the signed note.
    pub async fn checkpoint(&self) -> Result<String, RecordError> {
        match self {
            Recorder::Engine(engine) => {
                let engine = Arc::clone(engine);
                let signing = tokio::task::spawn_blocking(move || engine.ledger().checkpoint());
                Ok(signing.await.map_err(|_| RecordError::Interrupted)??)
            }
            Recorder::Relay(relay) => relay.checkpoint().await,
        }
    }
}

async fn decide(engine: &Arc<Engine>, key: &JobKey, action: Action) -> Decided {
    let deadline = engine.due();
    let Some(reservation) = engine.reserve(deadline).await else { return decided(&engine.overloaded()) };
    let undelivered = engine.submit_until(reservation, proposal(key, action), deadline);
    let own = Arc::clone(engine);
    decided(&to_its_end(async move { own.deliver_waiting(undelivered, Wait::Task).await }).await)
}

async fn report(engine: &Engine, key: &JobKey, report: Report) -> Result<u64, RecordError> {
    let reservation = engine.reserve(engine.due()).await.ok_or(RecordError::QueueFull)?;
    let queued = engine.enqueue_report(reservation, &key.caller(), &key.job, &key.session, DOOR, report)?;
    Ok(engine.report_recorded(queued, Wait::Task).await?.seq())
}

fn proposal(key: &JobKey, mut action: Action) -> Proposal {
    DOOR.clone_into(&mut action.door);
    Proposal { action, caller: key.caller(), agent: key.job.clone(), session: key.session.clone() }
}

fn outcome_report(outcome: JobOutcome) -> Report {
    let JobOutcome { decision: (decision, sequence), is_ok, result, tokens, cost_usd } = outcome;
    let ending = if is_ok { Ending::Ok } else { Ending::Failed };
    Report::Outcome(Outcome {
        decision,
        sequence: Some(sequence),
        ending,
        result,
        tokens,
        cost_usd,
        binding: None,
    })
}

fn observation(code: &str, data: Json) -> Report {
    Report::Observation { code: code.to_owned(), data, alarms: Vec::new(), spent: Spent::default() }
}

/// Principal of everything that may be used once: the same for every caller, so that nobody uses a key twice.
fn consumer() -> JobKey {
    JobKey { job: "apply".to_owned(), session: "consumed".to_owned() }
}

fn consumption(key: &str) -> Report {
    let data =
        Json::object().with("key_digest", proctor_core::digest::Digest::of(key.as_bytes()).to_string());
    let once = Some(format!("proof:{key}"));
    Report::Run(RunReport { code: PROOF_USED.to_owned(), name: "apply".to_owned(), data, once })
}

fn run_end(key: &JobKey, data: Json) -> Report {
    Report::Run(RunReport { code: RUN_ENDED.to_owned(), name: key.job.clone(), data, once: None })
}

fn decided(answer: &Answer) -> Decided {
    let decision = answer.decision();
    let is_asked = decision.effect == Effect::Ask;
    Decided {
        effect: decision.effect,
        rule: decision.rule.clone(),
        reason: decision.reason.clone(),
        approval: decision
            .approval
            .map(|approval| Approval { id: approval.id, expires: is_asked.then_some(approval.expires) }),
        retry_after_ms: decision.retry_after_ms,
        record: answer.record(),
    }
}
