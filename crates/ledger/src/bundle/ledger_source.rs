//! The bundle source for a ledger on disk.

use std::ops::Range;

use proctor_core::record::RecordKind;

use super::source::{BundleSource, FoundRecords, PAGE, SourceBody, SourceError};
use crate::checkpoint::Checkpoint;
use crate::error::ReadError;
use crate::merkle::{Hash, HashReader};
use crate::note::Note;
use crate::reader::{BodyState, Filter, Order, Reader};
use crate::tiles::TiledTree;

/// A ledger at one of its signed checkpoints.
#[derive(Debug)]
pub struct LedgerSource {
    reader: Reader,
    note: String,
    size: u64,
    tree: TiledTree<Reader>,
}

impl LedgerSource {
    /// The ledger at its newest signed checkpoint.
    pub fn latest(reader: &Reader) -> Result<LedgerSource, SourceError> {
        let newest = reader.latest_checkpoint()?;
        let newest =
            newest.ok_or_else(|| SourceError("the ledger has no signed checkpoint yet".to_owned()))?;
        LedgerSource::under(reader, newest.note)
    }

    /// The ledger at its signed checkpoint of this size.
    pub fn at(reader: &Reader, size: u64) -> Result<LedgerSource, SourceError> {
        let note = reader.checkpoint(size)?;
        let note =
            note.ok_or_else(|| SourceError(format!("the ledger has no signed checkpoint of size `{size}`")))?;
        LedgerSource::under(reader, note)
    }

    /// The ledger under this signed note: for one that gained cosignatures elsewhere.
    pub fn under(reader: &Reader, note: String) -> Result<LedgerSource, SourceError> {
        let parsed = Note::parse(note.as_bytes()).map_err(|error| SourceError(error.to_string()))?;
        let checkpoint: Checkpoint =
            parsed.text().parse().map_err(|error| SourceError(format!("{error}")))?;
        let size = checkpoint.size;
        Ok(LedgerSource { reader: reader.clone(), note, size, tree: reader.tree(size) })
    }

    /// Number of records of the checkpoint.
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// The first records that fit, at most `limit`.
    fn some(
        &self,
        seqs: Range<u64>,
        kinds: &[RecordKind],
        limit: u64,
    ) -> Result<Vec<(u64, Vec<u8>)>, SourceError> {
        let filter = Filter { seqs: Some(seqs), kinds: kinds.to_vec(), ..Filter::default() };
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let records = self.reader.records(filter, Order::Ascending).take(limit);
        records.map(|record| Ok(record.map(|record| (record.seq, record.leaf))?)).collect()
    }
}

impl BundleSource for LedgerSource {
    fn checkpoint(&self) -> Result<String, SourceError> {
        Ok(self.note.clone())
    }

    fn leaves(&self, first: u64, limit: u64) -> Result<Vec<Vec<u8>>, SourceError> {
        let end = first.saturating_add(limit).min(self.size);
        let records = self.some(first..end, &[], limit)?;
        // A hole ends the answer: what comes after it has another place.
        let in_place = (first..).zip(records).take_while(|(seq, (found, _))| seq == found);
        Ok(in_place.map(|(_, (_, leaf))| leaf).collect())
    }

    fn body(&self, seq: u64) -> Result<SourceBody, SourceError> {
        Ok(match self.reader.body(seq)? {
            BodyState::Present { salt, bytes } => SourceBody::Present { salt, bytes },
            BodyState::Erased => SourceBody::Erased,
            BodyState::None => SourceBody::None,
        })
    }

    fn hash(&self, level: u32, index: u64) -> Result<Hash, SourceError> {
        self.tree.hash(level, index).map_err(|error| SourceError(error.to_string()))
    }

    fn of_kinds(&self, kinds: &[RecordKind], from: u64) -> Result<FoundRecords, SourceError> {
        let records = self.some(from..self.size, kinds, PAGE)?;
        let full = records.len() as u64 == PAGE;
        let next = records.last().filter(|_| full).map(|(seq, _)| seq.saturating_add(1));
        Ok(FoundRecords { records, next })
    }
}

impl From<ReadError> for SourceError {
    fn from(error: ReadError) -> SourceError {
        SourceError(error.to_string())
    }
}
