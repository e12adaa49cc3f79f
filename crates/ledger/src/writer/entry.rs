//! Queue entries: records that are encoded and hashed, and how their callers are answered.

use std::sync::Arc;
use std::time::Instant;

use proctor_core::record::Envelope;

use super::pending::Slot;
use super::{NotRecorded, Receipt, StateRow};
use crate::merkle::Hash;
use crate::note::NoteSignature;
use crate::store::StoredBody;

/// The memory that a draft is taken to need besides its leaf, body and rows: envelope, entry and slot.
pub(super) const DRAFT_OVERHEAD: usize = 512;

/// A record that lacks only its sequence.
#[derive(Debug)]
pub(super) struct PreparedRecord {
    pub(super) envelope: Envelope,
    pub(super) leaf: Vec<u8>,
    pub(super) hash: Hash,
    pub(super) body: Option<StoredBody>,
    pub(super) rows: Vec<StateRow>,
}

impl PreparedRecord {
    fn cost(&self) -> usize {
        let rows: usize = self
            .rows
            .iter()
            .map(|row| row.key.len() + row.value.as_ref().map_or(0, Vec::len) + size_of::<StateRow>())
            .sum();
        DRAFT_OVERHEAD + self.leaf.len() + self.body.as_ref().map_or(0, |body| body.bytes.len()) + rows
    }
}

/// A queued append: the caller's record, the records that are committed with it, and the slot for the answer.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) record: PreparedRecord,
    /// Records with the next sequences; all of them are committed, or none.
    pub(super) trailing: Vec<PreparedRecord>,
    /// The record whose body is erased in the same transaction.
    pub(super) erase: Option<u64>,
    pub(super) deadline: Option<Instant>,
    /// The sequence that the record must get.
    pub(super) seq: Option<u64>,
    /// Whether it depends on the effects of earlier entries, or later ones on its effects.
    pub(super) stateful: bool,
    /// The queue's generation when the entry was queued.
    pub(super) generation: u64,
    pub(super) slot: Arc<Slot<Receipt>>,
}

impl Entry {
    pub(super) fn cost(&self) -> usize {
        self.record.cost() + self.trailing.iter().map(PreparedRecord::cost).sum::<usize>()
    }
}

/// An element of the queue.
#[derive(Debug)]
pub(super) enum Item {
    Draft(Box<Entry>),
    Checkpoint(Arc<Slot<String>>),
    Cosign {
        size: u64,
        signature: NoteSignature,
        slot: Arc<Slot<String>>,
    },
    /// Committed records whose answers did not reach their callers.
    Retract {
        seqs: Vec<u64>,
        slot: Arc<Slot<()>>,
    },
}

impl Item {
    pub(super) fn cost(&self) -> usize {
        match self {
            Item::Draft(entry) => entry.cost(),
            Item::Checkpoint(_) | Item::Cosign { .. } => DRAFT_OVERHEAD,
            Item::Retract { seqs, .. } => DRAFT_OVERHEAD + seqs.len() * size_of::<u64>(),
        }
    }

    /// Answers the caller with an error.
    pub(super) fn refuse(self, reason: NotRecorded) {
        match self {
            Item::Draft(entry) => entry.slot.answer(Err(reason)),
            Item::Checkpoint(slot) | Item::Cosign { slot, .. } => slot.answer(Err(reason)),
            Item::Retract { slot, .. } => slot.answer(Err(reason)),
        };
    }
}
