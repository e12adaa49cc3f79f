//! A file for what the gateway has not taken yet, which outlives the program.
//!
//! A header, then records: a length, the first bytes of a digest, and the event as it stands on the socket. The header says where the first
//! record begins that the gateway has not taken. What a crash tore is not read.

#[cfg(test)]
mod tests;

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use proctor_wire::assembly::frames::{ClientFrame, MAX_PAYLOAD, TaggedFrame};
use proctor_wire::assembly::proto::audit::v1::AuditEvent;
use sha2::{Digest, Sha256};

/// How large the file may be.
const MAX_FILE: u64 = 128 * 1024 * 1024;
/// What was taken is cut off once it is this large, and at least half of the file.
const WORTH_CUTTING: u64 = 1024 * 1024;

const MAGIC: &[u8; 8] = b"aaevent1";
/// The magic, and where the first record begins that was not taken.
const HEADER: u64 = HEADER_LEN as u64;
const HEADER_LEN: usize = 16;
/// A length, and the first bytes of a digest.
const RECORD_HEAD: usize = 12;
/// A tag and a length around the longest payload.
const MAX_RECORD: usize = MAX_PAYLOAD + 16;

/// The file, locked for as long as it is open.
#[derive(Debug)]
pub(crate) struct Buffer {
    path: PathBuf,
    file: File,
    max: u64,
    /// Where the first record begins that was not taken.
    start: u64,
    /// Where the first record begins that is in the file only.
    read: u64,
    /// How many records are in the file only.
    unread: usize,
    end: u64,
}

impl Buffer {
    /// Opens the file, or makes it. What an earlier program has left in it is read first.
    pub(crate) fn open(path: &Path) -> Result<Buffer, String> {
        Buffer::with_limit(path, MAX_FILE)
    }

    fn with_limit(path: &Path, max: u64) -> Result<Buffer, String> {
        let named =
            |problem: &dyn std::fmt::Display| format!("AA_AUDIT_BUFFER_PATH {}: {problem}", path.display());
        if let Some(folder) = path.parent() {
            let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
            made.map_err(|error| named(&error))?;
        }
        let file = options().create(true).truncate(false).open(path).map_err(|error| named(&error))?;
        let found = file.metadata().map_err(|error| named(&error))?;
        if !found.is_file() {
            return Err(named(&"it is not a file"));
        }
        // Events can hold secrets, and what is in the file is sent under the agent's name.
        if found.uid() != rustix::process::geteuid().as_raw() || found.mode() & 0o077 != 0 {
            return Err(named(&"others may read or write it: it must be this user's own, with mode 600"));
        }
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(named(&"another runtime uses it")),
            Err(TryLockError::Error(error)) => return Err(named(&error)),
        }
        let mut buffer =
            Buffer { path: path.to_owned(), file, max, start: HEADER, read: HEADER, unread: 0, end: HEADER };
        buffer.find_records(found.len()).map_err(|problem| named(&problem))?;
        Ok(buffer)
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// How many events are in the file only: what comes now comes after them.
    pub(crate) fn unread(&self) -> usize {
        self.unread
    }

    /// Appends an event, and says how many bytes it takes. Without `in_memory` it is read again later.
    pub(crate) fn append(&mut self, event: &AuditEvent, in_memory: bool) -> Result<u64, String> {
        let record = record(event)?;
        let length = record.len() as u64;
        if self.end.saturating_add(length) > self.max && self.start > HEADER {
            self.cut_taken().map_err(|error| self.named(&error))?;
        }
        if self.end.saturating_add(length) > self.max {
            return Err(self.named(&"it is full"));
        }
        if let Err(error) = self.file.write_all_at(&record, self.end) {
            // A torn record would hide those after it.
            let _ = self.file.set_len(self.end);
            return Err(self.named(&error));
        }
        self.end = self.end.saturating_add(length);
        if in_memory {
            self.read = self.end;
        } else {
            self.unread = self.unread.saturating_add(1);
        }
        Ok(length)
    }

    /// The next event that is in the file only, and how many bytes it takes.
    pub(crate) fn next(&mut self) -> Result<Option<(AuditEvent, u64)>, String> {
        if self.unread == 0 {
            return Ok(None);
        }
        match self.record_at(self.read, self.end) {
            Ok(Some((event, length))) => {
                self.read = self.read.saturating_add(length);
                self.unread = self.unread.saturating_sub(1);
                Ok(Some((event, length)))
            }
            Ok(None) => Err(self.give_up(&"it was changed by another program")),
            Err(error) => Err(self.give_up(&error)),
        }
    }

