//! Accept loop with backoff, a bound on connections, and graceful shutdown.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// Backoff after accept errors that are not about one connection alone.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// Time for aborted connections to end.
const ABORT_GRACE: Duration = Duration::from_secs(1);

/// Accepts connections until it is stopped; accept errors are retried with backoff.
pub struct AcceptLoop<P> {
    poll_accept: P,
    pause: Duration,
}

impl<P> AcceptLoop<P> {
    /// Accepts with this poll function.
    pub fn new(poll_accept: P) -> AcceptLoop<P> {
        AcceptLoop { poll_accept, pause: FIRST_PAUSE }
    }

    /// The next connection; none once `stop` is cancelled.
    pub async fn next<C>(&mut self, stop: &CancellationToken) -> Option<C>
    where
        P: FnMut(&mut Context<'_>) -> Poll<io::Result<C>>,
    {
        loop {
            let accepted = tokio::select! {
                biased;
                () = stop.cancelled() => return None,
                accepted = poll_fn(|cx| (self.poll_accept)(cx)) => accepted,
            };
            match accepted {
                Ok(connection) => {
                    self.pause = FIRST_PAUSE;
                    return Some(connection);
                }
                Err(error) if concerns_one_connection(&error) => {}
                // Too many open files, no memory: it passes when connections end.
                Err(_) => {
                    tokio::select! {
                        () = stop.cancelled() => return None,
                        () = tokio::time::sleep(self.pause) => {}
                    }
                    self.pause = (self.pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }
}

fn concerns_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}

/// The connections of one listener: counted, and ended together.
pub struct ConnectionSet {
    max: usize,
    slots: Arc<Semaphore>,
    tracker: TaskTracker,
    stop: CancellationToken,
    abort: CancellationToken,
}

impl ConnectionSet {
    /// Creates a limit of `max` connections, which are asked to end when `stop` is cancelled.
    pub fn new(max: usize, stop: CancellationToken) -> ConnectionSet {
        ConnectionSet {
            max,
            slots: Arc::new(Semaphore::new(max.min(Semaphore::MAX_PERMITS))),
            tracker: TaskTracker::new(),
            stop,
            abort: CancellationToken::new(),
        }
    }

    /// A slot for one more connection, unless all are taken.
    pub fn admit(&self) -> Option<ConnectionSlot> {
        let permit = Arc::clone(&self.slots).try_acquire_owned().ok()?;
        Some(ConnectionSlot {
            stop: self.stop.clone(),
            abort: self.abort.clone(),
            _permit: Some(permit),
            _token: Some(self.tracker.token()),
        })
    }

    /// Whether more than half of the slots are taken.
    pub fn is_crowded(&self) -> bool {
        self.slots.available_permits() < self.max / 2
    }

    /// Waits up to `grace` for all connections to end, and then aborts the rest.
    pub async fn finish(self, grace: Duration) {
        self.tracker.close();
        if tokio::time::timeout(grace, self.tracker.wait()).await.is_err() {
            self.abort.cancel();
            // A task that ignores the abort is detached.
            let _ = tokio::time::timeout(ABORT_GRACE, self.tracker.wait()).await;
        }
    }
}

/// Connection slot, held for as long as the connection lasts: its count, and its shutdown signals.
#[derive(Debug)]
pub struct ConnectionSlot {
    /// Cancelled for a graceful end: what is in flight is answered.
    pub stop: CancellationToken,
    /// Cancelled when the grace period is over.
    pub abort: CancellationToken,
    _permit: Option<OwnedSemaphorePermit>,
    _token: Option<TaskTrackerToken>,
}

impl ConnectionSlot {
    /// A slot of no set, for connections that were accepted elsewhere.
    pub fn uncounted() -> ConnectionSlot {
        let (stop, abort) = (CancellationToken::new(), CancellationToken::new());
        ConnectionSlot { stop, abort, _permit: None, _token: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn accept_errors_are_waited_out_and_never_end_the_loop() {
        let mut calls = 0;
        let began = tokio::time::Instant::now();
        let mut accepting = AcceptLoop::new(move |_: &mut Context<'_>| {
            calls += 1;
            Poll::Ready(match calls {
                // EMFILE, twenty times: more than the pause needs to reach its longest.
                1..=20 => Err(io::Error::from_raw_os_error(24)),
                21 => Err(io::ErrorKind::ConnectionAborted.into()),
                _ => Ok(calls),
            })
        });
        let stop = CancellationToken::new();
        assert_eq!(accepting.next(&stop).await, Some(22));
        let waited = began.elapsed();
        assert!(waited > Duration::from_secs(10) && waited < Duration::from_secs(20), "{waited:?}");
        stop.cancel();
        assert_eq!(accepting.next(&stop).await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_stop_ends_the_pause_after_an_error() {
        let mut accepting = AcceptLoop::new(|_: &mut Context<'_>| {
            Poll::<io::Result<()>>::Ready(Err(io::Error::from_raw_os_error(24)))
        });
        let stop = CancellationToken::new();
        let (accepted, ()) = tokio::join!(accepting.next(&stop), async {
            tokio::time::sleep(Duration::from_secs(5)).await;
            stop.cancel();
        });
        assert_eq!(accepted, None);
    }

    #[tokio::test(start_paused = true)]
    async fn slots_are_bounded_and_come_back() {
        let connections = ConnectionSet::new(1, CancellationToken::new());
        let slot = connections.admit().unwrap();
        assert!(connections.admit().is_none());
        drop(slot);
        let slot = connections.admit().unwrap();
        let abort = slot.abort.clone();
        let held = tokio::spawn(async move {
            let slot = slot;
            slot.abort.cancelled().await;
        });
        let began = tokio::time::Instant::now();
        connections.finish(Duration::from_secs(3)).await;
        assert!(abort.is_cancelled());
        assert_eq!(began.elapsed().as_secs(), 3);
        held.await.unwrap();
    }
}
