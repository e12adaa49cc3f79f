//! Backpressure on streams of lines: bounds the bytes that are read but not answered yet, so that neither many small nor a few large
//! lines fill memory.

use std::sync::{Condvar, Mutex, PoisonError};

/// Bytes of unanswered lines of one stream at most.
const MAX_BYTES: usize = 8 << 20;

/// A counting semaphore over the bytes of unanswered lines of one stream.
#[derive(Debug, Default)]
pub struct InFlightBytes {
    taken: Mutex<usize>,
    changed: Condvar,
}

impl InFlightBytes {
    /// Acquires the bytes of a line, blocking while others take them up. A line longer than the limit is let in alone.
    pub fn acquire(&self, bytes: usize) {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        while *taken > 0 && *taken + bytes > MAX_BYTES {
            taken = self.changed.wait(taken).unwrap_or_else(PoisonError::into_inner);
        }
        *taken += bytes;
    }

    /// Releases the bytes of an answered line.
    pub fn release(&self, bytes: usize) {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        *taken = taken.saturating_sub(bytes);
        self.changed.notify_all();
    }

    /// Releases all bytes, for readers that block although no answer will be written any more.
    pub fn release_all(&self) {
        self.release(usize::MAX);
    }

    /// Waits until every line is answered, at most for `most`.
    pub fn wait_until_empty(&self, most: std::time::Duration) {
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.changed.wait_timeout_while(taken, most, |taken| *taken > 0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_line_fits_alone_and_the_next_waits() {
        let in_flight = InFlightBytes::default();
        in_flight.acquire(MAX_BYTES * 2);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| in_flight.acquire(1));
            assert!(!waiting.is_finished());
            in_flight.release(MAX_BYTES * 2);
        });
        in_flight.release(1);
        in_flight.wait_until_empty(std::time::Duration::ZERO);
        assert_eq!(*in_flight.taken.lock().unwrap(), 0);
    }
}
