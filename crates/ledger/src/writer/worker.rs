//! The writer thread: takes batches from the queue, commits them, and answers the callers.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use proctor_core::id::RecordId;
use proctor_core::record::{Envelope, RecordKind};
use proctor_core::time::Timestamp;

use super::entry::{Entry, Item};
use super::opening::Start;
use super::pending::Slot;
use super::plan::{Cosignature, Plan};
use super::queue::{Queue, Taken};
use super::{NotRecorded, Options, Receipt, Tree};
use crate::checkpoint::Checkpoint;
use crate::error::StoreError;
use crate::note::Note;
use crate::reader::CommittedSize;
use crate::store::{CheckpointRow, NewRecord, Store, StoreReader, parse_leaf};

/// Records after which a checkpoint is due.
const CHECKPOINT_RECORDS: u64 = 256;

/// Microseconds after which a checkpoint is due, if there are new records.
const CHECKPOINT_MICROS: u64 = 1_000_000;

/// The loop of the writer thread, until the queue is closed.
pub(super) fn run(worker: &Mutex<Worker>, queue: &Arc<Queue>, committed: &Arc<CommittedSize>) {
    // Also on a panic: no caller may wait for a thread that has ended.
    let _close = CloseOnExit(Arc::clone(queue), Arc::clone(committed));
    // A caller that panicked in `commit_inline` has poisoned the lock and may have left the tree ahead of the store, so
    // the ledger closes instead of going on.
    let Ok(mut first) = worker.lock() else { return };
    // Moves what a crash left in the write-ahead log to the tables, and drops an incomplete transaction at its end.
    first.purge_erased();
    drop(first);
    loop {
        queue.wait();
        let Ok(mut worker) = worker.lock() else { return };
        if worker.commit_next_batch() {
            return worker.shut_down();
        }
    }
}

/// Commits the queue on the caller's thread, unless another thread is committing: waking the writer and being woken by it
/// costs more than a small commit. What was queued while another thread committed is left to the writer.
pub(super) fn commit_inline(worker: &Mutex<Worker>, queue: &Queue) {
    if let Ok(mut worker) = worker.try_lock() {
        worker.commit_next_batch();
    }
    queue.wake_if_not_empty();
}

pub(super) struct Worker {
    queue: Arc<Queue>,
    store: Arc<dyn Store>,
    reader: Arc<dyn StoreReader>,
    committed: Arc<CommittedSize>,
    options: Options,
    tree: Tree,
    generation: u64,
    last_checkpoint: Option<CheckpointRow>,
    last_checkpoint_time: Option<Timestamp>,
    /// Records that were committed although their callers were told that they were not.
    retractions: Vec<(u64, Envelope)>,
    /// The emptied list of the last batch, whose memory the next one reuses.
    record_buffer: Vec<NewRecord>,
    /// A commit failed, and it is not known whether it took effect.
    uncertain: bool,
    /// Erased bodies may still be in the write-ahead log.
    purge_due: bool,
}

impl Worker {
    pub(super) fn new(
        queue: Arc<Queue>,
        store: Arc<dyn Store>,
        committed: Arc<CommittedSize>,
        start: Start,
        options: Options,
    ) -> Worker {
        Worker {
            reader: store.reader(),
            queue,
            store,
            committed,
            options,
            tree: start.tree,
            generation: 0,
            last_checkpoint: start.checkpoint,
            last_checkpoint_time: None,
            retractions: Vec::new(),
            record_buffer: Vec::new(),
            uncertain: false,
            purge_due: true,
        }
    }

    /// Commits one batch, if anything is queued. True if the queue is closed and empty.
    pub(super) fn commit_next_batch(&mut self) -> bool {
        // Taken under the worker's lock, so that batches are committed in the order in which they were taken.
        let taken = self.queue.take();
        let finished = taken.finished;
        if !taken.items.is_empty() || taken.unrecorded > 0 {
            self.process(taken);
        }
        finished
    }

