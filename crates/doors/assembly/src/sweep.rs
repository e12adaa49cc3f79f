//! What time brings: agents that fall silent, and approvals that nobody decided.

use std::collections::HashSet;
use std::time::Duration;

use proctor_core::id::ApprovalId;
use proctor_core::time::Timestamp;
use proctor_policy::question::ApprovalState;
use proctor_policy::state::AgentInfo;

use super::{AssemblyDoor, DOOR, lock};
use proctor_engine::{AgentEvent, EngineError};

/// How often it is looked.
const INTERVAL: Duration = Duration::from_secs(1);

/// Heartbeats that may fail to come.
const MISSED: i64 = 3;

/// How many looks there are between two at all agents: those who speak are known without.
const ROUNDS: u32 = 60;

/// What was looked at.
#[derive(Debug, Default)]
pub(super) struct Swept {
    looked: Option<Timestamp>,
    /// Approvals whose end was not told yet.
    waiting: HashSet<ApprovalId>,
    /// Looks until the next one at all agents.
    rounds_left: u32,
}

impl Swept {
    fn is_time_for_all(&mut self) -> bool {
        let is_time = self.rounds_left == 0;
        self.rounds_left = self.rounds_left.checked_sub(1).unwrap_or(ROUNDS);
        is_time
    }
}

fn is_online(agent: &AgentInfo) -> bool {
    agent.is_registered() && !agent.is_offline
}

impl AssemblyDoor {
    /// Looks again and again until the door closes. Needs the runtime.
    pub fn watch(&self) {
        let door = self.clone();
        tokio::spawn(async move {
            let mut ticks = tokio::time::interval(INTERVAL);
            ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            loop {
                tokio::select! {
                    _ = ticks.tick() => door.sweep().await,
                    () = door.inner.stop.cancelled() => return,
                }
            }
        });
    }

    /// Looks once.
    pub async fn sweep(&self) {
        let now = self.engine().now();
        self.sweep_agents(now).await;
        self.sweep_approvals(now);
    }

    async fn sweep_agents(&self, now: Timestamp) {
        let heartbeat = i64::try_from(self.settings().heartbeat.as_micros()).unwrap_or(i64::MAX / 8);
        let limit = now.plus_micros(heartbeat.saturating_mul(-MISSED));
        if lock(&self.inner.swept).is_time_for_all() && self.await_all(now).is_err() {
            return;
        }
        let silent = lock(&self.inner.presence).silent(limit);
        if silent.is_empty() {
            return;
        }
        // Only of these is the registry asked: most agents have spoken lately.
        let looked = self.engine().look_up(|registry| {
            let known = silent.iter().filter_map(|principal| registry.get(principal));
            let event = |agent: &AgentInfo| AgentEvent {
                reason: format!("no heartbeat for {} s", heartbeat.saturating_mul(MISSED) / 1_000_000),
                ..AgentEvent::about(agent, "offline", DOOR)
            };
            known.filter(|agent| is_online(agent)).map(event).collect::<Vec<_>>()
        });
        let recorded = match looked {
            Ok(events) if events.is_empty() => true,
            Ok(events) => self.change(events).await.is_ok(),
            Err(_) => false,
        };
        let mut presence = lock(&self.inner.presence);
        for principal in &silent {
            if recorded {
                // From here on the registry knows whether it is offline, also if it has spoken meanwhile.
                presence.forget(principal);
            } else {
                presence.notice_again(principal);
            }
        }
    }

    /// Begins to wait for all who should be heard of and have not been.
    fn await_all(&self, now: Timestamp) -> Result<(), EngineError> {
        self.engine().look_up(|registry| {
            let mut presence = lock(&self.inner.presence);
            for agent in registry.list().filter(|agent| is_online(agent)) {
                presence.await_word(&agent.principal, now);
            }
        })
    }

    /// An approval that ran out is a deny; those who wait for it are told.
    fn sweep_approvals(&self, now: Timestamp) {
        let mut swept = lock(&self.inner.swept);
        // What ran out while nobody looked is found the first time.
        let looked = swept.looked.replace(now).unwrap_or(Timestamp::from_micros(i64::MIN));
        let Ok((waiting, expired)) = self.engine().look_at_approvals(|approvals, _| {
            let mut waiting = HashSet::new();
            let mut expired = Vec::new();
            for approval in approvals
                .filter(|approval| approval.closed.is_none() && approval.state == ApprovalState::Waiting)
            {
                if now < approval.expires {
                    waiting.insert(approval.id);
                } else if approval.expires > looked || swept.waiting.contains(&approval.id) {
                    expired.push(approval.id);
                }
            }
            (waiting, expired)
        }) else {
            return;
        };
        swept.waiting = waiting;
        drop(swept);
        for id in expired {
            if let Err(problem) = self.engine().expire(id) {
                log::warn!("that approval {id} ran out is not on record: {problem}");
            }
        }
    }
}
