//! Tailing: an iterator over records that waits for new ones.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::records::{Record, read};
use crate::error::ReadError;
use crate::store::{Filter, Order, PageBound, StoreReader};

/// The committed size of the owner's ledger, with a notification for followers in the same process.
#[derive(Debug)]
pub(crate) struct CommittedSize {
    state: Mutex<(u64, bool)>,
    changed: Condvar,
}

impl CommittedSize {
    pub(crate) fn new(size: u64) -> CommittedSize {
        CommittedSize { state: Mutex::new((size, false)), changed: Condvar::new() }
    }

    /// Sets the size and wakes the followers.
    pub(crate) fn set(&self, size: u64) {
        self.lock().0 = size;
        self.changed.notify_all();
    }

    /// Marks the ledger as closed and wakes the followers.
    pub(crate) fn end(&self) {
        self.lock().1 = true;
        self.changed.notify_all();
    }

    /// Waits until the size is beyond `size`, or it ended, or the time is over; false if it ended.
    fn wait_beyond(&self, size: u64, time: Duration) -> bool {
        let state = self.lock();
        let waiting = |state: &mut (u64, bool)| state.0 <= size && !state.1;
        let (state, _) =
            self.changed.wait_timeout_while(state, time, waiting).unwrap_or_else(PoisonError::into_inner);
        state.0 > size || !state.1
    }

    fn lock(&self) -> MutexGuard<'_, (u64, bool)> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

type Wait = Box<dyn FnMut() -> Option<Duration> + Send>;

/// Records that are there and those to come: see [`super::Reader::follow`].
pub struct Follow {
    store: Arc<dyn StoreReader>,
    committed: Option<Arc<CommittedSize>>,
    filter: Filter,
    wait: Wait,
    /// The next sequence that has not been looked at.
    next: u64,
    ended: bool,
}

impl Follow {
    pub(super) fn new(
        store: Arc<dyn StoreReader>,
        committed: Option<Arc<CommittedSize>>,
        filter: Filter,
        wait: Wait,
    ) -> Follow {
        let next = filter.seqs.as_ref().map_or(0, |seqs| seqs.start);
        Follow { store, committed, filter, wait, next, ended: false }
    }

    /// The next records, in order, at most a page of them; none when the following has ended.
    pub fn next_page(&mut self) -> Result<Option<Vec<Record>>, ReadError> {
        loop {
            if self.filter.seqs.as_ref().is_some_and(|seqs| self.next >= seqs.end) {
                return Ok(None);
            }
            // Asked before the page is read, so that what the page could not see is looked at next time.
            let size = self.store.size()?;
            if self.next < size {
                let end = self.filter.seqs.as_ref().map_or(size, |seqs| seqs.end.min(size));
                let filter = Filter { seqs: Some(self.next..end), ..self.filter.clone() };
                let page = self.store.page(&filter, self.next, Order::Ascending, PageBound::default())?;
                self.next = page.next.unwrap_or(end);
                if !page.records.is_empty() {
                    return page.records.into_iter().map(read).collect::<Result<_, _>>().map(Some);
                }
            } else if self.ended || !self.pause(size) {
                return Ok(None);
            }
        }
    }

    /// Waits for more; false when the following has ended.
    fn pause(&mut self, size: u64) -> bool {
        let Some(time) = (self.wait)() else { return false };
        match &self.committed {
            // What was written before the end is still to be read.
            Some(committed) => self.ended = !committed.wait_beyond(size, time),
            None => std::thread::sleep(time),
        }
        true
    }
}
