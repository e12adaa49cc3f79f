//! Resume position of a log, found by reading its last lines backwards.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use proctor_core::id::RecordId;
use proctor_ledger::{ReadError, Reader};
use proctor_wire::assembly::chain::{Chain, Entry, MAX_LINE_BYTES};

use crate::error::LogFileError;

/// Lines that are searched for one whose record is in this ledger.
const LOOK_BACK: usize = 1000;

/// Size of one read, in bytes.
const BLOCK: usize = 64 * 1024;

/// Position at which a log is continued.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cursor {
    /// Length of the file up to its last whole line.
    pub end: u64,
    /// Chain state after that line.
    pub chain: Chain,
    /// Sequence of the first record that may not have a line yet.
    pub next: u64,
    /// Warning for the operator about the last line.
    pub warning: Option<&'static str>,
}

/// Finds the position at which a log is continued. The file is not changed: the caller truncates the partial line after `end`.
pub(super) fn find(file: &File, reader: &Reader) -> Result<Cursor, LogFileError> {
    let length = file.metadata()?.len();
    let mut lines = ReverseLines::new(file, length)?;
    let Some(mut line) = lines.previous()? else {
        return Ok(Cursor { end: 0, chain: Chain::default(), next: 0, warning: None });
    };
    let mut end = line.end;
    let last = match Entry::parse(&line.text) {
        Ok(entry) => entry,
        Err(problem) => {
            // A killed writer can damage one line. Two unreadable lines are another program's file, which is not truncated.
            end = line.start;
            line = lines.previous()?.ok_or(LogFileError::OnlyLine(problem))?;
            Entry::parse(&line.text).map_err(LogFileError::LastLines)?
        }
    };
    let warning = (last.hash() != last.entry_hash).then_some(
        "its last line was changed after it was written: the log goes on after it, and `proctor audit verify-chain` tells",
    );
    let chain = Chain::after(&last);
    let mut entry = Some(last);
    for _ in 0..LOOK_BACK {
        if let Some(seq) = seq_of(entry.as_ref(), reader)? {
            return Ok(Cursor { end, chain, next: seq + 1, warning });
        }
        let Some(line) = lines.previous()? else { break };
        entry = Entry::parse(&line.text).ok();
    }
    Ok(Cursor { end, chain, next: 0, warning })
}

/// Sequence of the record that an entry names, if this ledger has it.
fn seq_of(entry: Option<&Entry>, reader: &Reader) -> Result<Option<u64>, ReadError> {
    let id = entry.and_then(|entry| entry.decision_id.as_deref()?.parse::<RecordId>().ok());
    id.map_or(Ok(None), |id| reader.by_id(&id))
}

/// A whole line: its text, its offset, and the offset of the next line.
struct Line {
    start: u64,
    end: u64,
    text: Vec<u8>,
}

/// Reverse iterator over the whole lines of a file. Bytes after the last line break are left out.
struct ReverseLines<'a> {
    file: &'a File,
    /// Offset of the line that was read last.
    at: u64,
    /// Buffered bytes before `at`: those from `at - known.len()` on.
    known: Vec<u8>,
}

impl<'a> ReverseLines<'a> {
    fn new(file: &'a File, length: u64) -> io::Result<ReverseLines<'a>> {
        let mut lines = ReverseLines { file, at: length, known: Vec::new() };
        while lines.at > 0 {
            lines.extend()?;
            match lines.known.iter().rposition(|byte| *byte == b'\n') {
                Some(place) => {
                    lines.at -= (lines.known.len() - place - 1) as u64;
                    lines.known.truncate(place + 1);
                    break;
                }
                None => {
                    lines.at -= lines.known.len() as u64;
                    lines.known.clear();
                }
            }
        }
        Ok(lines)
    }

    /// The previous line; none at the start of the file. Empty lines are skipped.
    fn previous(&mut self) -> io::Result<Option<Line>> {
        while self.at > 0 {
            let end = self.at;
            if self.known.is_empty() {
                self.extend()?;
            }
            // The line's own break is the last byte that is known.
            let mut searched = 1;
            let begin = loop {
                let unsearched = self.known.len().saturating_sub(searched);
                let found =
                    self.known.get(..unsearched).unwrap_or_default().iter().rposition(|byte| *byte == b'\n');
                if let Some(place) = found {
                    break place + 1;
                }
                if self.known.len() as u64 >= self.at || self.known.len() > MAX_LINE_BYTES + BLOCK {
                    break 0;
                }
                searched = self.known.len();
                self.extend()?;
            };
            let text = self.known.split_off(begin);
            self.at -= text.len() as u64;
            if !text.trim_ascii().is_empty() {
                let text = text.strip_suffix(b"\n").unwrap_or(&text).to_vec();
                return Ok(Some(Line { start: self.at, end, text }));
            }
        }
        Ok(None)
    }

    /// Reads one more block in front of the buffer.
    fn extend(&mut self) -> io::Result<()> {
        let before = self.at - self.known.len() as u64;
        let size = before.min(BLOCK as u64);
        let mut block = vec![0; usize::try_from(size).unwrap_or(BLOCK)];
        self.file.read_exact_at(&mut block, before - size)?;
        block.append(&mut self.known);
        self.known = block;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn lines(text: &[u8]) -> Vec<(u64, u64, Vec<u8>)> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text).unwrap();
        let mut backwards = ReverseLines::new(&file, text.len() as u64).unwrap();
        std::iter::from_fn(|| backwards.previous().unwrap())
            .map(|line| (line.start, line.end, line.text))
            .collect()
    }

    #[test]
    fn whole_lines_are_read_from_the_last_one_on() {
        assert!(lines(b"").is_empty());
        assert!(lines(b"torn").is_empty());
        assert_eq!(lines(b"one\n"), [(0, 4, b"one".to_vec())]);
        assert_eq!(
            lines(b"one\n\n \ntwo\ntorn"),
            [(7, 11, b"two".to_vec()), (0, 4, b"one".to_vec())],
            "empty lines are passed over"
        );
    }

    #[test]
    fn lines_may_be_longer_than_what_is_read_at_once() {
        let sizes = [1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK, 5];
        let text: Vec<u8> =
            sizes.iter().flat_map(|size| [vec![b'x'; *size], b"\n".to_vec()].concat()).collect();
        let torn = [text.as_slice(), &vec![b'y'; 2 * BLOCK]].concat();
        for text in [text, torn] {
            let read: Vec<usize> = lines(&text).iter().map(|(_, _, line)| line.len()).rev().collect();
            assert_eq!(read, sizes);
        }
    }
}
