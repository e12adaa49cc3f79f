//! When agents were last heard of. Only in memory: after a start everybody has the time of some heartbeats to speak.

use std::collections::HashMap;

use proctor_core::time::Timestamp;

/// What was last heard of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seen {
    pub at: Timestamp,
    /// Whether its silence is on record.
    pub is_offline: bool,
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

    /// Whether an agent has been silent since before `limit`. One that is seen for the first time begins to be waited for.
    pub(super) fn is_silent(&mut self, principal: &str, now: Timestamp, limit: Timestamp) -> bool {
        let seen = self.seen.entry(principal.to_owned()).or_insert(Seen { at: now, is_offline: false });
        if seen.is_offline || seen.at >= limit {
            return false;
        }
        seen.is_offline = true;
        true
    }

    /// Those that are not registered any more are forgotten.
    pub(super) fn keep(&mut self, is_registered: impl Fn(&str) -> bool) {
        self.seen.retain(|principal, _| is_registered(principal));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_is_noticed_once_and_ends_once() {
        let at = Timestamp::from_micros;
        let mut presence = Presence::default();
        assert!(!presence.is_silent("a", at(100), at(10)), "the first look begins the wait");
        assert!(!presence.is_silent("a", at(150), at(60)));
        assert!(presence.is_silent("a", at(200), at(110)));
        assert!(!presence.is_silent("a", at(201), at(111)), "only once");
        assert!(presence.speak("a", at(300), true));
        assert!(!presence.speak("a", at(301), false));
        assert!(presence.speak("b", at(1), true), "offline before a restart");
        presence.keep(|principal| principal == "a");
        assert_eq!(presence.seen.len(), 1);
    }
}
