//! The writer thread: takes what waits, commits it, and tells those who wait.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use proctor_core::id::RecordId;
use proctor_core::record::{Envelope, RecordKind};
use proctor_core::time::Timestamp;

use super::opening::Start;
use super::plan::{Cosignature, Plan};
use super::queue::{Entry, Item, Queue, Taken};
use super::{NotRecorded, Options, Receipt, StateRow, Tree};
use crate::checkpoint::Checkpoint;
use crate::error::StoreError;
use crate::note::Note;
use crate::reader::Growth;
use crate::store::{CheckpointRow, NewRecord, Store, StoreReader};

/// Records after which a checkpoint is due.
const CHECKPOINT_RECORDS: u64 = 256;

/// Microseconds after which a checkpoint is due, if there are new records.
const CHECKPOINT_MICROS: u64 = 1_000_000;

/// The thread that writes whatever nobody else writes, until the queue is closed.
pub(super) fn run(worker: &Mutex<Worker>, queue: &Arc<Queue>, growth: &Arc<Growth>) {
    // Whatever ends this thread, nobody must wait for it any longer.
    let _ending = Ending(Arc::clone(queue), Arc::clone(growth));
    // A caller that panicked while it wrote has left nothing that can be built upon: this ends, and with it everything that waits.
    let Ok(mut first) = worker.lock() else { return };
    // What a crash left in the log goes to the tables now, with whatever looked like its torn end.
    first.remove_traces();
    drop(first);
    loop {
        queue.wait();
        let Ok(mut worker) = worker.lock() else { return };
        if worker.work() {
            return worker.last_round();
        }
    }
}

/// Writes what waits on the caller's own thread, unless somebody is writing: waking the writer and being woken costs more than a small
/// commit. Somebody who writes sees what was put there meanwhile.
pub(super) fn help(worker: &Mutex<Worker>, queue: &Queue) {
    if let Ok(mut worker) = worker.try_lock() {
        worker.work();
    }
    queue.wake_for_the_rest();
}

pub(super) struct Worker {
    queue: Arc<Queue>,
    store: Arc<dyn Store>,
    reader: Arc<dyn StoreReader>,
    growth: Arc<Growth>,
    options: Options,
    tree: Tree,
    generation: u64,
    last_checkpoint: Option<CheckpointRow>,
    last_checkpoint_time: Option<Timestamp>,
    /// Records that were committed although their callers were told that they were not.
    retractions: Vec<(u64, Envelope)>,
    /// An empty list that has room, so that the memory for a batch is not asked for each time.
    spare: Vec<NewRecord>,
    /// A commit failed: it has to be found out whether it happened.
    uncertain: bool,
    /// Erased bodies may have left traces.
    traces: bool,
}

impl Worker {
    pub(super) fn new(
        queue: Arc<Queue>,
        store: Arc<dyn Store>,
        growth: Arc<Growth>,
        start: Start,
        options: Options,
    ) -> Worker {
        Worker {
            reader: store.reader(),
            queue,
            store,
            growth,
            options,
            tree: start.tree,
            generation: 0,
            last_checkpoint: start.checkpoint,
            last_checkpoint_time: None,
            retractions: Vec::new(),
            spare: Vec::new(),
            uncertain: false,
            traces: true,
        }
    }

    /// One batch, if anything waits. True if nothing more will come.
    pub(super) fn work(&mut self) -> bool {
        // Taken while this worker is held: batches are committed in the order in which they were taken.
        let taken = self.queue.take();
        let finished = taken.finished;
        if !taken.items.is_empty() || taken.unrecorded > 0 {
            self.round(taken);
        }
        finished
    }

