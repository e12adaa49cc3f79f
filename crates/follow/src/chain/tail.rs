//! The end of a log: its last lines, read backwards.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use proctor_core::id::RecordId;
use proctor_ledger::Reader;
use proctor_wire::assembly::chain::{Chain, Entry, MAX_LINE_BYTES};

/// Lines that are looked through for one that is ours.
const LOOK_BACK: usize = 1000;

/// What is read at once.
const BLOCK: usize = 64 * 1024;

/// Where a log goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// The length of the file up to its last whole line.
    pub end: u64,
    /// The chain after that line.
    pub chain: Chain,
    /// The first record that may not have a line yet.
    pub next: u64,
    /// What is to be said about the log, if anything.
    pub remark: Option<String>,
}

/// Finds where a log goes on. Nothing is changed: what stands behind `end` is torn and is to be cut off.
pub(super) fn find(file: &File, reader: &Reader) -> Result<Place, String> {
    let length = file.metadata().map_err(|error| error.to_string())?.len();
    let mut lines = Backwards::new(file, length).map_err(|error| error.to_string())?;
    let read = |lines: &mut Backwards<'_>| lines.previous().map_err(|error| error.to_string());
    let Some(mut line) = read(&mut lines)? else {
        return Ok(Place { end: 0, chain: Chain::default(), next: 0, remark: None });
    };
    let mut end = line.end;
    let last = match Entry::parse(&line.text) {
        Ok(entry) => entry,
        Err(problem) => {
            // One line may be damaged by the end of its writer. More than that is no log, and is not ours to cut.
            end = line.start;
            let before = read(&mut lines)?.ok_or(());
            line = before.map_err(|()| format!("its only line is not one of an audit log: {problem}"))?;
            Entry::parse(&line.text)
                .map_err(|problem| format!("its last lines are not those of an audit log: {problem}"))?
        }
    };
    let remark = (last.hash() != last.entry_hash).then(|| {
        "its last line was changed after it was written: the log goes on after it, and `proctor audit verify-chain` tells"
            .to_owned()
    });
    let chain = Chain::after(&last);
    let mut entry = Some(last);
    for _ in 0..LOOK_BACK {
        if let Some(seq) = place_of(entry.as_ref(), reader)? {
            return Ok(Place { end, chain, next: seq + 1, remark });
        }
        let Some(line) = read(&mut lines)? else { break };
        entry = Entry::parse(&line.text).ok();
    }
    Ok(Place { end, chain, next: 0, remark })
}

/// The place in the ledger of the record that an entry is about, if it is one of this ledger.
fn place_of(entry: Option<&Entry>, reader: &Reader) -> Result<Option<u64>, String> {
    let id = entry.and_then(|entry| entry.decision_id.as_deref()?.parse::<RecordId>().ok());
    id.map_or(Ok(None), |id| reader.by_id(&id).map_err(|error| error.to_string()))
}

/// A whole line: where it begins, where the next one begins, and what it says.
struct Line {
    start: u64,
    end: u64,
    text: Vec<u8>,
}

/// Whole lines from the last one on. What stands behind the last line break is left out.
struct Backwards<'a> {
    file: &'a File,
    /// Where the line that was read last begins.
    at: u64,
    /// What is known of the file before `at`: its bytes from `at - known.len()` on.
    known: Vec<u8>,
}

impl<'a> Backwards<'a> {
    fn new(file: &'a File, length: u64) -> io::Result<Backwards<'a>> {
        let mut lines = Backwards { file, at: length, known: Vec::new() };
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

    /// The line before; none at the beginning. Empty lines are passed over.
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

    /// Reads one more block in front of what is known.
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
        let mut backwards = Backwards::new(&file, text.len() as u64).unwrap();
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
