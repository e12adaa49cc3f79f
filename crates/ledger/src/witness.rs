//! Witnesses (C2SP tlog-witness): a third party that remembers a ledger's last size and root, and cosigns only checkpoints
//! that extend them.
//!
//! This is the whole logic of a witness and none of its surroundings: the caller brings requests, the time and a
//! place to save the state.

mod request;
mod state;
#[cfg(test)]
mod tests;

use crate::checkpoint::{Checkpoint, CheckpointError};
use crate::keys::{Algorithm, SecretKey, VerifierKey};
use crate::merkle::{EMPTY_ROOT, Hash, ProofRefusal, verify_consistency};
use crate::note::{Note, NoteError, NoteSignature};
use std::collections::BTreeMap;
use std::fmt;

pub use request::{CosignRequest, RequestError};
pub use state::StateError;

/// The most hashes of a consistency proof.
pub const MAX_PROOF_HASHES: usize = 63;

/// The most ledgers one witness remembers.
pub const MAX_ORIGINS: usize = 4096;

/// A witness: its key, and for each ledger the last checkpoint it cosigned.
#[derive(Debug)]
pub struct Witness {
    key: SecretKey,
    known: BTreeMap<String, KnownTree>,
}

/// The last checkpoint of a ledger that a witness cosigned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownTree {
    /// Number of records of the ledger.
    pub size: u64,
    /// The root at that size.
    pub root: Hash,
}

/// A witness's signature line for a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CosignatureLine {
    signature: NoteSignature,
    time: u64,
}

/// Error of a refused cosignature.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WitnessRefusal {
    /// The note is not signed by the ledger's key.
    #[error("the checkpoint is not signed by the ledger: {0}")]
    NotSigned(NoteError),
    /// The note is signed, but not a checkpoint of this ledger.
    #[error(transparent)]
    Checkpoint(CheckpointError),
    /// The old size is larger than the checkpoint's.
    #[error("the old size {old} is larger than the checkpoint's size {size}")]
    OldSizeTooLarge {
        /// The old size in the request.
        old: u64,
        /// The checkpoint's size.
        size: u64,
    },
    /// The old size is not that of the last cosigned checkpoint; the proof must start there.
    #[error("the witness last cosigned size {known}, not {old}; send a proof from {known}")]
    Conflict {
        /// The old size in the request.
        old: u64,
        /// The size the witness last cosigned; zero when it knows nothing of the ledger.
        known: u64,
    },
    /// The ledger has two different trees of the same size.
    #[error("the ledger has forked: at size {size} the witness has cosigned another root")]
    Fork {
        /// The size.
        size: u64,
    },
    /// The proof does not show that the ledger only grew.
    #[error("the ledger is not shown to have only grown since size {known}: {refusal}")]
    Inconsistent {
        /// The size the witness last cosigned.
        known: u64,
        /// Error of the proof.
        refusal: ProofRefusal,
    },
    /// The witness remembers as many ledgers as it can.
    #[error("the witness remembers 4096 ledgers already and takes no new one")]
    Full,
    /// The cosignature could not be made.
    #[error(transparent)]
    Sign(NoteError),
}

impl WitnessRefusal {
    /// The HTTP status of this refusal in the witness protocol.
    pub const fn http_status(&self) -> u16 {
        match self {
            Self::NotSigned(_) | Self::Checkpoint(CheckpointError::OriginMismatch { .. }) => 403,
            Self::OldSizeTooLarge { .. } | Self::Checkpoint(_) => 400,
            Self::Conflict { .. } | Self::Fork { .. } => 409,
            Self::Inconsistent { .. } => 422,
            Self::Full | Self::Sign(_) => 500,
        }
    }
}