    fn process(&mut self, taken: Taken) {
        if let Err(error) = self.recover() {
            if !taken.items.is_empty() {
                self.refuse_all(taken.items, &error);
            }
            return;
        }
        let mut plan = Plan::new(self.tree.clone());
        plan.batch.records = std::mem::take(&mut self.record_buffer);
        self.add_gap(&mut plan, taken.unrecorded);
        let now = Instant::now();
        let mut retracting: Vec<Retracting> = Vec::new();
        let mut items = taken.items.into_iter();
        while let Some(item) = items.next() {
            match item {
                Item::Draft(entry) => {
                    if let Err((entry, error)) = self.admit(&mut plan, entry, now) {
                        // The store cannot be read, so nothing can be written.
                        let rest = std::iter::once(Item::Draft(entry)).chain(items).collect();
                        self.fail(plan, &error);
                        self.refuse_all(rest, &error);
                        for (_, slot) in retracting {
                            slot.answer(Err(NotRecorded::Failed(error.to_string())));
                        }
                        return;
                    }
                }
                Item::Checkpoint(slot) => plan.checkpoint_for.push(slot),
                Item::Cosign { size, signature, slot } => {
                    plan.cosignatures.push(Cosignature { size, signature, slot, note: None });
                }
                Item::Retract { seqs, slot } => retracting.push((self.retract_committed(&seqs), slot)),
            }
        }
        // The callers have the error already; retractions are tried again before the next batch.
        let recovered = self.commit(plan).and_then(|()| self.recover());
        for (found, slot) in retracting {
            let retracted = found.and_then(|()| recovered.clone());
            slot.answer(retracted.map_err(|error| NotRecorded::Failed(error.to_string())));
        }
        self.purge_erased();
    }

    fn shut_down(&mut self) {
        let _ = self.recover();
        if self.last_checkpoint.as_ref().is_none_or(|last| last.size < self.tree.size())
            && self.tree.size() > 0
        {
            let mut plan = Plan::new(self.tree.clone());
            if self.add_checkpoint(&mut plan).is_ok() && self.store.commit(&plan.batch).is_err() {
                self.uncertain = true;
            }
        }
        // Also empties the write-ahead log, so that the database file alone is the ledger.
        let _ = self.store.purge();
    }

    /// Restores the tree from the store after a failure, and writes the retractions that are due. Nothing else is written before: a
    /// retraction is the record right after the failure.
    fn recover(&mut self) -> Result<(), StoreError> {
        if self.uncertain {
            self.resolve_failed_commit()?;
        }
        if self.retractions.is_empty() {
            return Ok(());
        }
        let mut plan = Plan::new(self.tree.clone());
        for (seq, envelope) in &self.retractions {
            // The retraction repeats the envelope of the decision, so that a fold can undo it without reading that one.
            let own = self.own_envelope(RecordKind::Retracted);
            let links = vec![*seq];
            let retraction = Envelope {
                id: own.id,
                time: own.time,
                kind: own.kind,
                links,
                once: None,
                body: None,
                ..envelope.clone()
            };
            add_own(&mut plan, retraction)?;
        }
        self.commit(plan)?;
        self.retractions.clear();
        // State that was loaded before the retractions is outdated.
        self.generation = self.queue.next_generation();
        Ok(())
    }

    /// Asks the store whether a commit that failed took effect. Records that did were answered as failed: they are retracted.
    fn resolve_failed_commit(&mut self) -> Result<(), StoreError> {
        let (known, stored) = (self.tree.size(), self.reader.size()?);
        if stored < known {
            return Err(StoreError::Damaged(format!(
                "{known} records were committed, but {stored} are there"
            )));
        }
        if stored > known {
            let tree = Tree::load(self.reader.as_ref(), stored)?;
            let leaves = self.reader.leaves(known..stored)?;
            for (seq, leaf) in (known..).zip(leaves) {
                self.retract(seq, parse_leaf(seq, &leaf)?.into());
            }
            self.tree = tree;
            self.committed.set(stored);
        }
        let newest = self.reader.checkpoints(0..u64::MAX, crate::store::Order::Descending, 1)?;
        self.last_checkpoint = newest.into_iter().next();
        self.uncertain = false;
        Ok(())
    }

    /// Notes records for retraction that were committed in time, but whose answers did not arrive.
    fn retract_committed(&mut self, seqs: &[u64]) -> Result<(), StoreError> {
        for &seq in seqs {
            let leaves = self.reader.leaves(seq..seq.saturating_add(1))?;
            for leaf in leaves {
                self.retract(seq, parse_leaf(seq, &leaf)?.into());
            }
        }
        Ok(())
    }

    fn retract(&mut self, seq: u64, envelope: Envelope) {
        // An erasure cannot be undone, and the ledger's own records have no caller that was told otherwise.
        if !matches!(envelope.kind, RecordKind::Erasure | RecordKind::Retracted | RecordKind::Gap) {
            self.retractions.push((seq, envelope));
        }
    }

    fn add_gap(&self, plan: &mut Plan, unrecorded: u64) {
        if unrecorded == 0 {
            return;
        }
        let mut gap = self.own_envelope(RecordKind::Gap);
        gap.code = unrecorded.to_string();
        if add_own(plan, gap).is_ok() {
            plan.unrecorded = unrecorded;
        }
    }

    fn own_envelope(&self, kind: RecordKind) -> Envelope {
        let now = self.options.clock.now();
        Envelope::new(RecordId::new(now, self.options.randomness.as_ref()), now, kind)
    }

