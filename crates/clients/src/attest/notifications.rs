//! Notifications of an engine, and counters of its output.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::value::RawValue;
use tokio::sync::Notify;

/// The longest notification that is kept.
const MAX_NOTIFICATION: usize = 1024 * 1024;

/// A message that an engine sent unasked, such as `drift_alert`.
#[derive(Debug, Clone)]
pub struct Notification {
    /// The method.
    pub method: String,
    /// The parameters.
    pub params: Option<Box<RawValue>>,
}

/// Counters of an engine's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Diagnostics {
    /// Answers that settled a call.
    pub answers: u64,
    /// Lines that are no messages.
    pub unreadable: u64,
    /// Answers without a call: late, repeated or invented.
    pub unknown_ids: u64,
    /// Messages without a usable id, and requests to this client.
    pub unroutable: u64,
    /// Lines over the limit.
    pub too_long: u64,
    /// Notifications.
    pub notifications: u64,
    /// Notifications that were dropped: the oldest of too many, and very long ones.
    pub notifications_lost: u64,
    /// Bytes on the standard error.
    pub stderr_bytes: u64,
}

/// A bounded queue of the newest notifications, with the counters.
#[derive(Debug)]
pub(super) struct Notifications {
    state: Mutex<State>,
    changed: Notify,
    limit: usize,
}

#[derive(Debug, Default)]
struct State {
    counts: Diagnostics,
    notifications: VecDeque<Notification>,
    closed: bool,
}

impl Notifications {
    /// A queue of at most `limit` notifications.
    pub(super) fn new(limit: usize) -> Notifications {
        Notifications { state: Mutex::default(), changed: Notify::new(), limit }
    }

    pub(super) fn count(&self, what: impl FnOnce(&mut Diagnostics) -> &mut u64) {
        let mut state = self.state();
        let count = what(&mut state.counts);
        *count = count.saturating_add(1);
    }

    pub(super) fn counts(&self) -> Diagnostics {
        self.state().counts
    }

    pub(super) fn notify(&self, method: String, params: Option<&RawValue>) {
        let mut state = self.state();
        state.counts.notifications = state.counts.notifications.saturating_add(1);
        let bytes = method.len() + params.map_or(0, |params| params.get().len());
        let fits = bytes <= MAX_NOTIFICATION && self.limit > 0;
        if !fits || state.notifications.len() >= self.limit {
            state.counts.notifications_lost = state.counts.notifications_lost.saturating_add(1);
        }
        if fits {
            if state.notifications.len() >= self.limit {
                state.notifications.pop_front();
            }
            state.notifications.push_back(Notification { method, params: params.map(ToOwned::to_owned) });
            drop(state);
            self.changed.notify_one();
        }
    }

    /// Takes all notifications, oldest first.
    pub(super) fn take(&self) -> Vec<Notification> {
        self.state().notifications.drain(..).collect()
    }

    /// Waits for the oldest notification; none once the queue is closed and empty.
    pub(super) async fn next(&self) -> Option<Notification> {
        loop {
            let changed = self.changed.notified();
            {
                let mut state = self.state();
                let next = state.notifications.pop_front();
                if next.is_some() || state.closed {
                    // Wakes the next waiter, for the next notification or the end.
                    self.changed.notify_one();
                    return next;
                }
            }
            changed.await;
        }
    }

    /// Closes the queue.
    pub(super) fn close(&self) {
        self.state().closed = true;
        self.changed.notify_one();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(notifications: &[Notification]) -> Vec<&str> {
        notifications.iter().map(|notification| notification.method.as_str()).collect()
    }

    #[test]
    fn only_the_newest_are_kept_and_the_loss_is_counted() {
        let notifications = Notifications::new(2);
        for name in ["a", "b", "c"] {
            notifications.notify(name.to_owned(), None);
        }
        let long = RawValue::from_string(format!("\"{}\"", "x".repeat(MAX_NOTIFICATION))).unwrap();
        notifications.notify("long".to_owned(), Some(&long));
        assert_eq!(names(&notifications.take()), ["b", "c"]);
        assert_eq!(
            notifications.counts(),
            Diagnostics { notifications: 4, notifications_lost: 2, ..notifications.counts() }
        );
        assert!(notifications.take().is_empty());
    }

    #[test]
    fn none_are_kept_without_a_place_for_them() {
        let notifications = Notifications::new(0);
        notifications.notify("a".to_owned(), None);
        assert!(notifications.take().is_empty());
        assert_eq!(notifications.counts().notifications_lost, 1);
    }

    #[tokio::test]
    async fn everybody_who_waits_gets_one_or_learns_of_the_end() {
        let notifications = Notifications::new(8);
        let waiting =
            async { tokio::join!(notifications.next(), notifications.next(), notifications.next()) };
        let sending = async {
            tokio::task::yield_now().await;
            notifications.notify("a".to_owned(), None);
            notifications.notify("b".to_owned(), None);
            notifications.close();
        };
        let ((first, second, third), ()) = tokio::join!(waiting, sending);
        let mut got: Vec<_> =
            [first, second, third].into_iter().map(|one| one.map(|one| one.method)).collect();
        got.sort();
        assert_eq!(got, [None, Some("a".to_owned()), Some("b".to_owned())]);
        assert!(notifications.next().await.is_none());
    }
}
