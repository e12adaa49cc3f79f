//! Room for what is read but not answered yet: counted in bytes, so that neither many small nor a few large lines fill memory.

use std::sync::{Condvar, Mutex, PoisonError};

/// Bytes of lines that may be on their way.
const MOST: usize = 8 << 20;

/// The room of one stream.
#[derive(Debug, Default)]
pub struct Room {
    taken: Mutex<usize>,
    changed: Condvar,
}

impl Room {
    /// Takes room for a line; waits until there is some. One line always fits.
    pub fn take(&self, bytes: usize) {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        while *taken > 0 && *taken + bytes > MOST {
            taken = self.changed.wait(taken).unwrap_or_else(PoisonError::into_inner);
        }
        *taken += bytes;
    }

    /// Gives the room of a line back.
    pub fn give_back(&self, bytes: usize) {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        *taken = taken.saturating_sub(bytes);
        self.changed.notify_all();
    }

    /// Gives all room back: nobody will answer any more.
    pub fn open_wide(&self) {
        self.give_back(usize::MAX);
    }

    /// Waits until nothing is on its way, at most so long.
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
        let room = Room::default();
        room.take(MOST * 2);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| room.take(1));
            assert!(!waiting.is_finished());
            room.give_back(MOST * 2);
        });
        room.give_back(1);
        room.wait_until_empty(std::time::Duration::ZERO);
        assert_eq!(*room.taken.lock().unwrap(), 0);
    }
}
