//! What time brings: agents that fall silent, and approvals that nobody decided.

use std::collections::HashSet;
use std::time::Duration;

use proctor_core::id::ApprovalId;
use proctor_core::time::Timestamp;
use proctor_policy::question::ApprovalState;
use proctor_policy::state::AgentInfo;

use super::{AssemblyDoor, DOOR, lock};
use crate::engine::{AgentEvent, Notice};

/// How often it is looked.
const INTERVAL: Duration = Duration::from_secs(1);

/// Heartbeats that may fail to come.
const MISSED: i64 = 3;

/// Approvals whose end was told.
#[derive(Debug, Default)]
pub(super) struct Swept {
    looked: Option<Timestamp>,
    waiting: HashSet<ApprovalId>,
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
        let Ok(online) = self.engine().look_up(|registry| {
            let is_online = |agent: &&AgentInfo| {
                agent.registration.is_some() && !agent.is_deregistered && !agent.is_offline
            };
            registry.list().filter(is_online).cloned().collect::<Vec<_>>()
        }) else {
            return;
        };
        let silent: Vec<AgentEvent> = {
            let mut presence = lock(&self.inner.presence);
            let known: HashSet<&str> = online.iter().map(|agent| agent.principal.as_str()).collect();
            presence.keep(|principal| known.contains(principal));
            let is_silent = |agent: &&AgentInfo| presence.is_silent(&agent.principal, now, limit);
            let silent = online.iter().filter(is_silent);
            silent
                .map(|agent| AgentEvent {
                    reason: format!("no heartbeat for {} s", MISSED * heartbeat / 1_000_000),
                    ..AgentEvent::about(agent, "offline", DOOR)
                })
                .collect()
        };
        if !silent.is_empty() {
            // If this fails, they are still silent at the next look: a record that is not there is tried again.
            if self.change(silent).await.is_err() {
                lock(&self.inner.presence).keep(|_| false);
            }
        }
    }

    /// An approval that ran out is a deny; those who wait for it are told.
    fn sweep_approvals(&self, now: Timestamp) {
        let mut swept = lock(&self.inner.swept);
        let looked = swept.looked.replace(now).unwrap_or(now);
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
            self.engine().tell_expired(Notice::Decided(id, false));
        }
    }
}
