//! The engine of a ledger's owner: takes decisions on the state, queues their records, and builds answers from receipts.

mod agents;
mod answer;
mod approvals;
mod budgets;
mod once_keys;
mod questions;
mod queued;
mod reload;
mod reports;
mod reservation;
mod sessions;
mod waiting;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use proctor_core::action::Action;
use proctor_core::decision::{Decision, Effect};
use proctor_core::id::{ApprovalId, RecordId, SessionId};
use proctor_core::json::Json;
use proctor_core::random::Randomness;
use proctor_core::record::{Envelope, RecordKind, claimed};
use proctor_core::session::{Caller, SessionKey};
use proctor_core::time::Clock;
use proctor_facts::PathResolver;
use proctor_ledger::store::{Filter, Order};
use proctor_ledger::{Draft, Ledger, NotRecorded, Pending, StateRow, Wake};
use proctor_policy::body::policy_body;
use proctor_policy::judge::{Request, changed_args, judge};
use proctor_policy::policy::Policy;
use proctor_policy::prepare::prepare;
use proctor_policy::state::State;

pub use agents::{AgentEvent, Notice};
pub use answer::{Answer, add_details};
pub use approvals::{ApprovalRefusal, Ask, find_ask};
pub use queued::QueuedRecords;
pub use reload::Reload;
pub use reports::{Ending, Event, Outcome, Report, RunReport, SIMULATED_APPROVAL, Spent};
pub use reservation::QueueReservation;
pub use waiting::{ToItsEnd, Wait, to_its_end};

use crate::error::EngineError;
use once_keys::QueuedKeys;
use queued::RecordDraft;
use reservation::AppendGuard;
use sessions::Sessions;

/// Attempts at a decision whose state turns out to be stale.
const TRIES: usize = 3;

/// An action as a door hands it over.
#[derive(Debug, Clone)]
pub struct Proposal {
    /// The action.
    pub action: Action,
    /// The caller, as the transport has proven it.
    pub caller: Caller,
    /// The agent, as claimed.
    pub agent: String,
    /// The session, as claimed.
    pub session: String,
}

/// The parts of an engine.
pub struct Parts {
    /// The ledger, opened for writing.
    pub ledger: Ledger,
    /// The policy in force.
    pub policy: Policy,
    /// The secret that keys action digests.
    pub secret: [u8; 32],
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The randomness.
    pub randomness: Arc<dyn Randomness>,
    /// Resolver of real paths; only for agents on this host.
    pub resolver: Option<Box<dyn PathResolver + Send + Sync>>,
    /// Time limit of an answer; after it the answer is deny.
    pub answer: Duration,
}

/// The engine. Shared between threads.
pub struct Engine {
    ledger: Ledger,
    policy: ArcSwap<Policy>,
    secret: [u8; 32],
    clock: Arc<dyn Clock>,
    randomness: Arc<dyn Randomness>,
    resolver: Option<Box<dyn PathResolver + Send + Sync>>,
    answer: Duration,
    // One lock for the moment of deciding: it covers the session and every account that a decision reads, so decisions are
    // taken in order of arrival and their effects hold for the next one.
    inner: Mutex<Inner>,
    /// Decisions that are being taken or delivered.
    in_work: Arc<AtomicUsize>,
    /// Changes whenever a decision was delivered.
    delivered: tokio::sync::watch::Sender<u64>,
    /// Changes whenever an approver decides; delayed `ask` answers look again then.
    decided: tokio::sync::watch::Sender<u64>,
    /// Channel of notices on agents, operations, approvals and the policy.
    notices: tokio::sync::broadcast::Sender<Notice>,
    /// Held from reading the policy's files until what they say is in force.
    reloading: Mutex<()>,
}

struct Inner {
    state: State,
    /// The ledger's generation that the state belongs to; none if the state has to be restored.
    generation: Option<u64>,
    /// The sequence that the next record gets.
    next: u64,
    /// Rows that follow from retractions and have not been written yet.
    owed: Vec<StateRow>,
    sessions: Sessions,
    queued_keys: QueuedKeys,
}

