//! The queue in front of the writer, bounded in drafts and bytes, and the line of callers that wait for its capacity.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::entry::{Entry, Item};
use super::permit::{Permit, Reservation, ReserveError, Waiter};
use super::{NotRecorded, Options};

/// The longest time that the writer waits for as many drafts as its last batch had. Callers that append again as soon as
/// they are answered then share a commit; a single caller never waits, because its last batch had one draft.
const GATHER: Duration = Duration::from_micros(400);

/// A batch of items for one commit.
#[derive(Debug, Default)]
pub(super) struct Taken {
    pub(super) items: Vec<Item>,
    /// Denies that were answered without a record.
    pub(super) unrecorded: u64,
    /// The queue is closed and empty.
    pub(super) finished: bool,
}

pub(super) struct Queue {
    state: Mutex<QueueState>,
    work: Condvar,
    drafts: usize,
    bytes: usize,
    batch_records: usize,
    batch_bytes: usize,
}

#[derive(Default)]
struct QueueState {
    items: VecDeque<Item>,
    /// The cost of all items.
    bytes: usize,
    /// Capacity of permits that are not used yet.
    reserved_drafts: usize,
    reserved_bytes: usize,
    /// Callers that wait for capacity, in order.
    line: VecDeque<Arc<Waiter>>,
    generation: u64,
    unrecorded: u64,
    /// Whether the writer is needed although the queue is empty.
    wake_requested: bool,
    closed: bool,
    /// The number of items with which the writer wants to be woken; none if it is awake.
    wake_at: Option<usize>,
    /// The number of items in the writer's last batch.
    last_taken: usize,
}

/// Whether an append wakes the writer thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wake {
    /// The writer commits the record.
    Writer,
    /// The writer sleeps on: the caller calls [`Ledger::commit_inline`](super::Ledger::commit_inline) next.
    Deferred,
}

impl Queue {
    pub(super) fn new(options: &Options) -> Queue {
        Queue {
            state: Mutex::new(QueueState::default()),
            work: Condvar::new(),
            drafts: options.queue_drafts.max(1),
            bytes: options.queue_bytes,
            batch_records: options.batch_records.max(1),
            batch_bytes: options.batch_bytes,
        }
    }

    pub(super) fn generation(&self) -> u64 {
        self.lock().generation
    }

    /// Queues the entry, waiting for capacity until its deadline.
    pub(super) fn push(
        self: &Arc<Self>,
        entry: Box<Entry>,
        after: Option<u64>,
        wake: Wake,
    ) -> Result<(), NotRecorded> {
        let cost = entry.cost();
        let mut state = self.lock();
        check(&state, after)?;
        if self.is_free(&state, 1, cost) {
            self.put_draft(state, entry, cost, wake);
            return Ok(());
        }
        let waiter = Waiter::new(1, cost);
        state.line.push_back(Arc::clone(&waiter));
        drop(state);
        let mut permit = waiter.wait(self, entry.deadline)?;
        self.push_reserved(&mut permit, entry, after, wake)
    }

    /// Queues the entry at once, on the capacity of the permit. An entry that costs more than the permit has left is let
    /// in: the bound on bytes is exceeded by at most what callers underestimated.
    pub(super) fn push_reserved(
        &self,
        permit: &mut Permit,
        entry: Box<Entry>,
        after: Option<u64>,
        wake: Wake,
    ) -> Result<(), NotRecorded> {
        let cost = entry.cost();
        let mut state = self.lock();
        check(&state, after)?;
        let used = cost.min(permit.cost);
        permit.drafts = permit.drafts.saturating_sub(1);
        permit.cost -= used;
        state.reserved_drafts = state.reserved_drafts.saturating_sub(1);
        state.reserved_bytes = state.reserved_bytes.saturating_sub(used);
        self.put_draft(state, entry, cost, wake);
        Ok(())
    }

    /// Reserves capacity if it is free and no reservation waits.
    pub(super) fn try_reserve(self: &Arc<Self>, drafts: usize, cost: usize) -> Result<Permit, ReserveError> {
        let mut state = self.lock();
        if state.closed {
            return Err(ReserveError::Closed);
        }
        if !self.is_free(&state, drafts, cost) {
            return Err(ReserveError::Full);
        }
        Ok(self.reserve(&mut state, drafts, cost))
    }

