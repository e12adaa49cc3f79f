//! Followers of the ledger: each reads records in order on a thread of its own, and passes them on.
//!
//! They only read the ledger, so nothing waits for them. What they have not passed on yet they pass on at the next start.

mod agents;
mod chain;
mod subject;
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
pub use webhook::{EventKind, WebhookFollower, WebhookSettings};

/// How long a follower waits for records before it looks whether it should end.
const IDLE: Duration = Duration::from_millis(500);

/// How long after the deadline its thread is waited for: it looks at the clock that often.
const GRACE: Duration = Duration::from_millis(500);

/// A follower that runs. Dropping it ends it without a drain.
#[derive(Debug)]
pub struct Handle {
    stop: Arc<Stop>,
    ended: Receiver<Result<(), String>>,
}

impl Handle {
    /// Starts the thread of a follower.
    fn spawn(
        name: &str,
        run: impl FnOnce(&Stop) -> Result<(), String> + Send + 'static,
    ) -> Result<Handle, String> {
        let stop = Arc::new(Stop::default());
        let (tell, ended) = sync_channel(1);
        let seen = Arc::clone(&stop);
        std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || {
                let _ = tell.try_send(run(&seen));
            })
            .map_err(|error| format!("no thread for {name}: {error}"))?;
        Ok(Handle { stop, ended })
    }

    /// Passes on everything that is in the ledger, and ends. The ledger's writer has been finished before.
    /// An error says what is left for the next start.
    pub fn finish(self, deadline: Instant) -> Result<(), String> {
        self.stop.ask(deadline);
        let left = deadline.saturating_duration_since(Instant::now());
        match self.ended.recv_timeout(left.saturating_add(GRACE)) {
            Ok(outcome) => outcome,
            Err(RecvTimeoutError::Timeout) => Err("it did not end in time".to_owned()),
            Err(RecvTimeoutError::Disconnected) => Err("it failed inside".to_owned()),
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.stop.ask(Instant::now());
    }
}

/// Tells a follower to end, and until when it may drain.
#[derive(Debug, Default)]
struct Stop {
    deadline: Mutex<Option<Instant>>,
    asked: Condvar,
}

impl Stop {
    fn ask(&self, deadline: Instant) {
        let mut known = self.lock();
        // The first word counts: a handle that is dropped after `finish` must not shorten the drain.
        known.get_or_insert(deadline);
        self.asked.notify_all();
    }

    /// Whether it should end once everything is passed on.
    fn is_asked(&self) -> bool {
        self.lock().is_some()
    }

    /// Whether the time to drain is over.
    fn is_over(&self) -> bool {
        self.lock().is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// Waits before another try. The word to end cuts the wait short: then there is one more try at once. `was_asked` says
    /// whether the last try knew of it already. False if the time is over.
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

/// One round of following: what is there from `from` on, and what comes in the next half second.
struct Round {
    follow: Follow,
    /// Whether it ended because nothing came, and not because the ledger is closed.
    was_idle: Arc<AtomicBool>,
    is_last: bool,
}

impl Round {
    fn new(reader: &Reader, from: u64, stop: &Stop) -> Round {
        // Asked before anything is read: what was recorded before the word to end is still read.
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

    /// After the last page: whether the follower is done. If the ledger is closed there is nothing to wait for, so it rests.
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
        assert_eq!(
            failed.finish(Instant::now() + Duration::from_secs(60)),
            Err("it failed inside".to_owned())
        );
        let (hold, held) = sync_channel::<()>(1);
        let hanging = Handle::spawn("test", move |_| {
            let _ = held.recv();
            Ok(())
        })
        .unwrap();
        assert_eq!(hanging.finish(Instant::now()), Err("it did not end in time".to_owned()));
        drop(hold);
    }
}
