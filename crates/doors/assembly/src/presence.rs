//! When agents were last heard of. Only in memory: after a start everybody has the time of some heartbeats to speak.

use std::collections::HashMap;

use proctor_core::time::Timestamp;

/// What was last heard of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seen {
    at: Timestamp,
    /// Whether its silence is on record, or about to be.
    is_offline: bool,
}

#[derive(Debug, Default)]
pub(super) struct Presence {
    seen: HashMap<String, Seen>,
}

impl Presence {
    /// Somebody spoke. Whether its silence was on record before.
    pub(super) fn speak(&mut self, principal: &str, at: Timestamp, known_offline: bool) -> bool {
        match self.seen.get_mut(principal) {
            Some(seen) => {
                seen.at = seen.at.max(at);
                std::mem::take(&mut seen.is_offline)
            }
            None => {
                self.seen.insert(principal.to_owned(), Seen { at, is_offline: false });
                known_offline
            }
        }
    }

    /// Begins to wait for somebody who has not spoken.
    pub(super) fn await_word(&mut self, principal: &str, now: Timestamp) {
        if !self.seen.contains_key(principal) {
            self.seen.insert(principal.to_owned(), Seen { at: now, is_offline: false });
        }
    }

    /// Those who have been silent since before `limit`, each of them once.
    pub(super) fn silent(&mut self, limit: Timestamp) -> Vec<String> {
        let silent = self.seen.iter_mut().filter(|(_, seen)| !seen.is_offline && seen.at < limit);
        silent
            .map(|(principal, seen)| {
                seen.is_offline = true;
                principal.clone()
            })
            .collect()
    }

    /// The silence of somebody could not be recorded: it is noticed again.
    pub(super) fn notice_again(&mut self, principal: &str) {
        if let Some(seen) = self.seen.get_mut(principal) {
            seen.is_offline = false;
        }
    }

    /// Forgets somebody; the registry knows better.
    pub(super) fn forget(&mut self, principal: &str) {
        self.seen.remove(principal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_is_noticed_once_and_ends_once() {
        let at = Timestamp::from_micros;
        let mut presence = Presence::default();
        presence.await_word("a", at(100));
        presence.await_word("a", at(150));
        assert!(presence.silent(at(60)).is_empty());
        assert_eq!(presence.silent(at(110)), ["a"]);
        assert!(presence.silent(at(111)).is_empty(), "only once");
        presence.notice_again("a");
        assert_eq!(presence.silent(at(112)), ["a"]);
        assert!(presence.speak("a", at(300), true));
        assert!(!presence.speak("a", at(301), false));
        assert!(presence.speak("b", at(1), true), "offline before a restart");
        presence.forget("a");
        assert_eq!(presence.seen.len(), 1);
    }
}
