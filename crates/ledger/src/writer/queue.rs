//! The queue in front of the writer: bounded in drafts and bytes.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use proctor_core::record::Envelope;

use super::pending::Slot;
use super::{NotRecorded, Options, Receipt, StateRow};
use crate::merkle::Hash;
use crate::note::NoteSignature;
use crate::store::StoredBody;

/// What an entry costs besides its leaf, body and rows.
const ENTRY_OVERHEAD: usize = 512;

/// How long the writer waits for as many drafts as it had the last time. Many callers that ask again as soon as they are answered are so
/// answered by few commits; one that asks alone never waits.
const GATHER: Duration = Duration::from_micros(400);

/// A record that is ready to get its place.
#[derive(Debug)]
pub(super) struct Ready {
    pub(super) envelope: Envelope,
    pub(super) leaf: Vec<u8>,
    pub(super) hash: Hash,
    pub(super) body: Option<StoredBody>,
    pub(super) rows: Vec<StateRow>,
}

impl Ready {
    fn cost(&self) -> usize {
        let rows: usize = self
            .rows
            .iter()
            .map(|row| row.key.len() + row.value.as_ref().map_or(0, Vec::len) + size_of::<StateRow>())
            .sum();
        ENTRY_OVERHEAD + self.leaf.len() + self.body.as_ref().map_or(0, |body| body.bytes.len()) + rows
    }
}

/// What one caller wants recorded, and how it hears of it.
#[derive(Debug)]
pub(super) struct Entry {
    /// The record that the caller waits for.
    pub(super) record: Ready,
    /// Records that stand right behind it; all of them are committed, or none.
    pub(super) behind: Vec<Ready>,
    pub(super) erase: Option<u64>,
    pub(super) deadline: Option<Instant>,
    /// The sequence that it must get.
    pub(super) seq: Option<u64>,
    /// Whether others may build on its effects, or it on theirs.
    pub(super) stateful: bool,
    /// The generation when it got its place.
    pub(super) generation: u64,
    pub(super) slot: Arc<Slot<Receipt>>,
}

impl Entry {
    fn cost(&self) -> usize {
        self.record.cost() + self.behind.iter().map(Ready::cost).sum::<usize>()
    }
}

/// What waits in the queue.
#[derive(Debug)]
pub(super) enum Item {
    Draft(Box<Entry>),
    Checkpoint(Arc<Slot<String>>),
    Cosign { size: u64, signature: NoteSignature, slot: Arc<Slot<String>> },
}

impl Item {
    fn cost(&self) -> usize {
        match self {
            Item::Draft(entry) => entry.cost(),
            Item::Checkpoint(_) | Item::Cosign { .. } => ENTRY_OVERHEAD,
        }
    }

    /// Tells the caller that it was not done.
    pub(super) fn refuse(self, reason: NotRecorded) {
        match self {
            Item::Draft(entry) => entry.slot.answer(Err(reason)),
            Item::Checkpoint(slot) | Item::Cosign { slot, .. } => slot.answer(Err(reason)),
        };
    }
}

/// What the writer takes at once.
#[derive(Debug, Default)]
pub(super) struct Taken {
    pub(super) items: Vec<Item>,
    /// Denies that were answered without a record.
    pub(super) unrecorded: u64,
    /// Nothing more will come.
    pub(super) finished: bool,
}

pub(super) struct Queue {
    state: Mutex<QueueState>,
    work: Condvar,
    room: Condvar,
    drafts: usize,
    bytes: usize,
    batch_records: usize,
    batch_bytes: usize,
}

#[derive(Default)]
struct QueueState {
    items: VecDeque<Item>,
    bytes: usize,
    generation: u64,
    unrecorded: u64,
    /// There is a new reason to write although no item waits.
    nudged: bool,
    closed: bool,
    /// With how many items the writer wants to be woken; none if it is awake.
    wake_at: Option<usize>,
    /// How many drafts the writer took the last time.
    last_taken: usize,
    callers_wait: usize,
}

/// Whether the writer is woken for an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wake {
    /// It is.
    Writer,
    /// It is not: who puts the item there sees to it.
    Nobody,
}

