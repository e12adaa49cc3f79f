//! The file of the log: opened by one program at a time, and whole up to a known place.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The name of the log in its folder.
pub(super) const FILE_NAME: &str = "gateway-default.jsonl";

/// The file, locked for as long as it is open.
#[derive(Debug)]
pub(super) struct LogFile {
    path: PathBuf,
    file: File,
    end: u64,
    was_changed: bool,
}

impl LogFile {
    /// Opens the log in a folder; makes both if they are not there.
    pub(super) fn open(folder: &Path) -> Result<LogFile, String> {
        let describe = |path: &Path, error: &std::io::Error| format!("{}: {error}", path.display());
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(|error| describe(folder, &error))?;
        let path = folder.join(FILE_NAME);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        // A pipe in its place must not hold up the start.
        options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
        let file = options.open(&path).map_err(|error| describe(&path, &error))?;
        let found = file.metadata().map_err(|error| describe(&path, &error))?;
        if !found.is_file() {
            return Err(format!("{}: it is not a file: move it away", path.display()));
        }
        match file.try_lock() {
            Ok(()) => Ok(LogFile { path, file, end: found.len(), was_changed: false }),
            Err(TryLockError::WouldBlock) => Err(format!(
                "{}: another program writes it: end that one, or choose another folder",
                path.display()
            )),
            Err(TryLockError::Error(error)) => Err(describe(&path, &error)),
        }
    }

    /// The file, to read.
    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// An error with the file's name.
    pub(super) fn named(&self, problem: impl std::fmt::Display) -> String {
        format!("{}: {problem}", self.path.display())
    }

    /// Cuts off what stands behind `end`.
    pub(super) fn cut(&mut self, end: u64) -> Result<(), String> {
        let length = self.file.metadata().map_err(|error| self.named(error))?.len();
        if length > end {
            self.file.set_len(end).map_err(|error| self.named(error))?;
        }
        self.end = end;
        Ok(())
    }

    /// Appends whole lines. After an error the file may end with a torn line.
    pub(super) fn append(&mut self, lines: &[u8]) -> Result<(), String> {
        let length = self.file.metadata().map_err(|error| self.named(error))?.len();
        if length != self.end {
            self.was_changed = true;
            return Err(self.named("another program has changed it"));
        }
        self.file.write_all_at(lines, self.end).map_err(|error| self.named(error))?;
        self.end += lines.len() as u64;
        Ok(())
    }

    /// Whether another program was seen to have changed it: then nothing in it is ours to cut.
    pub(super) fn was_changed(&self) -> bool {
        self.was_changed
    }

    /// Makes what was written last.
    pub(super) fn sync(&self) -> Result<(), String> {
        self.file.sync_data().map_err(|error| self.named(error))
    }

    /// Whether the file still stands in its folder under its name.
    pub(super) fn is_in_place(&self) -> bool {
        let (Ok(own), Ok(there)) = (self.file.metadata(), fs::metadata(&self.path)) else { return false };
        (own.dev(), own.ino()) == (there.dev(), there.ino())
    }

    /// Where the next line will stand.
    pub(super) fn end(&self) -> u64 {
        self.end
    }
}
