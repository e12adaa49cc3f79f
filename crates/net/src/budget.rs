//! Bound on the memory that all messages of a server take together, while they are read and while they are handled.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use tokio::sync::Notify;
use tokio::time::Instant;

/// Messages up to this size are not counted: their number is bounded elsewhere.
pub const UNCOUNTED: usize = 16 * 1024;

/// Memory for each byte of a message that is handled: it is parsed, copied and recorded.
const COPIES: usize = 16;

/// Bytes of messages that this process has begun to read and not finished, on all its transports.
const UNFINISHED: usize = 32 * 1024 * 1024;

/// Time for a counted message to arrive: half a message must not keep its bytes from others.
pub const UNFINISHED_TIME: std::time::Duration = std::time::Duration::from_secs(30);

/// The budget of unfinished messages that all transports of this process share. A connection that asks for more is refused or closed; others
/// go on.
pub fn unfinished() -> &'static MemoryBudget {
    static BUDGET: LazyLock<MemoryBudget> = LazyLock::new(|| MemoryBudget::new(UNFINISHED));
    &BUDGET
}

/// The memory for unfinished messages is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the memory for messages is exhausted; try again")]
pub struct Exhausted;

/// A number of bytes, shared by all clones.
#[derive(Debug, Clone)]
pub struct MemoryBudget {
    used: Arc<AtomicUsize>,
    /// Wakes reservations that wait when bytes are returned.
    returned: Arc<Notify>,
    limit: usize,
}

/// Bytes taken from a budget; released when dropped.
#[derive(Debug)]
pub struct Reservation {
    budget: MemoryBudget,
    bytes: usize,
}

impl MemoryBudget {
    /// A budget of `limit` bytes; a single reservation may be larger, so that no message is refused for ever.
    pub fn new(limit: usize) -> MemoryBudget {
        MemoryBudget { used: Arc::default(), returned: Arc::default(), limit }
    }

    /// A reservation of this size, unless the budget is exhausted.
    pub fn try_reserve(&self, bytes: usize) -> Option<Reservation> {
        let mut reservation = Reservation { budget: self.clone(), bytes: 0 };
        reservation.grow_to(bytes).then_some(reservation)
    }

    /// A reservation of this size; waits until the deadline while the budget is exhausted.
    pub async fn reserve(&self, bytes: usize, deadline: Instant) -> Option<Reservation> {
        loop {
            // Registered before the attempt: bytes that are returned in between still wake this task.
            let returned = self.returned.notified();
            let mut returned = std::pin::pin!(returned);
            returned.as_mut().enable();
            if let Some(reservation) = self.try_reserve(bytes) {
                return Some(reservation);
            }
            tokio::time::timeout_at(deadline, returned).await.ok()?;
        }
    }

    /// A reservation for handling a message of this length; empty for small ones.
    pub fn try_reserve_handling(&self, length: usize) -> Option<Reservation> {
        self.try_reserve(if length <= UNCOUNTED { 0 } else { length.saturating_mul(COPIES) })
    }
}

impl Reservation {
    /// Grows the reservation; false, and nothing changes, if the budget is exhausted.
    pub fn grow_to(&mut self, bytes: usize) -> bool {
        let more = bytes.saturating_sub(self.bytes);
        if more == 0 {
            return true;
        }
        let (limit, own) = (self.budget.limit, self.bytes);
        let taken = self.budget.used.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |used| {
            (used == own || used.saturating_add(more) <= limit).then(|| used.saturating_add(more))
        });
        if taken.is_ok() {
            self.bytes = bytes;
        }
        taken.is_ok()
    }

    /// Grows or shrinks the reservation to this size; false, and nothing changes, if the budget is exhausted.
    pub fn resize(&mut self, bytes: usize) -> bool {
        let less = self.bytes.saturating_sub(bytes);
        if less == 0 {
            return self.grow_to(bytes);
        }
        self.bytes = bytes;
        self.budget.used.fetch_sub(less, Ordering::SeqCst);
        self.budget.returned.notify_waiters();
        true
    }

    /// The reserved bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns all bytes to the budget.
    pub fn release(&mut self) {
        self.resize(0);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reservations_fit_together_or_one_stands_alone() {
        let budget = MemoryBudget::new(100);
        let alone = budget.try_reserve(1000).unwrap();
        assert!(budget.try_reserve(1).is_none());
        drop(alone);
        let mut first = budget.try_reserve(60).unwrap();
        assert!(budget.try_reserve(50).is_none());
        let second = budget.try_reserve(40).unwrap();
        assert!(!first.grow_to(61));
        drop(second);
        assert!(first.grow_to(500));
        assert!(first.resize(30) && budget.try_reserve(70).is_some() && budget.try_reserve(71).is_none());
        first.release();
        assert!(budget.try_reserve(100).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_waiting_reservation_is_woken_when_bytes_are_returned_or_gives_up_at_its_deadline() {
        let budget = MemoryBudget::new(10);
        let full = budget.try_reserve(10).unwrap();
        let second = std::time::Duration::from_secs(1);
        assert!(budget.reserve(5, Instant::now() + second).await.is_none());
        let waiting = budget.clone();
        let start = Instant::now();
        let waiting = tokio::spawn(async move { waiting.reserve(5, Instant::now() + second).await });
        tokio::task::yield_now().await;
        drop(full);
        assert!(waiting.await.unwrap().is_some());
        assert_eq!(start.elapsed(), std::time::Duration::ZERO);
    }

    #[test]
    fn small_messages_are_not_counted() {
        let budget = MemoryBudget::new(10);
        let _full = budget.try_reserve(10).unwrap();
        assert!(budget.try_reserve_handling(UNCOUNTED).is_some());
        assert!(budget.try_reserve_handling(UNCOUNTED + 1).is_none());
    }
}
