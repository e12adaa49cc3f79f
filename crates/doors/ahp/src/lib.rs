//! Server side of the Agent Harness Protocol: decides proposed actions and records reports.
//!
//! Every event becomes a record: a proposed action or prompt a decision, its report an outcome, everything else an observation, which
//! for questions holds the answer too. Answers are sent only after their record is committed.

mod action;
mod advice;
mod answer;
mod binding;
mod context;
mod memory;
mod query;
mod relayed;
mod reported;
mod runs;
mod settings;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use proctor_clients::ahp::server::{AhpServer, EventHandler, HandlerError, Identity, Peer, Violation};
use proctor_clients::ahp::{
    AhpEvent, ConfirmationDecision, ConfirmationEvent, ContextPerceptionDecision, ContextPerceptionEvent,
    Decision, Entry, EventType, HandshakeRequest, HarnessConfig, IdleDecision, IdleEvent,
    IntentDetectionDecision, IntentDetectionEvent, MemoryRecallDecision, MemoryRecallEvent, PlanningDecision,
    PlanningEvent, QueryRequest, QueryResponse, RateLimitDecision, RateLimitEvent, ReasoningDecision,
    ReasoningEvent,
};
use proctor_core::decision::{self, Effect};
use proctor_core::id::{RecordId, SessionId};
use proctor_core::json::Json;
use proctor_core::session::Caller;
use proctor_net::budget::{self, MemoryBudget};
use proctor_policy::advice::Advice;
use serde::Serialize;

use proctor_engine::access::{local_caller, token_principal};
use proctor_engine::{
    Answer, Engine, EngineError, Proposal, QueueReservation, Report, Spent, Wait, to_its_end,
};

use action::{CONFIRMATION, DOOR, ParsedAction, PayloadError};
use answer::ApprovalRequest;
use binding::{Open, OpenDecisions};
use runs::Runs;

pub use runs::fold_runs;
pub use settings::AhpSettings;

/// Margin between the door's deadline and the server's, so that the door itself reports what it could not record.
const GRACE: Duration = Duration::from_millis(250);

/// Concurrency limit over all streams; a message in work takes some tens of kilobytes.
const IN_WORK: usize = 256;
/// Memory of long messages in work, estimated.
const WORK_BYTES: usize = 32 * 1024 * 1024;

/// Event handler of the protocol. Cheap to clone.
#[derive(Clone)]
pub struct AhpDoor {
    shared: Arc<Shared>,
    /// Caller on standard input.
    this_user: Caller,
}

struct Shared {
    engine: Arc<Engine>,
    settings: AhpSettings,
    open: Mutex<OpenDecisions>,
    runs: Mutex<Runs>,
    /// Memory of long messages in work, on all transports and relays.
    memory: MemoryBudget,
}

impl AhpDoor {
    /// Creates a door without open decisions in memory; those of earlier sessions are loaded from the ledger on demand.
    pub fn new(engine: Arc<Engine>, settings: AhpSettings) -> AhpDoor {
        let this_user = settings.this_user.clone();
        let shared = Shared {
            engine,
            settings,
            open: Mutex::default(),
            runs: Mutex::default(),
            memory: MemoryBudget::new(WORK_BYTES),
        };
        AhpDoor { shared: Arc::new(shared), this_user }
    }

    /// Clones the door for a user who connects through another process.
    #[must_use]
    pub fn for_user(&self, caller: Caller) -> AhpDoor {
        AhpDoor { shared: Arc::clone(&self.shared), this_user: caller }
    }

    /// Builds the protocol server, for any transport.
    pub fn server(&self) -> AhpServer<AhpDoor> {
        let settings = &self.shared.settings;
        let kinds = EventType::ALL.into_iter().filter(|kind| !matches!(kind, EventType::Handshake));
        let capabilities = kinds.map(EventType::name).chain(["batch", "approvals"]);
        let answer_ms = u64::try_from(settings.answer.as_millis()).unwrap_or(u64::MAX);
        AhpServer::new(self.clone())
            .with_info("proctor", env!("CARGO_PKG_VERSION"))
            .with_capabilities(capabilities)
            .with_config(HarnessConfig {
                timeout_ms: Some(answer_ms),
                batch_size: Some(settings.batch_size),
                max_depth: Some(settings.max_depth),
            })
            .lenient(settings.lenient)
            .in_work(IN_WORK)
            .with_memory(budget::unfinished(), &self.shared.memory)
            .answer_within(settings.answer)
    }

