//! Bundle verification in one pass, in memory that does not grow with the bodies.

use std::collections::BTreeMap;
use std::io::Read;

use proctor_core::digest::Digest;
use proctor_core::record::{Envelope, LeafError, LeafView, RecordKind};

use super::error::{BundleError, BundlePosition, Problem};
use super::frame::{Frame, FrameKind, FrameReader, NUMBER_BYTES, SALT_BYTES};
use super::rules::Rules;
use super::source::line_order;
use crate::checkpoint::Checkpoint;
use crate::keys::{Trust, VerifierKey};
use crate::merkle::{Hash, RightEdge, leaf_hash, verify_inclusion};
use crate::note::Note;

/// Records between two calls of the progress function.
const PROGRESS_STEP: u64 = 4096;

/// Error of a visitor that refuses a record.
pub type VisitError = Box<dyn std::error::Error + Send + Sync>;

/// Requirements on a bundle besides its own consistency.
#[derive(Debug, Clone, Copy, Default)]
pub struct Check<'a> {
    /// Trusted signers. Without them everything but the signatures is checked.
    pub trust: Option<&'a Trust>,
    /// Number of records that the ledger is known to have had: a bundle of an earlier checkpoint is refused.
    pub at_least_size: Option<u64>,
}

/// A record of a bundle, after its own checks.
///
/// That it belongs to the ledger is certain in a part; in a whole bundle only when [`verify`] returns, because the root
/// is known at the end. The same holds for `erased`: the record that says so comes later.
#[derive(Debug, Clone, Copy)]
pub struct Visited<'a> {
    /// The record's sequence.
    pub seq: u64,
    /// The canonical bytes of its envelope.
    pub leaf: &'a [u8],
    /// The record's kind.
    pub kind: RecordKind,
    /// The body, if the bundle has it.
    pub body: Option<&'a [u8]>,
    /// Whether the record's body was erased.
    pub erased: bool,
}

impl Visited<'_> {
    /// Decodes the envelope. Verification has only checked the leaf.
    pub fn envelope(&self) -> Result<Envelope, LeafError> {
        Envelope::from_leaf(self.leaf)
    }
}

/// The signers of a bundle's checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "there is one for a whole bundle")]
pub enum Signer {
    /// Keys of the trust file.
    Trusted {
        /// The ledger's key.
        log: VerifierKey,
        /// The witnesses that cosigned, and when (seconds since 1970).
        witnesses: Vec<(VerifierKey, u64)>,
    },
    /// The signature is not checked: no trust file was given.
    Unknown,
}

/// The content of a verified bundle, in numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BundleReport {
    /// Whether it holds all records of its checkpoint.
    pub whole: bool,
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
    /// The signers of the checkpoint.
    pub signer: Signer,
    /// Number of records of each kind.
    pub kinds: BTreeMap<RecordKind, u64>,
    /// Decisions that count as deny, because their callers were told so.
    pub retracted: Vec<u64>,
    /// Decisions whose policy's sources no earlier record of the bundle holds: they cannot be derived again.
    pub without_policy: u64,
}

