//! Delivery watermark, persisted in a file.

use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use proctor_ledger::Reader;

use crate::error::PositionError;

/// Sequence after the last record whose events were delivered.
#[derive(Debug)]
pub(super) struct Position {
    file: PathBuf,
    next: u64,
    written: u64,
    written_at: Instant,
    is_failing: bool,
}

impl Position {
    /// Reads the watermark; without a file it is the ledger's end.
    pub(super) fn open(state: &Path, reader: &Reader) -> Result<Position, PositionError> {
        let file = state.join("run").join("webhook.position");
        let size = reader.size()?;
        let kept = match fs::read_to_string(&file) {
            Ok(text) => match text.trim().parse::<u64>() {
                Ok(kept) => Some(kept),
                Err(_) => return Err(PositionError::NotANumber { path: file }),
            },
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(source) => return Err(PositionError::Io { path: file, source }),
        };
        if kept.is_some_and(|kept| kept > size) {
            log::warn!(
                "the webhook was further than this ledger: it goes on with what is recorded from now on",
            );
        }
        let next = kept.unwrap_or(size).min(size);
        let mut position =
            Position { file, next, written: next, written_at: Instant::now(), is_failing: false };
        if kept != Some(next) {
            // Written at once: a kill before the first delivery must not skip records.
            position.write()?;
        }
        Ok(position)
    }

    /// Sequence of the first undelivered record.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Advances the watermark past a record. Written at once after a delivery, else at most once a second.
    pub(super) fn passed(&mut self, seq: u64, was_delivered: bool) {
        self.next = seq + 1;
        if was_delivered || super::is_due(self.written_at) {
            self.keep();
        }
    }

    /// Writes the watermark, if it changed. A failure is logged once; events after the written one are then delivered again at the
    /// next start.
    pub(super) fn keep(&mut self) {
        if self.written == self.next {
            return;
        }
        match self.write() {
            Ok(()) => self.is_failing = false,
            Err(problem) if !std::mem::replace(&mut self.is_failing, true) => {
                log::warn!("the webhook's position cannot be kept: {problem}");
            }
            Err(_) => {}
        }
    }

    fn write(&mut self) -> Result<(), PositionError> {
        let draft = self.file.with_extension("position.new");
        let describe = |source: std::io::Error| PositionError::Io { path: self.file.clone(), source };
        let mut options = fs::OpenOptions::new();
        let mut handle =
            options.write(true).create(true).truncate(true).mode(0o600).open(&draft).map_err(describe)?;
        writeln!(handle, "{}", self.next).and_then(|()| handle.sync_data()).map_err(describe)?;
        fs::rename(&draft, &self.file).map_err(describe)?;
        self.written = self.next;
        self.written_at = Instant::now();
        Ok(())
    }
}
