//! Persistent queue of reported events that the gateway has not acknowledged.
//!
//! File format: a header, then records of a length, a truncated digest, and the event as it was framed on the socket. The header holds the
//! offset of the first unacknowledged record. A partially written record at the end is truncated when the file is opened.

#[cfg(test)]
mod tests;

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use proctor_wire::assembly::frames::{ClientFrame, FrameError, MAX_PAYLOAD, TaggedFrame};
use proctor_wire::assembly::proto::audit::v1::AuditEvent;
use sha2::{Digest, Sha256};

/// Size limit of the file, in bytes.
const MAX_FILE: u64 = 128 * 1024 * 1024;
/// Acknowledged records are compacted away once they have this many bytes and are at least half of the file.
const MIN_COMPACTION: u64 = 1024 * 1024;

const MAGIC: &[u8; 8] = b"aaevent1";
/// Header: the magic, and the offset of the first unacknowledged record.
const HEADER: u64 = HEADER_LEN as u64;
const HEADER_LEN: usize = 16;
/// Frame header: a length, and the first bytes of a digest.
const RECORD_HEAD: usize = 12;
/// Longest record: tag, length and the longest payload.
const MAX_RECORD: usize = MAX_PAYLOAD + 16;

/// Error of opening the queue file.
#[derive(Debug, thiserror::Error)]
#[error("AA_AUDIT_BUFFER_PATH {}: {problem}", path.display())]
pub struct OpenBufferError {
    path: PathBuf,
    #[source]
    problem: OpenBufferProblem,
}

/// The cause of an [`OpenBufferError`].
#[derive(Debug, thiserror::Error)]
enum OpenBufferProblem {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("it is not a file")]
    NotAFile,
    #[error("others may read or write it: it must be this user's own, with mode 600")]
    NotPrivate,
    #[error("another runtime uses it")]
    InUse,
    #[error("it holds something else: move it away")]
    OtherContent,
}

/// Error of writing an event to the file.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AppendError {
    /// The event does not fit into a frame.
    #[error("{0}")]
    Frame(#[from] FrameError),
    /// The frame's length does not fit into the frame header.
    #[error("{0}")]
    Length(#[from] std::num::TryFromIntError),
    /// The file has reached its size limit.
    #[error("{}: it is full", .0.display())]
    Full(PathBuf),
    /// Writing or compacting failed.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
}

/// Error of reading unread events back; they are dropped.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadBufferError {
    /// The bytes are not the record that was written.
    #[error("{}: it was changed by another program; {lost} events are lost", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
        /// Number of dropped events.
        lost: usize,
    },
    /// Reading failed.
    #[error("{}: {source}; {lost} events are lost", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
        /// Number of dropped events.
        lost: usize,
    },
}

/// Error of removing delivered events from the file.
#[derive(Debug, thiserror::Error)]
#[error("{}: {source}", path.display())]
pub(crate) struct AcknowledgeError {
    path: PathBuf,
    source: io::Error,
}

/// The open queue file, locked against other runtimes.
#[derive(Debug)]
pub(crate) struct Buffer {
    path: PathBuf,
    file: File,
    max: u64,
    /// Offset of the first unacknowledged record.
    start: u64,
    /// Offset of the first record that is not also in memory.
    read: u64,
    /// Number of records that are not also in memory.
    unread: usize,
    end: u64,
}

impl Buffer {
    /// Opens or creates the file. Records of an earlier run are delivered first.
    pub(crate) fn open(path: &Path) -> Result<Buffer, OpenBufferError> {
        Buffer::with_limit(path, MAX_FILE)
    }

    fn with_limit(path: &Path, max: u64) -> Result<Buffer, OpenBufferError> {
        Buffer::open_file(path, max).map_err(|problem| OpenBufferError { path: path.to_owned(), problem })
    }

    fn open_file(path: &Path, max: u64) -> Result<Buffer, OpenBufferProblem> {
        if let Some(folder) = path.parent() {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        let file = options().create(true).truncate(false).open(path)?;
        let found = file.metadata()?;
        if !found.is_file() {
            return Err(OpenBufferProblem::NotAFile);
        }
        // Events can hold secrets, and records of the file are sent under the agent's name.
        if found.uid() != rustix::process::geteuid().as_raw() || found.mode() & 0o077 != 0 {
            return Err(OpenBufferProblem::NotPrivate);
        }
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(OpenBufferProblem::InUse),
            Err(TryLockError::Error(error)) => return Err(error.into()),
        }
        let mut buffer =
            Buffer { path: path.to_owned(), file, max, start: HEADER, read: HEADER, unread: 0, end: HEADER };
        buffer.recover(found.len())?;
        Ok(buffer)
    }