    /// What stands behind cannot be told apart any more.
    fn give_up(&mut self, problem: &dyn std::fmt::Display) -> String {
        let lost = std::mem::take(&mut self.unread);
        self.read = self.end;
        self.named(&format!("{problem}; {lost} events are lost"))
    }

    /// The gateway has taken the oldest so many bytes of events.
    pub(crate) fn acknowledge(&mut self, bytes: u64) -> Result<(), String> {
        self.start = self.start.saturating_add(bytes).min(self.read);
        let taken = self.start.saturating_sub(HEADER);
        let done = if self.start == self.end {
            self.empty()
        } else if taken >= WORTH_CUTTING && taken >= self.end.saturating_sub(self.start) {
            self.cut_taken()
        } else {
            self.file.write_all_at(&self.start.to_le_bytes(), 8)
        };
        done.map_err(|error| self.named(&error))
    }

    /// Cut first: a start behind the end means the beginning, a beginning before old records would send them again.
    fn empty(&mut self) -> io::Result<()> {
        self.file.set_len(HEADER)?;
        (self.start, self.read, self.end) = (HEADER, HEADER, HEADER);
        self.file.write_all_at(&header(HEADER), 0)
    }

    /// Writes what was not taken into a new file, which then takes the place of this one.
    fn cut_taken(&mut self) -> io::Result<()> {
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

    /// Finds what an earlier program has left, and cuts off what is torn.
    fn find_records(&mut self, length: u64) -> Result<(), String> {
        let text = |error: io::Error| error.to_string();
        let mut found = [0; HEADER_LEN];
        let known = usize::try_from(length).unwrap_or(usize::MAX).min(found.len());
        let (found_magic, found_start) = {
            self.file.read_exact_at(found.get_mut(..known).unwrap_or_default(), 0).map_err(text)?;
            let (magic, start) = found.split_at(MAGIC.len());
            (magic, u64::from_le_bytes(start.try_into().unwrap_or_default()))
        };
        let magic_known = known.min(MAGIC.len());
        if found_magic.get(..magic_known) != MAGIC.get(..magic_known) {
            return Err("it holds something else: move it away".to_owned());
        }
        if length < HEADER {
            return self.empty().map_err(text);
        }
        let begins = [found_start, HEADER].into_iter().filter(|start| (HEADER..=length).contains(start));
        for start in begins {
            let (end, count) = self.scan(start, length).map_err(text)?;
            // A start at no record is a damaged one: everything is sent again.
            if count > 0 || start == HEADER || start == length {
                (self.start, self.read, self.end, self.unread) = (start, start, end, count);
                break;
            }
        }
        if self.start == self.end {
            return self.empty().map_err(text);
        }
        self.file.set_len(self.end).map_err(text)
    }

    /// Where whole records that begin at `start` end, and how many they are.
    fn scan(&self, start: u64, length: u64) -> io::Result<(u64, usize)> {
        let (mut end, mut count) = (start, 0_usize);
        while let Some((_, size)) = self.record_at(end, length)? {
            end = end.saturating_add(size);
            count = count.saturating_add(1);
        }
        Ok((end, count))
    }

    /// The event at `start` and the size of its record; none if no whole record stands there.
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

    fn named(&self, problem: &dyn std::fmt::Display) -> String {
        format!("{}: {problem}", self.path.display())
    }
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    // A link or a pipe in its place is none of ours.
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    options.read(true).write(true).mode(0o600).custom_flags(flags.bits().cast_signed());
    options
}

fn header(start: u64) -> Vec<u8> {
    [MAGIC.as_slice(), &start.to_le_bytes()].concat()
}

fn record(event: &AuditEvent) -> Result<Vec<u8>, String> {
    let mut frame = Vec::new();
    ClientFrame::EventReport(event.clone()).encode(&mut frame).map_err(|error| error.to_string())?;
    let size = u32::try_from(frame.len()).map_err(|error| error.to_string())?;
    let digest = Sha256::digest(&frame);
    let digest = digest.get(..RECORD_HEAD - 4).unwrap_or_default();
    Ok([size.to_le_bytes().as_slice(), digest, &frame].concat())
}
