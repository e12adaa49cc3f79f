//! Replay buffers of invalidation events: one ring buffer per team and runtime, replayed when a runtime reconnects.
//!
//! A buffer receives events while its runtime is disconnected. Its capacity is bounded: a runtime whose last event was evicted is sent a
//! reset, which is an invalidation of everything followed by the latest approval decisions.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use proctor_core::id::ApprovalId;
use proctor_policy::question::ApprovalState;
use proctor_policy::state::{AgentInfo, ApprovalInfo, Registry};
use proctor_wire::assembly::proto::gateway::v1::invalidation_event::Payload;
use proctor_wire::assembly::proto::gateway::v1::{
    ApprovalResolved, Decision, InvalidationEvent, PolicyInvalidated,
};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::TryRecvError;

use super::{AssemblyDoor, lock};
use proctor_engine::{Engine, Notice};

/// Capacity of a buffer in unacknowledged events.
pub(super) const CAPACITY: usize = 1024;

/// Number of buffers; beyond it the least recently used one is dropped.
const MAX_BUFFERS: usize = 1024;

/// Approval decisions that a reset repeats.
const RESET_DECISIONS: usize = 256;

/// Audience of events: a team, or a single agent without a team.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Scope {
    Team { org: String, team: String },
    Agent { principal: String },
}

impl Scope {
    pub(super) fn of(agent: &AgentInfo) -> Scope {
        if agent.team.is_empty() {
            Scope::Agent { principal: agent.principal.clone() }
        } else {
            Scope::Team { org: agent.org.clone(), team: agent.team.clone() }
        }
    }

    fn includes(&self, registry: &Registry, asked: &ApprovalInfo) -> bool {
        match self {
            Scope::Agent { principal } => *asked.principal == **principal,
            Scope::Team { org, team } => {
                registry.get(&asked.principal).is_some_and(|agent| agent.org == *org && agent.team == *team)
            }
        }
    }
}

/// All buffers, by scope and name of the runtime.
#[derive(Default)]
pub(super) struct ReplayBuffers {
    all: HashMap<(Scope, String), Held>,
    uses: u64,
}

struct Held {
    buffer: Arc<Mutex<ReplayBuffer>>,
    used: u64,
}

impl ReplayBuffers {
    fn get(&mut self, scope: Scope, name: &str, notices: Receiver<Notice>) -> Arc<Mutex<ReplayBuffer>> {
        self.uses += 1;
        let used = self.uses;
        let key = (scope, name.to_owned());
        if let Some(held) = self.all.get_mut(&key) {
            held.used = used;
            return Arc::clone(&held.buffer);
        }
        if self.all.len() >= MAX_BUFFERS {
            // A buffer with a subscriber is dropped only if all have one.
            let oldest =
                self.all.iter().min_by_key(|(_, held)| (Arc::strong_count(&held.buffer) > 1, held.used));
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                self.all.remove(&oldest);
            }
        }
        let buffer = Arc::new(Mutex::new(ReplayBuffer::new(key.0.clone(), notices)));
        self.all.insert(key, Held { buffer: Arc::clone(&buffer), used });
        buffer
    }
}

/// Ring buffer of unacknowledged events with consecutive sequence numbers from 1.
pub(super) struct ReplayBuffer {
    scope: Scope,
    notices: Receiver<Notice>,
    events: VecDeque<InvalidationEvent>,
    /// Sequence number of the latest event, buffered or not.
    last: u64,
    /// Sequence number of the latest event that was evicted or acknowledged.
    evicted: u64,
    /// Set when a notice could not be resolved because the state was unavailable; a reset follows.
    needs_reset: bool,
}

impl ReplayBuffer {
    fn new(scope: Scope, notices: Receiver<Notice>) -> ReplayBuffer {
        ReplayBuffer { scope, notices, events: VecDeque::new(), last: 0, evicted: 0, needs_reset: false }
    }

