//! The reader: records by sequence and by filter, bodies, derived state, and tree hashes.

mod follow;
mod records;

use std::borrow::Cow;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use proctor_core::id::RecordId;
use proctor_core::record::Envelope;

use crate::error::{ReadError, StoreError};
use crate::store::{CheckpointRow, Field, SqliteReader, StoreReader, StoredState};
use crate::tiles::{TileId, TileReader, TiledTree};
use crate::writer::tile_bytes;

pub use crate::store::{Filter, Order, PageBound};
pub(crate) use follow::CommittedSize;
pub use follow::Follow;
pub use records::{Record, Records};

/// State rows that are read at once.
const STATE_PAGE: usize = 256;

/// A view of a ledger that sees every committed record. Cheap to clone; may be used from many threads.
#[derive(Clone)]
pub struct Reader {
    store: Arc<dyn StoreReader>,
    committed: Option<Arc<CommittedSize>>,
}

/// The state of a record's body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BodyState {
    /// The body is stored.
    Present {
        /// The salt.
        salt: [u8; 32],
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// The record had one, which was erased.
    Erased,
    /// The record has none.
    None,
}

impl Reader {
    /// Opens the ledger in a state directory only to read. It needs no owner, may have one, and may be on a
    /// directory that cannot be written.
    pub fn open(dir: &Path) -> Result<Reader, ReadError> {
        Ok(Reader { store: Arc::new(SqliteReader::open(dir)?), committed: None })
    }

    /// Reads from any store.
    pub fn of_store(store: Arc<dyn StoreReader>) -> Reader {
        Reader { store, committed: None }
    }

    pub(crate) fn of_owner(store: Arc<dyn StoreReader>, committed: Arc<CommittedSize>) -> Reader {
        Reader { store, committed: Some(committed) }
    }

    /// Number of records.
    pub fn size(&self) -> Result<u64, ReadError> {
        Ok(self.store.size()?)
    }

    /// The ledger's name.
    pub fn origin(&self) -> Result<String, ReadError> {
        Ok(self.store.meta("origin")?.unwrap_or_default())
    }

    /// The ledger's verifier key, as it says itself: to trust it is another matter.
    pub fn key(&self) -> Result<String, ReadError> {
        Ok(self.store.meta("key")?.unwrap_or_default())
    }

    /// The canonical bytes of a record.
    pub fn leaf(&self, seq: u64) -> Result<Vec<u8>, ReadError> {
        let leaves = self.store.leaves(seq..seq.saturating_add(1))?;
        match leaves.into_iter().next() {
            Some(leaf) => Ok(leaf),
            None => Err(ReadError::NoRecord { seq, size: self.store.size()? }),
        }
    }

    /// A record's envelope.
    pub fn envelope(&self, seq: u64) -> Result<Envelope, ReadError> {
        records::decode(seq, &self.leaf(seq)?)
    }

    /// The sequence of the record with this identifier.
    pub fn by_id(&self, id: &RecordId) -> Result<Option<u64>, ReadError> {
        Ok(self.store.by_id(id)?)
    }

    /// A record's body.
    pub fn body(&self, seq: u64) -> Result<BodyState, ReadError> {
        if let Some(body) = self.store.body(seq)? {
            return Ok(BodyState::Present { salt: body.salt, bytes: body.bytes });
        }
        Ok(if self.envelope(seq)?.body.is_some() { BodyState::Erased } else { BodyState::None })
    }

    /// The records that fit the filter and are there now, read in pages as they are asked for.
    pub fn records(&self, filter: Filter, order: Order) -> Records {
        Records::new(Arc::clone(&self.store), filter, order, PageBound::default())
    }

    /// [`Reader::records`] with pages of another size.
    pub fn records_in_pages(&self, filter: Filter, order: Order, bound: PageBound) -> Records {
        Records::new(Arc::clone(&self.store), filter, order, bound)
    }

    /// Visits all records from sequence `from` on; returns the sequence after the last one.
    pub fn fold(&self, from: u64, mut each: impl FnMut(u64, &Envelope)) -> Result<u64, ReadError> {
        let mut next = from;
        let filter = Filter { seqs: Some(from..u64::MAX), ..Filter::default() };
        for record in self.records(filter, Order::Ascending) {
            let record = record?;
            each(record.seq, &record.envelope);
            next = record.seq.saturating_add(1);
        }
        Ok(next)
    }

    /// The records that fit the filter, and then those that are appended.
    ///
    /// Whenever there is nothing new, `wait` is asked how long to wait at most before looking again; `None` ends
    /// the following. In the owner's process new records end the wait at once.
    pub fn follow(
        &self,
        filter: Filter,
        wait: impl FnMut() -> Option<std::time::Duration> + Send + 'static,
    ) -> Follow {
        Follow::new(Arc::clone(&self.store), self.committed.clone(), filter, Box::new(wait))
    }

    /// The sequence of the record with this unique key.
    pub fn once(&self, key: &str) -> Result<Option<u64>, ReadError> {
        Ok(self.store.once(key)?)
    }

    /// A state row: its value, and the sequence of the record that made it.
    pub fn state(&self, fold: &str, key: &str) -> Result<Option<(Vec<u8>, u64)>, ReadError> {
        Ok(self.store.state(fold, key)?)
    }

    /// Visits the state rows of a fold, in order of their keys.
    ///
    /// Reads in pages, so the rows are a snapshot only if nothing that changes them is appended meanwhile.
    pub fn state_rows(&self, fold: &str, mut each: impl FnMut(StoredState)) -> Result<(), ReadError> {
        let mut after: Option<String> = None;
        loop {
            let page = self.store.state_page(fold, after.as_deref(), STATE_PAGE)?;
            let Some(last) = page.last() else { return Ok(()) };
            after = Some(last.key.clone());
            page.into_iter().for_each(&mut each);
        }
    }

    /// The newest signed checkpoint.
    pub fn latest_checkpoint(&self) -> Result<Option<CheckpointRow>, ReadError> {
        Ok(self.store.checkpoints(0..u64::MAX, Order::Descending, 1)?.pop())
    }

    /// The signed checkpoint of exactly this size.
    pub fn checkpoint(&self, size: u64) -> Result<Option<String>, ReadError> {
        let found = self.store.checkpoints(size..size.saturating_add(1), Order::Ascending, 1)?;
        Ok(found.into_iter().next().map(|row| row.note))
    }

    /// Signed checkpoints of sizes in a range, at most `limit`.
    pub fn checkpoints(
        &self,
        sizes: Range<u64>,
        order: Order,
        limit: usize,
    ) -> Result<Vec<CheckpointRow>, ReadError> {
        Ok(self.store.checkpoints(sizes, order, limit)?)
    }

    /// Sessions, principals or agents that begin with `prefix`, at most `limit`.
    pub fn values(&self, field: Field, prefix: &str, limit: usize) -> Result<Vec<String>, ReadError> {
        Ok(self.store.values(field, prefix, limit)?)
    }

    /// The tree of the first `size` records, from which proofs are made.
    pub fn tree(&self, size: u64) -> TiledTree<Reader> {
        TiledTree::new(size, self.clone())
    }
}

impl TileReader for Reader {
    type Error = StoreError;

    fn tile(&self, tile: TileId) -> Result<Cow<'_, [u8]>, StoreError> {
        tile_bytes(self.store.as_ref(), tile).map(Cow::Owned)
    }
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Reader").finish_non_exhaustive()
    }
}