    fn round(&mut self, taken: Taken) {
        if let Err(error) = self.settle() {
            if !taken.items.is_empty() {
                self.refuse_all(taken.items, &error);
            }
            return;
        }
        let mut plan = Plan::new(self.tree.clone());
        plan.batch.records = std::mem::take(&mut self.spare);
        self.add_gap(&mut plan, taken.unrecorded);
        let now = Instant::now();
        let mut items = taken.items.into_iter();
        while let Some(item) = items.next() {
            match item {
                Item::Draft(entry) => {
                    if let Err((entry, error)) = self.admit(&mut plan, entry, now) {
                        // The store cannot be asked: nothing that waits can be written.
                        let rest = std::iter::once(Item::Draft(entry)).chain(items).collect();
                        self.fail(plan, &error);
                        self.refuse_all(rest, &error);
                        return;
                    }
                }
                Item::Checkpoint(slot) => plan.checkpoint_for.push(slot),
                Item::Cosign { size, signature, slot } => {
                    plan.cosignatures.push(Cosignature { size, signature, slot, note: None });
                }
            }
        }
        // An error was told to those concerned; the retractions are tried again before the next batch.
        if self.commit(plan).is_ok() {
            let _ = self.settle();
        }
        self.remove_traces();
    }

    fn last_round(&mut self) {
        let _ = self.settle();
        if self.last_checkpoint.as_ref().is_none_or(|last| last.size < self.tree.size())
            && self.tree.size() > 0
        {
            let mut plan = Plan::new(self.tree.clone());
            if self.add_checkpoint(&mut plan).is_ok() && self.store.commit(&plan.batch).is_err() {
                self.uncertain = true;
            }
        }
        // Also leaves an empty write-ahead log behind, so that the file alone is the ledger.
        let _ = self.store.forget();
    }

    /// Brings the tree in line with the store after a failure, and retracts what has to be retracted. Until that
    /// is done nothing else is written: a retraction is the next record.
    fn settle(&mut self) -> Result<(), StoreError> {
        if self.uncertain {
            self.find_out()?;
        }
        if self.retractions.is_empty() {
            return Ok(());
        }
        let mut plan = Plan::new(self.tree.clone());
        for (seq, envelope) in &self.retractions {
            // It says everything that the decision said, so that a fold can undo it without looking back.
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
            let rows = self.retraction_rows(&plan, *seq, envelope);
            add_own(&mut plan, retraction, rows)?;
        }
        self.commit(plan)?;
        self.retractions.clear();
        // Whoever loaded the state before this must load it again.
        self.generation = self.queue.next_generation();
        Ok(())
    }