impl Queue {
    pub(super) fn new(options: &Options) -> Queue {
        Queue {
            state: Mutex::new(QueueState::default()),
            work: Condvar::new(),
            room: Condvar::new(),
            drafts: options.queue_drafts.max(1),
            bytes: options.queue_bytes,
            batch_records: options.batch_records.max(1),
            batch_bytes: options.batch_bytes,
        }
    }

    pub(super) fn generation(&self) -> u64 {
        self.lock().generation
    }

    /// Gives the entry a place, waiting for one until its deadline.
    pub(super) fn push(
        &self,
        mut entry: Box<Entry>,
        after: Option<u64>,
        wake: Wake,
    ) -> Result<(), NotRecorded> {
        let cost = entry.cost();
        let mut state = self.lock();
        loop {
            if state.closed {
                return Err(NotRecorded::Closed);
            }
            if after.is_some_and(|generation| generation != state.generation) {
                return Err(NotRecorded::Stale);
            }
            // What is larger than the whole queue goes through alone.
            let fits = state.items.len() < self.drafts && state.bytes.saturating_add(cost) <= self.bytes;
            if fits || state.items.is_empty() {
                break;
            }
            state.callers_wait += 1;
            let passed;
            (state, passed) = self.wait_for_room(state, entry.deadline);
            state.callers_wait -= 1;
            if passed {
                return Err(NotRecorded::Full);
            }
        }
        entry.generation = state.generation;
        self.put(state, Item::Draft(entry), cost, wake);
        Ok(())
    }

    /// Whether a few more drafts would not have to wait.
    pub(super) fn has_room(&self) -> bool {
        let state = self.lock();
        state.items.len() < self.drafts - self.drafts / 8 && state.bytes < self.bytes - self.bytes / 8
    }

    /// Queues something else than a draft; there are few of these, so they do not wait for room.
    pub(super) fn push_control(&self, item: Item) -> Result<(), NotRecorded> {
        let state = self.lock();
        if state.closed {
            return Err(NotRecorded::Closed);
        }
        let cost = item.cost();
        self.put(state, item, cost, Wake::Writer);
        Ok(())
    }

    pub(super) fn note_unrecorded(&self) {
        let mut state = self.lock();
        state.unrecorded = state.unrecorded.saturating_add(1);
        state.nudged = true;
        self.wake_writer(&mut state);
    }

    /// Wakes the writer if something waits.
    pub(super) fn wake_for_the_rest(&self) {
        let mut state = self.lock();
        if !state.items.is_empty() {
            self.wake_writer(&mut state);
        }
    }

    /// So many of the unrecorded are on record now.
    pub(super) fn unrecorded_written(&self, count: u64) {
        let mut state = self.lock();
        state.unrecorded = state.unrecorded.saturating_sub(count);
    }

    /// No more items are let in; those that are in will be taken.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        self.wake_writer(&mut state);
        drop(state);
        self.room.notify_all();
    }

    /// Starts a new generation and returns it.
    pub(super) fn next_generation(&self) -> u64 {
        let mut state = self.lock();
        state.generation += 1;
        state.generation
    }

    /// Starts a new generation and empties the queue in the same moment.
    pub(super) fn fail_all(&self) -> (u64, VecDeque<Item>) {
        let mut state = self.lock();
        state.generation += 1;
        state.bytes = 0;
        let items = std::mem::take(&mut state.items);
        self.room.notify_all();
        (state.generation, items)
    }

    /// Blocks until there is something to do.
    pub(super) fn wait(&self) {
        let mut state = self.lock();
        while state.items.is_empty() && !state.nudged && !state.closed {
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

    /// Everything that waits, up to the size of a batch.
    pub(super) fn take(&self) -> Taken {
        let mut state = self.lock();
        state.nudged = false;
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
        if state.callers_wait > 0 {
            self.room.notify_all();
        }
        taken
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
        // Waking costs a system call: only when it is needed.
        if state.wake_at.take().is_some() {
            self.work.notify_one();
        }
    }

    /// Waits until something was taken; true if the deadline passed.
    fn wait_for_room<'a>(
        &self,
        state: MutexGuard<'a, QueueState>,
        deadline: Option<Instant>,
    ) -> (MutexGuard<'a, QueueState>, bool) {
        let Some(deadline) = deadline else {
            return (self.room.wait(state).unwrap_or_else(PoisonError::into_inner), false);
        };
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return (state, true);
        }
        let (state, _) = self.room.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner);
        (state, false)
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