/// Checks a bundle, and shows each record to `visit` in order, after the record's own checks.
///
/// Visited records are verified only if the result is a report. An error of `visit` refuses the bundle.
/// `progress` is told how many records came and how many there will be (0: not known).
pub fn verify(
    input: &mut dyn Read,
    check: &Check<'_>,
    visit: &mut dyn FnMut(&Visited<'_>) -> Result<(), VisitError>,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<BundleReport, BundleError> {
    let mut frames = FrameReader::new(input);
    frames.header()?;
    let (head, checkpoint) = frames.frame(0, 0)?.checkpoint(&frames, check)?;
    frames.consume(head.length, 1);

    let mut verifier = Verifier {
        whole: head.whole,
        size: checkpoint.size,
        root: checkpoint.root,
        edge: RightEdge::new(),
        rules: Rules::new(head.whole),
        previous: None,
        records: 0,
        bodies: 0,
    };
    let total = if head.whole { checkpoint.size } else { 0 };
    let end = loop {
        let frame = frames.frame(0, 0)?;
        match frame.kind {
            FrameKind::Leaf => {
                let (bytes, count) = verifier.record(&mut frames, frame, visit)?;
                frames.consume(bytes, count);
            }
            FrameKind::End => break frame,
            _ => return Err(misplaced(&frames, frame, 0, "a leaf or the end")),
        }
        if verifier.records.is_multiple_of(PROGRESS_STEP) {
            progress(verifier.records, total);
        }
    };
    verifier.end(&mut frames, end)?;
    progress(verifier.records, total);
    Ok(BundleReport {
        whole: verifier.whole,
        records: verifier.records,
        bodies: verifier.bodies,
        erased: verifier.rules.erased(),
        size: verifier.size,
        root: verifier.root,
        origin: checkpoint.origin,
        signer: head.signer,
        kinds: verifier.rules.kinds(),
        without_policy: verifier.rules.without_policy(),
        retracted: verifier.rules.into_retracted(),
    })
}

/// Checks the note of a checkpoint in a bundle or proof file, and returns its signers.
pub(super) fn check_note(note: &[u8], trust: Option<&Trust>) -> Result<(Checkpoint, Signer), Problem> {
    let note = Note::parse(note).map_err(Problem::Note)?;
    let checkpoint: Checkpoint = note.text().parse().map_err(Problem::Checkpoint)?;
    let orders: Vec<_> = note.signatures().iter().map(|line| line_order(&checkpoint.origin, line)).collect();
    if !orders.is_sorted_by(|left, right| left < right) {
        return Err(Problem::SignatureOrder);
    }
    let Some(trust) = trust else { return Ok((checkpoint, Signer::Unknown)) };
    let trusted = Checkpoint::verify_trusted(&note, trust).map_err(Problem::Checkpoint)?;
    // A line that no trusted key can check is refused: it would be data in the bundle that nothing vouches for.
    for line in note.signatures() {
        let by = |key: &VerifierKey| key.name() == line.name() && key.id() == line.key_id();
        let of_log = line.name() == checkpoint.origin && trust.logs.iter().any(by);
        if !of_log && !trust.witnesses.iter().any(by) {
            return Err(Problem::UnknownSignature {
                name: line.name().to_owned(),
                id: line.key_id().to_string(),
            });
        }
    }
    let signer = Signer::Trusted { log: trusted.log, witnesses: trusted.witnesses };
    Ok((checkpoint, signer))
}

/// The first frame, without the checkpoint.
struct Head {
    whole: bool,
    signer: Signer,
    length: usize,
}

impl Frame {
    /// Reads this frame as the first one.
    fn checkpoint(
        self,
        frames: &FrameReader<'_>,
        check: &Check<'_>,
    ) -> Result<(Head, Checkpoint), BundleError> {
        let whole = match self.kind {
            FrameKind::WholeCheckpoint => true,
            FrameKind::PartCheckpoint => false,
            _ => return Err(misplaced(frames, self, 0, "the checkpoint")),
        };
        let refuse = |problem| BundleError::new(position_of(frames, self, 0, None), problem);
        let (checkpoint, signer) = check_note(frames.payload(self), check.trust).map_err(refuse)?;
        if let Some(at_least) = check.at_least_size.filter(|at_least| checkpoint.size < *at_least) {
            return Err(refuse(Problem::RolledBack { size: checkpoint.size, at_least }));
        }
        Ok((Head { whole, signer, length: self.end() }, checkpoint))
    }
}

struct Verifier {
    whole: bool,
    size: u64,
    root: Hash,
    edge: RightEdge,
    rules: Rules,
    previous: Option<u64>,
    records: u64,
    bodies: u64,
}

impl Verifier {
    /// Verifies the record that begins with this leaf frame; returns its numbers of bytes and frames.
    fn record(
        &mut self,
        frames: &mut FrameReader<'_>,
        leaf_frame: Frame,
        visit: &mut dyn FnMut(&Visited<'_>) -> Result<(), VisitError>,
    ) -> Result<(usize, u64), BundleError> {
        // All frames of the record are read first, because reading may move the window.
        let (mut next, mut count) = (leaf_frame.end(), 1);
        let mut following = frames.frame(next, count)?;
        let body_frame = (following.kind == FrameKind::Body).then_some(following);
        if body_frame.is_some() {
            (next, count) = (following.end(), count + 1);
            following = frames.frame(next, count)?;
        }
        let proof_frame = (following.kind == FrameKind::Proof).then_some(following);

        let frames = &*frames;
        let (seq, leaf) = split_number(frames.payload(leaf_frame));
        let refuse =
            |frame, nth, problem| BundleError::new(position_of(frames, frame, nth, Some(seq)), problem);
        self.take_sequence(seq).map_err(|problem| refuse(leaf_frame, 0, problem))?;
        let record = LeafView::parse(leaf).map_err(|error| refuse(leaf_frame, 0, Problem::Leaf(error)))?;

        let body = body_frame.map(|frame| frames.payload(frame));
        self.rules.take(seq, &record, body.is_some()).map_err(|problem| refuse(leaf_frame, 0, problem))?;
        if let (Some(frame), Some(salted), Some(digest)) = (body_frame, body, record.body) {
            if Digest::of(salted) != digest {
                return Err(refuse(frame, 1, Problem::BodyDigest));
            }
            self.bodies += 1;
        }

        let hash = leaf_hash(leaf);
        match (self.whole, proof_frame) {
            (true, None) => self.edge.append(hash),
            (false, Some(frame)) => {
                let (proof, rest) = frames.payload(frame).as_chunks::<32>();
                if !rest.is_empty() {
                    return Err(refuse(frame, count, Problem::ProofForm));
                }
                verify_inclusion(&hash, seq, self.size, proof, &self.root)
                    .map_err(|refusal| refuse(frame, count, Problem::Proof(refusal)))?;
                (next, count) = (frame.end(), count + 1);
            }
            (true, Some(frame)) => return Err(misplaced(frames, frame, count, "a leaf, a body or the end")),
            (false, None) => return Err(misplaced(frames, following, count, "an inclusion proof")),
        }
        self.records += 1;
        let bytes = body.and_then(|salted| salted.get(SALT_BYTES..));
        let erased = record.body.is_some() && bytes.is_none();
        visit(&Visited { seq, leaf, kind: record.kind, body: bytes, erased })
            .map_err(|error| refuse(leaf_frame, 0, Problem::Visitor(error)))?;
        Ok((next, count))
    }

    fn take_sequence(&mut self, seq: u64) -> Result<(), Problem> {
        if self.whole && seq != self.records {
            return Err(Problem::Sequence { expected: self.records });
        }
        if let Some(previous) = self.previous.filter(|previous| *previous >= seq) {
            return Err(Problem::SequenceOrder { previous });
        }
        if seq >= self.size {
            return Err(Problem::BeyondCheckpoint { size: self.size });
        }
        self.previous = Some(seq);
        Ok(())
    }

    /// Verifies the end frame, and checks what is known only then.
    fn end(&self, frames: &mut FrameReader<'_>, frame: Frame) -> Result<(), BundleError> {
        let position = position_of(frames, frame, 0, None);
        let refuse = |problem| Err(BundleError::new(position, problem));
        let (leaves, rest) = split_number(frames.payload(frame));
        let (bodies, _) = split_number(rest);
        if (leaves, bodies) != (self.records, self.bodies) {
            let (found_leaves, found_bodies) = (self.records, self.bodies);
            return refuse(Problem::Counts { leaves, bodies, found_leaves, found_bodies });
        }
        if self.whole && self.records != self.size {
            return refuse(Problem::Incomplete { size: self.size, found: self.records });
        }
        if self.whole && self.edge.root() != self.root {
            return refuse(Problem::Root);
        }
        if let Some(seq) = self.rules.unexplained() {
            return Err(BundleError::new(
                BundlePosition { seq: Some(seq), ..position },
                Problem::BodyMissing,
            ));
        }
        frames.consume(frame.end(), 1);
        let after = frames.position(0, 0);
        match frames.is_at_end() {
            Ok(true) => Ok(()),
            Ok(false) => Err(BundleError::new(after, Problem::Surplus)),
            Err(error) => Err(BundleError::new(after, Problem::Read(error))),
        }
    }
}

fn position_of(frames: &FrameReader<'_>, frame: Frame, nth: u64, seq: Option<u64>) -> BundlePosition {
    BundlePosition { kind: Some(frame.kind), seq, ..frames.position(frame.at, nth) }
}

fn misplaced(frames: &FrameReader<'_>, frame: Frame, nth: u64, expected: &'static str) -> BundleError {
    BundleError::new(position_of(frames, frame, nth, None), Problem::Order { expected })
}

/// The number that a payload begins with; the frame's bounds see to it that it is there.
fn split_number(payload: &[u8]) -> (u64, &[u8]) {
    match payload.split_first_chunk::<NUMBER_BYTES>() {
        Some((number, rest)) => (u64::from_be_bytes(*number), rest),
        None => (0, payload),
    }
}