/// A decision that is queued but not on record yet.
pub struct Undelivered {
    proposal: Proposal,
    deadline: Instant,
    taken: Taken,
    _in_work: InWork,
}

/// Counts a decision while it is taken and delivered.
struct InWork(Arc<AtomicUsize>);

impl InWork {
    /// Begins to count; whether this one is the only one.
    fn begin(count: &Arc<AtomicUsize>) -> (InWork, bool) {
        let others = count.fetch_add(1, Ordering::Relaxed);
        (InWork(Arc::clone(count)), others == 0)
    }
}

impl Drop for InWork {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Undelivered {
    /// The decision, if it is queued: it is not on record yet, and may still be taken again.
    pub fn queued(&self) -> Option<(RecordId, u64, SessionId, &Decision)> {
        match &self.taken {
            Taken::Queued(queued) => Some((queued.id, queued.sequence, queued.session, &queued.decision)),
            Taken::Answered(_) => None,
        }
    }
}

enum Taken {
    Queued(Box<Queued>),
    Answered(Box<Answer>),
}

struct Queued {
    pending: Pending,
    decision: Decision,
    session: SessionId,
    id: RecordId,
    sequence: u64,
    /// Notices to subscribers, sent once the decision is on record.
    notices: Vec<Notice>,
}

/// The fold that remembers how far retractions have been applied to the state.
const RETRACTIONS: &str = "retraction";

impl Inner {
    /// The state as the ledger's rows have it, with the retractions that came after them.
    fn restore(ledger: &Ledger) -> Result<Inner, EngineError> {
        let reader = ledger.reader();
        // Rows are read in several steps, and the writer may commit between them what was queued before a failure. Rows and records are
        // committed together, so rows that were read while the size stayed the same belong to that size.
        let mut generation = ledger.generation();
        let mut next = reader.size()?;
        let mut state = read_state(&reader)?;
        loop {
            let (now_generation, now_size) = (ledger.generation(), reader.size()?);
            if (now_generation, now_size) == (generation, next) {
                break;
            }
            (generation, next) = (now_generation, now_size);
            state = read_state(&reader)?;
        }
        let from = first_unapplied_retraction(&reader);
        let mut owed = Vec::new();
        let filter =
            Filter { kinds: vec![RecordKind::Retracted], seqs: Some(from..next), ..Filter::default() };
        for record in reader.records(filter, Order::Ascending) {
            let record = record?;
            let rows = state.apply(record.seq, &record.envelope);
            owed.extend(rows.into_iter().map(|row| StateRow {
                fold: row.fold,
                key: row.key,
                value: row.value,
            }));
            owed.push(retraction_row(record.seq));
        }
        Ok(Inner {
            state,
            generation: Some(generation),
            next,
            owed,
            sessions: Sessions::default(),
            queued_keys: QueuedKeys::default(),
        })
    }
}

impl Engine {
    /// Puts the parts together, restores the state, and records the policy if it is not the one on record.
    pub fn start(parts: Parts) -> Result<Engine, EngineError> {
        let inner = Inner::restore(&parts.ledger)?;
        let engine = Engine {
            ledger: parts.ledger,
            policy: ArcSwap::from_pointee(parts.policy),
            secret: parts.secret,
            clock: parts.clock,
            randomness: parts.randomness,
            resolver: parts.resolver,
            answer: parts.answer,
            inner: Mutex::new(inner),
            in_work: Arc::default(),
            delivered: tokio::sync::watch::Sender::new(0),
            decided: tokio::sync::watch::Sender::new(0),
            notices: tokio::sync::broadcast::Sender::new(agents::NOTICES),
            reloading: Mutex::default(),
        };
        if engine.recorded_policy()? != Some(engine.policy().digest()) {
            engine.record_policy(&engine.policy())?;
        }
        Ok(engine)
    }

    /// The policy in force.
    pub fn policy(&self) -> Arc<Policy> {
        self.policy.load_full()
    }

