//! Proof files: short texts that prove the inclusion of one record, or the consistency of two checkpoints, offline.
//!
//! About one record:
//!
//! ```text
//! proctor-proof/1
//! index 17
//! leaf <base64 of the canonical envelope>
//! hash <base64>            (one line for each hash of the inclusion proof, leaf first)
//!
//! <signed checkpoint>
//! ```
//!
//! About two checkpoints, the older first:
//!
//! ```text
//! proctor-consistency/1
//! hash <base64>            (one line for each hash of the consistency proof)
//!
//! <signed checkpoint>
//!
//! <signed checkpoint>
//! ```
//!
//! Reading is strict: one proof has one spelling.

use base64::{Engine, engine::general_purpose::STANDARD};
use proctor_core::record::{Envelope, LeafError, MAX_LEAF};

use super::error::{ExportError, Problem};
use super::export::proof_error;
use super::frame::MAX_PROOF_HASHES;
use super::source::{BundleSource, SourceHashes, checkpoint_of, leaf_of, ordered};
use super::verify::{Signer, check_note};
use crate::checkpoint::{Checkpoint, parse_hash, parse_size};
use crate::keys::Trust;
use crate::merkle::{
    Hash, ProofRefusal, consistency_proof, inclusion_proof, leaf_hash, verify_consistency, verify_inclusion,
};
use crate::note::MAX_NOTE_BYTES;

const RECORD_HEADER: &str = "proctor-proof/1";
const CONSISTENCY_HEADER: &str = "proctor-consistency/1";

/// The largest proof file: a leaf in base64, the hashes, two notes, and the words around them.
const MAX_BYTES: usize = MAX_LEAF.div_ceil(3) * 4 + MAX_PROOF_HASHES * 50 + 2 * MAX_NOTE_BYTES + 256;

/// A record that was proven to be in a ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProvenRecord {
    /// The record's sequence.
    pub seq: u64,
    /// The canonical bytes of its envelope.
    pub leaf: Vec<u8>,
    /// The record's envelope.
    pub envelope: Envelope,
    /// The checkpoint that it was proven against.
    pub checkpoint: Checkpoint,
    /// The signers of the checkpoint.
    pub signer: Signer,
}

/// Two checkpoints, of which the newer was proven to continue the older.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProvenConsistency {
    /// The older checkpoint.
    pub old: Checkpoint,
    /// The newer checkpoint.
    pub new: Checkpoint,
    /// The signers of the older checkpoint.
    pub old_signer: Signer,
    /// The signers of the newer checkpoint.
    pub new_signer: Signer,
}