    /// Reserves capacity, or joins the line for it.
    pub(super) fn reserve_or_join(
        self: &Arc<Self>,
        drafts: usize,
        cost: usize,
    ) -> Result<Reservation, ReserveError> {
        let mut state = self.lock();
        if state.closed {
            return Err(ReserveError::Closed);
        }
        if self.is_free(&state, drafts, cost) {
            return Ok(Reservation::Granted(self.reserve(&mut state, drafts, cost)));
        }
        let waiter = Waiter::new(drafts, cost);
        state.line.push_back(Arc::clone(&waiter));
        Ok(Reservation::Queued(waiter))
    }

    /// Releases reserved capacity.
    pub(super) fn release(self: &Arc<Self>, drafts: usize, cost: usize) {
        if drafts == 0 && cost == 0 {
            return;
        }
        let mut state = self.lock();
        state.reserved_drafts = state.reserved_drafts.saturating_sub(drafts);
        state.reserved_bytes = state.reserved_bytes.saturating_sub(cost);
        self.serve_line(state);
    }

    /// Ends the waiting of a caller, and passes on the permit that it may have been given meanwhile.
    pub(super) fn leave_line(self: &Arc<Self>, waiter: &Arc<Waiter>) {
        let mut state = self.lock();
        state.line.retain(|other| !Arc::ptr_eq(other, waiter));
        // The next one may want less than this one did.
        self.serve_line(state);
        drop(waiter.slot.give_up());
    }

    /// Whether an eighth of the queue is free, so that a few more drafts would not have to wait.
    pub(super) fn has_room(&self) -> bool {
        let state = self.lock();
        state.line.is_empty()
            && state.items.len() + state.reserved_drafts < self.drafts - self.drafts / 8
            && state.bytes.saturating_add(state.reserved_bytes) < self.bytes - self.bytes / 8
    }

    /// Enqueues a control item; there are few of these, so they do not wait for capacity.
    pub(super) fn push_control(&self, item: Item) -> Result<(), NotRecorded> {
        let state = self.lock();
        check(&state, None)?;
        let cost = item.cost();
        self.put(state, item, cost, Wake::Writer);
        Ok(())
    }

    pub(super) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    pub(super) fn unrecorded(&self) -> u64 {
        self.lock().unrecorded
    }

    pub(super) fn note_unrecorded(&self, count: u64) {
        let mut state = self.lock();
        // A closed ledger writes no `gap` any more: whoever relayed the action counts it.
        if count == 0 || state.closed {
            return;
        }
        state.unrecorded = state.unrecorded.saturating_add(count);
        state.wake_requested = true;
        self.wake_writer(&mut state);
    }

    pub(super) fn wake_if_not_empty(&self) {
        let mut state = self.lock();
        if !state.items.is_empty() {
            self.wake_writer(&mut state);
        }
    }

    /// Subtracts denies whose `gap` record was committed.
    pub(super) fn unrecorded_written(&self, count: u64) {
        let mut state = self.lock();
        state.unrecorded = state.unrecorded.saturating_sub(count);
    }

