//! Changes of the agent registry: recorded first, then announced to subscribers.

use std::sync::Arc;

use proctor_core::digest::Digest;
use proctor_core::json::Json;
use proctor_core::record::{RecordKind, Registration, claimed};
use proctor_core::time::Timestamp;
use proctor_ledger::{NotRecorded, Receipt};
use proctor_policy::state::{AgentInfo, Registry};

use super::queued::RecordDraft;
use super::{Engine, EngineError, Inner, QueueReservation, QueuedRecords, Wait, to_its_end, waiting};

/// A change of an agent's registration or status, to be recorded. The codes are defined in `proctor_policy::state`.
#[derive(Debug, Clone, Default)]
pub struct AgentEvent {
    /// The agent concerned; empty for operations.
    pub principal: String,
    /// The agent's identifier.
    pub agent: String,
    /// The agent's team.
    pub team: String,
    /// The agent's organisation.
    pub org: String,
    /// Kind of the event.
    pub code: &'static str,
    /// The cause, or the operation concerned.
    pub name: String,
    /// Reason.
    pub reason: String,
    /// Registration data.
    pub registration: Option<Box<Registration>>,
    /// The policy that the agent is told of.
    pub policy: Option<Digest>,
    /// The door.
    pub door: &'static str,
    /// Body of the record: the operator, and further data.
    pub body: Option<Json>,
}

impl AgentEvent {
    /// An event with the identity of a registered agent.
    pub fn about(agent: &AgentInfo, code: &'static str, door: &'static str) -> AgentEvent {
        AgentEvent {
            principal: agent.principal.clone(),
            agent: agent.agent.clone(),
            team: agent.team.clone(),
            org: agent.org.clone(),
            code,
            door,
            ..AgentEvent::default()
        }
    }
}

/// A notice to subscribers, sent once its cause is on record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// An agent was suspended, resumed or killed, or has deregistered.
    Order {
        /// The agent.
        principal: String,
        /// `suspended`, `resumed`, `killed`, `deregistered` or `forgotten`.
        code: &'static str,
        /// Reason.
        reason: String,
    },
    /// An operation was paused, resumed or terminated.
    Operation {
        /// `trace:span`, `agent:ID` or `*`.
        operation: String,
        /// `op_paused`, `op_resumed` or `op_terminated`.
        code: &'static str,
    },
    /// The policy in force has changed.
    Policy,
    /// An approval waits for an approver.
    Asked(proctor_core::id::ApprovalId),
    /// An approver has decided; true if the action is allowed.
    Decided(proctor_core::id::ApprovalId, bool),
}

/// Notices queued for a slow subscriber; beyond them it has to read the state again.
pub(super) const NOTICES: usize = 4096;

impl Engine {
    /// Subscribes to notices. A receiver that lags behind gets `Lagged` and must read the registry again.
    pub fn notices(&self) -> tokio::sync::broadcast::Receiver<Notice> {
        self.notices.subscribe()
    }

    pub(super) fn publish(&self, notice: Notice) {
        // Sending fails if there is no subscriber.
        let _ = self.notices.send(notice);
    }

    /// Reads the registry under the lock.
    pub fn look_up<T>(&self, look: impl FnOnce(&Registry) -> T) -> Result<T, EngineError> {
        Ok(look(self.lock()?.state.registry()))
    }

    /// Enqueues the records that `change` returns, under the same lock.
    pub fn change_agents<T, E: From<EngineError>>(
        &self,
        reservation: QueueReservation,
        change: impl FnOnce(&Registry, Timestamp) -> Result<(Vec<AgentEvent>, T), E>,
    ) -> Result<(QueuedRecords, Vec<Notice>, T), E> {
        let mut inner = self.lock_for_append(reservation)?;
        let (events, value) = change(inner.state.registry(), self.clock.now())?;
        let notices = events.iter().filter_map(notice).collect();
        let records = events.into_iter().map(|event| self.agent_record(event)).collect();
        Ok((self.enqueue_locked(&mut inner, records), notices, value))
    }

    /// Waits, as a task, until a change of the registry is on record, and announces it; a caller that goes away does not stop that.
    pub async fn agents_changed(
        self: &Arc<Engine>,
        queued: QueuedRecords,
        notices: Vec<Notice>,
    ) -> Result<(), NotRecorded> {
        let engine = Arc::clone(self);
        let told = to_its_end(async move { engine.publish_changed(queued, notices, Wait::Task).await });
        told.await.map(|_| ())
    }

