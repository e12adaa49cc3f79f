//! Turns of relays: a bounded number is served at a time, and the others wait in order of arrival.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// Relays that doors serve at a time.
pub(crate) const MAX_RELAYS: usize = 64;

/// Relays that wait for their turn; a further one is told to come again.
const MAX_WAITING: usize = 256;

/// The relays that are served and those that wait. A waiting one costs a descriptor, and no thread.
#[derive(Debug)]
pub(crate) struct Turns<R>(Mutex<List<R>>);

#[derive(Debug)]
struct List<R> {
    served: usize,
    waiting: VecDeque<R>,
}

impl<R> Default for Turns<R> {
    fn default() -> Turns<R> {
        Turns(Mutex::new(List { served: 0, waiting: VecDeque::new() }))
    }
}

/// Result of entering.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Entered<R> {
    /// The relay is served now; [`Turns::leave`] follows.
    Now(R),
    /// The relay waits for its turn.
    Queued,
    /// Too many wait already.
    Full(R),
}

impl<R> Turns<R> {
    /// Enters a relay. One that has to wait is told so by `queued`; those that `is_gone` finds closed make room.
    pub(crate) fn enter(
        &self,
        relay: R,
        queued: impl FnOnce(&R),
        is_gone: impl Fn(&R) -> bool,
    ) -> Entered<R> {
        let mut list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if list.served < MAX_RELAYS {
            list.served += 1;
            return Entered::Now(relay);
        }
        if list.waiting.len() >= MAX_WAITING {
            list.waiting.retain(|relay| !is_gone(relay));
        }
        if list.waiting.len() >= MAX_WAITING {
            return Entered::Full(relay);
        }
        // Under the lock: nobody may serve it before it is told that it waits.
        queued(&relay);
        list.waiting.push_back(relay);
        Entered::Queued
    }

    /// Ends a turn. The relay that waits longest takes it over, if there is one.
    pub(crate) fn leave(&self) -> Option<R> {
        let mut list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let next = list.waiting.pop_front();
        if next.is_none() {
            list.served = list.served.saturating_sub(1);
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn enter(turns: &Turns<usize>, relay: usize) -> Entered<usize> {
        turns.enter(relay, |_| {}, |relay| relay.is_multiple_of(2))
    }

    #[test]
    fn relays_over_the_limit_wait_in_order_and_those_that_left_make_room() {
        let turns = Turns::default();
        for relay in 0..MAX_RELAYS {
            assert_eq!(enter(&turns, relay), Entered::Now(relay));
        }
        for relay in 0..MAX_WAITING {
            assert_eq!(enter(&turns, relay), Entered::Queued);
        }
        // Half of those that wait are gone.
        for relay in 0..MAX_WAITING / 2 {
            assert_eq!(enter(&turns, 2 * relay + 1), Entered::Queued);
        }
        assert_eq!(enter(&turns, 7), Entered::Full(7));
        assert_eq!((turns.leave(), turns.leave()), (Some(1), Some(3)));
        for _ in 2..MAX_WAITING {
            assert!(turns.leave().is_some());
        }
        for _ in 0..MAX_RELAYS {
            assert_eq!(turns.leave(), None);
        }
        assert_eq!(enter(&turns, 0), Entered::Now(0));
    }
}
