//! Log file: locked exclusively while open, and appended to at a known length.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::error::{LogError, LogFileError};

/// File name of the log in its folder.
pub(super) const FILE_NAME: &str = "gateway-default.jsonl";

/// Open log file with an exclusive lock, held until drop.
#[derive(Debug)]
pub(super) struct LogFile {
    path: PathBuf,
    file: File,
    end: u64,
    was_changed: bool,
}

impl LogFile {
    /// Opens and locks the log in `folder`; creates both if they are missing.
    pub(super) fn open(folder: &Path) -> Result<LogFile, LogError> {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(|error| file_error(folder, error))?;
        let path = folder.join(FILE_NAME);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        // Opening a FIFO of that name must not block the start.
        options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
        let file = options.open(&path).map_err(|error| file_error(&path, error))?;
        let found = file.metadata().map_err(|error| file_error(&path, error))?;
        if !found.is_file() {
            return Err(file_error(&path, LogFileError::NotAFile));
        }
        match file.try_lock() {
            Ok(()) => Ok(LogFile { path, file, end: found.len(), was_changed: false }),
            Err(TryLockError::WouldBlock) => Err(file_error(&path, LogFileError::Locked)),
            Err(TryLockError::Error(error)) => Err(file_error(&path, error)),
        }
    }

    /// File handle for reading.
    pub(super) fn file(&self) -> &File {
        &self.file
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// An error of this file, with its path.
    pub(super) fn error(&self, problem: impl Into<LogFileError>) -> LogError {
        file_error(&self.path, problem)
    }

    /// Truncates the file to `end` bytes, where the next line is appended.
    pub(super) fn truncate(&mut self, end: u64) -> Result<(), LogError> {
        let length = self.file.metadata().map_err(|error| self.error(error))?.len();
        if length > end {
            self.file.set_len(end).map_err(|error| self.error(error))?;
        }
        self.end = end;
        Ok(())
    }

    /// Appends whole lines. After an error the file may end with a partial line.
    pub(super) fn append(&mut self, lines: &[u8]) -> Result<(), LogError> {
        let length = self.file.metadata().map_err(|error| self.error(error))?.len();
        if length != self.end {
            self.was_changed = true;
            return Err(self.error(LogFileError::Modified));
        }
        self.file.write_all_at(lines, self.end).map_err(|error| self.error(error))?;
        self.end += lines.len() as u64;
        Ok(())
    }

    /// Whether another program has changed the file: then it must not be truncated.
    pub(super) fn was_changed(&self) -> bool {
        self.was_changed
    }

    /// Flushes written lines to the disk.
    pub(super) fn sync(&self) -> Result<(), LogError> {
        self.file.sync_data().map_err(|error| self.error(error))
    }

    /// Whether the path still names the open file, by device and inode.
    pub(super) fn is_in_place(&self) -> bool {
        let (Ok(own), Ok(there)) = (self.file.metadata(), fs::metadata(&self.path)) else { return false };
        (own.dev(), own.ino()) == (there.dev(), there.ino())
    }

    /// Offset of the next line.
    pub(super) fn end(&self) -> u64 {
        self.end
    }
}

fn file_error(path: &Path, problem: impl Into<LogFileError>) -> LogError {
    LogError::File { path: path.to_owned(), source: problem.into() }
}
