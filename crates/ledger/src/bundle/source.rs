//! The trait through which export reads a ledger.

use proctor_core::record::{LeafView, RecordKind};

use super::error::ExportError;
use crate::checkpoint::Checkpoint;
use crate::merkle::{Hash, HashReader};
use crate::note::{Note, NoteSignature};

/// Leaves that are asked for at once.
pub(super) const PAGE: u64 = 256;

/// A ledger as export and proofs need it.
///
/// Every call may see a later state of the ledger than the one before, but the checkpoint stays the same.
pub trait BundleSource {
    /// The signed note of the checkpoint that the bundle is made at.
    fn checkpoint(&self) -> Result<String, SourceError>;

    /// The leaves from `first` on, at most `limit`; at least one if there is one.
    fn leaves(&self, first: u64, limit: u64) -> Result<Vec<Vec<u8>>, SourceError>;

    /// A record's body.
    fn body(&self, seq: u64) -> Result<SourceBody, SourceError>;

    /// The hash of the complete subtree of 2^`level` records that starts at record `index` · 2^`level`.
    fn hash(&self, level: u32, index: u64) -> Result<Hash, SourceError>;

    /// Records of these kinds from sequence `from` on, as many as are convenient. Without an index it reads all.
    fn of_kinds(&self, kinds: &[RecordKind], from: u64) -> Result<FoundRecords, SourceError> {
        let leaves = self.leaves(from, PAGE)?;
        let next = (!leaves.is_empty()).then(|| from.saturating_add(leaves.len() as u64));
        let fits = |leaf: &Vec<u8>| LeafView::parse(leaf).is_ok_and(|record| kinds.contains(&record.kind));
        let records = (from..).zip(leaves).filter(|(_, leaf)| fits(leaf)).collect();
        Ok(FoundRecords { records, next })
    }
}

/// The state of a record's body.
#[derive(Clone, PartialEq, Eq)]
pub enum SourceBody {
    /// The body is stored.
    Present {
        /// The salt.
        salt: [u8; 32],
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// The record had a body, which was erased.
    Erased,
    /// The record has no body.
    None,
}

impl std::fmt::Debug for SourceBody {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SourceBody::Present { bytes, .. } => write!(out, "Present({} bytes)", bytes.len()),
            SourceBody::Erased => out.write_str("Erased"),
            SourceBody::None => out.write_str("None"),
        }
    }
}

/// A page of records with their sequences, and the start of the next page.
#[derive(Debug, Default)]
pub struct FoundRecords {
    /// Sequences and leaves, in order.
    pub records: Vec<(u64, Vec<u8>)>,
    /// The sequence to ask from next; none if there is nothing more.
    pub next: Option<u64>,
}

/// Error of reading a ledger for export.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SourceError(pub String);

/// A source's hashes, for the functions that make proofs.
pub(super) struct SourceHashes<'a>(pub(super) &'a dyn BundleSource);

impl HashReader for SourceHashes<'_> {
    type Error = SourceError;

    fn hash(&self, level: u32, index: u64) -> Result<Hash, SourceError> {
        self.0.hash(level, index)
    }
}

/// The leaf of one record.
pub(super) fn leaf_of(source: &dyn BundleSource, seq: u64, size: u64) -> Result<Vec<u8>, ExportError> {
    source.leaves(seq, 1)?.into_iter().next().ok_or(ExportError::NoRecord { seq, size })
}

/// The source's checkpoint with its signature lines in the order that bundles have.
pub(super) fn checkpoint_of(source: &dyn BundleSource) -> Result<(Note, Checkpoint), ExportError> {
    ordered(&source.checkpoint()?)
}

/// A signed checkpoint with its signature lines in the order that bundles have.
pub(super) fn ordered(note: &str) -> Result<(Note, Checkpoint), ExportError> {
    let note = Note::parse(note.as_bytes())?;
    let checkpoint: Checkpoint = note.text().parse()?;
    let mut lines: Vec<_> = note.signatures().iter().collect();
    lines.sort_by_key(|line| line_order(&checkpoint.origin, line));
    let mut ordered = Note::new(note.text().to_owned())?;
    for line in lines {
        ordered.add(line.clone())?;
    }
    Ok((ordered, checkpoint))
}

/// The order of signature lines: the ledger's own first, then by name and key identifier.
pub(super) fn line_order(origin: &str, line: &NoteSignature) -> (bool, String, [u8; 4]) {
    (line.name() != origin, line.name().to_owned(), line.key_id().0)
}