    /// The ledger.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// The answer to an action that could not even be decided.
    pub fn overloaded(&self) -> Answer {
        self.not_recorded("too many records wait to be written")
    }

    /// The answer to an action when the state that it would be decided on cannot be had.
    pub fn unanswered(&self, problem: &EngineError) -> Answer {
        self.not_recorded(&problem.cause())
    }

    /// Decides an action and queues its record; blocks the thread while the queue is full. Never fails: what cannot be decided is denied.
    pub fn submit(&self, proposal: Proposal) -> Undelivered {
        let deadline = self.due();
        let reservation = self.reserve_blocking(deadline).map_err(NotRecorded::from);
        self.submit_in(reservation, proposal, deadline)
    }

    /// [`Engine::submit`] for a caller that waits at most this long.
    pub fn submit_within(&self, proposal: Proposal, most: Duration) -> Undelivered {
        let deadline = Instant::now() + self.answer.min(most);
        let reservation = self.reserve_blocking(deadline).map_err(NotRecorded::from);
        self.submit_in(reservation, proposal, deadline)
    }

    /// Decides an action and queues its record, for a holder of a reservation. Never waits.
    pub fn submit_until(
        &self,
        reservation: QueueReservation,
        proposal: Proposal,
        deadline: Instant,
    ) -> Undelivered {
        self.submit_in(Ok(reservation), proposal, deadline)
    }

    fn submit_in(
        &self,
        reservation: Result<QueueReservation, NotRecorded>,
        proposal: Proposal,
        deadline: Instant,
    ) -> Undelivered {
        let (in_work, alone) = InWork::begin(&self.in_work);
        // A caller that is alone commits on its own thread: waking the writer costs more than a small commit.
        let wake = if alone { Wake::Deferred } else { Wake::Writer };
        let taken = self.take(reservation, &proposal, deadline, wake);
        if alone {
            self.ledger.commit_inline();
        }
        Undelivered { proposal, deadline, taken, _in_work: in_work }
    }

    /// Waits until the decision is on record, and returns the answer.
    pub fn deliver(&self, undelivered: Undelivered) -> Answer {
        waiting::block_on_ready(self.deliver_waiting(undelivered, Wait::Thread))
    }

    /// [`Engine::deliver`] for a task or a thread.
    pub async fn deliver_waiting(&self, undelivered: Undelivered, wait: Wait) -> Answer {
        let Undelivered { proposal, deadline, mut taken, _in_work } = undelivered;
        for tries_left in (0..TRIES).rev() {
            let Queued { pending, decision, session, notices, .. } = match taken {
                Taken::Answered(answer) => return *answer,
                Taken::Queued(queued) => *queued,
            };
            match wait.decided(pending, deadline).await {
                Ok(receipt) => {
                    self.delivered.send_modify(|count| *count = count.wrapping_add(1));
                    for notice in notices {
                        self.publish(notice);
                    }
                    let args = changed_args(&proposal.action, &decision);
                    return Answer::recorded(decision, session, args, &receipt);
                }
                // The state that it was taken on did not hold: take it again on the state that does.
                Err(NotRecorded::Stale | NotRecorded::Once { .. }) if tries_left > 0 => {
                    let reservation = self.reserve_for(wait, deadline).await;
                    taken = self.take(reservation, &proposal, deadline, Wake::Writer);
                }
                Err(problem) => {
                    // The records behind an abandoned decision may be committed: subscribers read the state.
                    if problem == NotRecorded::Deadline {
                        let orders = |notice: &Notice| matches!(notice, Notice::Order { .. });
                        notices.into_iter().filter(orders).for_each(|notice| self.publish(notice));
                    }
                    return self.not_recorded(&problem.cause());
                }
            }
        }
        self.not_recorded("the ledger's state did not settle")
    }

