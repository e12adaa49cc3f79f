//! Waiting for the ledger: a thread blocks, a task awaits.

use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use proctor_ledger::{NotRecorded, Pending, Receipt};

/// Waiting mode of the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Blocking the thread.
    Thread,
    /// Awaiting as a task of the runtime.
    Task,
}

impl Wait {
    /// Waits for a decision's commit until the deadline; a later commit is retracted, because the caller is told deny. A caller that goes
    /// away is told nothing, and the record stands.
    pub(super) async fn decided(self, pending: Pending, deadline: Instant) -> Result<Receipt, NotRecorded> {
        match self {
            Wait::Thread => pending.wait_until(deadline),
            Wait::Task => in_time(pending, deadline).await.unwrap_or_else(Pending::give_up),
        }
    }

    /// Waits for a report's commit until the deadline; the record stands, whether or not its caller hears of it.
    pub(super) async fn recorded(self, pending: Pending, deadline: Instant) -> Result<Receipt, NotRecorded> {
        match self {
            Wait::Thread => pending.wait_or_leave(deadline),
            Wait::Task => in_time(pending, deadline).await.unwrap_or_else(Pending::leave),
        }
    }
}

/// Result of a draft, or the draft itself if the deadline passes first.
async fn in_time(mut pending: Pending, deadline: Instant) -> Result<Result<Receipt, NotRecorded>, Pending> {
    let settled = tokio::time::timeout_at(deadline.into(), &mut pending).await;
    settled.map_err(|_elapsed| pending)
}

/// Wraps a future that, if it is dropped before its end, is completed in a task of its own: subscribers are notified of a commit even if
/// the caller goes away.
pub fn to_its_end<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> ToItsEnd<T> {
    ToItsEnd(Some(Box::pin(future)))
}

/// Future of [`to_its_end`].
pub struct ToItsEnd<T: Send + 'static>(Option<Pin<Box<dyn Future<Output = T> + Send>>>);

impl<T: Send + 'static> Future for ToItsEnd<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let Some(future) = &mut self.0 else { return Poll::Pending };
        let polled = future.as_mut().poll(context);
        if polled.is_ready() {
            self.0 = None;
        }
        polled
    }
}

impl<T: Send + 'static> Drop for ToItsEnd<T> {
    fn drop(&mut self) {
        if let (Some(future), Ok(runtime)) = (self.0.take(), tokio::runtime::Handle::try_current()) {
            drop(runtime.spawn(async move { drop(future.await) }));
        }
    }
}

/// Polls once a future that blocks its thread instead of returning `Pending`.
pub(super) fn block_on_ready<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(value) => return value,
            Poll::Pending => std::thread::yield_now(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_nobody_awaits_any_more_goes_on_to_its_end() {
        let (begun, mut has_begun) = tokio::sync::mpsc::channel(1);
        let (go_on, may_go_on) = tokio::sync::oneshot::channel();
        let (end, ended) = tokio::sync::oneshot::channel();
        let work = to_its_end(async move {
            begun.send(()).await.ok();
            may_go_on.await.ok();
            end.send("done").ok();
        });
        tokio::select! {
            () = work => panic!("it cannot end yet"),
            _ = has_begun.recv() => {}
        }
        go_on.send(()).ok();
        assert_eq!(ended.await, Ok("done"));
        assert_eq!(to_its_end(async { 7 }).await, 7);
    }
}
