//! Errors of opening the database, worded for the person who runs the engine.

use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

/// Error of opening or reading the store. An engine that gets this runs on without a history.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The directory is not there and cannot be made.
    #[error("the cache directory `{}` cannot be made: {source}; name another in `ATTEST_CACHE_DIR`", dir.display())]
    Directory {
        /// The directory.
        dir: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// The file or its directory cannot be written.
    #[error("`{}` cannot be opened for writing: {reason}; allow it or name another directory in `ATTEST_CACHE_DIR`", file.display())]
    Unwritable {
        /// The database file.
        file: PathBuf,
        /// The database library's error.
        reason: String,
    },
    /// The file is no database, or one whose content cannot be right. It is left as it is.
    #[error("`{}` is not a usable history: {reason}; move it away or delete it to begin a new one", file.display())]
    Damaged {
        /// The database file.
        file: PathBuf,
        /// The mismatch.
        reason: String,
    },
    /// The file stayed locked by another program for longer than the timeout.
    #[error("`{}` is locked by another program; end that program or try again later", file.display())]
    Busy {
        /// The database file.
        file: PathBuf,
    },
    /// Reading or writing failed.
    #[error("`{}` cannot be read or written: {reason}", file.display())]
    Io {
        /// The database file.
        file: PathBuf,
        /// The database library's error.
        reason: String,
    },
}

impl StoreError {
    /// Classifies an error of the database library.
    pub(super) fn of(file: &Path, error: &rusqlite::Error) -> StoreError {
        let (file, reason) = (file.to_owned(), error.to_string());
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Busy { file },
            Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
                StoreError::Unwritable { file, reason }
            }
            // Unknown is what a missing table or column gives; none means that a column has another type.
            Some(
                ErrorCode::DatabaseCorrupt
                | ErrorCode::NotADatabase
                | ErrorCode::ConstraintViolation
                | ErrorCode::Unknown,
            )
            | None => StoreError::Damaged { file, reason },
            Some(_) => StoreError::Io { file, reason },
        }
    }
}

/// Whether another connection holds a lock, so that waiting helps.
pub(super) fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

/// Whether the database refused this one row, so that trying again is no use and the others are not concerned.
pub(super) fn is_refusal(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::ConstraintViolation | ErrorCode::TypeMismatch | ErrorCode::TooBig)
    )
}
