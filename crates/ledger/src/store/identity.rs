//! Identity of the database files: that the paths still lead to the files that were opened, whole.
//!
//! SQLite writes through open descriptors. After `rm -rf` of the state directory, or `mv`, commits would succeed into files that nobody
//! finds any more, and actions would be let through whose records are lost.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::connection::beside;
use crate::error::StoreError;

/// The database and its write-ahead log.
pub(super) struct DatabaseFiles {
    database: Watched,
    log: Watched,
    /// Whether the present mismatch has been logged: once, not at every commit.
    reported: AtomicBool,
}

/// A file, as it was when the database was opened.
struct Watched {
    path: PathBuf,
    device: u64,
    inode: u64,
    links: u64,
    /// The length after the last write.
    length: AtomicU64,
}

impl DatabaseFiles {
    /// Notes the files of an open database.
    pub(super) fn of(database: &Path) -> Result<DatabaseFiles, StoreError> {
        Ok(DatabaseFiles {
            database: Watched::of(database.to_owned())?,
            log: Watched::of(beside(database, "-wal"))?,
            reported: AtomicBool::new(false),
        })
    }

    /// Compares both files with what was noted. For the writer alone: only between its writes the lengths are known.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        self.reported(self.database.check(true).and_then(|()| self.log.check(true)))
    }

    /// Compares which files they are, also while the writer writes. The database never shrinks, so its length is compared, too.
    pub(super) fn check_presence(&self) -> Result<(), StoreError> {
        self.reported(self.database.check(true).and_then(|()| self.log.check(false)))
    }

    /// Compares which files they are, and notes their lengths after a write.
    pub(super) fn written(&self) -> Result<(), StoreError> {
        self.reported(self.database.written().and_then(|()| self.log.written()))
    }

    fn reported(&self, checked: Result<(), StoreError>) -> Result<(), StoreError> {
        match &checked {
            Ok(()) => self.reported.store(false, Ordering::Relaxed),
            Err(error) => {
                if !self.reported.swap(true, Ordering::Relaxed) {
                    log::error!("nothing is recorded, so everything is denied: {error}");
                }
            }
        }
        checked
    }
}

impl Watched {
    fn of(path: PathBuf) -> Result<Watched, StoreError> {
        let found = match fs::metadata(&path) {
            Ok(found) => found,
            Err(error) => return Err(StoreError::Io(format!("`{}`: {error}", path.display()))),
        };
        Ok(Watched {
            device: found.dev(),
            inode: found.ino(),
            links: found.nlink(),
            length: AtomicU64::new(found.len()),
            path,
        })
    }

    fn check(&self, with_length: bool) -> Result<(), StoreError> {
        let length = self.find()?;
        let expected = self.length.load(Ordering::Relaxed);
        if with_length && length < expected {
            return Err(self.changed(format!("has {length} bytes, and had {expected}")));
        }
        Ok(())
    }

    fn written(&self) -> Result<(), StoreError> {
        let length = self.find()?;
        self.length.store(length, Ordering::Relaxed);
        Ok(())
    }

    /// Length of the file at the path, if it is the file that was opened.
    fn find(&self) -> Result<u64, StoreError> {
        let found = match fs::metadata(&self.path) {
            Ok(found) => found,
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return Err(self.changed("is gone".to_owned()));
            }
            Err(error) => return Err(self.changed(format!("cannot be looked at: {error}"))),
        };
        if (found.dev(), found.ino()) != (self.device, self.inode) {
            return Err(self.changed("is another file than the one that was opened".to_owned()));
        }
        if found.nlink() != self.links {
            let (now, before) = (found.nlink(), self.links);
            return Err(self.changed(format!("has {now} hard links, and had {before}")));
        }
        Ok(found.len())
    }

    fn changed(&self, what: String) -> StoreError {
        StoreError::Changed { path: self.path.clone(), what }
    }
}
