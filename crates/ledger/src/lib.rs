//! The ledger: an append-only log of records, with Merkle proofs and signed checkpoints.
//!
//! - [`writer::Ledger`] owns a state directory and appends records, many to a commit; each draft gets a
//!   [`writer::Receipt`] or is [`writer::NotRecorded`].
//! - [`reader::Reader`] reads records, bodies, state rows and tree hashes, also while another process writes.
//! - [`fsck::fsck`] checks everything that is stored against everything else.
//! - [`store`] is the storage layer: traits, and SQLite.
//! - [`merkle`], [`tiles`], [`note`], [`checkpoint`], [`witness`] and [`keys`] make and verify proofs.

pub mod bundle;
pub mod checkpoint;
pub mod error;
pub mod fsck;
pub mod keys;
pub mod lock;
pub mod merkle;
pub mod note;
pub mod reader;
pub mod store;
pub mod tiles;
pub mod witness;
pub mod writer;

pub use error::{OpenError, ReadError, StoreError};
pub use reader::Reader;
pub use writer::{
    Capacity, Draft, Ledger, NotRecorded, Options, Pending, Permit, Receipt, Reserve, ReserveError, StateRow,
    Wake,
};
