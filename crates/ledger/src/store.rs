//! Storage: the `Store` traits, and their SQLite implementation.
//!
//! Everything that decides what a record is stands above this trait: leaves, sequences, tree hashes and
//! checkpoints come in finished. A store only has to keep them, all of a [`Batch`] or nothing of it.

mod connection;
mod identity;
pub(crate) mod index;
mod query;
mod read;
pub(crate) mod schema;
mod sqlite;
pub(crate) mod wal;

use std::ops::Range;
use std::sync::Arc;

use proctor_core::id::{ApprovalId, SessionId};
use proctor_core::record::{Envelope, RecordKind};
use proctor_core::time::Timestamp;

use crate::error::StoreError;

pub(crate) use connection::{Access, beside, open_connection};

pub(crate) use query::parse_leaf;
pub use read::SqliteReader;
pub use schema::{DATABASE_FILE, FORMAT};
pub use sqlite::SqliteStore;

/// The failures that a commit survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// The end of the process, however sudden: the operating system has the bytes.
    #[default]
    Process,
    /// The loss of power: the disk has the bytes.
    Power,
}

/// A record as it is stored. Its envelope is there so that a store can index it; only the leaf is proven.
#[derive(Debug)]
pub struct NewRecord {
    /// The record's sequence.
    pub seq: u64,
    /// The envelope that the leaf encodes.
    pub envelope: Envelope,
    /// The canonical bytes.
    pub leaf: Vec<u8>,
    /// Salt and bytes of the body, if it has one.
    pub body: Option<StoredBody>,
}

/// A body with its salt.
#[derive(Clone, PartialEq, Eq)]
pub struct StoredBody {
    /// The salt, hashed before the bytes, so that an erased body cannot be guessed from its digest.
    pub salt: [u8; 32],
    /// The bytes.
    pub bytes: Vec<u8>,
}

impl std::fmt::Debug for StoredBody {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "StoredBody({} bytes)", self.bytes.len())
    }
}

/// A change to a row of derived state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateChange {
    /// The fold that the row belongs to.
    pub fold: &'static str,
    /// The key in the fold.
    pub key: String,
    /// The new value; `None` deletes the row.
    pub value: Option<Vec<u8>>,
    /// The record that the value follows from.
    pub seq: u64,
}

/// The hashes of one tile, full or, above level 0, growing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TileRow {
    /// The tile level.
    pub level: u8,
    /// The index in its level.
    pub index: u64,
    /// The hashes, one after the other.
    pub hashes: Vec<u8>,
}

/// A signed checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointRow {
    /// Number of records that it covers.
    pub size: u64,
    /// The signed note.
    pub note: String,
}

/// The content of one transaction.
#[derive(Debug, Default)]
pub struct Batch {
    /// New records, their sequences following the last one without a hole.
    pub records: Vec<NewRecord>,
    /// Records whose bodies are deleted.
    pub erased: Vec<u64>,
    /// Changed state rows, at most one for each fold and key.
    pub rows: Vec<StateChange>,
    /// New or wider tiles.
    pub tiles: Vec<TileRow>,
    /// New checkpoints, or such that gained signatures.
    pub checkpoints: Vec<CheckpointRow>,
    /// Whether this batch must be on the disk before `commit` returns, whatever the store's durability is.
    pub to_disk: bool,
}

/// Storage of a ledger, written by one writer at a time.
pub trait Store: Send + Sync {
    /// Commits the whole batch or nothing. After an error it may be unknown which; the writer then reads the size.
    fn commit(&self, batch: &Batch) -> Result<(), StoreError>;

    /// Truncates the write-ahead log, so that no erased body is left in it; false if a reader prevented it and it has
    /// to be tried again.
    fn purge(&self) -> Result<bool, StoreError>;

