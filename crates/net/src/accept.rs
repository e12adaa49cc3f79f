//! Accept loop with backoff, a bound on connections, and graceful shutdown.

use std::future::poll_fn;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// Backoff after accept errors that are not about one connection alone.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// Milliseconds after which work that nothing came of, such as an open stream, no longer protects its connection from eviction.
const SILENT_WORK_MS: u64 = 60_000;
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

/// The connections of one listener: counted, and ended together. When all slots are taken, a new connection takes the slot of one that does nothing.
pub struct ConnectionSet {
    max: usize,
    slots: Arc<Semaphore>,
    open: Mutex<Vec<Weak<SlotState>>>,
    began: Instant,
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
            open: Mutex::default(),
            began: Instant::now(),
            tracker: TaskTracker::new(),
            stop,
            abort: CancellationToken::new(),
        }
    }

    /// A slot for one more connection. If all are taken, the connection that has been idle longest is ended; without one, there is no slot.
    pub fn admit(&self) -> Option<ConnectionSlot> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let permit = match Arc::clone(&self.slots).try_acquire_owned() {
            Ok(permit) => permit,
            Err(_) => self.evict(&open)?,
        };
        // Amortised: as many are looked at as were added since.
        if open.len() >= self.max.saturating_mul(2) {
            open.retain(|state| state.strong_count() > 0);
        }
        let state = Arc::new(SlotState {
            began: self.began,
            permit: Mutex::new(Some(permit)),
            abort: self.abort.child_token(),
            busy: AtomicUsize::new(0),
            used: AtomicBool::new(false),
            last: AtomicU64::new(since(self.began)),
        });
        open.push(Arc::downgrade(&state));
        Some(ConnectionSlot {
            stop: self.stop.clone(),
            abort: state.abort.clone(),
            state: Some(state),
            _token: Some(self.tracker.token()),
        })
    }

    /// Ends the connection that is missed least, and takes its permit: the one idle longest of those that never sent a message; else of those without a
    /// message in work; else of those whose work has been silent for a while, such as streams that nobody uses.
    fn evict(&self, open: &[Weak<SlotState>]) -> Option<OwnedSemaphorePermit> {
        let now = since(self.began);
        let candidate = |state: &Arc<SlotState>| {
            let last = state.last.load(Relaxed);
            let rank = match (state.used.load(Relaxed), state.busy.load(Relaxed)) {
                (false, _) => 0,
                (true, 0) => 1,
                (true, _) if now.saturating_sub(last) >= SILENT_WORK_MS => 2,
                (true, _) => return None,
            };
            Some((rank, last))
        };
        let states = open.iter().filter_map(Weak::upgrade).filter(SlotState::has_permit);
        let (_, victim) =
            states.filter_map(|state| Some((candidate(&state)?, state))).min_by_key(|(key, _)| *key)?;
        victim.abort.cancel();
        victim.permit.lock().unwrap_or_else(PoisonError::into_inner).take()
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

fn since(began: Instant) -> u64 {
    u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// Activity of a connection, and its permit.
#[derive(Debug)]
struct SlotState {
    began: Instant,
    permit: Mutex<Option<OwnedSemaphorePermit>>,
    abort: CancellationToken,
    /// Messages in work.
    busy: AtomicUsize,
    /// Whether a message was ever received.
    used: AtomicBool,
    /// Milliseconds since `began` at which a message was received or its work ended.
    last: AtomicU64,
}

impl SlotState {
    fn has_permit(self: &Arc<SlotState>) -> bool {
        self.permit.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }
}

/// Connection slot, held for as long as the connection lasts: its count, and its shutdown signals.
#[derive(Debug)]
pub struct ConnectionSlot {
    /// Cancelled for a graceful end: what is in flight is answered.
    pub stop: CancellationToken,
    /// Cancelled when the grace period is over, or when another connection takes the slot.
    pub abort: CancellationToken,
    state: Option<Arc<SlotState>>,
    _token: Option<TaskTrackerToken>,
}

impl ConnectionSlot {
    /// A slot of no set, for connections that were accepted elsewhere.
    pub fn uncounted() -> ConnectionSlot {
        let (stop, abort) = (CancellationToken::new(), CancellationToken::new());
        ConnectionSlot { stop, abort, state: None, _token: None }
    }

    /// Notes a received message, which is in work until the guard is dropped.
    pub fn begin_work(&self) -> WorkGuard {
        if let Some(state) = &self.state {
            state.used.store(true, Relaxed);
            state.busy.fetch_add(1, Relaxed);
            state.last.store(since(state.began), Relaxed);
        }
        WorkGuard(self.state.clone())
    }
}

/// A message in work; see [`ConnectionSlot::begin_work`].
#[derive(Debug)]
pub struct WorkGuard(Option<Arc<SlotState>>);

impl Drop for WorkGuard {
    fn drop(&mut self) {
        if let Some(state) = &self.0 {
            state.last.store(since(state.began), Relaxed);
            state.busy.fetch_sub(1, Relaxed);
        }
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
        let work = slot.begin_work();
        assert!(connections.admit().is_none(), "a message is in work");
        drop((work, slot));
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

    #[tokio::test(start_paused = true)]
    async fn a_new_connection_takes_the_slot_of_the_one_that_is_missed_least() {
        let connections = ConnectionSet::new(4, CancellationToken::new());
        let mut slots = Vec::new();
        for _ in 0..4 {
            slots.push(connections.admit().unwrap());
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        // One works, one did, two never sent anything.
        let working = slots[0].begin_work();
        drop(slots[1].begin_work());
        let mut others = Vec::new();
        for expected in [2, 3] {
            others.push(connections.admit().unwrap());
            others.last().unwrap().begin_work();
            assert!(slots[expected].abort.is_cancelled());
        }
        assert!(!slots[0].abort.is_cancelled() && !slots[1].abort.is_cancelled());
        // The evicted ones give back nothing when they end.
        slots.truncate(2);
        others.push(connections.admit().unwrap());
        let busy: Vec<_> = others.iter().map(ConnectionSlot::begin_work).collect();
        assert!(slots[1].abort.is_cancelled());
        assert!(connections.admit().is_none(), "all work");
        tokio::time::advance(Duration::from_secs(61)).await;
        assert!(connections.admit().is_some(), "work that is silent is a stream that nobody uses");
        assert!(slots[0].abort.is_cancelled());
        drop((working, busy));
    }
}
