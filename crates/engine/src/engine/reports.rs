//! Reports of agents: outcomes with their actual amounts, observations, and events with identifiers of their own.

use proctor_core::decision::Effect;
use proctor_core::id::RecordId;
use proctor_core::json::Json;
use proctor_core::record::{Amount, Envelope, RecordKind, claimed};
use proctor_core::session::{Caller, SessionKey};
use proctor_ledger::{NotRecorded, Receipt, Wake};
use rust_decimal::Decimal;

use super::queued::RecordDraft;
use super::reservation::AppendGuard;
use super::{Engine, EngineError, Inner, QueueReservation, QueuedRecords, Wait, waiting};

/// A report of an agent: an outcome or an observation.
#[derive(Debug, Clone, PartialEq)]
pub enum Report {
    /// The outcome of an action.
    Outcome(Outcome),
    /// An observation: a code and data.
    Observation {
        /// Code of the event.
        code: String,
        /// Data of the event.
        data: Json,
        /// Alarms that the report causes: code and description.
        alarms: Vec<(&'static str, String)>,
        /// Cost, if no decision reserved it.
        spent: Spent,
    },
    /// A part of a test run.
    Run(RunReport),
}

/// A part of a test run: its start, events, its end, or the result of a test.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RunReport {
    /// Code of the part; [`proctor_core::record::RUN_ENDED`] ends the run.
    pub code: String,
    /// Name of the test, or of the suite.
    pub name: String,
    /// Data of the part.
    pub data: Json,
    /// Key of a part that is recorded once, unique for the principal.
    pub once: Option<String>,
}

/// An event with a client-chosen identifier, recorded once.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// The identifier; unique for the principal.
    pub id: String,
    /// Data of the event.
    pub data: Json,
    /// Record and sequence of the decision that the event is the outcome of, if it binds to one.
    pub decision: Option<(RecordId, u64)>,
    /// Ending of the decided action.
    pub ending: Ending,
    /// Cost as reported.
    pub spent: Spent,
}

/// Actual amounts of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spent {
    /// Tokens.
    pub tokens: Option<u64>,
    /// Money.
    pub cost_usd: Option<Decimal>,
}

/// The outcome of an action, bound to its decision.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The decision that it was let through by.
    pub decision: RecordId,
    /// The sequence of that decision, where the door remembers it; otherwise it is looked up.
    pub sequence: Option<u64>,
    /// Ending of the action.
    pub ending: Ending,
    /// Result of the action.
    pub result: Json,
    /// Tokens really used.
    pub tokens: Option<u64>,
    /// Money really spent.
    pub cost_usd: Option<Decimal>,
    /// Method by which the report was bound to the decision, where the agent did not name it.
    pub binding: Option<&'static str>,
}

/// Binding of an outcome whose decision was to ask, when a test run answered in place of an approver. Only doors of test runs set it, after
/// an observation of that answer; such an outcome is no violation of the decision.
pub const SIMULATED_APPROVAL: &str = "simulated_approval";

/// The members of [`Report::Observation`] and [`Report::Run`].
#[derive(Default)]
struct Observed {
    /// The key and the name of a part of a test run; none for an observation.
    run: Option<(Option<String>, String)>,
    code: String,
    data: Json,
    alarms: Vec<(&'static str, String)>,
    spent: Spent,
}

/// Ending of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Success.
    Ok,
    /// Failure.
    Failed,
    /// Not reported.
    Unknown,
}

impl Ending {
    fn word(self) -> &'static str {
        match self {
            Ending::Ok => "ok",
            Ending::Failed => "failed",
            Ending::Unknown => "unknown",
        }
    }
}

impl Engine {
    /// Records a report; secrets are cut like everywhere else. Returns the receipt of the record.
    pub fn report(
        &self,
        caller: &Caller,
        agent: &str,
        session: &str,
        door: &str,
        report: Report,
    ) -> Result<Receipt, EngineError> {
        let reservation = self.reserve_blocking(self.due()).map_err(NotRecorded::from)?;
        let queued = self.enqueue_report(reservation, caller, agent, session, door, report)?;
        waiting::block_on_ready(self.report_recorded(queued, Wait::Thread))
    }