impl Witness {
    /// A witness that knows no ledger yet. Its key must be one for cosignatures.
    pub fn new(key: SecretKey) -> Result<Self, NoteError> {
        if key.algorithm() == Algorithm::CosignatureV1 {
            return Ok(Self { key, known: BTreeMap::new() });
        }
        Err(NoteError::WrongAlgorithm {
            name: key.name().to_owned(),
            expected: Algorithm::CosignatureV1,
            found: key.algorithm(),
        })
    }

    /// A witness that remembers what [`Witness::state_text`] wrote.
    pub fn with_state(key: SecretKey, state: &str) -> Result<Self, StateError> {
        let known = state::parse(state)?;
        Ok(Self { known, ..Self::new(key)? })
    }

    /// The state file's text. It must be saved before a cosignature is handed out: otherwise a crash makes the
    /// witness sign a fork.
    pub fn state_text(&self) -> String {
        state::print(&self.known)
    }

    /// The public half of the witness's key.
    pub const fn verifier_key(&self) -> &VerifierKey {
        self.key.verifier_key()
    }

    /// The last cosigned checkpoint of a ledger.
    pub fn known(&self, origin: &str) -> Option<KnownTree> {
        self.known.get(origin).copied()
    }

    /// Cosigns a checkpoint if the ledger only grew since the last one; remembers it.
    ///
    /// `old_size` must be the size last cosigned (zero for a new ledger), and `proof` lead from there to the
    /// checkpoint. On a refusal nothing is remembered. The caller saves [`Witness::state_text`] before it hands
    /// out the line: a witness that forgets can be led into cosigning a fork.
    pub fn cosign(
        &mut self,
        old_size: u64,
        proof: &[Hash],
        note: &Note,
        log: &VerifierKey,
        time: u64,
    ) -> Result<CosignatureLine, WitnessRefusal> {
        // The signature is checked first: a caller that cannot sign for the ledger must not learn its state.
        let checkpoint = Checkpoint::verify(note, log).map_err(|error| match error {
            CheckpointError::Note(error) => WitnessRefusal::NotSigned(error),
            error => WitnessRefusal::Checkpoint(error),
        })?;
        if old_size > checkpoint.size {
            return Err(WitnessRefusal::OldSizeTooLarge { old: old_size, size: checkpoint.size });
        }
        let remembered = self.known(&checkpoint.origin);
        let known = remembered.unwrap_or(KnownTree { size: 0, root: EMPTY_ROOT });
        if old_size != known.size {
            return Err(WitnessRefusal::Conflict { old: old_size, known: known.size });
        }
        if checkpoint.size == known.size && checkpoint.root != known.root {
            return Err(WitnessRefusal::Fork { size: known.size });
        }
        let refused = |refusal| WitnessRefusal::Inconsistent { known: known.size, refusal };
        verify_consistency(known.size, &known.root, checkpoint.size, &checkpoint.root, proof)
            .map_err(refused)?;
        if remembered.is_none() && self.known.len() >= MAX_ORIGINS {
            return Err(WitnessRefusal::Full);
        }
        let signature = note.cosign(&self.key, time).map_err(WitnessRefusal::Sign)?;
        self.known.insert(checkpoint.origin, KnownTree { size: checkpoint.size, root: checkpoint.root });
        Ok(CosignatureLine { signature, time })
    }
}

impl CosignatureLine {
    /// Time of the cosignature, in seconds since 1970.
    pub const fn time(&self) -> u64 {
        self.time
    }

    /// The signature line, to be added to the note with [`Note::add`].
    pub const fn signature(&self) -> &NoteSignature {
        &self.signature
    }

    /// The signature line itself.
    pub fn into_signature(self) -> NoteSignature {
        self.signature
    }
}

impl fmt::Display for CosignatureLine {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.signature.fmt(formatter)
    }
}

/// Checks that a note carries the witness's cosignature, and tells when it was made (seconds since 1970).
pub fn verify_cosignature(note: &Note, witness: &VerifierKey) -> Result<u64, NoteError> {
    note.verify_cosignature(witness)
}