/// Error of verifying a proof file.
#[derive(Debug, thiserror::Error)]
pub enum ProofFileError {
    /// The text is not of the form.
    #[error("this is not a proof file: {0}")]
    Form(&'static str),
    /// A checkpoint is wrong or not signed as the trust file wants it.
    #[error("the checkpoint in the proof file is refused: {0}")]
    Checkpoint(Box<Problem>),
    /// The leaf is not canonical.
    #[error("the leaf in the proof file is {0}")]
    Leaf(LeafError),
    /// The proof does not hold.
    #[error(transparent)]
    Proof(#[from] ProofRefusal),
    /// The checkpoints are of two ledgers.
    #[error("the checkpoints are of two ledgers, `{old}` and `{new}`")]
    Origins {
        /// The older checkpoint's origin.
        old: String,
        /// The newer checkpoint's origin.
        new: String,
    },
}

impl From<Problem> for ProofFileError {
    fn from(problem: Problem) -> ProofFileError {
        ProofFileError::Checkpoint(Box::new(problem))
    }
}

/// The proof file of one record at the source's checkpoint.
pub fn prove(source: &dyn BundleSource, seq: u64) -> Result<String, ExportError> {
    let (note, checkpoint) = checkpoint_of(source)?;
    let size = checkpoint.size;
    if seq >= size {
        return Err(ExportError::NoRecord { seq, size });
    }
    let leaf = leaf_of(source, seq, size)?;
    let proof = inclusion_proof(seq, size, &SourceHashes(source)).map_err(proof_error)?;
    verify_inclusion(&leaf_hash(&leaf), seq, size, &proof, &checkpoint.root)
        .map_err(|_| ExportError::Root)?;
    let leaf = STANDARD.encode(leaf);
    Ok(format!("{RECORD_HEADER}\nindex {seq}\nleaf {leaf}\n{}\n{note}", hash_lines(&proof)))
}

/// Checks the proof file of a record.
pub fn verify_proof(text: &str, trust: Option<&Trust>) -> Result<ProvenRecord, ProofFileError> {
    let (head, note) = split(text, RECORD_HEADER, "it does not begin with the line `proctor-proof/1`")?;
    let mut lines = head.split('\n');
    let index = lines.next().and_then(|line| line.strip_prefix("index "));
    let seq = index.and_then(parse_size).ok_or(ProofFileError::Form("line 2 is not `index <number>`"))?;
    let leaf = lines.next().and_then(|line| line.strip_prefix("leaf "));
    let leaf = leaf
        .and_then(|encoded| STANDARD.decode(encoded).ok())
        .ok_or(ProofFileError::Form("line 3 is not `leaf <base64>`"))?;
    let proof = read_hashes(lines)?;
    let (checkpoint, signer) = check_note(note.as_bytes(), trust)?;
    let envelope = Envelope::from_leaf(&leaf).map_err(ProofFileError::Leaf)?;
    verify_inclusion(&leaf_hash(&leaf), seq, checkpoint.size, &proof, &checkpoint.root)?;
    Ok(ProvenRecord { seq, leaf, envelope, checkpoint, signer })
}

/// The proof file that the ledger of the newer checkpoint continues that of the older one. Both are signed notes.
pub fn prove_consistency(source: &dyn BundleSource, old: &str, new: &str) -> Result<String, ExportError> {
    let (old_note, old) = ordered(old)?;
    let (new_note, new) = ordered(new)?;
    let proof = consistency_proof(old.size, new.size, &SourceHashes(source)).map_err(proof_error)?;
    verify_consistency(old.size, &old.root, new.size, &new.root, &proof).map_err(|_| ExportError::Root)?;
    Ok(format!("{CONSISTENCY_HEADER}\n{}\n{old_note}\n{new_note}", hash_lines(&proof)))
}

/// Checks a consistency proof file.
pub fn verify_consistency_proof(
    text: &str,
    trust: Option<&Trust>,
) -> Result<ProvenConsistency, ProofFileError> {
    let (head, notes) =
        split(text, CONSISTENCY_HEADER, "it does not begin with the line `proctor-consistency/1`")?;
    let proof = read_hashes(head.split('\n').filter(|_| !head.is_empty()))?;
    // A checkpoint's text has no empty lines, so a note ends at its second one.
    let parts = notes.split_once("\n\n").and_then(|(old_text, rest)| {
        let (old_lines, new_note) = rest.split_once("\n\n")?;
        Some((old_text, old_lines, new_note))
    });
    let (old_text, old_lines, new_note) =
        parts.ok_or(ProofFileError::Form("it does not hold two checkpoints"))?;
    let (old, old_signer) = check_note(format!("{old_text}\n\n{old_lines}\n").as_bytes(), trust)?;
    let (new, new_signer) = check_note(new_note.as_bytes(), trust)?;
    if old.origin != new.origin {
        return Err(ProofFileError::Origins { old: old.origin, new: new.origin });
    }
    verify_consistency(old.size, &old.root, new.size, &new.root, &proof)?;
    Ok(ProvenConsistency { old, new, old_signer, new_signer })
}

/// The lines between the first one and the first empty one, and what comes after that.
fn split<'a>(
    text: &'a str,
    header: &str,
    otherwise: &'static str,
) -> Result<(&'a str, &'a str), ProofFileError> {
    if text.len() > MAX_BYTES {
        return Err(ProofFileError::Form("it is too large"));
    }
    let rest = text.strip_prefix(header).and_then(|rest| rest.strip_prefix('\n'));
    let rest = rest.ok_or(ProofFileError::Form(otherwise))?;
    // Without any lines the empty line follows at once.
    if let Some(notes) = rest.strip_prefix('\n') {
        return Ok(("", notes));
    }
    rest.split_once("\n\n").ok_or(ProofFileError::Form("no empty line comes before the checkpoint"))
}

fn hash_lines(proof: &[Hash]) -> String {
    let mut lines = String::with_capacity(proof.len() * 50);
    for hash in proof {
        lines.push_str("hash ");
        STANDARD.encode_string(hash, &mut lines);
        lines.push('\n');
    }
    lines
}

fn read_hashes<'a>(lines: impl Iterator<Item = &'a str>) -> Result<Vec<Hash>, ProofFileError> {
    let mut hashes = Vec::new();
    for line in lines {
        if hashes.len() == MAX_PROOF_HASHES {
            return Err(ProofFileError::Form("it has more than 64 hashes"));
        }
        let hash = line.strip_prefix("hash ").and_then(parse_hash);
        hashes.push(hash.ok_or(ProofFileError::Form("a line is not `hash <base64 of 32 bytes>`"))?);
    }
    Ok(hashes)
}