    /// Enqueues a report.
    pub fn enqueue_report(
        &self,
        reservation: QueueReservation,
        caller: &Caller,
        agent: &str,
        session: &str,
        door: &str,
        report: Report,
    ) -> Result<QueuedRecords, EngineError> {
        let caller = &*self.recorded_caller(caller);
        let key = SessionKey {
            principal: caller.principal.clone(),
            agent: agent.to_owned(),
            session: session.to_owned(),
        };
        match report {
            Report::Observation { code, data, alarms, spent } => {
                let observed = Observed { run: None, code, data, alarms, spent };
                self.observation(reservation, caller, &key, door, &observed)
            }
            Report::Run(RunReport { code, name, data, once }) => {
                let observed = Observed { run: Some((once, name)), code, data, ..Observed::default() };
                self.observation(reservation, caller, &key, door, &observed)
            }
            Report::Outcome(outcome) => self.outcome(reservation, caller, door, &outcome),
        }
    }

    /// Waits until a report is on record. Returns the receipt of its first record.
    pub async fn report_recorded(&self, queued: QueuedRecords, wait: Wait) -> Result<Receipt, EngineError> {
        match self.all_recorded(queued, wait).await.map(|receipts| receipts.into_iter().next()) {
            Ok(Some(receipt)) => Ok(receipt),
            Ok(None) => Err(EngineError::NothingRecorded),
            Err(NotRecorded::Once { first }) => Err(EngineError::Known { first }),
            Err(problem) => Err(problem.into()),
        }
    }

    fn observation(
        &self,
        reservation: QueueReservation,
        caller: &Caller,
        key: &SessionKey,
        door: &str,
        observed: &Observed,
    ) -> Result<QueuedRecords, EngineError> {
        let Observed { run, code, data, alarms, spent } = observed;
        let mut guard = self.lock_for_append(reservation)?;
        let session = self.session(&mut guard, key, caller, door, Wake::Writer)?;
        // Cutting secrets takes longer than deciding: the lock is not held for it.
        let reservation = guard.release();
        let policy = self.policy();
        let kind = if run.is_some() { RecordKind::Run } else { RecordKind::Observation };
        let mut envelope = self.envelope_from(kind, caller, door);
        envelope.session = Some(session);
        envelope.agent = self.agent_text(&key.agent);
        envelope.code = claimed(&self.without_secrets(code));
        if let Some((once, name)) = run {
            envelope.name = claimed(&self.without_secrets(name));
            let key = |once: &String| format!("{}/{once}", caller.principal);
            let digest = once.as_ref().map(|once| proctor_core::digest::Digest::of(key(once).as_bytes()));
            envelope.once = digest.map(|digest| format!("run:{digest}"));
        }
        let data = proctor_policy::prepare::redact_json(&policy, data);
        let body = Json::object().with("data", data).to_string().into_bytes();
        let mut records = vec![RecordDraft::new(envelope.clone(), Some(body))];
        for (code, problem) in alarms {
            let alarm = self.companion(&envelope, RecordKind::Alarm, code, None, Vec::new());
            let problem = proctor_policy::prepare::redact_text(&policy, problem);
            let body = Json::object().with("problem", problem).to_string().into_bytes();
            records.push(RecordDraft::about_first(alarm, Some(body)));
        }
        let amounts = differences(&[], spent.tokens, spent.cost_usd);
        if !amounts.is_empty() {
            let settlement = self.companion(&envelope, RecordKind::Settlement, "", None, amounts.clone());
            records.push(RecordDraft::about_first(settlement, None));
        }
        Ok(self.enqueue_spent(&mut self.lock_for_append(reservation)?, caller, records, &amounts))
    }

