//! Who decides on calls: the engine of this process, or that of the owner of the state directory.

mod engine;
mod relay;

use std::sync::Arc;

use proctor_core::action::Action;
use proctor_core::decision::Change;
use proctor_core::id::RecordId;
use proctor_core::json::Json;
use proctor_engine::{Ending, Engine, EngineError, Report, RunReport};

use crate::calls::DecisionRecord;
use crate::run::Run;

pub use relay::RelayedDecider;

/// The engine that decides on a run's calls, and records them.
#[derive(Clone)]
pub enum Decider {
    /// The engine of this process.
    Engine(Arc<Engine>),
    /// The engine of another process.
    Relay(Arc<RelayedDecider>),
}

/// A decision, with what the door needs of it.
#[derive(Debug, Clone)]
pub(crate) struct Decided {
    pub(crate) record: DecisionRecord,
    pub(crate) changes: Vec<Change>,
    pub(crate) retry_after_ms: Option<u64>,
}

/// The outcome of a call that was let through.
#[derive(Debug)]
pub(crate) struct OutcomeReport {
    pub(crate) decision: RecordId,
    pub(crate) sequence: u64,
    pub(crate) ending: Ending,
    pub(crate) result: Json,
    /// Whether the decision was to ask, and the run's approvals answered.
    pub(crate) is_approved: bool,
}

/// A call that was refused before the policy was asked.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) code: &'static str,
    pub(crate) problem: String,
    pub(crate) about: Json,
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
    /// The owner of the state directory did not record it.
    #[error("{0}")]
    Owner(String),
    /// The owner of the state directory does not answer.
    #[error("the owner of the state directory is gone or does not answer")]
    OwnerGone,
}

/// Code of the observation of a refused call.
const REFUSED: &str = "tool_call_refused";
/// Code of the observation of an approval that a run gave itself.
const APPROVAL: &str = "simulated_approval";

impl Decider {
    /// Records a part of a run in the session of its task. Returns its sequence.
    pub async fn record(&self, run: &Run, report: RunReport) -> Result<u64, RecordError> {
        match self {
            Decider::Engine(engine) => engine::record(engine, run, Report::Run(report)).await,
            Decider::Relay(relay) => relay.record(run, report).await,
        }
    }

    /// Decides on an action. Never fails: what cannot be decided is denied.
    pub(crate) async fn decide(&self, run: &Run, action: Action) -> Decided {
        match self {
            Decider::Engine(engine) => engine::decide(engine, run, action).await,
            Decider::Relay(relay) => relay.decide(run, action).await,
        }
    }

    /// Records the outcome of a call. Returns its sequence.
    pub(crate) async fn outcome(&self, run: &Run, report: OutcomeReport) -> Result<u64, RecordError> {
        match self {
            Decider::Engine(engine) => engine::outcome(engine, run, report).await,
            Decider::Relay(relay) => relay.outcome(run, report).await,
        }
    }

    /// Records the answer of the run's approvals. Returns its sequence.
    pub(crate) async fn approval(
        &self,
        run: &Run,
        decision: &DecisionRecord,
        is_approved: bool,
        reason: &str,
    ) -> Result<u64, RecordError> {
        let mut data = Json::object()
            .with("approved", is_approved)
            .with("reason", run.text_without_secrets(reason))
            .with("rule", decision.rule.as_str());
        if let Some((id, _)) = decision.record {
            data.push("decision_id", id.to_string());
        }
        match self {
            Decider::Engine(engine) => engine::observe(engine, run, APPROVAL, data, Vec::new()).await,
            Decider::Relay(relay) => relay.observe(run, APPROVAL, data, Vec::new()).await,
        }
    }

    /// Records a refused call. Returns the sequence of its first record.
    pub(crate) async fn refusal(&self, run: &Run, refusal: Refusal) -> Result<u64, RecordError> {
        let Refusal { code, problem, about } = refusal;
        let data = Json::object().with("code", code).with("problem", problem.as_str()).with("call", about);
        match self {
            Decider::Engine(engine) => {
                engine::observe(engine, run, REFUSED, data, vec![(code, problem)]).await
            }
            Decider::Relay(relay) => relay.observe(run, REFUSED, data, vec![(code, problem)]).await,
        }
    }
}