    fn engine(&self) -> &Arc<Engine> {
        &self.shared.engine
    }

    /// Advice of the policy in force for a caller.
    fn advice(&self, caller: &Caller) -> Advice {
        self.engine().policy().advice(caller)
    }

    /// Maps the identity that the transport authenticated to a caller.
    fn caller(&self, peer: &Peer) -> Caller {
        let settings = &self.shared.settings;
        let own = &settings.this_user;
        let named = |principal: String| Caller { principal, ..Caller::default() };
        match &peer.identity {
            Identity::ThisProcess => self.this_user.clone(),
            Identity::Loopback => {
                Caller { principal: "local".to_owned(), team: own.team.clone(), org: own.org.clone() }
            }
            Identity::Uid(uid) => local_caller(*uid, &settings.agent, &own.team, &own.org),
            Identity::Certificate(subject) => named(format!("cert:{subject}")),
            Identity::Token(name) => {
                let token = settings.tokens.iter().find(|token| token.name == *name);
                Caller {
                    principal: token_principal(name),
                    team: token.map(|token| token.team.clone()).unwrap_or_default(),
                    org: token.map(|token| token.org.clone()).unwrap_or_default(),
                }
            }
        }
    }

    /// Deadline of the current message, ahead of the server's by `GRACE`.
    fn deadline(&self) -> Instant {
        let answer = self.shared.settings.answer;
        Instant::now() + answer.saturating_sub(GRACE).max(answer / 2)
    }

    /// Decides an action. The decision is taken before the first `await`, so decisions follow the order of arrival.
    async fn decide(
        &self,
        caller: Caller,
        event: &AhpEvent,
        read: Result<ParsedAction, PayloadError>,
    ) -> (Answer, ApprovalRequest, Option<ParsedAction>) {
        let engine = self.engine();
        let deadline = self.deadline();
        let Some(reservation) = self.engine().reserve(deadline).await else {
            return (engine.overloaded(), ApprovalRequest::First, None);
        };
        let read = match read {
            Ok(read) => read,
            Err(problem) => {
                let problem = problem.to_string();
                let queued = engine.enqueue_malformed(reservation, &caller, DOOR, &problem);
                return (
                    engine.malformed_refused(queued, &problem, Wait::Task).await,
                    ApprovalRequest::First,
                    None,
                );
            }
        };
        let proposal = Proposal {
            action: read.action.clone(),
            caller,
            agent: event.agent_id.clone(),
            session: event.session_id.clone(),
        };
        let hold = self.shared.settings.hold;
        if hold.is_zero() {
            let answer = self.settle(proposal, deadline, &read, reservation).await;
            let asked = self.approval_request(&answer);
            return (answer, asked, Some(read));
        }
        let mut people = engine.decisions_of_people();
        let mut answer = self.settle(proposal.clone(), deadline, &read, reservation).await;
        let mut asked = self.approval_request(&answer);
        if answer.decision().effect == Effect::Ask {
            let until = tokio::time::Instant::now() + hold;
            // An approver may decide while the agent waits for its answer.
            while let Ok(Ok(())) = tokio::time::timeout_at(until, people.changed()).await {
                if self.is_approval_pending(&answer) {
                    continue;
                }
                let Some(reservation) = self.engine().reserve(deadline).await else { break };
                answer = self.settle(proposal.clone(), deadline, &read, reservation).await;
                asked = self.approval_request(&answer);
                break;
            }
        }
        (answer, asked, Some(read))
    }

    /// Reports whether this answer is the first that requests its approval.
    fn approval_request(&self, answer: &Answer) -> ApprovalRequest {
        let Some(approval) = answer.decision().approval else { return ApprovalRequest::First };
        let first = self.engine().approval(approval.id).ok().flatten().map(|info| info.seq_of_ask);
        match answer.record() {
            Some((_, sequence)) if first != Some(sequence) => ApprovalRequest::Repeated,
            _ => ApprovalRequest::First,
        }
    }