    /// Adds the draft to the batch, or answers its caller with the reason why not. The error is one of the store.
    fn admit(
        &mut self,
        plan: &mut Plan,
        entry: Box<Entry>,
        now: Instant,
    ) -> Result<(), (Box<Entry>, StoreError)> {
        let reason = if entry.slot.is_given_up() || entry.deadline.is_some_and(|deadline| deadline <= now) {
            NotRecorded::Deadline
        } else if entry.stateful && entry.generation != self.generation {
            entry.slot.answer(Err(NotRecorded::Stale));
            return Ok(());
        } else if entry.seq.is_some_and(|seq| seq != plan.next_seq()) {
            NotRecorded::Stale
        } else if let Some(link) = missing_link(plan.next_seq(), &entry) {
            NotRecorded::Failed(format!("it links to record {link}, which does not exist"))
        } else {
            match self.once_conflict(plan, &entry) {
                Ok(None) => {
                    plan.add(*entry);
                    return Ok(());
                }
                Ok(Some(refusal)) => refusal,
                Err(error) => return Err((entry, error)),
            }
        };
        if entry.stateful {
            self.generation = self.queue.next_generation();
        }
        entry.slot.answer(Err(reason));
        Ok(())
    }

    /// The refusal of an entry one of whose `once` keys is on record.
    fn once_conflict(&self, plan: &Plan, entry: &Entry) -> Result<Option<NotRecorded>, StoreError> {
        if let Some(first) = self.first_with_key(plan, &entry.record.envelope)? {
            return Ok(Some(NotRecorded::Once { first }));
        }
        let mut own: HashSet<&str> = entry.record.envelope.once.as_deref().into_iter().collect();
        for record in &entry.trailing {
            if let Some(key) = record.envelope.once.as_deref()
                && !own.insert(key)
            {
                let reason = format!("two records that belong together have the `once` key `{key}`");
                return Ok(Some(NotRecorded::Failed(reason)));
            }
            if self.first_with_key(plan, &record.envelope)?.is_some() {
                // The caller decided without knowing of that record: it has to decide again.
                return Ok(Some(NotRecorded::Stale));
            }
        }
        Ok(None)
    }

    fn first_with_key(&self, plan: &Plan, envelope: &Envelope) -> Result<Option<u64>, StoreError> {
        let Some(key) = &envelope.once else { return Ok(None) };
        match plan.once.get(key) {
            Some(first) => Ok(Some(*first)),
            None => self.reader.once(key),
        }
    }

    /// Commits the plan and answers its callers.
    fn commit(&mut self, mut plan: Plan) -> Result<(), StoreError> {
        if plan.is_empty() {
            return Ok(());
        }
        plan.finish();
        let prepared = self.add_checkpoint(&mut plan).and_then(|()| self.add_cosignatures(&mut plan));
        if let Err(error) = prepared.and_then(|()| self.store.commit(&plan.batch)) {
            self.fail(plan, &error);
            return Err(error);
        }
        self.succeed(plan);
        Ok(())
    }

    /// Signs a checkpoint of the plan's tree, if one is due or requested.
    fn add_checkpoint(&mut self, plan: &mut Plan) -> Result<(), StoreError> {
        let size = plan.tree.size();
        let wanted = !plan.checkpoint_for.is_empty();
        plan.batch.to_disk = wanted;
        let now = self.options.clock.now();
        match &self.last_checkpoint {
            Some(last) if last.size == size => {
                // Written once more, because only this commit is synced to the disk.
                if wanted {
                    plan.batch.checkpoints.push(last.clone());
                }
                return Ok(());
            }
            Some(last) if !wanted && !plan.batch.records.is_empty() => {
                let few = size - last.size < CHECKPOINT_RECORDS;
                let recent =
                    self.last_checkpoint_time.is_some_and(|time| now.micros_since(time) < CHECKPOINT_MICROS);
                if few && recent {
                    return Ok(());
                }
            }
            _ => {}
        }
        let origin = self.options.key.name().to_owned();
        let note = Checkpoint::new(&origin, size, plan.tree.root())
            .sign(&self.options.key)
            .map_err(|error| StoreError::Io(format!("the checkpoint could not be signed: {error}")))?;
        plan.batch.checkpoints.push(CheckpointRow { size, note: note.to_string() });
        self.last_checkpoint_time = Some(now);
        Ok(())
    }

    fn add_cosignatures(&mut self, plan: &mut Plan) -> Result<(), StoreError> {
        for cosignature in &mut plan.cosignatures {
            let size = cosignature.size;
            let planned = plan.batch.checkpoints.iter().position(|row| row.size == size);
            let mut row = match planned {
                Some(index) => plan.batch.checkpoints.remove(index),
                None => match self
                    .reader
                    .checkpoints(size..size.saturating_add(1), crate::store::Order::Ascending, 1)?
                    .pop()
                {
                    Some(row) => row,
                    None => continue,
                },
            };
            let merged = Note::parse(row.note.as_bytes()).and_then(|mut note| {
                note.add(cosignature.signature.clone())?;
                Ok(note)
            });
            if let Ok(note) = merged {
                row.note = note.to_string();
                cosignature.note = Some(row.note.clone());
            }
            plan.batch.checkpoints.push(row);
        }
        Ok(())
    }

