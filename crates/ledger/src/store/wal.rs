//! A parser of write-ahead log headers, which tells an incomplete last transaction from damage before it.
//!
//! SQLite stops silently at the first frame that does not check. That is right for the torn end that a crash
//! leaves, and wrong for damage in the middle: commits after it would be lost without a word.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

const HEADER: usize = 32;
const FRAME_HEADER: usize = 24;

/// The frames of a write-ahead log.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct WalContent {
    /// Pages in frames up to the last commit that SQLite will read.
    pub(crate) pages: BTreeSet<u32>,
    /// Commits of the same run behind a frame that does not check.
    pub(crate) lost_commits: u64,
    /// The header does not check although frames follow.
    pub(crate) bad_header: bool,
}

/// Reads the log at `path`; nothing if there is none.
pub(crate) fn read_wal(path: &Path) -> std::io::Result<WalContent> {
    let mut content = WalContent::default();
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(content),
        Err(error) => return Err(error),
    };
    let length = file.metadata()?.len();
    let mut file = BufReader::with_capacity(1 << 16, file);
    let mut header = [0; HEADER];
    if !fill(&mut file, &mut header)? {
        return Ok(content);
    }
    let Some((big_endian, page_size, salts, mut sum)) = read_header(&header) else {
        content.bad_header = length > HEADER as u64;
        return Ok(content);
    };
    let mut frame = vec![0; FRAME_HEADER + page_size];
    let mut uncommitted = BTreeSet::new();
    let mut valid = true;
    while fill(&mut file, &mut frame)? {
        let word = |at: usize| {
            let bytes = frame.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
            u32::from_be_bytes(bytes.unwrap_or_default())
        };
        if (word(8), word(12)) != salts {
            // Left over from an earlier run of the log: ours ended here, unless one of ours still follows.
            valid = false;
            continue;
        }
        let was_invalid = !valid;
        if valid {
            let (head, page) = frame.split_at(FRAME_HEADER);
            let next = checksum(big_endian, head.get(..8).unwrap_or_default(), sum);
            sum = checksum(big_endian, page, next);
            valid = sum == (word(16), word(20)) && word(0) != 0;
        }
        let is_commit = word(4) != 0;
        if !valid {
            // The first frame that does not check may be the torn end itself.
            content.lost_commits += u64::from(is_commit && was_invalid);
            continue;
        }
        uncommitted.insert(word(0));
        if is_commit {
            content.pages.append(&mut uncommitted);
        }
    }
    Ok(content)
}

type Sum = (u32, u32);

fn read_header(header: &[u8; HEADER]) -> Option<(bool, usize, (u32, u32), Sum)> {
    let (words, _) = header.as_chunks::<4>();
    let [magic, _version, page_size, _sequence, salt_1, salt_2, sum_1, sum_2] = words else { return None };
    let big_endian = match u32::from_be_bytes(*magic) {
        0x377f_0682 => false,
        0x377f_0683 => true,
        _ => return None,
    };
    let page_size = u32::from_be_bytes(*page_size);
    if !(512..=65_536).contains(&page_size) || !page_size.is_power_of_two() {
        return None;
    }
    let sum = checksum(big_endian, header.get(..24)?, (0, 0));
    if sum != (u32::from_be_bytes(*sum_1), u32::from_be_bytes(*sum_2)) {
        return None;
    }
    let salts = (u32::from_be_bytes(*salt_1), u32::from_be_bytes(*salt_2));
    Some((big_endian, usize::try_from(page_size).ok()?, salts, sum))
}

/// SQLite's running checksum over pairs of words.
fn checksum(big_endian: bool, bytes: &[u8], (mut first, mut second): Sum) -> Sum {
    let word =
        |bytes: [u8; 4]| if big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) };
    let (pairs, _) = bytes.as_chunks::<8>();
    for [a, b, c, d, e, f, g, h] in pairs {
        first = first.wrapping_add(word([*a, *b, *c, *d])).wrapping_add(second);
        second = second.wrapping_add(word([*e, *f, *g, *h])).wrapping_add(first);
    }
    (first, second)
}

/// Fills the buffer; false if the file ends before.
fn fill(file: &mut impl Read, buffer: &mut [u8]) -> std::io::Result<bool> {
    match file.read_exact(buffer) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}
