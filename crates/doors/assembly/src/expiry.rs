//! Background task: marks agents offline after three missed heartbeats, and expires approvals.

use std::collections::HashSet;
use std::time::Duration;

use proctor_core::id::ApprovalId;
use proctor_core::time::Timestamp;
use proctor_policy::question::ApprovalState;
use proctor_policy::state::AgentInfo;

use super::{AssemblyDoor, DOOR, lock};
use proctor_engine::{AgentEvent, EngineError};

/// Interval of the task.
const INTERVAL: Duration = Duration::from_secs(1);

/// Missed heartbeats after which an agent is offline.
const MISSED: i64 = 3;

/// Runs between two scans of the whole registry. Other runs only check the agents that are already tracked.
const RUNS_PER_SCAN: u32 = 60;

/// State of the task between two runs.
#[derive(Debug, Default)]
pub(super) struct ExpiryState {
    last_run: Option<Timestamp>,
    /// Approvals that were pending at the last run.
    pending: HashSet<ApprovalId>,
    /// Runs until the next scan of the whole registry.
    runs_left: u32,
}

impl ExpiryState {
    fn is_scan_due(&mut self) -> bool {
        let is_due = self.runs_left == 0;
        self.runs_left = self.runs_left.checked_sub(1).unwrap_or(RUNS_PER_SCAN);
        is_due
    }
}

fn is_online(agent: &AgentInfo) -> bool {
    agent.is_registered() && !agent.is_offline
}

impl AssemblyDoor {
    /// Spawns the task, which runs until the door closes. Must be called within a Tokio runtime.
    pub fn spawn_expiry(&self) {
        let door = self.clone();
        tokio::spawn(async move {
            let mut ticks = tokio::time::interval(INTERVAL);
            ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            loop {
                tokio::select! {
                    _ = ticks.tick() => door.run_expiry().await,
                    () = door.inner.stop.cancelled() => return,
                }
            }
        });
    }

    /// Runs the task once.
    pub async fn run_expiry(&self) {
        let now = self.engine().now();
        self.expire_agents(now).await;
        self.expire_approvals(now);
    }

    async fn expire_agents(&self, now: Timestamp) {
        let heartbeat = i64::try_from(self.settings().heartbeat.as_micros()).unwrap_or(i64::MAX / 8);
        let limit = now.plus_micros(heartbeat.saturating_mul(-MISSED));
        if lock(&self.inner.expiry).is_scan_due() && self.track_all(now).is_err() {
            return;
        }
        let overdue = lock(&self.inner.heartbeats).take_overdue(limit);
        if overdue.is_empty() {
            return;
        }
        // Only overdue agents are looked up in the registry; most agents are not overdue.
        let events = self.engine().look_up(|registry| {
            let known = overdue.iter().filter_map(|principal| registry.get(principal));
            let event = |agent: &AgentInfo| AgentEvent {
                reason: format!("no heartbeat for {} s", heartbeat.saturating_mul(MISSED) / 1_000_000),
                ..AgentEvent::about(agent, "offline", DOOR)
            };
            known.filter(|agent| is_online(agent)).map(event).collect::<Vec<_>>()
        });
        let recorded = match events {
            Ok(events) if events.is_empty() => true,
            Ok(events) => self.record_agents(events).await.is_ok(),
            Err(_) => false,
        };
        let mut heartbeats = lock(&self.inner.heartbeats);
        for principal in &overdue {
            if recorded {
                // From now on the registry holds the offline state, even if a heartbeat arrived meanwhile.
                heartbeats.untrack(principal);
            } else {
                heartbeats.retry(principal);
            }
        }
    }

    /// Starts tracking the heartbeats of all agents that are online in the registry.
    fn track_all(&self, now: Timestamp) -> Result<(), EngineError> {
        self.engine().look_up(|registry| {
            let mut heartbeats = lock(&self.inner.heartbeats);
            for agent in registry.list().filter(|agent| is_online(agent)) {
                heartbeats.track(&agent.principal, now);
            }
        })
    }

    /// Expires approvals past their deadline. Expiry is a denial, and subscribers are notified.
    fn expire_approvals(&self, now: Timestamp) {
        let mut state = lock(&self.inner.expiry);
        // The first run finds all approvals that expired while the process was down.
        let last_run = state.last_run.replace(now).unwrap_or(Timestamp::from_micros(i64::MIN));
        let Ok((pending, expired)) = self.engine().look_at_approvals(|approvals, _| {
            let mut pending = HashSet::new();
            let mut expired = Vec::new();
            for approval in approvals
                .filter(|approval| approval.closed.is_none() && approval.state == ApprovalState::Waiting)
            {
                if now < approval.expires {
                    pending.insert(approval.id);
                } else if approval.expires > last_run || state.pending.contains(&approval.id) {
                    expired.push(approval.id);
                }
            }
            (pending, expired)
        }) else {
            return;
        };
        state.pending = pending;
        drop(state);
        for id in expired {
            if let Err(problem) = self.engine().expire(id) {
                log::warn!("that approval {id} ran out is not on record: {problem}");
            }
        }
    }
}