    /// Path of the file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Number of events that are not also in memory. New events queue behind them, to keep the order.
    pub(crate) fn unread(&self) -> usize {
        self.unread
    }

    /// Appends an event and returns the size of its record. Without `in_memory`, [`Buffer::next`] returns it later.
    pub(crate) fn append(&mut self, event: &AuditEvent, in_memory: bool) -> Result<u64, AppendError> {
        let record = record(event)?;
        let length = record.len() as u64;
        if self.end.saturating_add(length) > self.max && self.start > HEADER {
            self.compact().map_err(|source| AppendError::Io { path: self.path.clone(), source })?;
        }
        if self.end.saturating_add(length) > self.max {
            return Err(AppendError::Full(self.path.clone()));
        }
        if let Err(source) = self.file.write_all_at(&record, self.end) {
            // A partial record would end the scan at the next start, and hide the records after it.
            let _ = self.file.set_len(self.end);
            return Err(AppendError::Io { path: self.path.clone(), source });
        }
        self.end = self.end.saturating_add(length);
        if in_memory {
            self.read = self.end;
        } else {
            self.unread = self.unread.saturating_add(1);
        }
        Ok(length)
    }

    /// Reads the next event that is not in memory, with the size of its record.
    pub(crate) fn next(&mut self) -> Result<Option<(AuditEvent, u64)>, ReadBufferError> {
        if self.unread == 0 {
            return Ok(None);
        }
        match self.record_at(self.read, self.end) {
            Ok(Some((event, length))) => {
                self.read = self.read.saturating_add(length);
                self.unread = self.unread.saturating_sub(1);
                Ok(Some((event, length)))
            }
            Ok(None) => Err(self.discard_unread(None)),
            Err(error) => Err(self.discard_unread(Some(error))),
        }
    }

    /// Drops all unread records: behind an unreadable one, record boundaries are unknown.
    fn discard_unread(&mut self, error: Option<io::Error>) -> ReadBufferError {
        let lost = std::mem::take(&mut self.unread);
        self.read = self.end;
        let path = self.path.clone();
        match error {
            Some(source) => ReadBufferError::Io { path, source, lost },
            None => ReadBufferError::Changed { path, lost },
        }
    }

    /// Marks the oldest `bytes` of records as delivered.
    pub(crate) fn acknowledge(&mut self, bytes: u64) -> Result<(), AcknowledgeError> {
        self.start = self.start.saturating_add(bytes).min(self.read);
        let delivered = self.start.saturating_sub(HEADER);
        let done = if self.start == self.end {
            self.reset()
        } else if delivered >= MIN_COMPACTION && delivered >= self.end.saturating_sub(self.start) {
            self.compact()
        } else {
            self.file.write_all_at(&self.start.to_le_bytes(), 8)
        };
        done.map_err(|source| AcknowledgeError { path: self.path.clone(), source })
    }

    /// Truncates the file to an empty queue. The truncation comes before the header: after a crash in between, an offset past the end reads as
    /// an empty queue, while a reset offset before old records would send them again.
    fn reset(&mut self) -> io::Result<()> {
        self.file.set_len(HEADER)?;
        (self.start, self.read, self.end) = (HEADER, HEADER, HEADER);
        self.file.write_all_at(&header(HEADER), 0)
    }