    /// Drains the engine's notices into the buffer.
    fn receive(&mut self, engine: &Engine) {
        if self.needs_reset && engine.look_up(|_| ()).is_ok() {
            self.needs_reset = false;
            self.push_reset(engine);
        }
        loop {
            match self.notices.try_recv() {
                Ok(Notice::Policy) => self.push(invalidate_all(engine)),
                Ok(Notice::Decided(id, allowed)) => {
                    let is_included = engine.approval(id).and_then(|asked| match asked {
                        Some(asked) => engine.look_up(|registry| self.scope.includes(registry, &asked)),
                        None => Ok(false),
                    });
                    match is_included {
                        Ok(true) => self.push(resolved(id, allowed)),
                        Ok(false) => {}
                        // The scope cannot be resolved now: reset once it can.
                        Err(_) => self.needs_reset = true,
                    }
                }
                Ok(Notice::Order { .. } | Notice::Operation { .. } | Notice::Asked(_)) => {}
                // Notices were dropped by the broadcast channel.
                Err(TryRecvError::Lagged(_)) => self.push_reset(engine),
                Err(TryRecvError::Empty | TryRecvError::Closed) => return,
            }
        }
    }

    fn push(&mut self, payload: Payload) {
        self.last = self.last.saturating_add(1);
        self.events.push_back(InvalidationEvent { seq: self.last, payload: Some(payload) });
        while self.events.len() > CAPACITY {
            self.evicted = self.events.pop_front().map_or(self.evicted, |event| event.seq);
        }
    }

    /// Pushes a reset: an invalidation of everything, then the latest approval decisions.
    fn push_reset(&mut self, engine: &Engine) {
        self.push(invalidate_all(engine));
        let now = engine.now();
        let decided = engine.look_at_approvals(|approvals, registry| {
            let mut decided = VecDeque::new();
            for approval in approvals {
                let outcome = match approval.state {
                    ApprovalState::Granted { .. } => true,
                    ApprovalState::Waiting if now < approval.expires => continue,
                    ApprovalState::Refused { .. } | ApprovalState::Waiting => false,
                };
                if self.scope.includes(registry, approval) {
                    decided.push_back((approval.id, outcome));
                    if decided.len() > RESET_DECISIONS {
                        decided.pop_front();
                    }
                }
            }
            decided
        });
        for (id, allowed) in decided.unwrap_or_default() {
            self.push(resolved(id, allowed));
        }
    }

    /// Resumes a subscription after `seen`. Returns the sequence number after which events are sent.
    pub(super) fn resume(&mut self, engine: &Engine, seen: u64) -> u64 {
        self.receive(engine);
        if seen > self.last {
            // The runtime saw numbers of an earlier buffer, perhaps before a restart: numbering continues after
            // them, so that no number is used twice.
            self.events.clear();
            (self.last, self.evicted) = (seen, seen);
            self.push_reset(engine);
            seen
        } else {
            self.resume_or_reset(engine, seen)
        }
    }

    /// Returns `seen` if all later events are buffered; else pushes a reset and returns the number before it.
    fn resume_or_reset(&mut self, engine: &Engine, seen: u64) -> u64 {
        if seen >= self.evicted {
            return seen;
        }
        let before = self.last;
        self.push_reset(engine);
        before
    }

    /// Returns the events after `sent`, and advances `sent` to the latest one.
    pub(super) fn after(&mut self, engine: &Engine, sent: &mut u64) -> Vec<InvalidationEvent> {
        self.receive(engine);
        let from = self.resume_or_reset(engine, *sent);
        *sent = self.last;
        self.events.iter().filter(|event| event.seq > from).cloned().collect()
    }

    /// Drops acknowledged events.
    pub(super) fn acknowledge(&mut self, seq: u64) {
        while let Some(event) = self.events.front().filter(|event| event.seq <= seq) {
            self.evicted = event.seq;
            self.events.pop_front();
        }
    }
}

impl AssemblyDoor {
    /// Returns the buffer of a runtime; a new one is fed from `notices`.
    pub(super) fn replay_buffer(
        &self,
        agent: &AgentInfo,
        name: &str,
        notices: Receiver<Notice>,
    ) -> Arc<Mutex<ReplayBuffer>> {
        lock(&self.inner.replay_buffers).get(Scope::of(agent), name, notices)
    }
}

fn invalidate_all(engine: &Engine) -> Payload {
    // The size of the ledger grows with every change of policy, so it serves as a version.
    let policy_version = engine.ledger().reader().size().unwrap_or(0);
    Payload::PolicyInvalidated(PolicyInvalidated { agent_id: String::new(), policy_version })
}

fn resolved(id: ApprovalId, allowed: bool) -> Payload {
    let decision = if allowed { Decision::Approved } else { Decision::Denied };
    Payload::ApprovalResolved(ApprovalResolved { request_id: id.to_string(), decision: decision.into() })
}

#[cfg(test)]
mod tests;
