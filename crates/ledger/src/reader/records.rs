//! Paged iteration over records.

use std::sync::Arc;

use proctor_core::record::Envelope;

use crate::error::ReadError;
use crate::store::{Filter, Order, PageBound, StoreReader, StoredLeaf};

/// A record as it is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The record's sequence.
    pub seq: u64,
    /// The decoded leaf.
    pub envelope: Envelope,
    /// The leaf's bytes.
    pub leaf: Vec<u8>,
}

/// Records that fit a filter. Only one page of them is held, however many there are; after an error there are no more.
pub struct Records {
    store: Arc<dyn StoreReader>,
    filter: Filter,
    order: Order,
    bound: PageBound,
    page: std::vec::IntoIter<StoredLeaf>,
    next: Option<u64>,
    /// Records that were appended after the start are not read.
    end: Option<u64>,
}

impl Records {
    pub(super) fn new(
        store: Arc<dyn StoreReader>,
        filter: Filter,
        order: Order,
        bound: PageBound,
    ) -> Records {
        let next = Some(if order == Order::Ascending { 0 } else { u64::MAX });
        Records { store, filter, order, bound, page: Vec::new().into_iter(), next, end: None }
    }

    /// The next page; none at the end. A page may be empty although more follow.
    fn turn(&mut self) -> Result<Option<Vec<StoredLeaf>>, ReadError> {
        let Some(from) = self.next.take() else { return Ok(None) };
        if self.end.is_none() {
            let size = self.store.size()?;
            self.end = Some(size);
            let seqs = self.filter.seqs.take().unwrap_or(0..size);
            self.filter.seqs = Some(seqs.start..seqs.end.min(size));
        }
        let page = self.store.page(&self.filter, from, self.order, self.bound)?;
        self.next = page.next;
        Ok(Some(page.records))
    }
}

impl Iterator for Records {
    type Item = Result<Record, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(stored) = self.page.next() {
                let record = read(stored);
                if record.is_err() {
                    self.next = None;
                    self.page = Vec::new().into_iter();
                }
                return Some(record);
            }
            match self.turn() {
                Ok(Some(page)) => self.page = page.into_iter(),
                Ok(None) => return None,
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

/// Reads a stored leaf.
pub(super) fn read(stored: StoredLeaf) -> Result<Record, ReadError> {
    let envelope = decode(stored.seq, &stored.leaf)?;
    Ok(Record { seq: stored.seq, envelope, leaf: stored.leaf })
}

pub(super) fn decode(seq: u64, leaf: &[u8]) -> Result<Envelope, ReadError> {
    Envelope::from_leaf(leaf).map_err(|error| ReadError::Leaf { seq, reason: error.to_string() })
}