    /// Whether the files of the store are still those that were opened.
    fn check_files(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// A reader that sees every commit that has returned.
    fn reader(&self) -> Arc<dyn StoreReader>;
}

/// Read access to a ledger. Every call sees one state of it; later calls may see later states.
pub trait StoreReader: Send + Sync {
    /// Number of records.
    fn size(&self) -> Result<u64, StoreError>;

    /// A text that the ledger was made with, such as `origin` and `key`.
    fn meta(&self, name: &str) -> Result<Option<String>, StoreError>;

    /// The next records that fit the filter: see [`Page`].
    fn page(&self, filter: &Filter, from: u64, order: Order, bound: PageBound) -> Result<Page, StoreError>;

    /// The record whose identifier this is.
    fn by_id(&self, id: &proctor_core::id::RecordId) -> Result<Option<u64>, StoreError>;

    /// A record's body, if it is there.
    fn body(&self, seq: u64) -> Result<Option<StoredBody>, StoreError>;

    /// The sequence of the record that has this unique key.
    fn once(&self, key: &str) -> Result<Option<u64>, StoreError>;

    /// A state row: value and sequence.
    fn state(&self, fold: &str, key: &str) -> Result<Option<(Vec<u8>, u64)>, StoreError>;

    /// State rows of a fold with keys after `after`, in order of keys, at most `limit` or about a mebibyte.
    fn state_page(
        &self,
        fold: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<StoredState>, StoreError>;

    /// The stored tile at this position.
    fn tile(&self, level: u8, index: u64) -> Result<Option<Vec<u8>>, StoreError>;

    /// The leaves of `range`, as far as they are there, in order; for at most a few hundred.
    fn leaves(&self, range: Range<u64>) -> Result<Vec<Vec<u8>>, StoreError>;

    /// Checkpoints of sizes within `sizes`, at most `limit`.
    fn checkpoints(
        &self,
        sizes: Range<u64>,
        order: Order,
        limit: usize,
    ) -> Result<Vec<CheckpointRow>, StoreError>;

    /// Values of an indexed field that begin with `prefix`, at most `limit`.
    fn values(&self, field: Field, prefix: &str, limit: usize) -> Result<Vec<String>, StoreError>;
}

/// A stored state row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredState {
    /// The key in the fold.
    pub key: String,
    /// The value.
    pub value: Vec<u8>,
    /// The record that the value follows from.
    pub seq: u64,
}

/// Fields of an envelope that records can be found by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// Our identifier of the session.
    Session,
    /// The principal.
    Principal,
    /// The agent, as claimed.
    Agent,
}

/// Filter of records: those that fit everything that is given.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    /// Sequences; all if absent.
    pub seqs: Option<Range<u64>>,
    /// The session.
    pub session: Option<SessionId>,
    /// The principal.
    pub principal: Option<String>,
    /// The agent.
    pub agent: Option<String>,
    /// Record kinds, one of which must match; all if empty.
    pub kinds: Vec<RecordKind>,
    /// The approval.
    pub approval: Option<ApprovalId>,
    /// Earliest time.
    pub since: Option<Timestamp>,
    /// Time before which records must be.
    pub until: Option<Timestamp>,
}

/// Order in which records are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// The oldest first.
    #[default]
    Ascending,
    /// The newest first.
    Descending,
}

/// Limits of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageBound {
    /// Maximum of records.
    pub records: usize,
    /// No further record once this many bytes of leaves are there.
    pub bytes: usize,
}

impl Default for PageBound {
    fn default() -> PageBound {
        PageBound { records: 256, bytes: 1 << 20 }
    }
}

/// A page of records, and the start of the next one. A page may be empty although more follows: reading stays in small steps.
#[derive(Debug, Default)]
pub struct Page {
    /// The records.
    pub records: Vec<StoredLeaf>,
    /// The sequence to ask from next; none if there is nothing more.
    pub next: Option<u64>,
}

/// A leaf with its sequence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredLeaf {
    /// The record's sequence.
    pub seq: u64,
    /// The canonical bytes.
    pub leaf: Vec<u8>,
}