    /// Copies unacknowledged records to a new file and renames it over this one.
    fn compact(&mut self) -> io::Result<()> {
        let mut name = self.path.clone().into_os_string();
        name.push(".new");
        let new = PathBuf::from(name);
        match fs::remove_file(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = options().create_new(true).open(&new)?;
        let copied = self.copy_to(&file).and_then(|()| fs::rename(&new, &self.path));
        if let Err(error) = copied {
            let _ = fs::remove_file(&new);
            return Err(error);
        }
        let cut = self.start.saturating_sub(HEADER);
        self.file = file;
        self.start = HEADER;
        self.read = self.read.saturating_sub(cut);
        self.end = self.end.saturating_sub(cut);
        Ok(())
    }

    fn copy_to(&self, file: &File) -> io::Result<()> {
        file.try_lock().map_err(io::Error::from)?;
        file.write_all_at(&header(HEADER), 0)?;
        let mut block = vec![0; 256 * 1024];
        let (mut from, mut to) = (self.start, HEADER);
        while from < self.end {
            let size = usize::try_from(self.end.saturating_sub(from)).unwrap_or(usize::MAX).min(block.len());
            let part = block.get_mut(..size).unwrap_or_default();
            self.file.read_exact_at(part, from)?;
            file.write_all_at(part, to)?;
            from = from.saturating_add(size as u64);
            to = to.saturating_add(size as u64);
        }
        Ok(())
    }

    /// Scans the records of an earlier run, and truncates a partial one at the end.
    fn recover(&mut self, length: u64) -> Result<(), OpenBufferProblem> {
        let mut found = [0; HEADER_LEN];
        let known = usize::try_from(length).unwrap_or(usize::MAX).min(found.len());
        let (found_magic, found_start) = {
            self.file.read_exact_at(found.get_mut(..known).unwrap_or_default(), 0)?;
            let (magic, start) = found.split_at(MAGIC.len());
            (magic, u64::from_le_bytes(start.try_into().unwrap_or_default()))
        };
        let magic_known = known.min(MAGIC.len());
        if found_magic.get(..magic_known) != MAGIC.get(..magic_known) {
            return Err(OpenBufferProblem::OtherContent);
        }
        if length < HEADER {
            return Ok(self.reset()?);
        }
        let begins = [found_start, HEADER].into_iter().filter(|start| (HEADER..=length).contains(start));
        for start in begins {
            let (end, count) = self.scan(start, length)?;
            // An offset that is no record boundary is damaged: everything is sent again.
            if count > 0 || start == HEADER || start == length {
                (self.start, self.read, self.end, self.unread) = (start, start, end, count);
                break;
            }
        }
        if self.start == self.end {
            return Ok(self.reset()?);
        }
        Ok(self.file.set_len(self.end)?)
    }

    /// End offset and number of the complete records from `start`.
    fn scan(&self, start: u64, length: u64) -> io::Result<(u64, usize)> {
        let (mut end, mut count) = (start, 0_usize);
        while let Some((_, size)) = self.record_at(end, length)? {
            end = end.saturating_add(size);
            count = count.saturating_add(1);
        }
        Ok((end, count))
    }

    /// Event and record size at offset `start`; `None` without a complete, undamaged record.
    fn record_at(&self, start: u64, length: u64) -> io::Result<Option<(AuditEvent, u64)>> {
        let left = length.saturating_sub(start);
        if left < RECORD_HEAD as u64 {
            return Ok(None);
        }
        let mut head = [0; RECORD_HEAD];
        self.file.read_exact_at(&mut head, start)?;
        let (size, digest) = head.split_at(4);
        let size = u32::from_le_bytes(size.try_into().unwrap_or_default());
        let whole = u64::from(size).saturating_add(RECORD_HEAD as u64);
        if size == 0 || size as usize > MAX_RECORD || whole > left {
            return Ok(None);
        }
        let mut frame = vec![0; size as usize];
        self.file.read_exact_at(&mut frame, start.saturating_add(RECORD_HEAD as u64))?;
        if Sha256::digest(&frame).get(..digest.len()) != Some(digest) {
            return Ok(None);
        }
        match ClientFrame::read(&frame) {
            Ok(Some((ClientFrame::EventReport(event), _))) => Ok(Some((event, whole))),
            _ => Ok(None),
        }
    }
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    // Neither follow a link nor block on a pipe that somebody put in its place.
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    options.read(true).write(true).mode(0o600).custom_flags(flags.bits().cast_signed());
    options
}

fn header(start: u64) -> Vec<u8> {
    [MAGIC.as_slice(), &start.to_le_bytes()].concat()
}

fn record(event: &AuditEvent) -> Result<Vec<u8>, AppendError> {
    let mut frame = Vec::new();
    ClientFrame::EventReport(event.clone()).encode(&mut frame)?;
    let size = u32::try_from(frame.len())?;
    let digest = Sha256::digest(&frame);
    let digest = digest.get(..RECORD_HEAD - 4).unwrap_or_default();
    Ok([size.to_le_bytes().as_slice(), digest, &frame].concat())
}
