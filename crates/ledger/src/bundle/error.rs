//! Errors of bundle verification and export.

use std::fmt;
use std::io;

use proctor_core::record::LeafError;

use super::frame::FrameKind;
use super::source::SourceError;
use super::verify::VisitError;
use crate::checkpoint::CheckpointError;
use crate::merkle::ProofRefusal;
use crate::note::NoteError;

/// The two classes of verification errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorClass {
    /// The bundle is not what a ledger made: verification failed (exit 12).
    Tampered,
    /// The bundle could not be read, so nothing is known about it (exit 1).
    Unreadable,
}

/// A position in a bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BundlePosition {
    /// The first byte of the frame.
    pub offset: u64,
    /// The number of the frame, from 0.
    pub frame: u64,
    /// The kind of the frame, if it is known.
    pub kind: Option<FrameKind>,
    /// The record that it belongs to, if it is known.
    pub seq: Option<u64>,
}

impl fmt::Display for BundlePosition {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "byte {}, frame {}", self.offset, self.frame)?;
        if let Some(kind) = self.kind {
            write!(out, " ({})", kind.word())?;
        }
        if let Some(seq) = self.seq {
            write!(out, ", record {seq}")?;
        }
        Ok(())
    }
}

/// Error of verifying a bundle: the problem and its position.
#[derive(Debug)]
pub struct BundleError {
    /// The position of the frame.
    pub position: BundlePosition,
    /// The violated rule.
    pub problem: Box<Problem>,
}

impl BundleError {
    pub(super) fn new(position: BundlePosition, problem: Problem) -> BundleError {
        BundleError { position, problem: Box::new(problem) }
    }

    /// The class of the error, which decides the exit code.
    pub fn class(&self) -> ErrorClass {
        match *self.problem {
            Problem::Read(_) => ErrorClass::Unreadable,
            _ => ErrorClass::Tampered,
        }
    }
}

impl fmt::Display for BundleError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.position, self.problem)
    }
}

impl std::error::Error for BundleError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.problem.source()
    }
}

