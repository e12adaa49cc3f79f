//! Bundles of a ledger on disk.

use std::path::Path;
use std::sync::Arc;

use proctor_core::digest::Digest;
use proctor_core::id::{RecordId, SessionId};
use proctor_core::random::SeededRandomness;
use proctor_core::record::{Envelope, RecordKind};
use proctor_core::time::{Clock, ManualClock, Timestamp};
use proctor_ledger::bundle::{
    BundleReport, Check, ExportError, LedgerSource, Selection, closure, export, prove, prove_consistency,
    verify, verify_consistency_proof, verify_proof,
};
use proctor_ledger::keys::{Algorithm, SecretKey, Trust};
use proctor_ledger::note::Note;
use proctor_ledger::witness::verify_cosignature;
use proctor_ledger::{Draft, Ledger, Options, Reader};

struct World {
    clock: Arc<ManualClock>,
    randomness: Arc<SeededRandomness>,
    witness: SecretKey,
}

impl World {
    fn new() -> World {
        World {
            clock: Arc::new(ManualClock::new(Timestamp::from_micros(1_800_000_000_000_000))),
            randomness: Arc::new(SeededRandomness::new(12)),
            witness: SecretKey::from_seed("example.com/witness", Algorithm::CosignatureV1, &[8; 32]).unwrap(),
        }
    }

    fn open(&self, dir: &Path) -> Ledger {
        let key = SecretKey::from_seed("example.com/ledger", Algorithm::Ed25519, &[7; 32]).unwrap();
        Ledger::open(dir, Options::new(key, self.clock.clone(), self.randomness.clone())).unwrap()
    }

    fn envelope(&self, kind: RecordKind) -> Envelope {
        self.clock.advance(10);
        let now = self.clock.now();
        Envelope::new(RecordId::new(now, self.randomness.as_ref()), now, kind)
    }

    fn trust(&self, ledger: &Ledger) -> Trust {
        Trust {
            logs: vec![ledger.key().clone()],
            witnesses: vec![self.witness.verifier_key().clone()],
            approvers: Vec::new(),
            quorum: 1,
        }
    }

    /// A policy, decisions under it (one of them in another session, one erased), in `records` records.
    fn fill(&self, ledger: &Ledger, session: SessionId, records: u64) {
        let digest = Some(Digest::of(b"policy"));
        let append = |envelope: Envelope, body: &[u8]| {
            let mut draft = Draft::new(envelope);
            draft.body = Some(body.to_vec());
            ledger.append(draft)
        };
        let mut policy = self.envelope(RecordKind::Policy);
        policy.policy = digest;
        "loaded".clone_into(&mut policy.code);
        append(policy, b"{\"sources\":[]}").wait().unwrap();
        let mut last = None;
        for number in 1..records - 1 {
            let mut decision = self.envelope(RecordKind::Decision);
            decision.policy = digest;
            decision.session = (number % 3 == 0).then_some(session);
            last = Some(append(decision, format!("body {number}").as_bytes()));
        }
        last.unwrap().wait().unwrap();
        let mut erasure = self.envelope(RecordKind::Erasure);
        erasure.links = vec![3];
        ledger.erase(3, erasure).wait().unwrap();
    }

    /// The newest checkpoint, cosigned.
    fn witnessed(&self, ledger: &Ledger) -> u64 {
        let note = Note::parse(ledger.checkpoint().unwrap().as_bytes()).unwrap();
        let size = ledger.reader().size().unwrap();
        let line = note.cosign(&self.witness, 1_800_000_000).unwrap();
        let cosigned = ledger.add_cosignature(size, line, self.witness.verifier_key()).unwrap();
        verify_cosignature(&Note::parse(cosigned.as_bytes()).unwrap(), self.witness.verifier_key()).unwrap();
        size
    }
}

fn run(bundle: &[u8], trust: &Trust, size: u64) -> BundleReport {
    let check = Check { trust: Some(trust), at_least_size: Some(size) };
    verify(&mut &*bundle, &check, &mut |_| Ok(()), &mut |_, _| ()).unwrap()
}

#[test]
fn a_ledger_on_disk_becomes_whole_and_part_bundles_and_proofs() {
    let dir = tempfile::tempdir().unwrap();
    let world = World::new();
    let ledger = world.open(dir.path());
    let session = SessionId::new(world.clock.now(), world.randomness.as_ref());
    world.fill(&ledger, session, 700);
    let size = world.witnessed(&ledger);
    assert_eq!(size, 700);
    let trust = world.trust(&ledger);
    // Later records are not in the checkpoint, and not in the bundle.
    ledger.append(Draft::new(world.envelope(RecordKind::Observation))).wait().unwrap();

    let reader = Reader::open(dir.path()).unwrap();
    let source = LedgerSource::at(&reader, size).unwrap();
    let mut whole = Vec::new();
    let written = export(&source, &Selection::Whole, &mut whole, &mut |_, _| ()).unwrap();
    assert_eq!((written.records, written.erased), (700, 1));
    let report = run(&whole, &trust, size);
    assert_eq!((report.records, report.bodies, report.erased, report.without_policy), (700, 698, 1, 0));

    let filter = proctor_ledger::reader::Filter { session: Some(session), ..Default::default() };
    let wanted: Vec<u64> = reader
        .records(filter, proctor_ledger::reader::Order::Ascending)
        .map(|record| record.unwrap().seq)
        .collect();
    assert!(wanted.contains(&3));
    let closed = closure(&source, &wanted).unwrap();
    assert_eq!(closed.seqs.len(), wanted.len() + 2, "the policy and the erasure are added");
    let mut part = Vec::new();
    export(&source, &Selection::Part(closed.seqs), &mut part, &mut |_, _| ()).unwrap();
    let report = run(&part, &trust, size);
    assert_eq!((report.erased, report.without_policy), (1, 0));

    let text = prove(&source, 123).unwrap();
    assert_eq!(verify_proof(&text, Some(&trust)).unwrap().leaf, reader.leaf(123).unwrap());
    let newer = world.witnessed(&ledger);
    let notes = (reader.checkpoint(size).unwrap().unwrap(), reader.checkpoint(newer).unwrap().unwrap());
    let newest = LedgerSource::latest(&reader).unwrap();
    assert_eq!(newest.size(), newer);
    let text = prove_consistency(&newest, &notes.0, &notes.1).unwrap();
    verify_consistency_proof(&text, Some(&trust)).unwrap();
}

#[test]
fn a_body_erased_after_the_checkpoint_needs_a_newer_checkpoint() {
    let dir = tempfile::tempdir().unwrap();
    let world = World::new();
    let ledger = world.open(dir.path());
    world.fill(&ledger, SessionId::new(world.clock.now(), world.randomness.as_ref()), 20);
    let size = world.witnessed(&ledger);
    let mut erasure = world.envelope(RecordKind::Erasure);
    erasure.links = vec![5];
    ledger.erase(5, erasure).wait().unwrap();
    let reader = ledger.reader();
    let source = LedgerSource::at(&reader, size).unwrap();
    let early = export(&source, &Selection::Whole, &mut Vec::new(), &mut |_, _| ());
    assert!(matches!(early, Err(ExportError::NotErased { seq: 5 })));
    assert!(matches!(closure(&source, &[5]), Err(ExportError::NotErased { seq: 5 })));
    let newer = world.witnessed(&ledger);
    let mut bundle = Vec::new();
    export(&LedgerSource::at(&reader, newer).unwrap(), &Selection::Whole, &mut bundle, &mut |_, _| ())
        .unwrap();
    assert_eq!(run(&bundle, &world.trust(&ledger), newer).erased, 2);
}
