//! What runtimes are told, kept for those that come back: one ring for each team and runtime.
//!
//! A ring hears of everything also while its runtime is away. It is bounded; whoever was away for longer than it reaches back is told to
//! forget everything, and once more what was decided lately.

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

/// Events that a ring holds until they are acknowledged.
pub(super) const RING: usize = 1024;

/// Rings at a time; beyond it the one that was not used for the longest time is dropped.
const MOST: usize = 1024;

/// Decided approvals that are told again.
const TOLD_AGAIN: usize = 256;

/// Whom events are for: a team, or an agent that has none.
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

    fn concerns(&self, registry: &Registry, asked: &ApprovalInfo) -> bool {
        match self {
            Scope::Agent { principal } => *asked.principal == **principal,
            Scope::Team { org, team } => {
                registry.get(&asked.principal).is_some_and(|agent| agent.org == *org && agent.team == *team)
            }
        }
    }
}

/// All rings, by whom they are for and the runtime's own name.
#[derive(Default)]
pub(super) struct Rings {
    all: HashMap<(Scope, String), Held>,
    uses: u64,
}

struct Held {
    ring: Arc<Mutex<Ring>>,
    used: u64,
}

impl Rings {
    fn get(&mut self, scope: Scope, name: &str, notices: Receiver<Notice>) -> Arc<Mutex<Ring>> {
        self.uses += 1;
        let used = self.uses;
        let key = (scope, name.to_owned());
        if let Some(held) = self.all.get_mut(&key) {
            held.used = used;
            return Arc::clone(&held.ring);
        }
        if self.all.len() >= MOST {
            // One that somebody listens to goes only if there is no other.
            let oldest =
                self.all.iter().min_by_key(|(_, held)| (Arc::strong_count(&held.ring) > 1, held.used));
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                self.all.remove(&oldest);
            }
        }
        let ring = Arc::new(Mutex::new(Ring::new(key.0.clone(), notices)));
        self.all.insert(key, Held { ring: Arc::clone(&ring), used });
        ring
    }
}

/// Events that were not acknowledged, in order, numbered from one.
pub(super) struct Ring {
    scope: Scope,
    notices: Receiver<Notice>,
    events: VecDeque<InvalidationEvent>,
    /// The number of the last event, whether it is still here or not.
    last: u64,
    /// The number of the last event that is not here any more.
    gone: u64,
    /// Something could not be taken in.
    is_behind: bool,
}

impl Ring {
    fn new(scope: Scope, notices: Receiver<Notice>) -> Ring {
        Ring { scope, notices, events: VecDeque::new(), last: 0, gone: 0, is_behind: false }
    }

    /// Takes in what happened since.
    fn hear(&mut self, engine: &Engine) {
        if self.is_behind && engine.look_up(|_| ()).is_ok() {
            self.is_behind = false;
            self.tell_again(engine);
        }
        loop {
            match self.notices.try_recv() {
                Ok(Notice::Policy) => self.push(everything(engine)),
                Ok(Notice::Decided(id, allowed)) => {
                    let concerns = engine.approval(id).and_then(|asked| match asked {
                        Some(asked) => engine.look_up(|registry| self.scope.concerns(registry, &asked)),
                        None => Ok(false),
                    });
                    match concerns {
                        Ok(true) => self.push(resolved(id, allowed)),
                        Ok(false) => {}
                        // It cannot be known whose it is: told when it can.
                        Err(_) => self.is_behind = true,
                    }
                }
                Ok(Notice::Order { .. } | Notice::Operation { .. } | Notice::Asked(_)) => {}
                // Too much happened at once: what holds now is told.
                Err(TryRecvError::Lagged(_)) => self.tell_again(engine),
                Err(TryRecvError::Empty | TryRecvError::Closed) => return,
            }
        }
    }

    fn push(&mut self, payload: Payload) {
        self.last = self.last.saturating_add(1);
        self.events.push_back(InvalidationEvent { seq: self.last, payload: Some(payload) });
        while self.events.len() > RING {
            self.gone = self.events.pop_front().map_or(self.gone, |event| event.seq);
        }
    }

    /// Whoever does not know what happened forgets everything, and hears of what was decided lately.
    fn tell_again(&mut self, engine: &Engine) {
        self.push(everything(engine));
        let now = engine.now();
        let decided = engine.look_at_approvals(|approvals, registry| {
            let mut decided = VecDeque::new();
            for approval in approvals {
                let outcome = match approval.state {
                    ApprovalState::Granted { .. } => true,
                    ApprovalState::Waiting if now < approval.expires => continue,
                    ApprovalState::Refused { .. } | ApprovalState::Waiting => false,
                };
                if self.scope.concerns(registry, approval) {
                    decided.push_back((approval.id, outcome));
                    if decided.len() > TOLD_AGAIN {
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

    /// Somebody listens who has seen everything up to `seen`; it hears of what comes behind the number that this gives.
    pub(super) fn listen(&mut self, engine: &Engine, seen: u64) -> u64 {
        self.hear(engine);
        if seen > self.last {
            // The numbers are of another ring, before a restart perhaps: they go on, so that none of them means two things.
            self.events.clear();
            (self.last, self.gone) = (seen, seen);
            self.tell_again(engine);
            seen
        } else {
            self.reach(engine, seen)
        }
    }

    /// The same as `seen` if the ring reaches back that far.
    fn reach(&mut self, engine: &Engine, seen: u64) -> u64 {
        if seen >= self.gone {
            return seen;
        }
        let before = self.last;
        self.tell_again(engine);
        before
    }

    /// What came behind `sent`, which then is its last number.
    pub(super) fn after(&mut self, engine: &Engine, sent: &mut u64) -> Vec<InvalidationEvent> {
        self.hear(engine);
        let from = self.reach(engine, *sent);
        *sent = self.last;
        self.events.iter().filter(|event| event.seq > from).cloned().collect()
    }

    /// What was acknowledged is not needed any more.
    pub(super) fn acknowledge(&mut self, seq: u64) {
        while let Some(event) = self.events.front().filter(|event| event.seq <= seq) {
            self.gone = event.seq;
            self.events.pop_front();
        }
    }
}

impl AssemblyDoor {
    /// The ring of a runtime; a new one begins with what `notices` hears.
    pub(super) fn ring(&self, agent: &AgentInfo, name: &str, notices: Receiver<Notice>) -> Arc<Mutex<Ring>> {
        lock(&self.inner.rings).get(Scope::of(agent), name, notices)
    }
}

fn everything(engine: &Engine) -> Payload {
    // How much is on record grows with every change of the policy.
    let policy_version = engine.ledger().reader().size().unwrap_or(0);
    Payload::PolicyInvalidated(PolicyInvalidated { agent_id: String::new(), policy_version })
}

fn resolved(id: ApprovalId, allowed: bool) -> Payload {
    let decision = if allowed { Decision::Approved } else { Decision::Denied };
    Payload::ApprovalResolved(ApprovalResolved { request_id: id.to_string(), decision: decision.into() })
}

#[cfg(test)]
mod tests;