    fn succeed(&mut self, mut plan: Plan) {
        let size = plan.tree.size();
        self.tree = plan.tree;
        self.queue.unrecorded_written(plan.unrecorded);
        self.purge_due |= !plan.batch.erased.is_empty();
        for row in plan.batch.checkpoints {
            if self.last_checkpoint.as_ref().is_none_or(|last| last.size <= row.size) {
                self.last_checkpoint = Some(row);
            }
        }
        self.committed.set(size);
        let given_up = self.retractions.len();
        // In reverse: a caller that waits for many receipts waits for the oldest one first, and finds the others there when
        // it is woken, instead of being woken for each.
        for (record, slot) in plan.batch.records.drain(..).zip(plan.waiting).rev() {
            let NewRecord { seq, envelope, .. } = record;
            let receipt = Receipt::new(seq, envelope.id, size, envelope.time);
            if let Some(slot) = slot
                && !slot.answer(Ok(receipt))
            {
                self.retract(seq, envelope);
            }
        }
        self.record_buffer = plan.batch.records;
        if let Some(new) = self.retractions.get_mut(given_up..) {
            new.reverse();
        }
        let note = self.last_checkpoint.as_ref().map(|last| last.note.clone()).unwrap_or_default();
        for slot in plan.checkpoint_for {
            slot.answer(Ok(note.clone()));
        }
        for cosignature in plan.cosignatures {
            cosignature.slot.answer(cosignature.note.ok_or_else(|| {
                NotRecorded::Failed(format!(
                    "the checkpoint of {} records takes no more signatures",
                    cosignature.size
                ))
            }));
        }
    }

    /// Answers the callers in the plan with the error, and, if there were drafts, also those in the queue.
    fn fail(&mut self, plan: Plan, error: &StoreError) {
        self.uncertain = true;
        // The queue first: a caller that hears of the failure has to find the new generation and an empty queue.
        let queued = if plan.has_drafts() { self.empty_queue() } else { VecDeque::new() };
        for slot in plan.waiting.into_iter().flatten() {
            slot.answer(Err(NotRecorded::Failed(error.to_string())));
        }
        let cosignatures = plan.cosignatures.into_iter().map(|cosignature| cosignature.slot);
        for slot in plan.checkpoint_for.into_iter().chain(cosignatures) {
            slot.answer(Err(NotRecorded::Failed(error.to_string())));
        }
        refuse(queued, error);
    }

    /// Refuses these items and the whole queue, because they may depend on records that failed.
    fn refuse_all(&mut self, items: Vec<Item>, error: &StoreError) {
        let queued = self.empty_queue();
        refuse(items.into_iter().chain(queued), error);
    }

    fn empty_queue(&mut self) -> VecDeque<Item> {
        let (generation, queued) = self.queue.fail_all();
        self.generation = generation;
        queued
    }

    fn purge_erased(&mut self) {
        if self.purge_due && matches!(self.store.purge(), Ok(true)) {
            self.purge_due = false;
        }
    }
}

/// Whether records could be noted for retraction, and the slot of the caller that waits for the `retracted` records.
type Retracting = (Result<(), StoreError>, Arc<Slot<()>>);

/// A link to a record that does not precede the one with the link.
fn missing_link(first: u64, entry: &Entry) -> Option<u64> {
    let records = std::iter::once(&entry.record).chain(&entry.trailing);
    (first..)
        .zip(records)
        .find_map(|(seq, record)| record.envelope.links.iter().copied().find(|link| *link >= seq))
}

fn add_own(plan: &mut Plan, envelope: Envelope) -> Result<(), StoreError> {
    let leaf = envelope.to_leaf().map_err(|error| StoreError::Io(error.to_string()))?;
    plan.add_own(NewRecord { seq: plan.next_seq(), envelope, leaf, body: None });
    Ok(())
}

fn refuse(items: impl IntoIterator<Item = Item>, error: &StoreError) {
    for item in items {
        item.refuse(NotRecorded::Failed(error.to_string()));
    }
}

/// Closes the queue and ends all followers when the writer thread ends.
struct CloseOnExit(Arc<Queue>, Arc<CommittedSize>);

impl Drop for CloseOnExit {
    fn drop(&mut self) {
        self.0.close();
        let (_, items) = self.0.fail_all();
        for item in items {
            item.refuse(NotRecorded::Closed);
        }
        self.1.end();
    }
}
