//! Errors of opening, reading and storing.

use std::path::PathBuf;

use crate::fsck::Damage;

/// Error of the store.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Disk full.
    #[error("the disk is full; make room where the ledger is kept ({0})")]
    Full(String),
    /// Stored data is damaged.
    #[error("the ledger is damaged: {0}; check it with `proctor audit fsck`")]
    Damaged(String),
    /// Reading or writing failed.
    #[error("the ledger could not be read or written: {0}")]
    Io(String),
    /// A file of the open ledger was removed, replaced or cut.
    #[error(
        "the ledger was changed behind its back: `{}` {what}; stop this process, put the ledger back, and start again",
        path.display()
    )]
    Changed {
        /// The file.
        path: PathBuf,
        /// Difference from the file that was opened.
        what: String,
    },
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> StoreError {
        use rusqlite::ErrorCode;
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => StoreError::Full(error.to_string()),
            // Unknown is what SQLite says when a table or column is missing; none means that it is not SQLite's
            // error: a column of the wrong type, a number out of range.
            Some(
                ErrorCode::DatabaseCorrupt
                | ErrorCode::NotADatabase
                | ErrorCode::ConstraintViolation
                | ErrorCode::Unknown,
            )
            | None => StoreError::Damaged(error.to_string()),
            Some(_) => StoreError::Io(error.to_string()),
        }
    }
}

/// Error of reading from a ledger.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The record does not exist.
    #[error("there is no record `{seq}`; the ledger has {size} records")]
    NoRecord {
        /// The sequence asked for.
        seq: u64,
        /// Number of records.
        size: u64,
    },
    /// A record's leaf cannot be read.
    #[error("record {seq} is damaged: {reason}; check the ledger with `proctor audit fsck`")]
    Leaf {
        /// The record's sequence.
        seq: u64,
        /// The decoder's error.
        reason: String,
    },
    /// The folder has no ledger.
    #[error("there is no ledger in `{}`: `proctor init` makes one, `--state` names another", dir.display())]
    NotThere {
        /// The state directory.
        dir: PathBuf,
    },
    /// The ledger was written by a later version.
    #[error(
        "the ledger has format `{found}`, but this version reads format `{expected}`; use the version that wrote it"
    )]
    Format {
        /// The format found.
        found: String,
        /// The format this version reads.
        expected: String,
    },
}

/// Error of opening a ledger for writing.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The state directory is owned by another process.
    #[error("the state directory is owned by {}; only one process may write to it", owner(*pid))]
    Owned {
        /// The owner's process id, when it could be read.
        pid: Option<u32>,
    },
    /// Stored data is damaged; nothing was written.
    #[error("the ledger is damaged, and nothing was written: {}", join(damage))]
    Damaged {
        /// The damage found by the check at opening.
        damage: Vec<Damage>,
    },
    /// The signing key is not the ledger's.
    #[error("the ledger belongs to key `{ledger}`, but was opened with key `{given}`")]
    WrongKey {
        /// The verifier key that the ledger was made with.
        ledger: String,
        /// The verifier key of the signing key given.
        given: String,
    },
    /// The signing key cannot sign checkpoints.
    #[error("key `{name}` cannot sign checkpoints: {reason}")]
    UnusableKey {
        /// The key's name.
        name: String,
        /// Cause.
        reason: String,
    },
    /// The ledger was written by a later version.
    #[error(
        "the ledger has format `{found}`, but this version writes format `{expected}`; use the version that wrote it"
    )]
    Format {
        /// The format found.
        found: String,
        /// The format this version writes.
        expected: String,
    },
    /// The directory or a file in it cannot be made or read.
    #[error("`{}`: {source}", path.display())]
    Io {
        /// Path.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn owner(pid: Option<u32>) -> String {
    pid.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"))
}

fn join(damage: &[Damage]) -> String {
    let texts: Vec<String> = damage.iter().map(ToString::to_string).collect();
    texts.join("; ")
}
