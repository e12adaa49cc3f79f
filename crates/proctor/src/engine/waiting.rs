//! Waiting for the ledger: a thread blocks, a task awaits.

use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use proctor_ledger::{NotRecorded, Pending, Receipt};

/// How the caller waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// It blocks its thread.
    Thread,
    /// It is a task of the runtime, with its timers.
    Task,
}

impl Wait {
    /// What became of a record, at most until this moment.
    pub async fn settled(self, mut pending: Pending, deadline: Instant) -> Result<Receipt, NotRecorded> {
        match self {
            Wait::Thread => pending.wait_until(deadline),
            Wait::Task => match tokio::time::timeout_at(deadline.into(), &mut pending).await {
                Ok(settled) => settled,
                // The record, should it still be written, is followed by one that retracts it.
                Err(_elapsed) => pending.give_up(),
            },
        }
    }
}

/// Runs a future that waits as a thread does, and so never has to be polled twice.
pub(super) fn now<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(value) => return value,
            Poll::Pending => std::thread::yield_now(),
        }
    }
}
