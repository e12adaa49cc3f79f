//! Processes of a run, found in `/proc`: all descendants of the supervisor.

use crate::sys::{Call, Errno, files, memory, process};
use std::ffi::CStr;
use std::os::fd::RawFd;

/// Bound on the processes that one walk looks at. Where there is no PID namespace of its own, that is the whole machine's.
const TABLE: usize = 65_536;

/// Process as `/proc/PID/stat` shows it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) pid: i32,
    parent: i32,
    pub(super) state: u8,
    is_in_run: bool,
    threads: u32,
    /// Start time, which tells two processes with the same number apart.
    start: u64,
    resident_pages: u64,
}

impl Entry {
    pub(super) fn is_zombie(&self) -> bool {
        matches!(self.state, b'Z' | b'X')
    }

    pub(super) fn is_stopped(&self) -> bool {
        matches!(self.state, b'T' | b't')
    }
}

/// Table of processes, filled by each walk.
pub(super) struct Table {
    entries: &'static mut [Entry],
    length: usize,
}

/// Sums over the processes of a run.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sums {
    pub(super) processes: u64,
    pub(super) tasks: u64,
    pub(super) resident_pages: u64,
}

impl Table {
    pub(super) fn new() -> Call<Self> {
        Ok(Self { entries: memory::map_zeroed(TABLE)?, length: 0 })
    }

    /// Looks at all processes, and marks the descendants of the caller.
    pub(super) fn walk(&mut self) -> Call<()> {
        self.length = 0;
        // The number under which this `/proc` knows the caller, which differs if it is not the one of the caller's own namespace.
        let mut text = [0_u8; 16];
        let length = files::read_link(c"/proc/self", &mut text)?;
        let own = text.get(..length).and_then(number).ok_or(Errno(libc::EIO))?;
        let folder = files::open(c"/proc", libc::O_RDONLY | libc::O_DIRECTORY, 0)?;
        let result = self.read_folder(folder);
        files::close(folder);
        result?;
        self.mark_descendants(own);
        Ok(())
    }

    fn read_folder(&mut self, folder: RawFd) -> Call<()> {
        /// Offsets in a directory entry of the kernel.
        const LENGTH: usize = 16;
        const NAME: usize = 19;
        let mut buffer = [0_u8; 16 * 1024];
        loop {
            let filled = files::directory_entries(folder, &mut buffer)?;
            if filled == 0 {
                return Ok(());
            }
            let mut at = 0;
            while let Some(entry) = buffer.get(at..filled) {
                let Some([low, high]) = entry.get(LENGTH..LENGTH + 2) else { break };
                let length = usize::from(u16::from_ne_bytes([*low, *high]));
                if length == 0 {
                    break;
                }
                let name = entry.get(NAME..).and_then(|rest| rest.split(|byte| *byte == 0).next());
                if let Some(pid) = name.and_then(number)
                    && let Some(found) = read_process(pid)
                    && let Some(slot) = self.entries.get_mut(self.length)
                {
                    *slot = found;
                    self.length += 1;
                }
                at += length;
            }
        }
    }

    /// Marks until nothing changes: a child may stand before its parent.
    fn mark_descendants(&mut self, own: i32) {
        let Some(entries) = self.entries.get_mut(..self.length) else { return };
        loop {
            let mut has_changed = false;
            for at in 0..entries.len() {
                let Some(&Entry { parent, is_in_run: false, .. }) = entries.get(at) else { continue };
                let is_child =
                    parent == own || entries.iter().any(|other| other.pid == parent && other.is_in_run);
                if is_child && let Some(entry) = entries.get_mut(at) {
                    entry.is_in_run = true;
                    has_changed = true;
                }
            }
            if !has_changed {
                return;
            }
        }
    }

    /// Processes of the run, as of the last walk.
    pub(super) fn run(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().take(self.length).filter(|entry| entry.is_in_run)
    }

    pub(super) fn sums(&self) -> Sums {
        self.run().filter(|entry| !entry.is_zombie()).fold(Sums::default(), |sums, entry| Sums {
            processes: sums.processes + 1,
            tasks: sums.tasks + u64::from(entry.threads),
            resident_pages: sums.resident_pages + entry.resident_pages,
        })
    }

    /// Bytes of memory that the run alone is the reason for: shared pages count once, pages of files not at all.
    pub(super) fn proportional_memory(&self, page: u64) -> u64 {
        self.run()
            .filter(|entry| !entry.is_zombie())
            .map(|entry| read_proportional(entry.pid).unwrap_or(entry.resident_pages.saturating_mul(page)))
            .fold(0, u64::saturating_add)
    }
}

/// Signals a process, unless its number belongs to another one by now.
pub(super) fn signal(entry: &Entry, signal: i32) {
    if let Ok(descriptor) = process::descriptor_of(entry.pid) {
        if read_process(entry.pid).is_some_and(|now| now.start == entry.start) {
            let _ = process::send_signal_to(descriptor, signal);
        }
        files::close(descriptor);
    }
}

