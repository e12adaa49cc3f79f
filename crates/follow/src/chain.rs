//! Hash-chained audit log of Agent Assembly, derived from the ledger: one JSON line for each record of the kinds in `entry::has_line`.
//!
//! A line depends on the ledger alone, so the log can always be completed: after an error, a kill or a lost disk write the
//! follower truncates the file to its last whole line and appends the same bytes again.

mod entry;
mod file;
mod tail;
mod verification;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use proctor_ledger::Reader;
use proctor_ledger::reader::Record;

use super::agents::Agents;
use super::error::{FinishError, LogError, LogFileError, StartError};
use super::loaded_record::LoadedRecord;
use super::{Handle, Round, Stop};
use file::LogFile;
use tail::Cursor;

/// Shortest interval between two `fdatasync` calls while the follower runs.
const SYNC: Duration = Duration::from_secs(1);

/// Size at which buffered lines are written; they are also written after each page of records.
const BUFFER: usize = 1 << 20;

/// First and longest backoff after an error.
const PAUSES: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(30));

/// Follower that writes the audit log of Agent Assembly.
pub struct ChainFollower;

impl ChainFollower {
    /// Opens or creates the log in `folder`, and follows the ledger from its last line on. If a line that is there was tampered with,
    /// `tampered` is told before the first new line is written.
    pub fn start(
        folder: &Path,
        reader: Reader,
        tampered: impl FnOnce(&str) + Send + 'static,
    ) -> Result<Handle, StartError> {
        let writer = Writer::open(folder, reader)?;
        Handle::spawn("audit-log", move |stop| {
            writer.verify(stop, tampered);
            writer.run(stop)
        })
    }
}

struct Writer {
    folder: PathBuf,
    reader: Reader,
    open: Option<OpenLog>,
}

/// Open log file and the state that its next line depends on; dropped after an error, and rebuilt from the file.
struct OpenLog {
    file: LogFile,
    cursor: Cursor,
    agents: Agents,
    /// Length of the file at its last sync.
    synced_end: u64,
    synced_at: Instant,
}

impl Writer {
    fn open(folder: &Path, reader: Reader) -> Result<Writer, LogError> {
        let open = OpenLog::new(LogFile::open(folder)?, &reader)?;
        if let Some(warning) = open.cursor.warning {
            log::warn!("{}: {warning}", open.file.path().display());
        }
        Ok(Writer { folder: folder.to_owned(), reader, open: Some(open) })
    }

    /// Verifies the lines that are there. Their problem does not end the follower: records since then must have their lines, too.
    fn verify(&self, stop: &Stop, tampered: impl FnOnce(&str)) {
        let Some(open) = &self.open else { return };
        let path = open.file.path().display();
        match verification::tampering(open.file.file(), open.cursor.end, stop) {
            Ok(None) => {}
            Ok(Some(problem)) => tampered(&format!(
                "the audit log {path} was tampered with, {problem}. New lines are written after the last one that is there; keep a copy, and run \
                 `proctor audit verify-chain {path}`"
            )),
            Err(problem) => log::warn!("the audit log {path} was not verified: {problem}"),
        }
    }

    /// Runs rounds until a stop is requested, with exponential backoff after errors.
    fn run(mut self, stop: &Stop) -> Result<(), FinishError> {
        let mut pause = PAUSES.0;
        let mut logged: Option<String> = None;
        loop {
            let was_asked = stop.is_asked();
            match self.round(stop) {
                Ok(is_done) => {
                    if logged.take().is_some() {
                        log::warn!("the audit log is complete again");
                    }
                    pause = PAUSES.0;
                    if is_done {
                        return Ok(());
                    }
                }
                Err(problem) => {
                    // A lasting error is logged once, not at each retry.
                    let text = problem.to_string();
                    if logged.as_ref() != Some(&text) {
                        log::warn!("the audit log waits: {text}");
                        logged = Some(text);
                    }
                    if !stop.pause(pause, was_asked) {
                        return Err(FinishError::Log(problem));
                    }
                    pause = pause.saturating_mul(2).min(PAUSES.1);
                }
            }
        }
    }

    /// Writes the lines of one polling round. True after the last round.
    fn round(&mut self, stop: &Stop) -> Result<bool, LogError> {
        let mut open = match self.open.take() {
            Some(open) => open,
            None => OpenLog::new(LogFile::open(&self.folder)?, &self.reader)?,
        };
        match open.round(&self.reader, stop) {
            Ok(is_done) => {
                self.open = Some(open);
                Ok(is_done)
            }
            Err(problem) => {
                // Bytes that may not have reached the disk are written again. If the file cannot be truncated now, reopening it
                // goes by its last whole line.
                if !open.file.was_changed() {
                    let _ = open.file.truncate(open.synced_end);
                }
                Err(problem)
            }
        }
    }
}

impl OpenLog {
    fn new(mut file: LogFile, reader: &Reader) -> Result<OpenLog, LogError> {
        let cursor = tail::find(file.file(), reader).map_err(|problem| file.error(problem))?;
        file.truncate(cursor.end)?;
        file.sync()?;
        let agents = Agents::before(reader, cursor.next)?;
        Ok(OpenLog { file, synced_end: cursor.end, cursor, agents, synced_at: Instant::now() })
    }

    fn round(&mut self, reader: &Reader, stop: &Stop) -> Result<bool, LogError> {
        let mut round = Round::new(reader, self.cursor.next, stop);
        while let Some(page) = round.follow.next_page()? {
            let mut lines = Vec::new();
            for record in &page {
                self.add(reader, record, &mut lines)?;
                if lines.len() >= BUFFER {
                    self.write(&mut lines)?;
                }
            }
            self.write(&mut lines)?;
            if self.synced_at.elapsed() >= SYNC {
                self.sync()?;
            }
            if stop.is_over() {
                return Err(LogError::Deadline);
            }
        }
        if round.is_last || self.synced_at.elapsed() >= SYNC {
            self.sync()?;
        }
        Ok(round.is_done(stop))
    }

    /// Appends the record's line to `lines`, if its kind has one.
    fn add(&mut self, reader: &Reader, record: &Record, lines: &mut Vec<u8>) -> Result<(), LogError> {
        // The line of a `forgotten` record still has the agent's lineage, so the record is applied after it.
        let is_forgotten = record.envelope.code == "forgotten";
        if !is_forgotten {
            self.agents.apply(&record.envelope);
        }
        if entry::has_line(&record.envelope) {
            let loaded = LoadedRecord::read(reader, record)?;
            let sealed = entry::sealed(&self.cursor.chain, &loaded, &self.agents);
            if let Some(sealed) = sealed.map_err(|error| self.file.error(error))? {
                lines.extend(sealed.line.as_bytes());
                lines.push(b'\n');
                self.cursor.chain.written(&sealed);
            }
        }
        if is_forgotten {
            self.agents.apply(&record.envelope);
        }
        self.cursor.next = record.seq + 1;
        Ok(())
    }

    fn write(&mut self, lines: &mut Vec<u8>) -> Result<(), LogError> {
        if !lines.is_empty() {
            self.file.append(lines)?;
            lines.clear();
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<(), LogError> {
        self.synced_at = Instant::now();
        if !self.file.is_in_place() {
            return Err(self.file.error(LogFileError::Moved));
        }
        if self.synced_end < self.file.end() {
            self.file.sync()?;
            self.synced_end = self.file.end();
        }
        Ok(())
    }
}
