//! Decisions of this process's engine.

use std::sync::Arc;

use proctor_core::action::Action;
use proctor_core::json::Json;
use proctor_engine::{
    Answer, Engine, Outcome, Proposal, Report, SIMULATED_APPROVAL, Spent, Wait, to_its_end,
};

use super::{Decided, OutcomeReport, RecordError};
use crate::DOOR;
use crate::calls::DecisionRecord;
use crate::run::Run;

pub(super) async fn decide(engine: &Arc<Engine>, run: &Run, action: Action) -> Decided {
    let deadline = engine.due();
    let Some(reservation) = engine.reserve(deadline).await else { return decided(&engine.overloaded()) };
    let proposal = Proposal {
        action,
        caller: run.caller.clone(),
        agent: run.agent.clone(),
        session: run.task_id.clone(),
    };
    let undelivered = engine.submit_until(reservation, proposal, deadline);
    let own = Arc::clone(engine);
    decided(&to_its_end(async move { own.deliver_waiting(undelivered, Wait::Task).await }).await)
}

pub(super) async fn outcome(engine: &Engine, run: &Run, report: OutcomeReport) -> Result<u64, RecordError> {
    let outcome = Outcome {
        decision: report.decision,
        sequence: Some(report.sequence),
        ending: report.ending,
        result: report.result,
        tokens: None,
        cost_usd: None,
        binding: report.is_approved.then_some(SIMULATED_APPROVAL),
    };
    record(engine, run, Report::Outcome(outcome)).await
}

pub(super) async fn observe(
    engine: &Engine,
    run: &Run,
    code: &str,
    data: Json,
    alarms: Vec<(&'static str, String)>,
) -> Result<u64, RecordError> {
    let observation = Report::Observation { code: code.to_owned(), data, alarms, spent: Spent::default() };
    record(engine, run, observation).await
}

pub(super) async fn record(engine: &Engine, run: &Run, report: Report) -> Result<u64, RecordError> {
    let reservation = engine.reserve(engine.due()).await.ok_or(RecordError::QueueFull)?;
    let queued = engine.enqueue_report(reservation, &run.caller, &run.agent, &run.task_id, DOOR, report)?;
    Ok(engine.report_recorded(queued, Wait::Task).await?.seq())
}

fn decided(answer: &Answer) -> Decided {
    let decision = answer.decision();
    Decided {
        record: DecisionRecord {
            record: answer.record(),
            effect: decision.effect,
            rule: decision.rule.clone(),
            reason: decision.reason.clone(),
        },
        changes: decision.changes.clone(),
        retry_after_ms: decision.retry_after_ms,
    }
}
