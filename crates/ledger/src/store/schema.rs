//! The tables of format 1, in the file `ledger.db` (SQLite, write-ahead log).
//!
//! - `meta(name, value)`: `format` is `1`; `origin` is the ledger's name; `key` its verifier key.
//! - `records(seq, leaf)`: the canonical envelope of each record, `seq` from 0 without a hole.
//! - `bodies(seq, salt, bytes)`: bodies that were not erased. The digest in the envelope is over salt and bytes.
//! - `once(key, seq)`: the records that carry a unique key.
//! - `state(fold, key, value, seq)`: rows derived from records, and the record that made each.
//! - `tiles(level, idx, hashes)`: full tiles of tree hashes; above level 0 also the one that is still growing.
//!   The last tile of level 0 is not stored while it grows: its hashes are those of the last leaves.
//! - `checkpoints(size, note)`: signed checkpoints.
//! - `blocks(block, count, min_time, max_time, min_id, max_id)`: for each 256 records how many there are, the
//!   range of their times (microseconds), and the range of the times in their identifiers (milliseconds). It is
//!   the index by time and by identifier, small because both are nearly in order.
//! - `terms(id, dimension, text)`: each session (1), principal (2), agent (3), kind (4) and approval (5) that
//!   occurs, with a number. Sessions and approvals are texts too.
//! - `postings(term, block, bits)`: 32 bytes that say which of the block's 256 records have the term; record
//!   `block * 256 + n` is bit `n % 8`, lowest first, of byte `n / 8`. Filters are combined by combining bits.
//!
//! `blocks`, `terms` and `postings` are written when a block is full. The records of the last block, as long as it is not, are looked at
//! one by one; rows that an earlier version wrote for them are not.
//!
//! Everything but `records`, `bodies`, `checkpoints` and `meta` can be rebuilt from those.

use rusqlite::Connection;

use crate::error::StoreError;

/// The file in the state directory.
pub const DATABASE_FILE: &str = "ledger.db";

/// The format that this version reads and writes.
pub const FORMAT: &str = "1";

/// Records in a block of the index, as many as a tile has hashes.
pub(crate) const BLOCK: u64 = 256;

/// Marks the file as a ledger: the letters `PrcL`.
pub(crate) const APPLICATION_ID: i32 = 0x5072_634C;

/// Every table as SQLite keeps its definition.
pub(crate) const TABLES: [(&str, &str); 11] = [
    (
        "blocks",
        "CREATE TABLE blocks(block INTEGER PRIMARY KEY, count INTEGER NOT NULL, min_time INTEGER NOT NULL, max_time INTEGER NOT NULL, min_id INTEGER NOT NULL, max_id INTEGER NOT NULL) STRICT",
    ),
    (
        "bodies",
        "CREATE TABLE bodies(seq INTEGER PRIMARY KEY, salt BLOB NOT NULL, bytes BLOB NOT NULL) STRICT",
    ),
    ("checkpoints", "CREATE TABLE checkpoints(size INTEGER PRIMARY KEY, note TEXT NOT NULL) STRICT"),
    ("meta", "CREATE TABLE meta(name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID"),
    ("once", "CREATE TABLE once(key TEXT PRIMARY KEY, seq INTEGER NOT NULL) STRICT, WITHOUT ROWID"),
    (
        "postings",
        "CREATE TABLE postings(term INTEGER NOT NULL, block INTEGER NOT NULL, bits BLOB NOT NULL, PRIMARY KEY(term, block)) STRICT, WITHOUT ROWID",
    ),
    ("records", "CREATE TABLE records(seq INTEGER PRIMARY KEY, leaf BLOB NOT NULL) STRICT"),
    (
        "state",
        "CREATE TABLE state(fold TEXT NOT NULL, key TEXT NOT NULL, value BLOB NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY(fold, key)) STRICT, WITHOUT ROWID",
    ),
    (
        "terms",
        "CREATE TABLE terms(id INTEGER PRIMARY KEY, dimension INTEGER NOT NULL, text TEXT NOT NULL) STRICT",
    ),
    ("terms_by_text", "CREATE UNIQUE INDEX terms_by_text ON terms(dimension, text)"),
    (
        "tiles",
        "CREATE TABLE tiles(level INTEGER NOT NULL, idx INTEGER NOT NULL, hashes BLOB NOT NULL, PRIMARY KEY(level, idx)) STRICT",
    ),
];

/// Creates the tables in an empty database.
pub(crate) fn create(connection: &mut Connection, origin: &str, key: &str) -> Result<(), StoreError> {
    let transaction = connection.transaction()?;
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", 1)?;
    // A table comes before its index.
    for (_, sql) in TABLES {
        transaction.execute_batch(sql)?;
    }
    for (name, value) in [("format", FORMAT), ("origin", origin), ("key", key)] {
        transaction.execute("INSERT INTO meta(name, value) VALUES (?1, ?2)", (name, value))?;
    }
    transaction.commit()?;
    Ok(())
}

/// A sequence, size or index as SQLite keeps it. None is ever near the limit; a wrong one finds nothing.
pub(crate) fn to_sql(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A sequence, size or index as SQLite gave it.
pub(crate) fn from_sql(number: i64) -> Result<u64, StoreError> {
    u64::try_from(number).map_err(|_| {
        StoreError::Damaged(format!("there is a negative number, {number}, where a count should be"))
    })
}
