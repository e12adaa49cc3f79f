//! How far events are delivered, kept in a file.

use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use proctor_ledger::Reader;

/// The sequence after the last record that was passed on.
#[derive(Debug)]
pub(super) struct Position {
    file: PathBuf,
    next: u64,
    written: u64,
    written_at: Instant,
    is_failing: bool,
}

impl Position {
    /// Where to go on; at the ledger's end if there is no file.
    pub(super) fn open(state: &Path, reader: &Reader) -> Result<Position, String> {
        let file = state.join("run").join("webhook.position");
        let size = reader.size().map_err(|error| error.to_string())?;
        let kept = match fs::read_to_string(&file) {
            Ok(text) => Some(text.trim().parse::<u64>().map_err(|_| {
                format!(
                    "{}: expected a number: remove the file to go on with what is recorded from now on",
                    file.display()
                )
            })?),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(format!("{}: {error}", file.display())),
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
            // What is recorded before the first delivery must not be lost by a kill.
            position.write()?;
        }
        Ok(position)
    }

    /// The first record that is not passed on.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// A record was passed on. What was delivered is written at once, what had no event now and then.
    pub(super) fn passed(&mut self, seq: u64, was_delivered: bool) {
        self.next = seq + 1;
        if was_delivered || super::is_due(self.written_at) {
            self.keep();
        }
    }

    /// Writes it, if it changed. A failure is said once: the events since are then delivered again at the next start.
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

    fn write(&mut self) -> Result<(), String> {
        let draft = self.file.with_extension("position.new");
        let describe = |error: std::io::Error| format!("{}: {error}", self.file.display());
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
