//! Bundle export.

use std::io::{BufWriter, Write};

use proctor_core::record::body_digest;

use super::HEADER;
use super::closure::parse_leaf;
use super::error::{ExportError, Problem};
use super::frame::{FrameKind, MAX_BODY_BYTES, write_frame};
use super::rules::Rules;
use super::source::{BundleSource, PAGE, SourceBody, SourceHashes, checkpoint_of, leaf_of};
use crate::merkle::{Hash, ProofError, RightEdge, inclusion_proof, leaf_hash, verify_inclusion};

/// Records between two calls of the progress function.
const PROGRESS_STEP: u64 = 1024;

/// Selection of records for a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// All records of the checkpoint.
    Whole,
    /// The records of these sequences, in any order. [`super::closure`] adds what belongs to them.
    Part(Vec<u64>),
}

/// The content of an exported bundle, in numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportReport {
    /// Number of records.
    pub records: u64,
    /// Number of bodies.
    pub bodies: u64,
    /// Number of erased bodies.
    pub erased: u64,
    /// Number of records of the checkpoint.
    pub size: u64,
    /// The checkpoint's root.
    pub root: Hash,
    /// The ledger's name.
    pub origin: String,
    /// Length of the bundle in bytes.
    pub bytes: u64,
    /// Decisions whose policy's sources no earlier record of the bundle holds.
    pub without_policy: u64,
}

/// Writes a bundle of the selected records at the source's checkpoint.
///
/// Memory is bounded by a page of leaves and one body. Export checks all that [`super::verify`] will check except
/// signatures: no bundle is finished that would be refused. `progress` is told how many records are written, and of how
/// many.
pub fn export(
    source: &dyn BundleSource,
    selection: &Selection,
    out: &mut dyn Write,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<ExportReport, ExportError> {
    let (note, checkpoint) = checkpoint_of(source)?;
    let whole = matches!(selection, Selection::Whole);
    let mut exporter = Exporter {
        source,
        out: BufWriter::with_capacity(64 << 10, out),
        whole,
        size: checkpoint.size,
        root: checkpoint.root,
        edge: RightEdge::new(),
        rules: Rules::new(whole),
        report: ExportReport {
            records: 0,
            bodies: 0,
            erased: 0,
            size: checkpoint.size,
            root: checkpoint.root,
            origin: checkpoint.origin,
            bytes: HEADER.len() as u64,
            without_policy: 0,
        },
    };
    exporter.out.write_all(HEADER.as_bytes())?;
    let first = if whole { FrameKind::WholeCheckpoint } else { FrameKind::PartCheckpoint };
    exporter.frame(first, &[note.to_string().as_bytes()])?;
    match selection {
        Selection::Whole => exporter.all(progress)?,
        Selection::Part(seqs) => exporter.some(seqs, progress)?,
    }
    exporter.finish()
}

struct Exporter<'a> {
    source: &'a dyn BundleSource,
    out: BufWriter<&'a mut dyn Write>,
    whole: bool,
    size: u64,
    root: Hash,
    edge: RightEdge,
    rules: Rules,
    report: ExportReport,
}

impl Exporter<'_> {
    fn all(&mut self, progress: &mut dyn FnMut(u64, u64)) -> Result<(), ExportError> {
        let mut next = 0;
        while next < self.size {
            let leaves = self.source.leaves(next, PAGE.min(self.size - next))?;
            if leaves.is_empty() {
                return Err(ExportError::NoRecord { seq: next, size: self.size });
            }
            for leaf in leaves.iter().take(usize::try_from(self.size - next).unwrap_or(usize::MAX)) {
                self.record(next, leaf)?;
                next += 1;
            }
            if next.is_multiple_of(PROGRESS_STEP) {
                progress(next, self.size);
            }
        }
        progress(self.size, self.size);
        if self.edge.root() == self.root { Ok(()) } else { Err(ExportError::Root) }
    }

    fn some(&mut self, seqs: &[u64], progress: &mut dyn FnMut(u64, u64)) -> Result<(), ExportError> {
        let mut seqs = seqs.to_vec();
        seqs.sort_unstable();
        seqs.dedup();
        let total = seqs.len() as u64;
        for (done, seq) in (1..).zip(seqs) {
            if seq >= self.size {
                return Err(ExportError::NoRecord { seq, size: self.size });
            }
            let leaf = leaf_of(self.source, seq, self.size)?;
            self.record(seq, &leaf)?;
            if done % PROGRESS_STEP == 0 || done == total {
                progress(done, total);
            }
        }
        Ok(())
    }

    fn record(&mut self, seq: u64, leaf: &[u8]) -> Result<(), ExportError> {
        let record = parse_leaf(seq, leaf)?;
        let damaged = |problem| ExportError::Damaged { seq, problem: Box::new(problem) };
        let body = match record.body {
            Some(digest) => match self.source.body(seq)? {
                SourceBody::Present { salt, bytes } => Some((digest, salt, bytes)),
                SourceBody::Erased | SourceBody::None => None,
            },
            None => None,
        };
        self.rules.take(seq, &record, body.is_some()).map_err(damaged)?;
        self.frame(FrameKind::Leaf, &[&seq.to_be_bytes(), leaf])?;
        if let Some((digest, salt, bytes)) = body {
            if bytes.len() > MAX_BODY_BYTES {
                return Err(ExportError::BodyTooLarge { seq, bytes: bytes.len() });
            }
            if body_digest(&salt, &bytes) != digest {
                return Err(damaged(Problem::BodyDigest));
            }
            self.frame(FrameKind::Body, &[&salt, &bytes])?;
            self.report.bodies += 1;
        }
        let hash = leaf_hash(leaf);
        if self.whole {
            self.edge.append(hash);
        } else {
            let proof = inclusion_proof(seq, self.size, &SourceHashes(self.source)).map_err(proof_error)?;
            verify_inclusion(&hash, seq, self.size, &proof, &self.root).map_err(|_| ExportError::Root)?;
            self.frame(FrameKind::Proof, &[proof.as_flattened()])?;
        }
        self.report.records += 1;
        Ok(())
    }

    fn finish(mut self) -> Result<ExportReport, ExportError> {
        if let Some(seq) = self.rules.unexplained() {
            return Err(ExportError::NotErased { seq });
        }
        let counts = [self.report.records.to_be_bytes(), self.report.bodies.to_be_bytes()];
        self.frame(FrameKind::End, &[counts.as_flattened()])?;
        self.out.flush()?;
        self.report.erased = self.rules.erased();
        self.report.without_policy = self.rules.without_policy();
        Ok(self.report)
    }

    fn frame(&mut self, kind: FrameKind, pieces: &[&[u8]]) -> Result<(), ExportError> {
        self.report.bytes += write_frame(&mut self.out, kind, pieces)?;
        Ok(())
    }
}

/// Error of making a proof, as an error of export.
pub(super) fn proof_error(error: ProofError<super::source::SourceError>) -> ExportError {
    match error {
        ProofError::Read(error) => ExportError::Source(error),
        ProofError::IndexOutside { index, size } => ExportError::NoRecord { seq: index, size },
        ProofError::SizesReversed { old, new } => ExportError::NoRecord { seq: old, size: new },
        ProofError::TooLarge { .. } => ExportError::Root,
    }
}
