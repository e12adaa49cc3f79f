//! The witness's state file: a header, then one line `<origin> <size> <base64 root>` for each ledger.

use super::{KnownTree, MAX_ORIGINS};
use crate::checkpoint::{parse_hash, parse_size};
use crate::keys::{MAX_NAME_BYTES, check_key_name};
use crate::merkle::{EMPTY_ROOT, MAX_TREE_SIZE};
use crate::note::NoteError;
use base64::{Engine, engine::general_purpose::STANDARD};
use std::collections::BTreeMap;
use std::fmt::Write;

const HEADER: &str = "PROCTOR-WITNESS-STATE-1\n";

/// The largest state: as many of the longest lines as there may be, and the header.
const MAX_STATE_BYTES: usize = MAX_ORIGINS * (MAX_NAME_BYTES + 68) + HEADER.len();

/// Error of loading a witness's saved state. A witness must not start with an empty state instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    /// The text is not a witness's state or was cut off.
    #[error("line {line} of the witness state is damaged: {reason}; restore the file from a copy")]
    Damaged {
        /// The line, from 1.
        line: usize,
        /// The violated rule.
        reason: &'static str,
    },
    /// The key cannot cosign.
    #[error(transparent)]
    Key(#[from] NoteError),
}

pub(super) fn print(known: &BTreeMap<String, KnownTree>) -> String {
    let mut text = HEADER.to_owned();
    for (origin, tree) in known {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{origin} {} {}", tree.size, STANDARD.encode(tree.root));
    }
    // The count at the end tells a file that was cut off at a line's end from a whole one.
    let _ = writeln!(text, "end {}", known.len());
    text
}

pub(super) fn parse(text: &str) -> Result<BTreeMap<String, KnownTree>, StateError> {
    let damaged = |line, reason| StateError::Damaged { line, reason };
    if text.len() > MAX_STATE_BYTES {
        return Err(damaged(1, "the state is too large"));
    }
    let lines = text.strip_prefix(HEADER).ok_or_else(|| damaged(1, "it is not `PROCTOR-WITNESS-STATE-1`"))?;
    let mut known: BTreeMap<String, KnownTree> = BTreeMap::new();
    let mut ended = false;
    for (number, line) in (2..).zip(lines.split_inclusive('\n')) {
        let line = line.strip_suffix('\n').ok_or_else(|| damaged(number, "it does not end in a newline"))?;
        if ended {
            return Err(damaged(number, "there is something after the end"));
        }
        if let Some(count) = line.strip_prefix("end ").filter(|count| !count.contains(' ')) {
            if parse_size(count) != u64::try_from(known.len()).ok() {
                return Err(damaged(number, "the count is not that of the lines"));
            }
            ended = true;
            continue;
        }
        let (origin, tree) = parse_line(line).map_err(|reason| damaged(number, reason))?;
        if known.last_key_value().is_some_and(|(last, _)| *last >= origin) {
            return Err(damaged(number, "the ledgers are not in order"));
        }
        if known.len() == MAX_ORIGINS {
            return Err(damaged(number, "there are more than 4096 ledgers"));
        }
        known.insert(origin, tree);
    }
    if ended { Ok(known) } else { Err(damaged(known.len() + 2, "the end is missing")) }
}

fn parse_line(line: &str) -> Result<(String, KnownTree), &'static str> {
    let mut words = line.split(' ');
    let (Some(origin), Some(size), Some(root), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err("it is not `<origin> <size> <root>`");
    };
    check_key_name(origin).map_err(|_| "the origin is not a key name")?;
    let size = parse_size(size).filter(|size| *size <= MAX_TREE_SIZE).ok_or("the size is not a number")?;
    let root = parse_hash(root).ok_or("the root is not the base64 of 32 bytes")?;
    if size == 0 && root != EMPTY_ROOT {
        return Err("the root is not that of an empty ledger");
    }
    Ok((origin.to_owned(), KnownTree { size, root }))
}