    /// Enqueues an event; `None` if it is on record already.
    pub fn enqueue_event(
        &self,
        reservation: QueueReservation,
        caller: &Caller,
        agent: &str,
        session: &str,
        door: &str,
        event: &Event,
    ) -> Result<Option<QueuedRecords>, EngineError> {
        let caller = &*self.recorded_caller(caller);
        let mut key = caller.principal.clone();
        key.push('/');
        key.push_str(&event.id);
        let once = format!("event:{}", proctor_core::digest::Digest::of(key.as_bytes()));
        let key = SessionKey {
            principal: caller.principal.clone(),
            agent: agent.to_owned(),
            session: session.to_owned(),
        };
        let data = proctor_policy::prepare::redact_json(&self.policy(), &event.data);
        // One lock from lookup to append: two reports of the same event must not both be the first.
        let mut inner = self.lock_for_append(reservation)?;
        if self.first_with(&inner, &once)?.is_some() {
            return Ok(None);
        }
        let session = self.session(&mut inner, &key, caller, door, Wake::Writer)?;
        let mut envelope = self.envelope_from(RecordKind::Observation, caller, door);
        envelope.session = Some(session);
        envelope.agent = self.agent_text(agent);
        "event".clone_into(&mut envelope.code);
        envelope.once = Some(once);
        let body = Json::object().with("data", data).to_string().into_bytes();
        let mut records = vec![RecordDraft::new(envelope.clone(), Some(body))];
        let bound = match event.decision {
            None => None,
            Some((decision, sequence)) => {
                let outcome = Outcome {
                    sequence: Some(sequence),
                    decision,
                    ending: event.ending,
                    result: Json::Null,
                    tokens: event.spent.tokens,
                    cost_usd: event.spent.cost_usd,
                    binding: Some("trace_and_span"),
                };
                self.outcome_records(&inner, caller, door, &outcome).ok()
            }
        };
        let amounts = match bound {
            Some((outcome, amounts)) => {
                records.extend(outcome);
                amounts
            }
            // What binds to no check is billed in full.
            None => {
                let amounts = differences(&[], event.spent.tokens, event.spent.cost_usd);
                if !amounts.is_empty() {
                    let settlement =
                        self.companion(&envelope, RecordKind::Settlement, "", None, amounts.clone());
                    records.push(RecordDraft::about_first(settlement, None));
                }
                amounts
            }
        };
        Ok(Some(self.enqueue_spent(&mut inner, caller, records, &amounts)))
    }

    /// Enqueues records, with the alarms that their amounts cause.
    fn enqueue_spent(
        &self,
        inner: &mut AppendGuard<'_>,
        caller: &Caller,
        mut records: Vec<RecordDraft>,
        amounts: &[Amount],
    ) -> QueuedRecords {
        if let Some(first) = records.first().map(|record| record.envelope.clone()) {
            let crossed = self.settled_crossings(inner, caller, &first, amounts);
            records.extend(crossed.into_iter().map(|record| RecordDraft { about_first: true, ..record }));
        }
        self.enqueue_locked(inner, records)
    }

    fn outcome(
        &self,
        reservation: QueueReservation,
        caller: &Caller,
        door: &str,
        outcome: &Outcome,
    ) -> Result<QueuedRecords, EngineError> {
        let mut inner = self.lock_for_append(reservation)?;
        let (records, amounts) = self.outcome_records(&inner, caller, door, outcome)?;
        Ok(self.enqueue_spent(&mut inner, caller, records, &amounts))
    }

    /// The record of a decision, if it is in the ledger: at the sequence where it is expected, else wherever its identifier is.
    pub(super) fn recorded_decision(
        &self,
        id: RecordId,
        expected: Option<u64>,
    ) -> Result<Option<(u64, Envelope)>, EngineError> {
        let reader = self.ledger().reader();
        if let Some(sequence) = expected
            && sequence < reader.size()?
        {
            let envelope = reader.envelope(sequence)?;
            // A decision that was taken again stands elsewhere.
            if envelope.id == id {
                return Ok(Some((sequence, envelope)));
            }
        }
        let Some(sequence) = reader.by_id(&id)? else { return Ok(None) };
        Ok(Some((sequence, reader.envelope(sequence)?)))
    }

