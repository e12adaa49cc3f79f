//! Ledger followers: the chained log and the webhook. Each reads records in order on its own thread and passes them on.
//!
//! Followers only read the ledger, so the decision path never waits for them. Records that are left at a stop are passed on after the next start.

mod agents;
mod chain;
mod error;
mod loaded_record;
mod webhook;

#[cfg(test)]
mod fixture;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use proctor_ledger::Reader;
use proctor_ledger::reader::Follow;
use proctor_ledger::store::Filter;

pub use chain::ChainFollower;
pub use error::{FinishError, LogError, LogFileError, PositionError, StartError, UnknownEvent, WebhookError};
pub use webhook::{EventKind, WebhookFollower, WebhookSettings};

/// Longest wait for new records before the stop request is checked again.
const IDLE: Duration = Duration::from_millis(500);

/// Extra wait for the thread after the deadline: the thread checks the clock at this interval.
const GRACE: Duration = Duration::from_millis(500);

/// Handle of a running follower's thread. Dropping it stops the thread without a drain.
#[derive(Debug)]
pub struct Handle {
    stop: Arc<Stop>,
    ended: Receiver<Result<(), FinishError>>,
}

impl Handle {
    /// Starts the thread of a follower.
    fn spawn(
        name: &str,
        run: impl FnOnce(&Stop) -> Result<(), FinishError> + Send + 'static,
    ) -> Result<Handle, StartError> {
        let stop = Arc::new(Stop::default());
        let (tell, ended) = sync_channel(1);
        let seen = Arc::clone(&stop);
        std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || {
                let _ = tell.try_send(run(&seen));
            })
            .map_err(|source| StartError::Thread { name: name.to_owned(), source })?;
        Ok(Handle { stop, ended })
    }

    /// Drains the ledger until `deadline`, then stops the thread. The ledger's writer has been finished before.
    /// An error says what is left for the next start.
    pub fn finish(self, deadline: Instant) -> Result<(), FinishError> {
        self.stop.ask(deadline);
        let left = deadline.saturating_duration_since(Instant::now());
        match self.ended.recv_timeout(left.saturating_add(GRACE)) {
            Ok(outcome) => outcome,
            Err(RecvTimeoutError::Timeout) => Err(FinishError::Timeout),
            Err(RecvTimeoutError::Disconnected) => Err(FinishError::Panicked),
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.stop.ask(Instant::now());
    }
}

/// Stop request shared with a follower's thread, with the deadline of its drain.
#[derive(Debug, Default)]
struct Stop {
    deadline: Mutex<Option<Instant>>,
    asked: Condvar,
}

impl Stop {
    fn ask(&self, deadline: Instant) {
        let mut known = self.lock();
        // The first request counts: a handle that is dropped after `finish` must not shorten the drain.
        known.get_or_insert(deadline);
        self.asked.notify_all();
    }

    /// Whether a stop was requested: the current drain is then the last.
    fn is_asked(&self) -> bool {
        self.lock().is_some()
    }

    /// Whether the drain's deadline has passed.
    fn is_over(&self) -> bool {
        self.lock().is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// Waits before a retry. A stop request cuts the wait short, for one immediate retry; `was_asked` says whether the last
    /// attempt knew of the request already. False once the deadline has passed.
    fn pause(&self, time: Duration, was_asked: bool) -> bool {
        let mut deadline = self.lock();
        let until = Instant::now() + time;
        loop {
            let now = Instant::now();
            match *deadline {
                Some(deadline) if now >= deadline => return false,
                Some(_) if !was_asked => return true,
                _ if now >= until => return true,
                _ => {}
            }
            let wake = deadline.map_or(until, |deadline| deadline.min(until));
            let waited = self.asked.wait_timeout(deadline, wake.saturating_duration_since(now));
            deadline = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Instant>> {
        self.deadline.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Polling round: the records from `from` on, and those that arrive within [`IDLE`].
struct Round {
    follow: Follow,
    /// Whether the round ended because no record came, and not because the ledger is closed.
    was_idle: Arc<AtomicBool>,
    is_last: bool,
}

impl Round {
    fn new(reader: &Reader, from: u64, stop: &Stop) -> Round {
        // Checked before the first read, so that records from before the stop request are still read.
        let is_last = stop.is_asked();
        let was_idle = Arc::new(AtomicBool::new(false));
        let idle = Arc::clone(&was_idle);
        let mut has_waited = is_last;
        let filter = Filter { seqs: Some(from..u64::MAX), ..Filter::default() };
        let follow = reader.follow(filter, move || {
            if has_waited {
                idle.store(true, Ordering::Relaxed);
                return None;
            }
            has_waited = true;
            Some(IDLE)
        });
        Round { follow, was_idle, is_last }
    }

    /// Whether this round was the last, asked after its last page. A closed ledger cannot be waited on, so this sleeps instead.
    fn is_done(&self, stop: &Stop) -> bool {
        if !self.is_last && !self.was_idle.load(Ordering::Relaxed) {
            stop.pause(IDLE, false);
        }
        self.is_last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_ends_with_the_word_to_end_and_with_the_deadline() {
        let stop = Stop::default();
        assert!(stop.pause(Duration::ZERO, false));
        stop.ask(Instant::now() + Duration::from_millis(20));
        assert!(stop.pause(Duration::from_secs(600), false) || stop.is_over(), "one more try");
        assert!(!stop.pause(Duration::from_secs(600), true), "and then the time is over");
        assert!(stop.is_over());
    }

    #[test]
    fn the_first_word_to_end_counts() {
        let stop = Stop::default();
        stop.ask(Instant::now() + Duration::from_secs(600));
        stop.ask(Instant::now());
        assert!(stop.is_asked() && !stop.is_over());
    }

    #[test]
    fn a_follower_that_fails_inside_or_hangs_does_not_hold_up_the_end() {
        let failed = Handle::spawn("test", |_| panic!("a defect")).unwrap();
        let ended = failed.finish(Instant::now() + Duration::from_secs(60));
        assert!(matches!(ended, Err(FinishError::Panicked)), "{ended:?}");
        let (hold, held) = sync_channel::<()>(1);
        let hanging = Handle::spawn("test", move |_| {
            let _ = held.recv();
            Ok(())
        })
        .unwrap();
        let ended = hanging.finish(Instant::now());
        assert!(matches!(ended, Err(FinishError::Timeout)), "{ended:?}");
        drop(hold);
    }
}
