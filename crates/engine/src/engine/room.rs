//! Waiting for room in the writer's queue without holding up a thread.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::Engine;

/// How often a full queue is looked at again.
const LOOK_AGAIN: Duration = Duration::from_millis(2);

/// Where tasks wait, in order of arrival, while the ledger's queue is full.
#[derive(Default)]
pub(super) struct Line {
    waiting: AtomicUsize,
    order: tokio::sync::Mutex<()>,
}

/// The right to put records into the queue now; held while that is done, so that nobody overtakes.
pub struct Room<'a> {
    _place: Option<(tokio::sync::MutexGuard<'a, ()>, Place<'a>)>,
}

/// A place in the line, given up when dropped.
struct Place<'a>(&'a AtomicUsize);

impl<'a> Place<'a> {
    fn take(waiting: &'a AtomicUsize) -> Place<'a> {
        waiting.fetch_add(1, Ordering::SeqCst);
        Place(waiting)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Engine {
    /// Waits until the ledger takes records. None if it does not before the deadline.
    pub async fn room(&self, deadline: Instant) -> Option<Room<'_>> {
        if self.line.waiting.load(Ordering::SeqCst) == 0 && self.has_room() {
            return Some(Room { _place: None });
        }
        // From here on nobody overtakes: whoever comes later stands behind.
        let place = Place::take(&self.line.waiting);
        let waiting = async {
            let first = self.line.order.lock().await;
            while !self.has_room() {
                tokio::time::sleep(LOOK_AGAIN).await;
            }
            Room { _place: Some((first, place)) }
        };
        tokio::time::timeout_at(deadline.into(), waiting).await.ok()
    }

    /// When an answer that is asked for now is due.
    pub fn due(&self) -> Instant {
        Instant::now() + self.answer
    }
}
