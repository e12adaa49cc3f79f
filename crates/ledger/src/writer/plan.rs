//! The batch under construction: records with their sequences, tiles, rows, and the callers to answer.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::entry::{Entry, PreparedRecord};
use super::pending::Slot;
use super::{Receipt, StateRow, Tree};
use crate::note::NoteSignature;
use crate::store::{Batch, NewRecord, StateChange};

/// A batch under construction, with the slots of its callers.
pub(super) struct Plan {
    pub(super) batch: Batch,
    /// The tree with the batch's records.
    pub(super) tree: Tree,
    /// The slot of each record's caller; none for the ledger's own records and for trailing ones.
    pub(super) waiting: Vec<Option<Arc<Slot<Receipt>>>>,
    /// Unique keys of this batch.
    pub(super) once: HashMap<String, u64>,
    /// Callers that requested a checkpoint of the resulting tree.
    pub(super) checkpoint_for: Vec<Arc<Slot<String>>>,
    /// Cosignatures to be added.
    pub(super) cosignatures: Vec<Cosignature>,
    /// Denies without a record that this batch's `gap` record counts.
    pub(super) unrecorded: u64,
}

/// A cosignature, and the slot of the caller that waits for the extended note.
pub(super) struct Cosignature {
    pub(super) size: u64,
    pub(super) signature: NoteSignature,
    pub(super) slot: Arc<Slot<String>>,
    /// The note with the signature, once it is put together.
    pub(super) note: Option<String>,
}

impl Plan {
    pub(super) fn new(tree: Tree) -> Plan {
        Plan {
            batch: Batch::default(),
            tree,
            waiting: Vec::new(),
            once: HashMap::new(),
            checkpoint_for: Vec::new(),
            cosignatures: Vec::new(),
            unrecorded: 0,
        }
    }

    /// Whether there is nothing to commit.
    pub(super) fn is_empty(&self) -> bool {
        self.batch.records.is_empty() && self.checkpoint_for.is_empty() && self.cosignatures.is_empty()
    }

    /// Whether any record of this batch has a caller.
    pub(super) fn has_drafts(&self) -> bool {
        self.waiting.iter().any(Option::is_some)
    }

    /// The sequence that the next record gets.
    pub(super) fn next_seq(&self) -> u64 {
        self.tree.size()
    }

    /// Assigns sequences to the records of an entry.
    pub(super) fn add(&mut self, entry: Entry) {
        self.batch.erased.extend(entry.erase);
        self.add_prepared(entry.record, Some(entry.slot));
        for record in entry.trailing {
            self.add_prepared(record, None);
        }
    }

    fn add_prepared(&mut self, record: PreparedRecord, slot: Option<Arc<Slot<Receipt>>>) {
        let seq = self.next_seq();
        let PreparedRecord { envelope, leaf, hash, body, rows } = record;
        if let Some(key) = &envelope.once {
            self.once.insert(key.clone(), seq);
        }
        self.add_rows(seq, rows);
        self.tree.append(hash, &mut self.batch.tiles);
        self.batch.records.push(NewRecord { seq, envelope, leaf, body });
        self.waiting.push(slot);
    }

    /// Adds a record of the ledger itself.
    pub(super) fn add_own(&mut self, record: NewRecord) {
        self.tree.append(crate::merkle::leaf_hash(&record.leaf), &mut self.batch.tiles);
        self.batch.records.push(record);
        self.waiting.push(None);
    }

    /// Finishes tiles and rows, once all records are there.
    pub(super) fn finish(&mut self) {
        self.tree.take_partial_tiles(&mut self.batch.tiles);
        coalesce(&mut self.batch.rows);
    }

    fn add_rows(&mut self, seq: u64, rows: Vec<StateRow>) {
        self.batch.rows.extend(rows.into_iter().map(|StateRow { fold, key, value }| StateChange {
            fold,
            key,
            value,
            seq,
        }));
    }
}

/// Keeps the last of several rows with the same key.
fn coalesce(rows: &mut Vec<StateChange>) {
    if rows.len() < 2 {
        return;
    }
    let mut seen = HashSet::with_capacity(rows.len());
    let mut last: Vec<bool> =
        rows.iter().rev().map(|row| seen.insert((row.fold, row.key.as_str()))).collect();
    drop(seen);
    rows.retain(|_| last.pop().unwrap_or(true));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_row_of_a_key_wins() {
        let row = |key: &str, seq| StateChange { fold: "f", key: key.to_owned(), value: None, seq };
        let mut rows = vec![row("a", 1), row("b", 2), row("a", 3), row("c", 4), row("b", 5)];
        coalesce(&mut rows);
        assert_eq!(rows, [row("a", 3), row("c", 4), row("b", 5)]);
    }
}
