//! What came from an engine besides answers: notifications, and how much of it was of no use.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::value::RawValue;
use tokio::sync::Notify;

/// The longest notification that is kept.
const MAX_NOTIFICATION: usize = 1024 * 1024;

/// A message that an engine sent unasked, such as `drift_alert`.
#[derive(Debug, Clone)]
pub struct Notification {
    /// Its name.
    pub method: String,
    /// Its parameters.
    pub params: Option<Box<RawValue>>,
}

/// Counts of what an engine sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Diagnostics {
    /// Answers that somebody waited for.
    pub answers: u64,
    /// Lines that are no messages.
    pub unreadable: u64,
    /// Answers that nobody waited for: late ones, repeated ones, invented ones.
    pub unknown_ids: u64,
    /// Messages for nobody: without an id, with one that is no number, or questions to this client.
    pub unroutable: u64,
    /// Lines over the limit.
    pub too_long: u64,
    /// Notifications.
    pub notifications: u64,
    /// Those of them that were lost: older than the newest few, or very long.
    pub notifications_lost: u64,
    /// Bytes on its standard error.
    pub stderr_bytes: u64,
}

/// Keeps the newest notifications and the counts.
#[derive(Debug)]
pub(super) struct Inbox {
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

impl Inbox {
    /// Keeps at most `limit` notifications.
    pub(super) fn new(limit: usize) -> Inbox {
        Inbox { state: Mutex::default(), changed: Notify::new(), limit }
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

    /// All that are there, oldest first.
    pub(super) fn take(&self) -> Vec<Notification> {
        self.state().notifications.drain(..).collect()
    }

    /// The oldest one, as soon as there is one; none when no more can come.
    pub(super) async fn next(&self) -> Option<Notification> {
        loop {
            let changed = self.changed.notified();
            {
                let mut state = self.state();
                let next = state.notifications.pop_front();
                if next.is_some() || state.closed {
                    // Somebody else who waits may have the next one, or learn that none comes.
                    self.changed.notify_one();
                    return next;
                }
            }
            changed.await;
        }
    }

    /// No more can come.
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
        let inbox = Inbox::new(2);
        for name in ["a", "b", "c"] {
            inbox.notify(name.to_owned(), None);
        }
        let long = RawValue::from_string(format!("\"{}\"", "x".repeat(MAX_NOTIFICATION))).unwrap();
        inbox.notify("long".to_owned(), Some(&long));
        assert_eq!(names(&inbox.take()), ["b", "c"]);
        assert_eq!(inbox.counts(), Diagnostics { notifications: 4, notifications_lost: 2, ..inbox.counts() });
        assert!(inbox.take().is_empty());
    }

    #[test]
    fn none_are_kept_without_a_place_for_them() {
        let inbox = Inbox::new(0);
        inbox.notify("a".to_owned(), None);
        assert!(inbox.take().is_empty());
        assert_eq!(inbox.counts().notifications_lost, 1);
    }

    #[tokio::test]
    async fn everybody_who_waits_gets_one_or_learns_of_the_end() {
        let inbox = Inbox::new(8);
        let waiting = async { tokio::join!(inbox.next(), inbox.next(), inbox.next()) };
        let sending = async {
            tokio::task::yield_now().await;
            inbox.notify("a".to_owned(), None);
            inbox.notify("b".to_owned(), None);
            inbox.close();
        };
        let ((first, second, third), ()) = tokio::join!(waiting, sending);
        let mut got: Vec<_> =
            [first, second, third].into_iter().map(|one| one.map(|one| one.method)).collect();
        got.sort();
        assert_eq!(got, [None, Some("a".to_owned()), Some("b".to_owned())]);
        assert!(inbox.next().await.is_none());
    }
}
