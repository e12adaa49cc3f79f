//! Bundles: one file that carries records with everything that is needed to verify them offline.
//!
//! A bundle begins with the line `proctor-bundle/1` and goes on in frames: a type byte, the payload's length in four
//! bytes (big-endian), the payload.
//!
//! | Type | Frame | Payload | At most |
//! |---|---|---|---|
//! | `W` | checkpoint of a whole bundle | the signed note | 65,536 bytes |
//! | `P` | checkpoint of a part | the signed note | 65,536 bytes |
//! | `L` | leaf | sequence (eight bytes, big-endian), canonical envelope | 8 + 65,535 bytes |
//! | `B` | body | salt (32 bytes), stored bytes | 32 + 16 MiB |
//! | `I` | inclusion proof | hashes of 32 bytes, leaf first | 64 hashes |
//! | `E` | end | number of leaves, number of bodies (eight bytes each) | 16 bytes |
//!
//! The order is fixed: the checkpoint, then for each record in order of sequence its leaf, its body if it is there, and
//! in a part its inclusion proof; then the end, and nothing after it. A *whole* bundle holds all records of its
//! checkpoint, whose root is computed again from the leaves. A *part* holds some, each proven to be in the ledger.
//! Only a whole bundle can show that nothing was left out.
//!
//! - [`export`] writes a bundle from a [`BundleSource`], such as a [`LedgerSource`]; [`closure`] finds what a part has to carry besides the records
//!   that were asked for.
//! - [`verify`] checks a bundle in one pass and shows each record to a visitor.
//! - [`prove`] and [`prove_consistency`] make small text files about one record and about two checkpoints.

mod closure;
mod error;
mod export;
mod frame;
mod ledger_source;
mod proof;
mod rules;
mod source;
mod verify;

pub use closure::{Closure, closure};
pub use error::{BundleError, BundlePosition, ErrorClass, ExportError, Problem};
pub use export::{ExportReport, Selection, export};
pub use frame::{FRAME_HEADER_BYTES, FrameKind, MAX_BODY_BYTES, MAX_PROOF_HASHES, NUMBER_BYTES};
pub use ledger_source::LedgerSource;
pub use proof::{
    ProofFileError, ProvenConsistency, ProvenRecord, prove, prove_consistency, verify_consistency_proof,
    verify_proof,
};
pub use source::{BundleSource, FoundRecords, SourceBody, SourceError};
pub use verify::{BundleReport, Check, Signer, VisitError, Visited, verify};

/// The first line of a bundle.
pub const HEADER: &str = "proctor-bundle/1\n";