    /// Asks the store what became of a commit that failed.
    fn find_out(&mut self) -> Result<(), StoreError> {
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
                let envelope = Envelope::from_leaf(&leaf)
                    .map_err(|error| StoreError::Damaged(format!("record {seq}: {error}")))?;
                self.retract(seq, envelope);
            }
            self.tree = tree;
            self.growth.set(stored);
        }
        let newest = self.reader.checkpoints(0..u64::MAX, crate::store::Order::Descending, 1)?;
        self.last_checkpoint = newest.into_iter().next();
        self.uncertain = false;
        Ok(())
    }

    fn retract(&mut self, seq: u64, envelope: Envelope) {
        // A body that is gone is gone; and a retraction has nobody who was told otherwise.
        if !matches!(envelope.kind, RecordKind::Erasure | RecordKind::Retracted | RecordKind::Gap) {
            self.retractions.push((seq, envelope));
        }
    }

    fn retraction_rows(&self, plan: &Plan, seq: u64, envelope: &Envelope) -> Vec<StateRow> {
        let Some(retract) = &self.options.retract else { return Vec::new() };
        let state = |fold: &str, key: &str| {
            let planned = plan.batch.rows.iter().rev().find(|row| row.fold == fold && row.key == key);
            match planned {
                Some(row) => row.value.clone(),
                None => self.reader.state(fold, key).ok().flatten().map(|(value, _)| value),
            }
        };
        retract.rows(seq, envelope, &state)
    }

    fn add_gap(&self, plan: &mut Plan, unrecorded: u64) {
        if unrecorded == 0 {
            return;
        }
        let mut gap = self.own_envelope(RecordKind::Gap);
        gap.code = unrecorded.to_string();
        if add_own(plan, gap, Vec::new()).is_ok() {
            plan.unrecorded = unrecorded;
        }
    }

    fn own_envelope(&self, kind: RecordKind) -> Envelope {
        let now = self.options.clock.now();
        Envelope::new(RecordId::new(now, self.options.randomness.as_ref()), now, kind)
    }

    /// Gives the draft a place in the batch, or tells its caller why not. An error is the store's.
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
            match self.taken_key(plan, &entry) {
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

    /// Why it is refused, if one of its `once` keys is on record.
    fn taken_key(&self, plan: &Plan, entry: &Entry) -> Result<Option<NotRecorded>, StoreError> {
        if let Some(first) = self.first_with_key(plan, &entry.record.envelope)? {
            return Ok(Some(NotRecorded::Once { first }));
        }
        let mut own: HashSet<&str> = entry.record.envelope.once.as_deref().into_iter().collect();
        for record in &entry.behind {
            if let Some(key) = record.envelope.once.as_deref()
                && !own.insert(key)
            {
                let reason = format!("two records that belong together have the `once` key `{key}`");
                return Ok(Some(NotRecorded::Failed(reason)));
            }
            if self.first_with_key(plan, &record.envelope)?.is_some() {
                // The caller did not know that it is there: it has to look again.
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

    /// Commits the plan and tells those who wait.
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

    /// Signs the size that the plan leads to, if it is time or somebody asks for it.
    fn add_checkpoint(&mut self, plan: &mut Plan) -> Result<(), StoreError> {
        let size = plan.tree.size();
        let wanted = !plan.checkpoint_for.is_empty();
        plan.batch.to_disk = wanted;
        let now = self.options.clock.now();
        match &self.last_checkpoint {
            Some(last) if last.size == size => {
                // Written once more, so that it goes to the disk now.
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
        self.traces |= !plan.batch.erased.is_empty();
        for row in plan.batch.checkpoints {
            if self.last_checkpoint.as_ref().is_none_or(|last| last.size <= row.size) {
                self.last_checkpoint = Some(row);
            }
        }
        self.growth.set(size);
        let given_up = self.retractions.len();
        // The last one first: who waits for many waits for the oldest, and is then woken once, not once for each.
        for (record, slot) in plan.batch.records.drain(..).zip(plan.waiting).rev() {
            let NewRecord { seq, envelope, .. } = record;
            let receipt = Receipt::new(seq, envelope.id, size, envelope.time);
            if let Some(slot) = slot
                && !slot.answer(Ok(receipt))
            {
                self.retract(seq, envelope);
            }
        }
        self.spare = plan.batch.records;
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

    /// Tells everybody in the plan that it failed, and, if there were drafts, everybody in the queue.
    fn fail(&mut self, plan: Plan, error: &StoreError) {
        self.uncertain = true;
        // The queue first: whoever hears of the failure finds the new generation and an empty queue.
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

    /// Refuses these items and all that wait: what they build on did not happen.
    fn refuse_all(&mut self, items: Vec<Item>, error: &StoreError) {
        let queued = self.empty_queue();
        refuse(items.into_iter().chain(queued), error);
    }

    fn empty_queue(&mut self) -> VecDeque<Item> {
        let (generation, queued) = self.queue.fail_all();
        self.generation = generation;
        queued
    }

    fn remove_traces(&mut self) {
        if self.traces && matches!(self.store.forget(), Ok(true)) {
            self.traces = false;
        }
    }
}

/// A link to a record that does not stand before the one that has the link.
fn missing_link(first: u64, entry: &Entry) -> Option<u64> {
    let records = std::iter::once(&entry.record).chain(&entry.behind);
    (first..)
        .zip(records)
        .find_map(|(seq, record)| record.envelope.links.iter().copied().find(|link| *link >= seq))
}

fn add_own(plan: &mut Plan, envelope: Envelope, rows: Vec<StateRow>) -> Result<(), StoreError> {
    let leaf = envelope.to_leaf().map_err(|error| StoreError::Io(error.to_string()))?;
    plan.add_own(NewRecord { seq: plan.next_seq(), envelope, leaf, body: None }, rows);
    Ok(())
}

fn refuse(items: impl IntoIterator<Item = Item>, error: &StoreError) {
    for item in items {
        item.refuse(NotRecorded::Failed(error.to_string()));
    }
}

/// Ends the waiting of all others when the writer ends.
struct Ending(Arc<Queue>, Arc<Growth>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.close();
        let (_, items) = self.0.fail_all();
        for item in items {
            item.refuse(NotRecorded::Closed);
        }
        self.1.end();
    }
}