    fn take(
        &self,
        reservation: Result<QueueReservation, NotRecorded>,
        proposal: &Proposal,
        deadline: Instant,
        wake: Wake,
    ) -> Taken {
        // A panic while deciding is a defect; it must not become a permission or end the process.
        let attempt = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            self.try_take(reservation?, proposal, deadline, wake)
        }));
        match attempt {
            Ok(Ok(queued)) => Taken::Queued(Box::new(queued)),
            Ok(Err(problem)) => Taken::Answered(Box::new(self.not_recorded(&problem.cause()))),
            Err(_) => Taken::Answered(Box::new(self.not_recorded("the decision failed inside"))),
        }
    }

    fn try_take(
        &self,
        reservation: QueueReservation,
        proposal: &Proposal,
        deadline: Instant,
        wake: Wake,
    ) -> Result<Queued, EngineError> {
        let policy = self.policy();
        let resolver = self.resolver.as_deref().map(|resolver| resolver as &dyn PathResolver);
        let prepared = prepare(&policy, &proposal.action, resolver);
        // The digest is of the action as sent, under the tool's canonical name.
        let caller = &*self.recorded_caller(&proposal.caller);
        let digest = proposal.action.digest(&self.secret, &caller.principal, &prepared.facts.tool);
        let agent = self.agent_text(&proposal.agent);
        let mut inner = self.lock_for_append(reservation)?;
        let key = SessionKey {
            principal: caller.principal.clone(),
            agent: proposal.agent.clone(),
            session: proposal.session.clone(),
        };
        let session = self.session(&mut inner, &key, caller, &proposal.action.door, wake)?;
        let mut notices: Vec<Notice> = Vec::new();
        notices.extend(self.end_budget_suspension(&mut inner, &policy, caller));
        let now = self.clock.now();
        let fresh_approval = ApprovalId::new(now, &*self.randomness);
        let request = Request {
            action: &proposal.action,
            prepared,
            caller,
            agent: &agent,
            session,
            digest,
            now,
            record: RecordId::new(now, &*self.randomness),
            fresh_approval,
        };
        let judgement = judge(&policy, request, &inner.state.view(caller, session, digest, now));
        if Instant::now() >= deadline {
            for notice in notices {
                self.publish(notice);
            }
            return Err(EngineError::TooLate);
        }
        let sequence = inner.next;
        // What follows from a decision is committed with it: neither a caller that goes away nor a failure can leave one without the other.
        let about = &judgement.envelope;
        let mut behind: Vec<RecordDraft> = Vec::new();
        for code in judgement.alarms {
            behind.push(RecordDraft::new(self.alarm_about(about, code, sequence), None));
        }
        behind.extend(self.crossed(&inner, about, &judgement.crossings, sequence));
        if let Some(cause) = judgement.suspend
            && let Some((record, notice)) = self.suspension(&inner, about, cause)
        {
            behind.push(record);
            notices.push(notice);
        }
        let approval = judgement.decision.approval.filter(|_| judgement.decision.effect == Effect::Ask);
        if let Some(asked) = approval.filter(|asked| asked.id == fresh_approval) {
            notices.push(Notice::Asked(asked.id));
        }
        let id = about.id;
        let decided = RecordDraft::new(judgement.envelope, Some(judgement.body));
        let pending = self.append_together(&mut inner, decided, behind, Some(deadline), wake);
        Ok(Queued { pending, decision: judgement.decision, session, id, sequence, notices })
    }

    /// Applies a record to the state and enqueues it; both under the lock, so that their order is one.
    fn append(
        &self,
        inner: &mut AppendGuard<'_>,
        envelope: Envelope,
        body: Option<Vec<u8>>,
        deadline: Option<Instant>,
    ) -> Pending {
        self.append_together(inner, RecordDraft::new(envelope, body), Vec::new(), deadline, Wake::Writer)
    }

    /// Appends a record with trailing records: all of them are committed, or none.
    fn append_together(
        &self,
        guard: &mut AppendGuard<'_>,
        record: RecordDraft,
        behind: Vec<RecordDraft>,
        deadline: Option<Instant>,
        wake: Wake,
    ) -> Pending {
        let AppendGuard { inner, permit } = guard;
        let first = inner.next;
        let mut placed = Vec::new();
        let mut seq = first;
        let mut draft = |inner: &mut Inner, RecordDraft { envelope, body, .. }: RecordDraft| {
            let mut rows = std::mem::take(&mut inner.owed);
            let changed = inner.state.apply(seq, &envelope);
            rows.extend(changed.into_iter().map(|row| StateRow {
                fold: row.fold,
                key: row.key,
                value: row.value,
            }));
            placed.extend(envelope.once.clone().map(|once| (once, seq)));
            seq += 1;
            Draft { envelope, body, rows, deadline, seq: Some(first) }
        };
        let drafted = draft(inner, record);
        let behind = behind.into_iter().map(|record| draft(inner, record)).collect();
        let generation = inner.generation.unwrap_or(u64::MAX);
        let queued = self.ledger.append_reserved(permit, generation, drafted, behind, wake);
        let pending = queued.unwrap_or_else(|full| Pending::refused(full.into()));
        match pending.refusal() {
            None => {
                for (once, seq) in placed {
                    inner.queued_keys.note(once, seq);
                }
                inner.next = seq;
            }
            // It has no place in the queue, so its effects must not hold.
            Some(_) => inner.generation = None,
        }
        pending
    }

    /// The lock, with the state as the ledger has it.
    fn lock(&self) -> Result<MutexGuard<'_, Inner>, EngineError> {
        // A panic under the lock may have left the state half changed: it is restored like after a failed write.
        let mut inner = self.inner.lock().unwrap_or_else(|poisoned| {
            self.inner.clear_poison();
            let mut inner = PoisonError::into_inner(poisoned);
            inner.generation = None;
            inner
        });
        if inner.generation != Some(self.ledger.generation()) {
            *inner = Inner::restore(&self.ledger)?;
        }
        Ok(inner)
    }

    fn not_recorded(&self, problem: &str) -> Answer {
        self.ledger.note_unrecorded();
        Answer::unrecorded_deny("not-recorded", format!("not recorded: {problem}"), self.policy().digest())
    }

    /// An alarm about a decision.
    fn alarm_about(&self, decided: &Envelope, code: &str, sequence: u64) -> Envelope {
        let mut envelope = self.envelope_about(RecordKind::Alarm, decided);
        envelope.tool.clone_from(&decided.tool);
        code.clone_into(&mut envelope.code);
        envelope.links = vec![sequence];
        envelope
    }

    /// A new envelope with a fresh id and the present time.
    pub(crate) fn envelope(&self, kind: RecordKind) -> Envelope {
        let now = self.clock.now();
        Envelope::new(RecordId::new(now, &*self.randomness), now, kind)
    }

    /// A new envelope of a caller at a door.
    fn envelope_from(&self, kind: RecordKind, caller: &Caller, door: &str) -> Envelope {
        let caller = &*self.recorded_caller(caller);
        Envelope {
            principal: claimed(&caller.principal),
            team: claimed(&caller.team),
            org: claimed(&caller.org),
            door: claimed(door),
            ..self.envelope(kind)
        }
    }

    /// A new envelope with the session, the caller and the door of another.
    fn envelope_about(&self, kind: RecordKind, other: &Envelope) -> Envelope {
        Envelope {
            session: other.session,
            principal: other.principal.clone(),
            team: other.team.clone(),
            org: other.org.clone(),
            agent: other.agent.clone(),
            door: other.door.clone(),
            ..self.envelope(kind)
        }
    }

    /// Records an alarm about a malformed message, and answers deny.
    pub fn refuse_malformed(&self, caller: &Caller, door: &str, reason: &str) -> Answer {
        let queued = match self.reserve_blocking(self.due()) {
            Ok(reservation) => self.enqueue_malformed(reservation, caller, door, reason),
            Err(full) => return self.not_recorded(&NotRecorded::from(full).cause()),
        };
        waiting::block_on_ready(self.malformed_refused(queued, reason, Wait::Thread))
    }

    /// Enqueues an alarm about a malformed message.
    pub fn enqueue_malformed(
        &self,
        reservation: QueueReservation,
        caller: &Caller,
        door: &str,
        reason: &str,
    ) -> QueuedRecords {
        self.enqueue_refusal(reservation, caller, door, "malformed", reason, &Json::Null)
    }

    /// Enqueues an alarm about a refusal before the policy is asked; `about` is kept with it.
    pub fn enqueue_refusal(
        &self,
        reservation: QueueReservation,
        caller: &Caller,
        door: &str,
        code: &'static str,
        reason: &str,
        about: &Json,
    ) -> QueuedRecords {
        let mut envelope = self.envelope_from(RecordKind::Alarm, caller, door);
        code.clone_into(&mut envelope.code);
        let mut body = Json::object().with("problem", self.without_secrets(reason));
        if !about.is_null() {
            body.push("about", proctor_policy::prepare::redact_json(&self.policy(), about));
        }
        self.enqueue(reservation, vec![RecordDraft::new(envelope, Some(body.to_string().into_bytes()))])
    }

    /// Waits for that alarm, and answers deny under a rule's name.
    pub async fn refused(&self, queued: QueuedRecords, rule: &str, reason: &str, wait: Wait) -> Answer {
        match self.all_recorded(queued, wait).await.map(|receipts| receipts.into_iter().next()) {
            Ok(Some(receipt)) => Answer::refused(rule, reason, self.policy().digest(), &receipt),
            Ok(None) => self.not_recorded("nothing was recorded"),
            Err(problem) => self.not_recorded(&problem.cause()),
        }
    }

    /// Waits for the alarm about a malformed message, and answers deny.
    pub async fn malformed_refused(&self, queued: QueuedRecords, reason: &str, wait: Wait) -> Answer {
        self.refused(queued, "malformed", reason, wait).await
    }

    fn record_policy(&self, policy: &Policy) -> Result<(), EngineError> {
        let mut envelope = self.envelope(RecordKind::Policy);
        envelope.policy = Some(policy.digest());
        envelope.code = if policy.weakenings().is_empty() { "loaded" } else { "loaded_weaker" }.to_owned();
        let recorded = self.record_all(vec![RecordDraft::new(envelope, Some(policy_body(policy)))]);
        recorded.map(|_| ()).map_err(EngineError::PolicyNotRecorded)
    }

    /// The digest of the last policy on record.
    fn recorded_policy(&self) -> Result<Option<proctor_core::digest::Digest>, EngineError> {
        let filter = Filter { kinds: vec![RecordKind::Policy], ..Filter::default() };
        for record in self.ledger.reader().records(filter, Order::Descending) {
            let record = record?;
            if record.envelope.code.starts_with("loaded") {
                return Ok(record.envelope.policy);
            }
        }
        Ok(None)
    }

    /// Commits everything that is queued, signs a checkpoint, and ends the writer. Returns the number of denies that were answered
    /// without a record and that no `gap` record counts.
    pub fn finish(&self) -> u64 {
        self.ledger.finish();
        self.ledger.unrecorded()
    }
}

/// Sequence from which on retractions are not yet applied to the state rows.
pub fn first_unapplied_retraction(reader: &proctor_ledger::Reader) -> u64 {
    let row = reader.state(RETRACTIONS, "applied").ok().flatten();
    row.and_then(|(value, _)| String::from_utf8(value).ok()?.parse().ok()).unwrap_or(0)
}

/// State row that marks the retraction at this sequence as applied.
pub fn retraction_row(sequence: u64) -> StateRow {
    let value = Some((sequence + 1).to_string().into_bytes());
    StateRow { fold: RETRACTIONS, key: "applied".to_owned(), value }
}

/// The state as a reader finds it, for commands that only look.
pub fn read_state(reader: &proctor_ledger::Reader) -> Result<State, EngineError> {
    let mut rows = Vec::new();
    for fold in State::FOLDS {
        reader.state_rows(fold, |row| rows.push((fold, row.key, row.value)))?;
    }
    Ok(State::load(rows.into_iter())?)
}
