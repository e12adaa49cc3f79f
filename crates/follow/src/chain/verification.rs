//! Verification of a log that an earlier run wrote, before it is continued.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::FileExt;

use proctor_wire::assembly::chain::{MAX_LINE_BYTES, Outcome, Verifier};

use crate::Stop;

/// Size of one read, in bytes.
const BLOCK: usize = 256 * 1024;

/// Describes the first line that was changed, removed, added or moved; none if all hashes and links hold. Gives up without a result once the
/// deadline of `stop` has passed.
pub(super) fn tampering(file: &File, end: u64, stop: &Stop) -> io::Result<Option<String>> {
    let mut lines = BufReader::with_capacity(BLOCK, FileRange { file, at: 0, end });
    let mut verifier = Verifier::default();
    let mut line = Vec::new();
    while !stop.is_over() {
        line.clear();
        // A longer line is none of ours; the verifier refuses the part of it.
        lines.by_ref().take(MAX_LINE_BYTES as u64 + 2).read_until(b'\n', &mut line)?;
        if line.is_empty() || !verifier.line(&line) {
            return Ok(match verifier.finish() {
                Outcome::Tampered { line, why, .. } => Some(format!("line {line}: {why}")),
                Outcome::Verified { .. } | Outcome::Incomplete { .. } => None,
            });
        }
    }
    Ok(None)
}

/// Reader of a part of a file that does not move the file's own position.
struct FileRange<'a> {
    file: &'a File,
    at: u64,
    end: u64,
}

impl Read for FileRange<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let length = left.min(buffer.len());
        let read = self.file.read_at(buffer.get_mut(..length).unwrap_or_default(), self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}