    /// Refuses new items and all waiting reservations; items that are queued are still taken.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        self.wake_writer(&mut state);
        let line = std::mem::take(&mut state.line);
        drop(state);
        for waiter in line {
            waiter.slot.answer(Err(NotRecorded::Closed));
        }
    }

    /// Starts a new generation and returns it.
    pub(super) fn next_generation(&self) -> u64 {
        let mut state = self.lock();
        state.generation += 1;
        state.generation
    }

    /// Starts a new generation and empties the queue under one lock: no entry of the old generation is queued after it.
    pub(super) fn fail_all(self: &Arc<Self>) -> (u64, VecDeque<Item>) {
        let mut state = self.lock();
        state.generation += 1;
        state.bytes = 0;
        let items = std::mem::take(&mut state.items);
        let generation = state.generation;
        self.serve_line(state);
        (generation, items)
    }

    /// Blocks until an item is queued or the writer is needed otherwise.
    pub(super) fn wait(&self) {
        let mut state = self.lock();
        while state.items.is_empty() && !state.wake_requested && !state.closed {
            state.wake_at = Some(1);
            state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let until = Instant::now() + GATHER;
        while state.items.len() < state.last_taken && !state.closed {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state.wake_at = Some(state.last_taken);
            (state, _) = self.work.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner);
        }
        state.wake_at = None;
    }

    /// Takes the oldest items, up to the size of a batch.
    pub(super) fn take(self: &Arc<Self>) -> Taken {
        let mut state = self.lock();
        state.wake_requested = false;
        let mut taken = Taken { unrecorded: state.unrecorded, ..Taken::default() };
        taken.items.reserve(state.items.len().min(self.batch_records));
        let mut bytes = 0;
        while taken.items.len() < self.batch_records
            && let Some(cost) = state.items.front().map(Item::cost)
        {
            if !taken.items.is_empty() && bytes + cost > self.batch_bytes {
                break;
            }
            bytes += cost;
            taken.items.extend(state.items.pop_front());
        }
        state.bytes = state.bytes.saturating_sub(bytes);
        state.last_taken = taken.items.len();
        taken.finished = state.closed && state.items.is_empty();
        self.serve_line(state);
        taken
    }

    /// Whether the capacity is free and no reservation waits, because reservations are granted in FIFO order.
    fn is_free(&self, state: &QueueState, drafts: usize, cost: usize) -> bool {
        state.line.is_empty() && self.fits(state, drafts, cost)
    }

    fn fits(&self, state: &QueueState, drafts: usize, cost: usize) -> bool {
        let used = state.items.len() + state.reserved_drafts;
        let bytes = state.bytes.saturating_add(state.reserved_bytes);
        // What is larger than the whole queue passes alone.
        used == 0 || (used.saturating_add(drafts) <= self.drafts && bytes.saturating_add(cost) <= self.bytes)
    }

    fn reserve(self: &Arc<Self>, state: &mut QueueState, drafts: usize, cost: usize) -> Permit {
        state.reserved_drafts = state.reserved_drafts.saturating_add(drafts);
        state.reserved_bytes = state.reserved_bytes.saturating_add(cost);
        Permit::new(Arc::clone(self), drafts, cost)
    }

    /// Hands permits to the callers at the front of the line, as far as the capacity goes.
    fn serve_line(self: &Arc<Self>, mut state: MutexGuard<'_, QueueState>) {
        let mut served = Vec::new();
        while let Some(waiter) = state.line.front()
            && self.fits(&state, waiter.drafts, waiter.cost)
            && let Some(waiter) = state.line.pop_front()
        {
            let permit = self.reserve(&mut state, waiter.drafts, waiter.cost);
            served.push((waiter, permit));
        }
        // Answered without the lock: a permit whose caller has just left is dropped there, and locks to give it back.
        drop(state);
        for (waiter, permit) in served {
            waiter.slot.answer(Ok(permit));
        }
    }

    fn put_draft(&self, state: MutexGuard<'_, QueueState>, mut entry: Box<Entry>, cost: usize, wake: Wake) {
        entry.generation = state.generation;
        self.put(state, Item::Draft(entry), cost, wake);
    }

    fn put(&self, mut state: MutexGuard<'_, QueueState>, item: Item, cost: usize, wake: Wake) {
        state.bytes = state.bytes.saturating_add(cost);
        state.items.push_back(item);
        let enough = state.wake_at.is_some_and(|wanted| state.items.len() >= wanted);
        if wake == Wake::Writer && enough {
            self.wake_writer(&mut state);
        }
    }

    fn wake_writer(&self, state: &mut QueueState) {
        // Waking costs a system call: only when the writer sleeps.
        if state.wake_at.take().is_some() {
            self.work.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Queue").field("drafts", &self.drafts).finish_non_exhaustive()
    }
}

/// Refuses entries of a closed queue or another generation.
fn check(state: &QueueState, after: Option<u64>) -> Result<(), NotRecorded> {
    if state.closed {
        return Err(NotRecorded::Closed);
    }
    if after.is_some_and(|generation| generation != state.generation) {
        return Err(NotRecorded::Stale);
    }
    Ok(())
}