    fn is_approval_pending(&self, answer: &Answer) -> bool {
        let Some(approval) = answer.decision().approval else { return false };
        let info = self.engine().approval(approval.id).ok().flatten();
        info.is_some_and(|info| info.is_waiting(self.engine().now()))
    }

    /// Takes a decision and waits until its record is committed. The decision is open for reports as soon as it is queued: its report may
    /// arrive before the commit, and the caller may disconnect.
    async fn settle(
        &self,
        proposal: Proposal,
        deadline: Instant,
        read: &ParsedAction,
        reservation: QueueReservation,
    ) -> Answer {
        let engine = self.engine();
        let undelivered = engine.submit_until(reservation, proposal, deadline);
        let taken = undelivered.queued().map(|(id, sequence, session, decision)| {
            self.add_open(read, id, sequence, session, decision);
            (sequence, session)
        });
        let own = Arc::clone(engine);
        let answer = to_its_end(async move { own.deliver_waiting(undelivered, Wait::Task).await }).await;
        match (answer.record(), answer.session(), taken) {
            (Some((_, sequence)), _, Some((taken, _))) if taken == sequence => {}
            (recorded, session, taken) => {
                // The decision was taken again under another sequence, or was not recorded.
                if let Some((sequence, session)) = taken {
                    self.open().close(session, sequence);
                }
                if let (Some((id, sequence)), Some(session)) = (recorded, session) {
                    self.add_open(read, id, sequence, session, answer.decision());
                }
            }
        }
        answer
    }

    /// Adds a decision to the open ones, until its outcome is reported.
    fn add_open(
        &self,
        read: &ParsedAction,
        id: RecordId,
        sequence: u64,
        session: SessionId,
        decision: &decision::Decision,
    ) {
        // Confirmations have no outcome to report.
        if read.action.name == CONFIRMATION {
            return;
        }
        let tool = binding::canonical(&read.action.name);
        let answered = read.changed_arguments(decision).map(|args| binding::call_digest(&tool, &args));
        let open = Open {
            sequence,
            id,
            asked: binding::call_digest(&tool, &read.arguments),
            answered,
            tool,
            depth: read.action.depth,
            let_through: decision.effect.lets_through(),
        };
        self.load_open(session);
        self.open().add(session, open);
    }

    /// Loads the open decisions of a session that is not in memory. The ledger is read without holding the lock.
    fn load_open(&self, session: SessionId) {
        if self.open().contains(session) {
            return;
        }
        let read = blocking(|| binding::read_open(&self.engine().ledger().reader(), session));
        self.open().insert_loaded(session, read);
    }

