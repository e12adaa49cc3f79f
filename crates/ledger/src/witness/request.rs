//! The text of a cosigning request: the old size, the consistency proof, an empty line, and the signed checkpoint.

use super::MAX_PROOF_HASHES;
use crate::checkpoint::{parse_hash, parse_size};
use crate::merkle::Hash;
use crate::note::{MAX_NOTE_BYTES, Note, NoteError};
use base64::{Engine, engine::general_purpose::STANDARD};
use std::fmt;

/// The largest request: size line, proof lines, empty line and note.
const MAX_REQUEST_BYTES: usize = 32 + MAX_PROOF_HASHES * 45 + 1 + MAX_NOTE_BYTES;

/// A cosigning request (the body of `add-checkpoint`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CosignRequest {
    /// The size the witness last cosigned, as far as the ledger knows.
    pub old_size: u64,
    /// The proof from that size to the checkpoint.
    pub proof: Vec<Hash>,
    /// The signed checkpoint.
    pub note: Note,
}

/// Error of parsing a request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The request is not of the form.
    #[error("line {line} of the request is wrong: {reason}")]
    Form {
        /// The line, from 1.
        line: usize,
        /// The violated rule.
        reason: &'static str,
    },
    /// The checkpoint is not a signed note.
    #[error(transparent)]
    Note(#[from] NoteError),
}

impl CosignRequest {
    /// Reads a request.
    pub fn parse(bytes: &[u8]) -> Result<Self, RequestError> {
        let wrong = |line, reason| RequestError::Form { line, reason };
        if bytes.len() > MAX_REQUEST_BYTES {
            return Err(wrong(1, "the request is too large"));
        }
        let text = std::str::from_utf8(bytes).map_err(|_| wrong(1, "the request is not valid UTF-8"))?;
        // The first empty line ends the proof; the note may have others.
        let (head, note) = text.split_once("\n\n").ok_or_else(|| wrong(1, "there is no empty line"))?;
        let mut lines = head.split('\n');
        let old_size = lines
            .next()
            .and_then(|line| line.strip_prefix("old "))
            .and_then(parse_size)
            .ok_or_else(|| wrong(1, "it is not `old <size>`"))?;
        let mut proof = Vec::new();
        for (number, line) in (2..).zip(lines) {
            if proof.len() == MAX_PROOF_HASHES {
                return Err(wrong(number, "a proof has at most 63 hashes"));
            }
            proof.push(parse_hash(line).ok_or_else(|| wrong(number, "it is not the base64 of a hash"))?);
        }
        Ok(Self { old_size, proof, note: Note::parse(note.as_bytes())? })
    }
}

impl fmt::Display for CosignRequest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "old {}", self.old_size)?;
        self.proof.iter().try_for_each(|hash| writeln!(formatter, "{}", STANDARD.encode(hash)))?;
        write!(formatter, "\n{}", self.note)
    }
}