    fn outcome_records(
        &self,
        inner: &Inner,
        caller: &Caller,
        door: &str,
        outcome: &Outcome,
    ) -> Result<(Vec<RecordDraft>, Vec<Amount>), EngineError> {
        let decision = outcome.decision;
        let stranger = || EngineError::NotYours(decision);
        let (sequence, asked) = self.recorded_decision(decision, outcome.sequence)?.ok_or_else(stranger)?;
        if asked.kind != RecordKind::Decision || asked.principal != claimed(&caller.principal) {
            return Err(stranger());
        }
        let mut envelope = self.envelope_about(RecordKind::Outcome, &asked);
        envelope.door = claimed(door);
        envelope.tool.clone_from(&asked.tool);
        envelope.name.clone_from(&asked.name);
        envelope.code = outcome.ending.word().to_owned();
        envelope.links = vec![sequence];
        // One outcome for one decision.
        envelope.once = Some(format!("outcome:{decision}"));
        if let Some(first) = self.first_with(inner, envelope.once.as_deref().unwrap_or_default())? {
            return Err(EngineError::OutcomeKnown { decision, first });
        }
        let result = proctor_policy::prepare::redact_json(&self.policy(), &outcome.result);
        let mut body = Json::object().with("result", result);
        if let Some(binding) = outcome.binding {
            body.push("binding", binding);
        }
        let is_let_through = asked.decision.is_some_and(Effect::lets_through);
        let is_approved = asked.decision == Some(Effect::Ask) && outcome.binding == Some(SIMULATED_APPROVAL);
        // What was denied and done all the same is billed in full, and an alarm.
        let denied = !is_let_through && !is_approved;
        let reserved = if is_let_through { asked.amounts } else { Vec::new() };
        let amounts = differences(&reserved, outcome.tokens, outcome.cost_usd);
        let mut records = vec![RecordDraft::new(envelope.clone(), Some(body.to_string().into_bytes()))];
        if !amounts.is_empty() {
            let once = Some(format!("settlement:{decision}"));
            let settlement = self.companion(&envelope, RecordKind::Settlement, "", once, amounts.clone());
            records.push(RecordDraft::new(settlement, None));
        }
        if denied {
            let alarm = self.companion(&envelope, RecordKind::Alarm, "denied_but_done", None, Vec::new());
            records.push(RecordDraft::new(alarm, None));
        }
        // All of them are on record before the agent hears of it.
        Ok((records, amounts))
    }

    /// An envelope that copies session and principal of another.
    fn companion(
        &self,
        envelope: &Envelope,
        kind: RecordKind,
        code: &str,
        once: Option<String>,
        amounts: Vec<Amount>,
    ) -> Envelope {
        let own = self.envelope(kind);
        Envelope {
            id: own.id,
            time: own.time,
            kind,
            code: code.to_owned(),
            once,
            amounts,
            ..envelope.clone()
        }
    }
}

impl Engine {
    /// Erases the body of a record. Returns the sequence of the erasure's own record.
    pub fn erase(&self, sequence: u64, by: &str, reason: &str) -> Result<u64, EngineError> {
        let reservation = self.reserve_blocking(self.due()).map_err(NotRecorded::from)?;
        let mut inner = self.lock_for_append(reservation)?;
        let mut envelope = self.envelope(RecordKind::Erasure);
        envelope.principal = self.principal_text(by);
        envelope.links = vec![sequence];
        "erased".clone_into(&mut envelope.code);
        envelope.rule = claimed(&self.without_secrets(reason));
        let pending = self.ledger.erase_reserved(&mut inner.permit, sequence, envelope);
        if pending.refusal().is_none() {
            inner.next += 1;
        }
        drop(inner);
        Ok(pending.wait()?.seq())
    }
}

/// Actual minus reserved, for each unit that was reported.
fn differences(reserved: &[Amount], tokens: Option<u64>, cost_usd: Option<Decimal>) -> Vec<Amount> {
    let before = |unit: &str| {
        reserved.iter().find(|amount| amount.unit == unit).map_or(Decimal::ZERO, |amount| amount.value)
    };
    let reported = [("tokens", tokens.map(Decimal::from)), ("usd", cost_usd)];
    reported
        .into_iter()
        .filter_map(|(unit, actual)| {
            let value = actual?.checked_sub(before(unit))?.normalize();
            (!value.is_zero()).then(|| Amount { unit: unit.to_owned(), value, limit: None })
        })
        .collect()
}
