//! Waiting for the ledger: a thread blocks, a task awaits.

use std::pin::{Pin, pin};
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
    pub async fn settled(self, pending: Pending, deadline: Instant) -> Result<Receipt, NotRecorded> {
        match self {
            Wait::Thread => pending.wait_until(deadline),
            Wait::Task => {
                let mut waiting = Waiting(Some(pending));
                // The record, should it still be written, is followed by one that retracts it.
                let settled = tokio::time::timeout_at(deadline.into(), &mut waiting).await;
                settled.unwrap_or_else(|_elapsed| waiting.give_up())
            }
        }
    }
}

/// A task that waits. If it goes away, nobody is told the answer, so it must not stand.
struct Waiting(Option<Pending>);

impl Waiting {
    fn give_up(&mut self) -> Result<Receipt, NotRecorded> {
        self.0.take().map_or(Err(NotRecorded::Deadline), Pending::give_up)
    }
}

impl Future for Waiting {
    type Output = Result<Receipt, NotRecorded>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(pending) = &mut self.0 else { return Poll::Ready(Err(NotRecorded::Deadline)) };
        let settled = Pin::new(pending).poll(context);
        if settled.is_ready() {
            self.0 = None;
        }
        settled
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let _ = self.give_up();
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
