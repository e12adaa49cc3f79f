//! Heartbeat tracking in memory. After a restart every agent gets the full timeout again.

use std::collections::HashMap;

use proctor_core::time::Timestamp;

/// Latest heartbeat of one agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Heartbeat {
    at: Timestamp,
    /// Whether the agent's offline state is recorded, or about to be.
    is_offline: bool,
}

#[derive(Debug, Default)]
pub(super) struct Heartbeats {
    latest: HashMap<String, Heartbeat>,
}

impl Heartbeats {
    /// Records a heartbeat. Returns whether the agent was recorded as offline before.
    pub(super) fn beat(&mut self, principal: &str, at: Timestamp, known_offline: bool) -> bool {
        match self.latest.get_mut(principal) {
            Some(heartbeat) => {
                heartbeat.at = heartbeat.at.max(at);
                std::mem::take(&mut heartbeat.is_offline)
            }
            None => {
                self.latest.insert(principal.to_owned(), Heartbeat { at, is_offline: false });
                known_offline
            }
        }
    }

    /// Starts the timeout of an agent that is not tracked yet.
    pub(super) fn track(&mut self, principal: &str, now: Timestamp) {
        if !self.latest.contains_key(principal) {
            self.latest.insert(principal.to_owned(), Heartbeat { at: now, is_offline: false });
        }
    }

    /// Returns the agents without a heartbeat since `limit`, each of them once.
    pub(super) fn take_overdue(&mut self, limit: Timestamp) -> Vec<String> {
        let overdue =
            self.latest.iter_mut().filter(|(_, heartbeat)| !heartbeat.is_offline && heartbeat.at < limit);
        overdue
            .map(|(principal, heartbeat)| {
                heartbeat.is_offline = true;
                principal.clone()
            })
            .collect()
    }

    /// Marks an agent as overdue again, after its offline state could not be recorded.
    pub(super) fn retry(&mut self, principal: &str) {
        if let Some(heartbeat) = self.latest.get_mut(principal) {
            heartbeat.is_offline = false;
        }
    }

    /// Stops tracking an agent, so that the registry's state applies.
    pub(super) fn untrack(&mut self, principal: &str) {
        self.latest.remove(principal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_is_overdue_once_until_its_next_heartbeat() {
        let at = Timestamp::from_micros;
        let mut heartbeats = Heartbeats::default();
        heartbeats.track("a", at(100));
        heartbeats.track("a", at(150));
        assert!(heartbeats.take_overdue(at(60)).is_empty());
        assert_eq!(heartbeats.take_overdue(at(110)), ["a"]);
        assert!(heartbeats.take_overdue(at(111)).is_empty(), "only once");
        heartbeats.retry("a");
        assert_eq!(heartbeats.take_overdue(at(112)), ["a"]);
        assert!(heartbeats.beat("a", at(300), true));
        assert!(!heartbeats.beat("a", at(301), false));
        assert!(heartbeats.beat("b", at(1), true), "offline before a restart");
        heartbeats.untrack("a");
        assert_eq!(heartbeats.latest.len(), 1);
    }
}
