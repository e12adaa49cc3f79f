//! A bound on the memory that messages take together, while they are read and while they are worked on.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// Messages up to this size are not counted: there are bounds on how many there can be.
pub const FREE: usize = 16 * 1024;

/// What a message that is worked on takes for each of its bytes: it is parsed, copied, and written down.
const COPIES: usize = 16;

/// How often a full budget is looked at again.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// So many bytes, shared by everything that holds a clone.
#[derive(Debug, Clone)]
pub struct Budget {
    used: Arc<AtomicUsize>,
    most: usize,
}

/// A part of a budget, given back when dropped.
#[derive(Debug)]
pub struct Share {
    budget: Budget,
    bytes: usize,
}

impl Budget {
    /// At most so many bytes; one share alone may be larger.
    pub fn new(most: usize) -> Budget {
        Budget { used: Arc::default(), most }
    }

    /// A share of this size, if there is room.
    pub fn try_take(&self, bytes: usize) -> Option<Share> {
        let mut share = Share { budget: self.clone(), bytes: 0 };
        share.grow_to(bytes).then_some(share)
    }

    /// The same; waits for room until the deadline.
    pub async fn take(&self, bytes: usize, deadline: Instant) -> Option<Share> {
        loop {
            if let Some(share) = self.try_take(bytes) {
                return Some(share);
            }
            if Instant::now() >= deadline {
                return None;
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// A share for working on a message of this length; small ones need none.
    pub fn for_work(&self, length: usize) -> Option<Share> {
        self.try_take(if length <= FREE { 0 } else { length.saturating_mul(COPIES) })
    }
}

impl Share {
    /// Makes the share larger; false, and nothing changes, if there is no room.
    pub fn grow_to(&mut self, bytes: usize) -> bool {
        let more = bytes.saturating_sub(self.bytes);
        if more == 0 {
            return true;
        }
        let (most, own) = (self.budget.most, self.bytes);
        let taken = self.budget.used.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |used| {
            (used == own || used.saturating_add(more) <= most).then(|| used.saturating_add(more))
        });
        if taken.is_ok() {
            self.bytes = bytes;
        }
        taken.is_ok()
    }

    /// Gives everything back.
    pub fn clear(&mut self) {
        self.budget.used.fetch_sub(std::mem::take(&mut self.bytes), Ordering::SeqCst);
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_fit_together_or_one_stands_alone() {
        let budget = Budget::new(100);
        let alone = budget.try_take(1000).unwrap();
        assert!(budget.try_take(1).is_none());
        drop(alone);
        let mut first = budget.try_take(60).unwrap();
        assert!(budget.try_take(50).is_none());
        let second = budget.try_take(40).unwrap();
        assert!(!first.grow_to(61));
        drop(second);
        assert!(first.grow_to(500));
        first.clear();
        assert!(budget.try_take(100).is_some());
    }

    #[test]
    fn small_messages_are_free() {
        let budget = Budget::new(10);
        let _full = budget.try_take(10).unwrap();
        assert!(budget.for_work(FREE).is_some());
        assert!(budget.for_work(FREE + 1).is_none());
    }
}
