//! Permits: capacity of the writer's queue that is reserved before it is used.
//!
//! A caller that must not block while it holds a lock of its own reserves first, then locks, then appends:
//!
//! ```no_run
//! # async fn example(ledger: &proctor_ledger::Ledger, state: &std::sync::Mutex<u64>, draft: proctor_ledger::Draft)
//! # -> Result<(), Box<dyn std::error::Error>> {
//! use proctor_ledger::writer::{Capacity, Wake};
//!
//! let mut permit = ledger.reserve(Capacity { drafts: 1, bytes: 4096 }).await?;
//! let pending = {
//!     let state = state.lock().map_err(|_| "poisoned")?;
//!     // Returns at once: the permit holds the capacity.
//!     ledger.append_reserved(&mut permit, *state, draft, Vec::new(), Wake::Writer)?
//! };
//! let receipt = pending.await?;
//! # Ok(())
//! # }
//! ```

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use super::NotRecorded;
use super::entry::DRAFT_OVERHEAD;
use super::pending::Slot;
use super::queue::Queue;

/// An amount of the queue's capacity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Capacity {
    /// The number of appends. Records that are appended together count as one.
    pub drafts: usize,
    /// The bytes of their leaves, bodies and rows. An estimate will do: an append that needs more than its permit has
    /// is let in all the same, because its caller cannot wait any more.
    pub bytes: usize,
}

impl Capacity {
    pub(super) const fn cost(self) -> usize {
        self.bytes.saturating_add(self.drafts.saturating_mul(DRAFT_OVERHEAD))
    }
}

/// Error of reserving capacity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReserveError {
    /// The queue is full, or others wait for its capacity already.
    #[error("the ledger's queue is full")]
    Full,
    /// The ledger is closed.
    #[error("the ledger is closed")]
    Closed,
}

impl From<ReserveError> for NotRecorded {
    fn from(error: ReserveError) -> NotRecorded {
        match error {
            ReserveError::Full => NotRecorded::Full,
            ReserveError::Closed => NotRecorded::Closed,
        }
    }
}

/// Reserved capacity. It counts against the queue's bounds until it is used by
/// [`Ledger::append_reserved`](super::Ledger::append_reserved); what is left is given back when the permit is dropped.
///
/// A blocking append by the holder of a permit may wait for that very permit: use the permit, or drop it first.
#[derive(Debug)]
pub struct Permit {
    queue: Arc<Queue>,
    pub(super) drafts: usize,
    /// The remainder of [`Capacity::cost`].
    pub(super) cost: usize,
}

impl Permit {
    pub(super) fn new(queue: Arc<Queue>, drafts: usize, cost: usize) -> Permit {
        Permit { queue, drafts, cost }
    }

    /// Number of appends that the permit has capacity for.
    pub fn drafts(&self) -> usize {
        self.drafts
    }

    pub(super) fn is_of(&self, queue: &Arc<Queue>) -> bool {
        Arc::ptr_eq(&self.queue, queue)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.queue.release(self.drafts, self.cost);
    }
}

/// A caller in the line for capacity.
#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) drafts: usize,
    pub(super) cost: usize,
    /// Answered with the permit by the thread that frees the capacity. Handing it over, instead of waking the caller to look
    /// again, is what keeps the order and loses no wake-up.
    pub(super) slot: Slot<Permit>,
}

impl Waiter {
    pub(super) fn new(drafts: usize, cost: usize) -> Arc<Waiter> {
        Arc::new(Waiter { drafts, cost, slot: Slot::new() })
    }

    /// Blocks until the permit is there, at most until the deadline.
    pub(super) fn wait(
        self: &Arc<Self>,
        queue: &Arc<Queue>,
        deadline: Option<Instant>,
    ) -> Result<Permit, ReserveError> {
        match self.slot.wait(deadline) {
            Some(answer) => answer.map_err(|_| ReserveError::Closed),
            None => {
                queue.leave_line(self);
                Err(ReserveError::Full)
            }
        }
    }
}

/// The answer to a request for capacity.
pub(super) enum Reservation {
    Granted(Permit),
    Queued(Arc<Waiter>),
}

/// The future of a permit. Callers are served in the order of their first poll. Dropping the future leaves the line.
#[derive(Debug)]
#[must_use = "nothing is reserved before it is awaited"]
pub struct Reserve {
    queue: Arc<Queue>,
    wanted: Capacity,
    waiter: Option<Arc<Waiter>>,
}

impl Reserve {
    pub(super) fn new(queue: Arc<Queue>, wanted: Capacity) -> Reserve {
        Reserve { queue, wanted, waiter: None }
    }
}

impl Future for Reserve {
    type Output = Result<Permit, ReserveError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let waiter = match &self.waiter {
            Some(waiter) => Arc::clone(waiter),
            None => match self.queue.reserve_or_join(self.wanted.drafts, self.wanted.cost())? {
                Reservation::Granted(permit) => return Poll::Ready(Ok(permit)),
                Reservation::Queued(waiter) => Arc::clone(self.waiter.insert(waiter)),
            },
        };
        // A permit that was handed over since the waiter joined the line is found here: no wake-up is lost.
        let answer = waiter.slot.poll(context.waker());
        if answer.is_ready() {
            self.waiter = None;
        }
        answer.map_err(|_| ReserveError::Closed)
    }
}

impl Drop for Reserve {
    fn drop(&mut self) {
        if let Some(waiter) = self.waiter.take() {
            self.queue.leave_line(&waiter);
        }
    }
}

#[cfg(test)]
mod tests;