    fn open(&self) -> MutexGuard<'_, OpenDecisions> {
        self.shared.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records an event that is no action, with the answer to it if it has one.
    async fn observe(
        &self,
        caller: &Caller,
        event: &AhpEvent,
        answer: Option<Json>,
        alarms: Vec<(&'static str, String)>,
    ) -> Result<(), HandlerError> {
        let report = Report::Observation {
            code: event.event_type.name().to_owned(),
            data: event_json(event, answer),
            alarms,
            spent: Spent::default(),
        };
        self.record(caller, &event.agent_id, &event.session_id, report).await
    }

    /// Records a report. The record is queued before the first `await` if the queue has capacity, which keeps the order of arrival.
    async fn record(
        &self,
        caller: &Caller,
        agent: &str,
        session: &str,
        report: Report,
    ) -> Result<(), HandlerError> {
        let engine = self.engine();
        let deadline = self.deadline();
        let reservation = self.engine().reserve(deadline).await;
        let reservation = reservation.ok_or_else(queue_full)?;
        let queued =
            engine.enqueue_report(reservation, caller, agent, session, DOOR, report).map_err(not_recorded)?;
        engine.report_recorded(queued, Wait::Task).await.map(|_| ()).map_err(not_recorded)
    }

    /// Records a question together with its answer, and only then answers.
    async fn advised<D: Serialize>(
        &self,
        peer: &Peer,
        event: &AhpEvent,
        decision: D,
    ) -> Result<D, HandlerError> {
        let answer = Json::from_type(&decision).map_err(|error| HandlerError::failed(error.to_string()))?;
        self.observe(&self.caller(peer), event, Some(answer), Vec::new()).await?;
        Ok(decision)
    }
}

/// Runs blocking work without stalling the other tasks of this worker thread.
fn blocking<T>(work: impl FnOnce() -> T) -> T {
    use tokio::runtime::{Handle, RuntimeFlavor};
    match Handle::try_current().map(|handle| handle.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}

/// Handler error: the record was not committed.
fn not_recorded(problem: impl Into<EngineError>) -> HandlerError {
    HandlerError::failed(format!("not recorded: {}", problem.into().cause()))
}

/// Handler error: the engine failed to answer a query.
fn failed(problem: impl Into<EngineError>) -> HandlerError {
    HandlerError::failed(problem.into().to_string())
}

/// Handler error: the ledger's queue stayed full until the deadline.
fn queue_full() -> HandlerError {
    HandlerError::failed("not recorded: too many records wait to be written")
}

/// Serializes an event for its record.
fn event_json(event: &AhpEvent, answer: Option<Json>) -> Json {
    let mut out = Json::object()
        .with("timestamp", event.timestamp.as_str())
        .with("depth", event.depth)
        .with("payload", event.payload.clone());
    if let Some(context) = event.context.as_ref().and_then(|context| Json::from_type(context).ok()) {
        out.push("context", context);
    }
    if let Some(metadata) = &event.metadata {
        out.push("metadata", metadata.clone());
    }
    if let Some(answer) = answer {
        out.push("answer", answer);
    }
    out
}

impl EventHandler for AhpDoor {
    async fn handle_event(&self, peer: &Peer, event: AhpEvent) -> Result<Decision, HandlerError> {
        let caller = self.caller(peer);
        let read = match event.event_type {
            EventType::PreAction => action::of_action(&event),
            EventType::PrePrompt => action::of_prompt(&event),
            // A handshake or query sent as an event has no effect.
            _ => {
                let decision = Decision::allow();
                return self.advised(peer, &event, decision).await;
            }
        };
        let (answer, asked, read) = self.decide(caller, &event, read).await;
        Ok(match read {
            Some(read) => answer::generic(&answer, &read, &event.payload, asked),
            None => Decision::block(answer.decision().reason.clone()),
        })
    }

    async fn handle_confirmation(
        &self,
        peer: &Peer,
        event: AhpEvent,
        asked: ConfirmationEvent,
    ) -> Result<ConfirmationDecision, HandlerError> {
        let read = action::of_confirmation(&event, &asked);
        let (answer, _, _) = self.decide(self.caller(peer), &event, Ok(read)).await;
        Ok(answer::confirmation(&answer))
    }

    async fn handle_notification(&self, peer: &Peer, entry: Entry) -> Result<(), HandlerError> {
        let caller = self.caller(peer);
        match entry.event.event_type {
            EventType::PostAction | EventType::PostResponse => self.reported(&caller, &entry.event).await,
            EventType::SessionEnd => {
                self.close_open(&caller, &entry.event).await?;
                self.observe(&caller, &entry.event, None, Vec::new()).await
            }
            _ => {
                let alarms = match &entry.contract {
                    Some(contract) => self.reduce(&caller, &entry.event, contract).await,
                    None => Vec::new(),
                };
                self.observe(&caller, &entry.event, None, alarms).await
            }
        }
    }

    fn handle_handshake(&self, peer: &Peer, request: &HandshakeRequest) {
        let data = Json::from_type(request).unwrap_or_default();
        let report = Report::Observation {
            code: "handshake".to_owned(),
            data,
            alarms: Vec::new(),
            spent: Spent::default(),
        };
        let caller = self.caller(peer);
        let (agent, session) = (&request.agent_id, &request.session_id);
        // Nobody waits for this record, so it must not wait for queue capacity either.
        let filed = self.engine().try_reserve().and_then(|reservation| {
            self.engine().enqueue_report(reservation, &caller, agent, session, DOOR, report)
        });
        if let Err(problem) = filed {
            log::warn!("a handshake is not on record: {problem}");
        }
    }

    fn handle_violation(&self, peer: &Peer, violation: &Violation) {
        // Nobody waits for this record, so it must not wait for queue capacity either.
        match self.engine().try_reserve() {
            // On transports without replies to notifications nobody else is told.
            Ok(reservation) => {
                drop(self.engine().enqueue_malformed(
                    reservation,
                    &self.caller(peer),
                    DOOR,
                    &violation.error.message,
                ));
            }
            Err(_) => log::warn!("a malformed message is not on record: {}", violation.error.code),
        }
    }

    async fn handle_idle(
        &self,
        peer: &Peer,
        event: AhpEvent,
        _asked: IdleEvent,
    ) -> Result<IdleDecision, HandlerError> {
        let decision = advice::idle(&self.advice(&self.caller(peer)), self.engine().now());
        self.advised(peer, &event, decision).await
    }

    async fn handle_planning(
        &self,
        peer: &Peer,
        event: AhpEvent,
        asked: PlanningEvent,
    ) -> Result<PlanningDecision, HandlerError> {
        let decision = advice::planning(&self.advice(&self.caller(peer)), &asked);
        self.advised(peer, &event, decision).await
    }

    async fn handle_reasoning(
        &self,
        peer: &Peer,
        event: AhpEvent,
        asked: ReasoningEvent,
    ) -> Result<ReasoningDecision, HandlerError> {
        let decision = advice::reasoning(&self.advice(&self.caller(peer)), &asked);
        self.advised(peer, &event, decision).await
    }

    async fn handle_rate_limit(
        &self,
        peer: &Peer,
        event: AhpEvent,
        asked: RateLimitEvent,
    ) -> Result<RateLimitDecision, HandlerError> {
        let left = self.engine().budgets(&self.caller(peer)).map_err(failed)?;
        let decision = advice::rate_limit(&self.advice(&self.caller(peer)), &asked, &left);
        self.advised(peer, &event, decision).await
    }

    async fn handle_intent_detection(
        &self,
        peer: &Peer,
        event: AhpEvent,
        asked: IntentDetectionEvent,
    ) -> Result<IntentDetectionDecision, HandlerError> {
        let decision = advice::intent(&self.advice(&self.caller(peer)), &asked);
        self.advised(peer, &event, decision).await
    }

    async fn handle_context_perception(
        &self,
        peer: &Peer,
        event: AhpEvent,
        asked: ContextPerceptionEvent,
    ) -> Result<ContextPerceptionDecision, HandlerError> {
        let (door, caller) = (self.clone(), self.caller(peer));
        let (agent, session) = (event.agent_id.clone(), event.session_id.clone());
        // File reads block, so they run on the blocking pool.
        let found =
            tokio::task::spawn_blocking(move || door.perceive(&caller, &agent, &session, &asked)).await;
        let decision = found.map_err(|error| HandlerError::failed(error.to_string()))?;
        self.advised(peer, &event, decision).await
    }

    async fn handle_memory_recall(
        &self,
        peer: &Peer,
        event: AhpEvent,
        asked: MemoryRecallEvent,
    ) -> Result<MemoryRecallDecision, HandlerError> {
        let (door, caller) = (self.clone(), self.caller(peer));
        let (agent, session) = (event.agent_id.clone(), event.session_id.clone());
        let found = tokio::task::spawn_blocking(move || door.recall(&caller, &agent, &session, &asked)).await;
        let decision = found.map_err(|error| HandlerError::failed(error.to_string()))?;
        self.advised(peer, &event, decision).await
    }

    async fn handle_query(&self, peer: &Peer, query: QueryRequest) -> Result<QueryResponse, HandlerError> {
        let caller = self.caller(peer);
        let response = self.answer_query(&caller, &query)?;
        let data = Json::object()
            .with("query_type", query.query_type.as_str())
            .with("payload", query.payload.clone())
            .with(
                "answer",
                Json::from_type(&response).map_err(|error| HandlerError::failed(error.to_string()))?,
            );
        let report = Report::Observation {
            code: "query".to_owned(),
            data,
            alarms: Vec::new(),
            spent: Spent::default(),
        };
        self.record(&caller, &query.agent_id, &query.session_id, report).await?;
        Ok(response)
    }
}
