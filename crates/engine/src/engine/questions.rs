//! Queries that change nothing: hypothetical decisions, remaining budgets, approvals, sessions.

use std::time::Instant;

use proctor_core::decision::Decision;
use proctor_core::id::{ApprovalId, RecordId, SessionId};
use proctor_core::random::Randomness;
use proctor_core::session::{Caller, SessionKey};
use proctor_facts::PathResolver;
use proctor_ledger::Wake;
use proctor_policy::budgets::{Remaining, remaining};
use proctor_policy::judge::{Request, judge};
use proctor_policy::prepare::prepare;
use proctor_policy::state::{ApprovalInfo, Registry};

use super::{Engine, EngineError, Proposal, QueueReservation};

impl Engine {
    /// Dry run of the decision on an action. Nothing is recorded, charged or asked.
    pub fn consider(&self, proposal: &Proposal) -> Result<Decision, EngineError> {
        let policy = self.policy();
        let resolver = self.resolver.as_deref().map(|resolver| resolver as &dyn PathResolver);
        let prepared = prepare(&policy, &proposal.action, resolver);
        let caller = &*self.recorded_caller(&proposal.caller);
        let agent = self.agent_text(&proposal.agent);
        let digest = proposal.action.digest(&self.secret, &caller.principal, &prepared.facts.tool);
        let now = self.clock.now();
        let inner = self.lock()?;
        let session = self.session_of(caller, &proposal.agent, &proposal.session)?;
        let session = session.unwrap_or_else(|| SessionId::new(now, &*self.randomness));
        let request = Request {
            action: &proposal.action,
            prepared,
            caller,
            agent: &agent,
            session,
            digest,
            now,
            record: RecordId::new(now, &*self.randomness),
            fresh_approval: ApprovalId::new(now, &*self.randomness),
        };
        Ok(judge(&policy, request, &inner.state.view(caller, session, digest, now)).decision)
    }

    /// Remaining amounts of a caller's budgets.
    pub fn budgets(&self, caller: &Caller) -> Result<Vec<Remaining>, EngineError> {
        let caller = &*self.recorded_caller(caller);
        let policy = self.policy();
        let input = self.blank_input(caller);
        let inner = self.lock()?;
        let view = inner.state.view(caller, input.session, input.digest, input.now);
        Ok(remaining(&policy, &input, &view))
    }

    /// An approval, if it is known.
    pub fn approval(&self, id: ApprovalId) -> Result<Option<ApprovalInfo>, EngineError> {
        Ok(self.lock()?.state.approval(id).cloned())
    }

    /// Reads all approvals that are kept, and the registry, under the lock.
    pub fn look_at_approvals<T>(
        &self,
        look: impl FnOnce(&mut dyn Iterator<Item = &ApprovalInfo>, &Registry) -> T,
    ) -> Result<T, EngineError> {
        let inner = self.lock()?;
        Ok(look(&mut inner.state.approvals(), inner.state.registry()))
    }

    /// Random bytes of the engine's source.
    pub fn random_bytes<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        self.randomness.fill(&mut bytes);
        bytes
    }

    /// The randomness.
    pub fn randomness(&self) -> &dyn Randomness {
        &*self.randomness
    }

    /// The moment, by the engine's clock.
    pub fn now(&self) -> proctor_core::time::Timestamp {
        self.clock.now()
    }

    /// Our identifier of a session that has begun.
    pub fn session_of(
        &self,
        caller: &Caller,
        agent: &str,
        session: &str,
    ) -> Result<Option<SessionId>, EngineError> {
        let caller = &*self.recorded_caller(caller);
        let key = SessionKey {
            principal: caller.principal.clone(),
            agent: agent.to_owned(),
            session: session.to_owned(),
        };
        self.recorded_session(&format!("session:{}", key.digest()))
    }

    /// Our identifier of a session; it begins if it has not begun.
    pub fn begin_session(
        &self,
        reservation: QueueReservation,
        caller: &Caller,
        agent: &str,
        session: &str,
        door: &str,
    ) -> Result<SessionId, EngineError> {
        let caller = &*self.recorded_caller(caller);
        let key = SessionKey {
            principal: caller.principal.clone(),
            agent: agent.to_owned(),
            session: session.to_owned(),
        };
        let mut inner = self.lock_for_append(reservation)?;
        self.session(&mut inner, &key, caller, door, Wake::Writer)
    }

    /// Waits until a decision that is being delivered is on record, at most until the deadline.
    pub async fn until_recorded(&self, id: RecordId, expected: Option<u64>, deadline: Instant) {
        let mut delivered = self.delivered.subscribe();
        while !self.recorded_decision(id, expected).is_ok_and(|found| found.is_some()) {
            // Marked as seen before the look above, so no delivery is missed.
            match tokio::time::timeout_at(deadline.into(), delivered.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) | Err(_) => return,
            }
        }
    }

    /// Counter of approver decisions: it changes with each of them.
    pub fn decisions_of_people(&self) -> tokio::sync::watch::Receiver<u64> {
        self.decided.subscribe()
    }
}