    async fn publish_changed(
        &self,
        queued: QueuedRecords,
        notices: Vec<Notice>,
        wait: Wait,
    ) -> Result<Vec<Receipt>, NotRecorded> {
        let recorded = self.all_recorded(queued, wait).await;
        // Also if the commit is not known yet: subscribers read the state.
        if matches!(recorded, Ok(_) | Err(NotRecorded::Unknown)) {
            for notice in notices {
                self.publish(notice);
            }
        }
        recorded
    }

    /// Changes the registry and blocks until the records are committed. Returns the sequence of the first record.
    pub fn change_agents_now<T, E: From<EngineError>>(
        &self,
        change: impl FnOnce(&Registry, Timestamp) -> Result<(Vec<AgentEvent>, T), E>,
    ) -> Result<(Option<u64>, T), E> {
        let reservation =
            self.reserve_blocking(self.due()).map_err(|full| EngineError::from(NotRecorded::from(full)))?;
        let (queued, notices, value) = self.change_agents(reservation, change)?;
        let recorded = waiting::block_on_ready(self.publish_changed(queued, notices, Wait::Thread));
        let receipts = recorded.map_err(EngineError::from)?;
        Ok((receipts.first().map(Receipt::seq), value))
    }

    fn agent_record(&self, event: AgentEvent) -> RecordDraft {
        let mut envelope = self.envelope(RecordKind::Agent);
        envelope.principal = self.principal_text(&event.principal);
        envelope.agent = self.agent_text(&event.agent);
        envelope.team = self.identifier(&event.team);
        envelope.org = self.identifier(&event.org);
        envelope.door = claimed(event.door);
        event.code.clone_into(&mut envelope.code);
        envelope.name = claimed(&match event.name.strip_prefix("agent:") {
            Some(_) => self.principal_text(&event.name),
            None if event.code.starts_with("op_") => self.identifier(&event.name),
            None => self.without_secrets(&event.name),
        });
        envelope.rule = claimed(&self.without_secrets(&event.reason));
        envelope.policy = event.policy;
        envelope.registration = event.registration.map(|registration| {
            let cut = |text: &str| claimed(&self.without_secrets(text));
            Box::new(Registration {
                name: cut(&registration.name),
                reason: cut(&registration.reason),
                tool: cut(&registration.tool),
                parent: self.principal_text(&registration.parent),
                risk: cut(&registration.risk),
                ..*registration
            })
        });
        let cut =
            |body: &Json| proctor_policy::prepare::redact_json(&self.policy(), body).to_string().into_bytes();
        RecordDraft::new(envelope, event.body.as_ref().map(cut))
    }

    /// A suspension that a decision causes; none if the agent is suspended for that cause already.
    pub(super) fn suspension(
        &self,
        inner: &Inner,
        decided: &proctor_core::record::Envelope,
        (cause, reason): (&'static str, String),
    ) -> Option<(RecordDraft, Notice)> {
        let known = inner.state.registry().get(&decided.principal);
        // One record is enough: the agent stays suspended until the cause is gone.
        if known.is_some_and(|agent| agent.suspended.iter().any(|(known, _)| known == cause)) {
            return None;
        }
        let agent = known.map_or_else(|| decided.agent.clone(), |agent| agent.agent.clone());
        let event = AgentEvent {
            principal: decided.principal.clone(),
            agent,
            team: decided.team.clone(),
            org: decided.org.clone(),
            code: "suspended",
            name: cause.to_owned(),
            reason: reason.clone(),
            door: "policy",
            ..AgentEvent::default()
        };
        let notice = Notice::Order { principal: decided.principal.clone(), code: "suspended", reason };
        Some((self.agent_record(event), notice))
    }
}

fn notice(event: &AgentEvent) -> Option<Notice> {
    match event.code {
        "suspended" | "resumed" | "killed" | "deregistered" | "forgotten" => Some(Notice::Order {
            principal: event.principal.clone(),
            code: event.code,
            reason: event.reason.clone(),
        }),
        "op_paused" | "op_resumed" | "op_terminated" => {
            Some(Notice::Operation { operation: event.name.clone(), code: event.code })
        }
        _ => None,
    }
}