/// Violations of the bundle format and its rules.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// The input failed.
    #[error("the bundle could not be read: {0}")]
    Read(#[source] io::Error),
    /// The first line is another.
    #[error("this is not a bundle of version 1: it does not begin with the line `proctor-bundle/1`")]
    NotABundle,
    /// The input ended within the bundle.
    #[error("the bundle ends here, before its end frame; it was cut off")]
    Truncated,
    /// Bytes follow the end frame.
    #[error("there is something after the end frame")]
    Surplus,
    /// No such frame type.
    #[error("there is no frame of type {byte:#04x}")]
    UnknownFrame {
        /// The type byte.
        byte: u8,
    },
    /// The stated length is outside the bounds.
    #[error("its stated length is {length} bytes, but must be {least} to {most}")]
    FrameLength {
        /// The length stated.
        length: u32,
        /// Lower limit.
        least: usize,
        /// Upper limit.
        most: usize,
    },
    /// The frame is out of order.
    #[error("expected {expected} here")]
    Order {
        /// The frames that are allowed there.
        expected: &'static str,
    },
    /// The checkpoint's note is malformed.
    #[error(transparent)]
    Note(NoteError),
    /// The checkpoint is malformed or not signed as the trust file wants it.
    #[error(transparent)]
    Checkpoint(CheckpointError),
    /// The signature lines are not in the order that bundles have.
    #[error(
        "the checkpoint's signature lines are not in order: the ledger's first, then by name and key, each once"
    )]
    SignatureOrder,
    /// A signature line is by a key that the trust file does not name.
    #[error(
        "the checkpoint has a signature by `{name}` (key identifier `{id}`), which the trust file does not name"
    )]
    UnknownSignature {
        /// The key's name.
        name: String,
        /// The key's identifier.
        id: String,
    },
    /// The checkpoint is older than what is known to exist.
    #[error(
        "the checkpoint has {size} records, but the ledger is known to have had {at_least}; it was rolled back"
    )]
    RolledBack {
        /// The checkpoint's size.
        size: u64,
        /// The size that it must have at least.
        at_least: u64,
    },
    /// The leaf is not canonical.
    #[error("the leaf is {0}")]
    Leaf(LeafError),
    /// A whole bundle has a gap or a duplicate.
    #[error("expected record {expected}; records are missing, doubled or out of order")]
    Sequence {
        /// The sequence that had to come.
        expected: u64,
    },
    /// A part's records are not in order.
    #[error("it comes after record {previous}; records are doubled or out of order")]
    SequenceOrder {
        /// The sequence before.
        previous: u64,
    },
    /// A record beyond the checkpoint.
    #[error("the checkpoint has only {size} records")]
    BeyondCheckpoint {
        /// The checkpoint's size.
        size: u64,
    },
    /// Records are missing at the end.
    #[error("the checkpoint has {size} records, but the bundle ends after {found}")]
    Incomplete {
        /// The checkpoint's size.
        size: u64,
        /// Number of records that came.
        found: u64,
    },
    /// The leaves do not have the checkpoint's root.
    #[error(
        "the records do not have the root that the checkpoint has; a record was changed, or it is another history"
    )]
    Root,
    /// The inclusion proof has a length that is no number of hashes.
    #[error("the proof's length is not a multiple of 32 bytes")]
    ProofForm,
    /// The inclusion proof does not hold.
    #[error(transparent)]
    Proof(ProofRefusal),
    /// The body is not the one that the leaf names.
    #[error("the body does not have the digest that the record gives; it was changed")]
    BodyDigest,
    /// The record has no body.
    #[error("the record has no body, but one is here")]
    BodyUnexpected,
    /// A body is missing.
    #[error("the body is missing, but no erasure record in the bundle says that it was erased")]
    BodyMissing,
    /// A body is there that was erased.
    #[error(
        "it says that the body of record {target} was erased, but that body is here, or there never was one"
    )]
    NotErased {
        /// The record whose body should be gone.
        target: u64,
    },
    /// Two records with one identifier.
    #[error("another record has the same identifier")]
    IdTwice,
    /// Two records with one unique key.
    #[error("another record has the same `once` key")]
    OnceTwice,
    /// A link to the record itself or a later one.
    #[error("it links to record {link}, which is not before it")]
    LinkForward {
        /// The link.
        link: u64,
    },
    /// The end frame counts otherwise.
    #[error(
        "the end frame counts {leaves} leaves and {bodies} bodies, but {found_leaves} and {found_bodies} came"
    )]
    Counts {
        /// Leaves counted.
        leaves: u64,
        /// Bodies counted.
        bodies: u64,
        /// Leaves that came.
        found_leaves: u64,
        /// Bodies that came.
        found_bodies: u64,
    },
    /// The visitor refused the record.
    #[error("{0}")]
    Visitor(VisitError),
}

/// Error of making a bundle or a proof.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The ledger could not be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The bundle could not be written.
    #[error("the bundle could not be written: {0}")]
    Write(#[from] io::Error),
    /// The ledger's checkpoint is malformed.
    #[error("the ledger's checkpoint cannot be used: {0}")]
    Checkpoint(#[from] CheckpointError),
    /// The record is not in the checkpoint.
    #[error(
        "record `{seq}` is not in the checkpoint, which has {size} records; make a newer checkpoint or choose another"
    )]
    NoRecord {
        /// The sequence asked for.
        seq: u64,
        /// The checkpoint's size.
        size: u64,
    },
    /// A body is too large to be carried.
    #[error("the body of record {seq} has {bytes} bytes; a bundle carries at most 16777216")]
    BodyTooLarge {
        /// The record.
        seq: u64,
        /// The body's length.
        bytes: usize,
    },
    /// A body is gone, but its erasure record is not in the selection or beyond the checkpoint.
    #[error(
        "the body of record {seq} is gone, but no erasure record in the selection says so; make a newer checkpoint, or \
         add the erasure record"
    )]
    NotErased {
        /// The record.
        seq: u64,
    },
    /// A stored record violates a rule of bundles.
    #[error("record {seq} cannot be exported: {problem}; check the ledger with `proctor audit fsck`")]
    Damaged {
        /// The record.
        seq: u64,
        /// The violated rule.
        problem: Box<Problem>,
    },
    /// The records do not fit the checkpoint.
    #[error("the ledger's records do not fit its checkpoint; check the ledger with `proctor audit fsck`")]
    Root,
}

impl From<NoteError> for ExportError {
    fn from(error: NoteError) -> ExportError {
        ExportError::Checkpoint(CheckpointError::Note(error))
    }
}