/// Whether the calling process sees the children it has: the trial's ended process is still unreaped.
pub(super) fn can_sample() -> bool {
    Table::new().is_ok_and(|mut table| table.walk().is_ok() && table.run().next().is_some())
}

/// Path of a process's file in `/proc`, in a buffer that the caller keeps.
fn path<'a>(buffer: &'a mut [u8; 40], pid: i32, name: &[u8]) -> Option<&'a CStr> {
    let mut digits = [0_u8; 10];
    let mut value = u32::try_from(pid).ok()?;
    let mut count = 0;
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + u8::try_from(value % 10).ok()?;
        value /= 10;
        count += 1;
        if value == 0 {
            break;
        }
    }
    let digits = digits.get(digits.len() - count..)?;
    let bytes = b"/proc/".iter().chain(digits).chain(b"/").chain(name).chain(b"\0");
    for (target, byte) in buffer.iter_mut().zip(bytes) {
        *target = *byte;
    }
    CStr::from_bytes_until_nul(buffer).ok()
}

fn read_into<'a>(pid: i32, name: &[u8], buffer: &'a mut [u8]) -> Option<&'a [u8]> {
    let mut space = [0_u8; 40];
    let fd = files::open(path(&mut space, pid, name)?, libc::O_RDONLY, 0).ok()?;
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match files::read(fd, rest) {
            Ok(0) | Err(_) => break,
            Ok(count) => filled += count,
        }
    }
    files::close(fd);
    buffer.get(..filled).filter(|text| !text.is_empty())
}

fn read_process(pid: i32) -> Option<Entry> {
    let mut buffer = [0_u8; 1024];
    parse_process(pid, read_into(pid, b"stat", &mut buffer)?)
}

fn parse_process(pid: i32, text: &[u8]) -> Option<Entry> {
    // The name stands in brackets and may contain any byte, brackets included.
    let end = text.iter().rposition(|byte| *byte == b')')?;
    let mut fields = text.get(end + 2..)?.split(|byte| *byte == b' ');
    let state = *fields.next()?.first()?;
    let parent = number(fields.next()?)?;
    let threads = decimal(fields.nth(15)?)?;
    let start = decimal(fields.nth(1)?)?;
    let resident_pages = decimal(fields.nth(1)?)?;
    let threads = u32::try_from(threads).ok()?;
    Some(Entry { pid, parent, state, is_in_run: false, threads, start, resident_pages })
}

fn read_proportional(pid: i32) -> Option<u64> {
    let mut buffer = [0_u8; 2048];
    parse_proportional(read_into(pid, b"smaps_rollup", &mut buffer)?)
}

fn parse_proportional(text: &[u8]) -> Option<u64> {
    let mut sum = None;
    for line in text.split(|byte| *byte == b'\n') {
        let mut fields = line.split(|byte| *byte == b' ').filter(|field| !field.is_empty());
        if let Some(b"Pss_Anon:" | b"Pss_Shmem:") = fields.next() {
            let kibibytes = fields.next().and_then(decimal)?;
            sum = Some(sum.unwrap_or(0_u64).saturating_add(kibibytes.saturating_mul(1024)));
        }
    }
    sum
}

fn number(digits: &[u8]) -> Option<i32> {
    decimal(digits).and_then(|value| i32::try_from(value).ok())
}

fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |value, digit| {
        let digit = char::from(*digit).to_digit(10)?;
        value.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

#[cfg(test)]
mod tests {
    use super::{parse_process, parse_proportional, path};

    #[test]
    fn a_process_line_is_read_whatever_its_name() {
        let line = b"42 (a) R 7 (x) S 41 42 42 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 11 0 98765 1000000 321 184";
        let entry = parse_process(42, line).unwrap();
        assert_eq!((entry.state, entry.parent, entry.threads), (b'S', 41, 11));
        assert_eq!((entry.start, entry.resident_pages), (98_765, 321));
        assert!(parse_process(1, b"1 (x").is_none());
    }

    #[test]
    fn memory_of_files_is_not_the_runs() {
        let text = b"00400000-7ffd rw-p 0 00:00 0 [rollup]\nRss: 900 kB\nPss: 800 kB\nPss_Anon:  300 kB\nPss_File: 400 kB\nPss_Shmem: 100 kB\n";
        assert_eq!(parse_proportional(text), Some(400 * 1024));
        assert_eq!(parse_proportional(b"Rss: 900 kB\n"), None);
    }

    #[test]
    fn paths_are_written_without_an_allocator() {
        let mut buffer = [0; 40];
        assert_eq!(path(&mut buffer, 4711, b"stat"), Some(c"/proc/4711/stat"));
        let mut buffer = [0; 40];
        assert_eq!(path(&mut buffer, i32::MAX, b"smaps_rollup"), Some(c"/proc/2147483647/smaps_rollup"));
    }
}
