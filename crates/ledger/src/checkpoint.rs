//! Checkpoints (C2SP tlog-checkpoint): a ledger's size and root at one moment, signed.
//!
//! A ledger's origin is the name of its key: a key speaks for its own ledger and for no other.

#[cfg(test)]
mod tests;

use crate::keys::{SecretKey, Trust, VerifierKey};
use crate::merkle::{EMPTY_ROOT, Hash, MAX_TREE_SIZE};
use crate::note::{Note, NoteError};
use base64::{Engine, engine::general_purpose::STANDARD};
use std::fmt;
use std::str::FromStr;

/// The state of a ledger: what it is called, how many records it has, and its root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// The ledger's name, which is its key's name.
    pub origin: String,
    /// Number of records.
    pub size: u64,
    /// The root of the tree of these records.
    pub root: Hash,
    /// Further lines, not understood but signed; we write none.
    pub extensions: Vec<String>,
}

/// A checkpoint that was checked against a trust file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustedCheckpoint {
    /// The checkpoint.
    pub checkpoint: Checkpoint,
    /// The ledger's key that signed it.
    pub log: VerifierKey,
    /// The witnesses that cosigned it and when (seconds since 1970), in the trust file's order.
    pub witnesses: Vec<(VerifierKey, u64)>,
}

/// Error of reading or verifying a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CheckpointError {
    /// The text is not that of a checkpoint.
    #[error("the note is not a checkpoint: {reason}")]
    Form {
        /// The violated rule.
        reason: &'static str,
    },
    /// The note is wrong or not signed as needed.
    #[error(transparent)]
    Note(#[from] NoteError),
    /// The signing key has another name than the ledger.
    #[error(
        "the checkpoint is of ledger `{origin}`, but the key is that of `{key}`; a key signs for its own ledger"
    )]
    OriginMismatch {
        /// The checkpoint's origin.
        origin: String,
        /// The key's name.
        key: String,
    },
    /// The trust file names no key for this ledger.
    #[error(
        "ledger `{origin}` is not trusted; add its verifier key to the trust file as `log <verifier key>`"
    )]
    UnknownLog {
        /// The checkpoint's origin.
        origin: String,
    },
    /// Too few trusted witnesses cosigned.
    #[error("{found} of the trusted witnesses cosigned the checkpoint, but {needed} are needed")]
    QuorumMissed {
        /// Number of cosignatures that are needed.
        needed: usize,
        /// Number of valid cosignatures.
        found: usize,
    },
}

impl Checkpoint {
    /// A checkpoint without extension lines.
    pub fn new(origin: &str, size: u64, root: Hash) -> Self {
        Self { origin: origin.to_owned(), size, root, extensions: Vec::new() }
    }

    /// Signs the checkpoint with the ledger's key, whose name must be the origin.
    pub fn sign(&self, key: &SecretKey) -> Result<Note, CheckpointError> {
        self.check_origin(key.verifier_key())?;
        let text = self.to_string();
        // What is signed must be readable as what was meant: a newline in the origin would not be.
        if text.parse::<Self>()? != *self {
            return Err(CheckpointError::Form { reason: "a line is empty or has a newline in it" });
        }
        let mut note = Note::new(text)?;
        note.sign(key)?;
        Ok(note)
    }

    /// Reads the checkpoint of a note and checks that the ledger's key signed it.
    pub fn verify(note: &Note, key: &VerifierKey) -> Result<Self, CheckpointError> {
        note.verify(key)?;
        let checkpoint: Self = note.text().parse()?;
        checkpoint.check_origin(key)?;
        Ok(checkpoint)
    }

    /// Reads the checkpoint of a note and checks that a trusted ledger signed and enough witnesses cosigned it.
    ///
    /// A wrong signature in the name of any trusted key refuses the note, even if enough others are right.
    pub fn verify_trusted(note: &Note, trust: &Trust) -> Result<TrustedCheckpoint, CheckpointError> {
        let claimed: Self = note.text().parse()?;
        let mut log = None;
        let mut refusal = CheckpointError::UnknownLog { origin: claimed.origin.clone() };
        // A ledger may have several keys, while one is replaced by the next: one signature is enough.
        for key in trust.logs.iter().filter(|key| key.name() == claimed.origin) {
            match note.verify(key) {
                Ok(()) => log = log.or(Some(key)),
                Err(error @ NoteError::NotSigned { .. }) => refusal = error.into(),
                Err(error) => return Err(error.into()),
            }
        }
        let log = log.ok_or(refusal)?.clone();
        let mut witnesses = Vec::new();
        for witness in &trust.witnesses {
            match note.verify_cosignature(witness) {
                Ok(time) => witnesses.push((witness.clone(), time)),
                Err(NoteError::NotSigned { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        if witnesses.len() < trust.quorum {
            return Err(CheckpointError::QuorumMissed { needed: trust.quorum, found: witnesses.len() });
        }
        Ok(TrustedCheckpoint { checkpoint: claimed, log, witnesses })
    }

    fn check_origin(&self, key: &VerifierKey) -> Result<(), CheckpointError> {
        if self.origin == key.name() {
            return Ok(());
        }
        Err(CheckpointError::OriginMismatch { origin: self.origin.clone(), key: key.name().to_owned() })
    }
}

impl fmt::Display for Checkpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "{}\n{}\n{}", self.origin, self.size, STANDARD.encode(self.root))?;
        self.extensions.iter().try_for_each(|line| writeln!(formatter, "{line}"))
    }
}

impl FromStr for Checkpoint {
    type Err = CheckpointError;

    fn from_str(text: &str) -> Result<Self, CheckpointError> {
        parse_text(text).map_err(|reason| CheckpointError::Form { reason })
    }
}

fn parse_text(text: &str) -> Result<Checkpoint, &'static str> {
    let lines = text.strip_suffix('\n').ok_or("its text does not end in a newline")?;
    if lines.split('\n').any(str::is_empty) {
        return Err("it has an empty line");
    }
    let mut lines = lines.split('\n');
    let (Some(origin), Some(size), Some(root)) = (lines.next(), lines.next(), lines.next()) else {
        return Err("it does not have three lines: origin, size and root");
    };
    let size = parse_size(size).ok_or("its size is not a decimal number without leading zeros")?;
    if size > MAX_TREE_SIZE {
        return Err("its size is larger than any ledger may be (2^62)");
    }
    let root = parse_hash(root).ok_or("its root is not the base64 of 32 bytes")?;
    if size == 0 && root != EMPTY_ROOT {
        return Err("its size is 0, but its root is not that of an empty ledger");
    }
    let extensions = lines.map(str::to_owned).collect();
    Ok(Checkpoint { origin: origin.to_owned(), size, root, extensions })
}

/// A decimal number in its one spelling: digits only, no leading zeros.
pub(crate) fn parse_size(digits: &str) -> Option<u64> {
    let plain =
        digits.bytes().all(|byte| byte.is_ascii_digit()) && (digits == "0" || !digits.starts_with('0'));
    if plain { digits.parse().ok() } else { None }
}

/// A hash in canonical base64.
pub(crate) fn parse_hash(encoded: &str) -> Option<Hash> {
    if encoded.len() != 44 {
        return None;
    }
    STANDARD.decode(encoded).ok()?.try_into().ok()
}
