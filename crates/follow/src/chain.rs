//! The audit log of Agent Assembly, written from the ledger: one line for each record that its auditors expect.
//!
//! A line follows from the ledger alone, so the log can always be completed: after an error, a kill or a lost disk write it goes
//! on behind its last whole line, with the bytes that it would have had.

mod entry;
mod file;
mod tail;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use proctor_ledger::Reader;
use proctor_ledger::reader::Record;

use super::agents::Agents;
use super::subject::Subject;
use super::{Handle, Round, Stop};
use file::LogFile;
use tail::Place;

/// How often the file is made to last at most.
const SYNC: Duration = Duration::from_secs(1);

/// Lines are written once they have so many bytes, and at the end of each page of records.
const BUFFER: usize = 1 << 20;

/// The first and the longest pause after an error.
const PAUSES: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(30));

/// Writes the audit log of Agent Assembly.
pub struct ChainFollower;

impl ChainFollower {
    /// Goes on with the log in `folder`, or begins it; then follows the ledger.
    pub fn start(folder: &Path, reader: Reader) -> Result<Handle, String> {
        let writer = Writer::open(folder, reader)?;
        Handle::spawn("audit-log", move |stop| writer.run(stop))
    }
}

struct Writer {
    folder: PathBuf,
    reader: Reader,
    open: Option<Open>,
}

/// The log while nothing is wrong with it.
struct Open {
    file: LogFile,
    place: Place,
    agents: Agents,
    /// The length up to which the file was made to last.
    lasting: u64,
    synced_at: Instant,
}

impl Writer {
    fn open(folder: &Path, reader: Reader) -> Result<Writer, String> {
        let open = Open::new(LogFile::open(folder)?, &reader)?;
        if let Some(remark) = &open.place.remark {
            log::warn!("{}", open.file.named(remark));
        }
        Ok(Writer { folder: folder.to_owned(), reader, open: Some(open) })
    }

    /// Follows until it is told to end.
    fn run(mut self, stop: &Stop) -> Result<(), String> {
        let mut pause = PAUSES.0;
        let mut said: Option<String> = None;
        loop {
            let was_asked = stop.is_asked();
            match self.round(stop) {
                Ok(is_done) => {
                    if said.take().is_some() {
                        log::warn!("the audit log is complete again");
                    }
                    pause = PAUSES.0;
                    if is_done {
                        return Ok(());
                    }
                }
                Err(problem) => {
                    if said.as_ref() != Some(&problem) {
                        log::warn!("the audit log waits: {problem}");
                        said = Some(problem.clone());
                    }
                    if !stop.pause(pause, was_asked) {
                        return Err(format!("{problem}: the log is completed at the next start"));
                    }
                    pause = pause.saturating_mul(2).min(PAUSES.1);
                }
            }
        }
    }

    /// Writes what is there and what comes soon. True if there will be no more.
    fn round(&mut self, stop: &Stop) -> Result<bool, String> {
        let mut open = match self.open.take() {
            Some(open) => open,
            None => Open::new(LogFile::open(&self.folder)?, &self.reader)?,
        };
        match open.round(&self.reader, stop) {
            Ok(is_done) => {
                self.open = Some(open);
                Ok(is_done)
            }
            Err(problem) => {
                // What may not have reached the disk is written anew. If it cannot be cut off now, its last whole line counts.
                if !open.file.was_changed() {
                    let _ = open.file.cut(open.lasting);
                }
                Err(problem)
            }
        }
    }
}

impl Open {
    fn new(mut file: LogFile, reader: &Reader) -> Result<Open, String> {
        let place = tail::find(file.file(), reader).map_err(|problem| file.named(problem))?;
        file.cut(place.end)?;
        file.sync()?;
        let agents = Agents::before(reader, place.next)?;
        Ok(Open { file, lasting: place.end, place, agents, synced_at: Instant::now() })
    }

    fn round(&mut self, reader: &Reader, stop: &Stop) -> Result<bool, String> {
        let mut round = Round::new(reader, self.place.next, stop);
        while let Some(page) = round.follow.next_page().map_err(|error| error.to_string())? {
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
                return Err("there was not enough time".to_owned());
            }
        }
        if round.is_last || self.synced_at.elapsed() >= SYNC {
            self.sync()?;
        }
        Ok(round.is_done(stop))
    }

    /// Adds the line of a record, if it has one.
    fn add(&mut self, reader: &Reader, record: &Record, lines: &mut Vec<u8>) -> Result<(), String> {
        // Its last line still tells where an agent came from that is forgotten.
        let is_farewell = record.envelope.code == "forgotten";
        if !is_farewell {
            self.agents.apply(&record.envelope);
        }
        if entry::has_line(&record.envelope) {
            let subject = Subject::read(reader, record)?;
            let sealed = entry::sealed(&self.place.chain, &subject, &self.agents);
            if let Some(sealed) = sealed.map_err(|error| self.file.named(error))? {
                lines.extend(sealed.line.as_bytes());
                lines.push(b'\n');
                self.place.chain.written(&sealed);
            }
        }
        if is_farewell {
            self.agents.apply(&record.envelope);
        }
        self.place.next = record.seq + 1;
        Ok(())
    }

    fn write(&mut self, lines: &mut Vec<u8>) -> Result<(), String> {
        if !lines.is_empty() {
            self.file.append(lines)?;
            lines.clear();
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<(), String> {
        self.synced_at = Instant::now();
        if !self.file.is_in_place() {
            return Err(self.file.named("it was moved or removed"));
        }
        if self.lasting < self.file.end() {
            self.file.sync()?;
            self.lasting = self.file.end();
        }
        Ok(())
    }
}
