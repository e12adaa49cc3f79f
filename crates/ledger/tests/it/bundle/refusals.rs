//! Each rule of a bundle is refused when it is broken, in words that say what and where.

use proctor_core::record::{Envelope, RecordKind, body_digest};
use proctor_ledger::bundle::{
    BundleError, Check, ErrorClass, FrameKind, HEADER, Problem, Selection, closure, export, verify,
};
use proctor_ledger::checkpoint::Checkpoint;
use proctor_ledger::keys::Trust;
use proctor_ledger::merkle::{leaf_hash, root_of};
use proctor_test_forges::TestLedger;

/// A bundle written by hand, with a checkpoint that is right and signed: only the rules can refuse it.
struct Hand {
    ledger: TestLedger,
    leaves: Vec<Vec<u8>>,
    frames: Frames,
    bodies: u64,
}

impl Hand {
    fn new() -> Hand {
        Hand { ledger: TestLedger::empty(1).unwrap(), leaves: Vec::new(), frames: Vec::new(), bodies: 0 }
    }

    fn draft(&self, kind: RecordKind) -> Envelope {
        self.ledger.draft(kind)
    }

    /// Adds a record; the body is written if there is one, whatever the envelope says.
    fn record(&mut self, envelope: &Envelope, body: Option<&[u8]>) -> &mut Hand {
        let leaf = envelope.to_leaf().unwrap();
        let seq = self.leaves.len() as u64;
        self.frames.push((b'L', [seq.to_be_bytes().as_slice(), &leaf].concat()));
        if let Some(body) = body {
            self.frames.push((b'B', [[9; 32].as_slice(), body].concat()));
            self.bodies += 1;
        }
        self.leaves.push(leaf);
        self
    }

    fn plain(&mut self) -> &mut Hand {
        let envelope = self.draft(RecordKind::Observation);
        self.record(&envelope, None)
    }

    fn write(&self) -> Vec<u8> {
        let root = root_of(self.leaves.iter().map(|leaf| leaf_hash(leaf)));
        let size = self.leaves.len() as u64;
        let note = Checkpoint::new(self.ledger.log.name(), size, root).sign(&self.ledger.log).unwrap();
        let end = [size.to_be_bytes(), self.bodies.to_be_bytes()].concat();
        let mut frames = vec![(b'W', note.to_string().into_bytes())];
        frames.extend(self.frames.clone());
        frames.push((b'E', end));
        write(&frames)
    }

    fn verify(&self) -> Result<(), BundleError> {
        let trust = Trust { witnesses: Vec::new(), quorum: 0, ..self.ledger.trust() };
        run(&self.write(), &Check { trust: Some(&trust), at_least_size: None })
    }
}

type Frames = Vec<(u8, Vec<u8>)>;

fn write(frames: &[(u8, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = HEADER.as_bytes().to_vec();
    for (kind, payload) in frames {
        bytes.push(*kind);
        bytes.extend(u32::try_from(payload.len()).unwrap().to_be_bytes());
        bytes.extend(payload);
    }
    bytes
}

fn read(bundle: &[u8]) -> Frames {
    let mut rest = &bundle[HEADER.len()..];
    let mut frames = Vec::new();
    while let [kind, a, b, c, d, after @ ..] = rest {
        let (payload, next) = after.split_at(u32::from_be_bytes([*a, *b, *c, *d]) as usize);
        frames.push((*kind, payload.to_vec()));
        rest = next;
    }
    frames
}

fn run(bundle: &[u8], check: &Check<'_>) -> Result<(), BundleError> {
    verify(&mut &*bundle, check, &mut |_| Ok(()), &mut |_, _| ()).map(|_| ())
}

/// The problem with which a bundle is refused, and the record.
fn refusal(result: Result<(), BundleError>) -> (Problem, Option<u64>) {
    let error = result.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Tampered);
    assert!(error.to_string().starts_with("byte "), "{error}");
    (*error.problem, error.position.seq)
}

#[test]
fn what_is_right_by_hand_passes() {
    let mut hand = Hand::new();
    hand.plain().plain();
    let mut with_body = hand.draft(RecordKind::Decision);
    with_body.body = Some(body_digest(&[9; 32], b"body"));
    with_body.links = vec![0, 1];
    with_body.once = Some("key".to_owned());
    hand.record(&with_body, Some(b"body"));
    hand.verify().unwrap();
}

#[test]
fn links_point_backward() {
    for link in [1, 2, 1 << 40] {
        let mut hand = Hand::new();
        hand.plain();
        let mut envelope = hand.draft(RecordKind::Outcome);
        envelope.links = vec![0, link];
        hand.record(&envelope, None);
        assert!(
            matches!(refusal(hand.verify()), (Problem::LinkForward { link: found }, Some(1)) if found == link)
        );
    }
}

#[test]
fn identifiers_and_once_keys_are_unique() {
    let mut hand = Hand::new();
    let envelope = hand.draft(RecordKind::Observation);
    let mut second = hand.draft(RecordKind::Gap);
    second.id = envelope.id;
    hand.record(&envelope, None).plain().record(&second, None);
    assert!(matches!(refusal(hand.verify()), (Problem::IdTwice, Some(2))));

    let mut hand = Hand::new();
    for key in ["a", "b", "", "a"] {
        let mut envelope = hand.draft(RecordKind::Observation);
        envelope.once = Some(key.to_owned());
        hand.record(&envelope, None);
    }
    assert!(matches!(refusal(hand.verify()), (Problem::OnceTwice, Some(3))));
}

#[test]
fn bodies_and_digests_belong_together() {
    let mut hand = Hand::new();
    let envelope = hand.draft(RecordKind::Decision);
    hand.record(&envelope, Some(b"body"));
    assert!(matches!(refusal(hand.verify()), (Problem::BodyUnexpected, Some(0))));

    let mut hand = Hand::new();
    let mut envelope = hand.draft(RecordKind::Decision);
    envelope.body = Some(body_digest(&[9; 32], b"body"));
    hand.record(&envelope, Some(b"bodY"));
    assert!(matches!(refusal(hand.verify()), (Problem::BodyDigest, Some(0))));
}

#[test]
fn a_body_is_missing_exactly_if_a_later_record_says_so() {
    let build = |erasure: bool, present: bool| {
        let mut hand = Hand::new();
        let mut envelope = hand.draft(RecordKind::Decision);
        envelope.body = Some(body_digest(&[9; 32], b"body"));
        hand.record(&envelope, present.then_some(b"body"));
        let mut second = hand.draft(if erasure { RecordKind::Erasure } else { RecordKind::Outcome });
        second.links = vec![0];
        hand.record(&second, None);
        hand.verify()
    };
    build(true, false).unwrap();
    build(false, true).unwrap();
    assert!(matches!(refusal(build(false, false)), (Problem::BodyMissing, Some(0))));
    assert!(matches!(refusal(build(true, true)), (Problem::NotErased { target: 0 }, Some(1))));
}

#[test]
fn frames_stand_in_their_order_and_have_known_types_and_lengths() {
    let mut hand = Hand::new();
    hand.plain().plain();
    let good = hand.write();
    let note_end = {
        let length = u32::from_be_bytes(good[HEADER.len() + 1..HEADER.len() + 5].try_into().unwrap());
        HEADER.len() + 5 + usize::try_from(length).unwrap()
    };
    let with = |at: usize, bytes: &[u8]| {
        let mut changed = good.clone();
        changed.splice(at..at + bytes.len(), bytes.iter().copied());
        *run(&changed, &Check::default()).unwrap_err().problem
    };
    assert!(matches!(with(0, b"x"), Problem::NotABundle));
    assert!(matches!(with(HEADER.len() - 2, b"2"), Problem::NotABundle));
    assert!(matches!(with(note_end, b"X"), Problem::UnknownFrame { byte: b'X' }));
    assert!(matches!(with(note_end, b"W"), Problem::Order { .. }));
    assert!(matches!(with(note_end, b"B"), Problem::Order { .. }));
    assert!(matches!(with(note_end, b"I"), Problem::Order { .. } | Problem::ProofForm));
    assert!(matches!(with(HEADER.len(), b"L"), Problem::Order { .. }));
    for kind in FrameKind::ALL {
        let (_, most) = kind.bounds();
        let length = u32::try_from(most + 1).unwrap().to_be_bytes();
        let header = [&[kind.byte()], length.as_slice()].concat();
        assert!(matches!(with(note_end, &header), Problem::FrameLength { .. }), "{kind:?}");
    }
    let surplus = [good.as_slice(), b"\n"].concat();
    assert!(matches!(*run(&surplus, &Check::default()).unwrap_err().problem, Problem::Surplus));
    for length in 0..good.len() {
        let problem = *run(&good[..length], &Check::default()).unwrap_err().problem;
        assert!(matches!(problem, Problem::Truncated | Problem::NotABundle), "{length}: {problem}");
    }
}

#[test]
fn leaves_have_their_canonical_spelling() {
    let mut hand = Hand::new();
    hand.plain();
    let leaf = hand.leaves[0].clone();
    let spaced = [b"{ ".as_slice(), &leaf[1..]].concat();
    hand.frames[0].1 = [0u64.to_be_bytes().as_slice(), &spaced].concat();
    hand.leaves[0] = spaced;
    assert!(matches!(refusal(hand.verify()), (Problem::Leaf(_), Some(0))));
}

#[test]
fn sequences_are_complete_and_counted() {
    let mut hand = Hand::new();
    hand.plain().plain().plain();
    let mut swapped = hand.frames.clone();
    swapped.swap(1, 2);
    let original = std::mem::replace(&mut hand.frames, swapped);
    assert!(matches!(refusal(hand.verify()), (Problem::Sequence { expected: 1 }, Some(2))));
    hand.frames = original[..2].to_vec();
    assert!(matches!(refusal(hand.verify()), (Problem::Counts { .. }, None)));
    // The counts fit what is there, but the checkpoint has more.
    let mut frames = read(&hand.write());
    let last = frames.len() - 1;
    frames[last].1 = [2u64.to_be_bytes(), 0u64.to_be_bytes()].concat();
    let refused = refusal(run(&write(&frames), &Check::default()));
    assert!(matches!(refused, (Problem::Incomplete { size: 3, found: 2 }, None)), "{refused:?}");
    hand.frames =
        [original.clone(), vec![(b'L', [3u64.to_be_bytes().as_slice(), &hand.leaves[0]].concat())]].concat();
    assert!(matches!(refusal(hand.verify()), (Problem::BeyondCheckpoint { size: 3 }, Some(3))));
}

#[test]
fn signatures_are_those_of_the_trust_file_and_of_enough_witnesses() {
    let ledger = TestLedger::new(6, 20).unwrap();
    let bundle = |note: String| {
        let mut bytes = Vec::new();
        export(&ledger.at(20).unwrap().under(note), &Selection::Whole, &mut bytes, &mut |_, _| ()).unwrap();
        bytes
    };
    let check = |bundle: &[u8], trust: &Trust, at_least_size| {
        run(bundle, &Check { trust: Some(trust), at_least_size }).map_err(|error| *error.problem)
    };
    let trust = ledger.trust();
    let full = bundle(ledger.note(20, 2).unwrap());
    check(&full, &trust, Some(20)).unwrap();
    assert!(matches!(check(&full, &trust, Some(21)), Err(Problem::RolledBack { size: 20, at_least: 21 })));

    // One witness of two is too few, unless the quorum says otherwise.
    let half = bundle(ledger.note(20, 1).unwrap());
    assert!(matches!(check(&half, &trust, None), Err(Problem::Checkpoint(_))));
    check(&half, &Trust { quorum: 1, ..trust.clone() }, None).unwrap();

    // A witness that the trust file does not name.
    let one = Trust { witnesses: trust.witnesses[..1].to_vec(), quorum: 1, ..trust.clone() };
    assert!(matches!(check(&full, &one, None), Err(Problem::UnknownSignature { .. })));

    // Another ledger of the same name; and a trust file that does not know the ledger at all.
    let other = TestLedger::new(7, 20).unwrap();
    assert!(matches!(check(&full, &other.trust(), None), Err(Problem::Checkpoint(_))));
    assert!(matches!(check(&full, &Trust::default(), None), Err(Problem::Checkpoint(_))));

    // The ledger's key named as an approver says nothing about checkpoints.
    let approver = Trust { approvers: trust.logs.clone(), logs: Vec::new(), ..trust };
    assert!(matches!(check(&full, &approver, None), Err(Problem::Checkpoint(_))));
}

#[test]
fn a_part_needs_right_proofs_and_order() {
    let ledger = TestLedger::new(11, 60).unwrap();
    let source = ledger.at(60).unwrap();
    let seqs = closure(&source, &[10, 30, 59]).unwrap().seqs;
    let mut bytes = Vec::new();
    export(&source, &Selection::Part(seqs), &mut bytes, &mut |_, _| ()).unwrap();
    run(&bytes, &Check::default()).unwrap();
    let with = |change: &dyn Fn(&mut Frames)| {
        let mut frames = read(&bytes);
        change(&mut frames);
        *run(&write(&frames), &Check::default()).unwrap_err().problem
    };
    let first = |frames: &[(u8, Vec<u8>)], kind| frames.iter().position(|frame| frame.0 == kind).unwrap();
    let problem = with(&|frames| {
        let at = first(frames, b'I');
        frames[at].1[5] ^= 1;
    });
    assert!(matches!(problem, Problem::Proof(_)), "{problem}");
    let problem = with(&|frames| {
        let at = first(frames, b'I');
        frames[at].1.pop();
    });
    assert!(matches!(problem, Problem::ProofForm), "{problem}");
    let problem = with(&|frames| {
        let at = first(frames, b'I');
        frames.remove(at);
    });
    assert!(matches!(problem, Problem::Order { expected: "an inclusion proof" }), "{problem}");
    // The same record twice.
    let problem = with(&|frames| {
        let record = frames[1..=first(frames, b'I')].to_vec();
        frames.splice(1..1, record);
    });
    assert!(matches!(problem, Problem::SequenceOrder { .. }), "{problem}");
    // Another place than the proof's.
    let problem = with(&|frames| frames[1].1[7] += 1);
    assert!(matches!(problem, Problem::Proof(_)), "{problem}");
}

#[test]
fn a_part_with_a_missing_body_carries_its_erasure() {
    let mut ledger = TestLedger::empty(2).unwrap();
    let target = ledger.add_decision(9).unwrap();
    let erasure = ledger.erase(target).unwrap();
    let mut bytes = Vec::new();
    let both = Selection::Part(vec![target, erasure]);
    export(&ledger.at(2).unwrap(), &both, &mut bytes, &mut |_, _| ()).unwrap();
    run(&bytes, &Check::default()).unwrap();
    // Without the erasure: the leaf and the proof of the first record alone.
    let mut frames = read(&bytes);
    frames.drain(3..5);
    frames[3].1 = [1u64.to_be_bytes(), 0u64.to_be_bytes()].concat();
    let refused = refusal(run(&write(&frames), &Check::default()));
    assert!(matches!(refused, (Problem::BodyMissing, Some(0))), "{refused:?}");
}
