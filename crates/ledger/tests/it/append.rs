//! Appending.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use proctor_core::record::{RecordKind, body_digest};
use proctor_ledger::checkpoint::Checkpoint;
use proctor_ledger::keys::{Algorithm, SecretKey};
use proctor_ledger::merkle::{inclusion_proof, leaf_hash, root_of, verify_inclusion};
use proctor_ledger::note::Note;
use proctor_ledger::reader::{BodyState, Filter, Order};
use proctor_ledger::{Ledger, NotRecorded, OpenError, Reader};

use super::support::{World, assert_in_order, key};

#[test]
fn what_is_appended_can_be_read() {
    let (dir, world) = (tempfile::tempdir().unwrap(), World::new(1));
    let ledger = world.open(dir.path());
    let mut draft = world.coded("alice", "done");
    draft.body = Some(b"a body".to_vec());
    let (id, time) = (draft.envelope.id, draft.envelope.time);
    let receipt = ledger.append(draft).wait().unwrap();
    assert_eq!((receipt.seq(), receipt.size(), receipt.id(), receipt.time()), (0, 1, id, time));

    let reader = ledger.reader();
    let envelope = reader.envelope(0).unwrap();
    assert_eq!(envelope.code, "done");
    let BodyState::Present { salt, bytes } = reader.body(0).unwrap() else { panic!("no body") };
    assert_eq!(bytes, b"a body");
    assert_eq!(envelope.body, Some(body_digest(&salt, &bytes)));
    assert_eq!(reader.state("code", "alice").unwrap(), Some((b"done".to_vec(), 0)));
    assert_eq!(reader.by_id(&id).unwrap(), Some(0));
    assert_eq!(reader.origin().unwrap(), "example.com/ledger");
    ledger.close();
    assert_in_order(dir.path());
}

#[test]
fn files_are_for_the_owner_alone() {
    let (parent, world) = (tempfile::tempdir().unwrap(), World::new(1));
    let dir = parent.path().join("state/deep");
    let ledger = world.open(&dir);
    ledger.append(world.draft(RecordKind::Outcome)).wait().unwrap();
    assert_eq!(dir.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    for entry in std::fs::read_dir(&dir).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{:?}", entry.path());
    }
}

#[test]
fn many_threads_append_without_holes() {
    let (dir, world) = (tempfile::tempdir().unwrap(), World::new(2));
    let ledger = world.open(dir.path());
    let seqs: BTreeSet<u64> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..64)
            .map(|thread| {
                let (ledger, world) = (&ledger, &world);
                scope.spawn(move || {
                    let append = |n: u64| {
                        let mut draft = world.coded(&format!("principal-{thread}"), &n.to_string());
                        draft.body = Some(vec![b'x'; 100]);
                        ledger.append(draft)
                    };
                    let pending: Vec<_> = (0..40).map(append).collect();
                    pending.into_iter().map(|pending| pending.wait().unwrap().seq()).collect::<Vec<_>>()
                })
            })
            .collect();
        threads
            .into_iter()
            .flat_map(|thread| {
                let seqs = thread.join().unwrap();
                assert!(seqs.is_sorted(), "each thread's drafts keep their order");
                seqs
            })
            .collect()
    });
    assert!(seqs.into_iter().eq(0..64 * 40));
    ledger.close();
    assert_in_order(dir.path());
}

#[test]
fn closing_writes_what_is_queued_and_reopening_continues_the_tree() {
    let (dir, world) = (tempfile::tempdir().unwrap(), World::new(3));
    for part in 0..4 {
        let ledger = world.open(dir.path());
        for n in 0..300 {
            let draft = world.coded(&format!("principal-{}", n % 7), &format!("{part}/{n}"));
            assert_eq!(ledger.append(draft).refusal(), None);
        }
        ledger.close();
    }
    let reader = Reader::open(dir.path()).unwrap();
    assert_eq!(reader.size().unwrap(), 1200);
    let leaves = (0..1200).map(|seq| leaf_hash(&reader.leaf(seq).unwrap()));
    let row = reader.latest_checkpoint().unwrap().unwrap();
    let checkpoint =
        Checkpoint::verify(&Note::parse(row.note.as_bytes()).unwrap(), key().verifier_key()).unwrap();
    assert_eq!((row.size, checkpoint.size, checkpoint.root), (1200, 1200, root_of(leaves)));
    for (seq, size) in [(0, 1), (0, 1200), (255, 256), (256, 700), (1199, 1200), (600, 1100)] {
        let tree = reader.tree(size);
        let proof = inclusion_proof(seq, size, &tree).unwrap();
        let root = root_of((0..size).map(|seq| leaf_hash(&reader.leaf(seq).unwrap())));
        verify_inclusion(&leaf_hash(&reader.leaf(seq).unwrap()), seq, size, &proof, &root).unwrap();
    }
    assert_in_order(dir.path());
}

#[test]
fn a_once_key_is_recorded_once() {
    let (dir, world) = (tempfile::tempdir().unwrap(), World::new(4));
    let ledger = world.open(dir.path());
    ledger.append(world.draft(RecordKind::Outcome)).wait().unwrap();
    assert_eq!(ledger.append(world.once("alice:1")).wait().unwrap().seq(), 1);
    assert_eq!(ledger.append(world.once("alice:1")).wait(), Err(NotRecorded::Once { first: 1 }));
    assert_eq!(ledger.append(world.once("alice:2")).wait().unwrap().seq(), 2);
    assert_eq!(ledger.generation(), 0, "nothing builds on a draft without rows");
    ledger.close();
    let ledger = world.open(dir.path());
    assert_eq!(ledger.append(world.once("alice:2")).wait(), Err(NotRecorded::Once { first: 2 }));
    assert_eq!(ledger.reader().once("alice:2").unwrap(), Some(2));
    assert_eq!(ledger.reader().once("alice:3").unwrap(), None);
    ledger.close();
    assert_in_order(dir.path());
}

#[test]
fn what_cannot_be_a_record_is_refused_at_once() {
    let (dir, world) = (tempfile::tempdir().unwrap(), World::new(5));
    let ledger = world.open(dir.path());
    let mut draft = world.draft(RecordKind::Outcome);
    draft.envelope.taints = vec!["x".repeat(1000); 100];
    let pending = ledger.append(draft);
    assert!(matches!(pending.refusal(), Some(NotRecorded::Failed(reason)) if reason.contains("limit")));
    assert!(matches!(pending.wait(), Err(NotRecorded::Failed(_))));
    let mut draft = world.draft(RecordKind::Outcome);
    draft.envelope.links = vec![0];
    assert!(
        matches!(ledger.append(draft).wait(), Err(NotRecorded::Failed(reason)) if reason.contains("links to record 0"))
    );
    let mut draft = world.draft(RecordKind::Outcome);
    draft.envelope.once = Some("x".repeat(5000));
    assert!(matches!(ledger.append(draft).wait(), Err(NotRecorded::Failed(_))));
    ledger.append(world.draft(RecordKind::Outcome)).wait().unwrap();
    let mut draft = world.draft(RecordKind::Outcome);
    draft.envelope.links = vec![0];
    ledger.append(draft).wait().unwrap();
}

#[test]
fn a_checkpoint_can_be_had_at_any_time_and_cosigned() {
    let (dir, world) = (tempfile::tempdir().unwrap(), World::new(6));
    let ledger = world.open(dir.path());
    let empty = Note::parse(ledger.checkpoint().unwrap().as_bytes()).unwrap();
    assert_eq!(Checkpoint::verify(&empty, ledger.key()).unwrap().size, 0);
    for n in 0..5 {
        drop(ledger.append(world.coded("alice", &n.to_string())));
    }
    let text = ledger.checkpoint().unwrap();
    let note = Note::parse(text.as_bytes()).unwrap();
    assert_eq!(Checkpoint::verify(&note, ledger.key()).unwrap().size, 5);
    assert_eq!(ledger.checkpoint().unwrap(), text);

    let witness = SecretKey::from_seed("example.com/witness", Algorithm::CosignatureV1, &[9; 32]).unwrap();
    let line = note.cosign(&witness, 1_800_000_000).unwrap();
    let cosigned = ledger.add_cosignature(5, line.clone(), witness.verifier_key()).unwrap();
    let parsed = Note::parse(cosigned.as_bytes()).unwrap();
    assert_eq!(parsed.verify_cosignature(witness.verifier_key()), Ok(1_800_000_000));
    assert_eq!(ledger.reader().checkpoint(5).unwrap(), Some(cosigned.clone()));
    assert_eq!(ledger.checkpoint().unwrap(), cosigned);
    assert!(ledger.add_cosignature(4, line.clone(), witness.verifier_key()).is_err());
    ledger.append(world.coded("alice", "6")).wait().unwrap();
    ledger.checkpoint().unwrap();
    let wrong = ledger.add_cosignature(6, line, witness.verifier_key());
    assert!(matches!(wrong, Err(NotRecorded::Failed(reason)) if reason.contains("does not fit")));
    ledger.close();
    assert_in_order(dir.path());
}

#[test]
fn checkpoints_come_with_256_records_or_a_second() {
    let (dir, world) = (tempfile::tempdir().unwrap(), World::new(7));
    let ledger = world.open(dir.path());
    let sizes = || {
        let rows = ledger.reader().checkpoints(0..u64::MAX, Order::Ascending, 100).unwrap();
        rows.into_iter().map(|row| row.size).collect::<Vec<_>>()
    };
    for _ in 0..3 {
        ledger.append(world.draft(RecordKind::Outcome)).wait().unwrap();
    }
    assert_eq!(sizes(), [1]);
    world.clock.advance(1_000_000);
    ledger.append(world.draft(RecordKind::Outcome)).wait().unwrap();
    assert_eq!(sizes(), [1, 4]);
    for _ in 0..256 {
        ledger.append(world.draft(RecordKind::Outcome)).wait().unwrap();
    }
    assert_eq!(sizes(), [1, 4, 260]);
}

#[test]
fn there_is_one_owner_with_the_right_key() {
    let (dir, world) = (tempfile::tempdir().unwrap(), World::new(8));
    let ledger = world.open(dir.path());
    assert!(matches!(
        Ledger::open(dir.path(), world.options()),
        Err(OpenError::Owned { pid }) if pid == Some(std::process::id())
    ));
    ledger.close();
    let mut options = world.options();
    options.key = SecretKey::from_seed("example.com/ledger", Algorithm::Ed25519, &[8; 32]).unwrap();
    assert!(matches!(Ledger::open(dir.path(), options), Err(OpenError::WrongKey { .. })));
    let mut options = world.options();
    options.key = SecretKey::from_seed("example.com/ledger", Algorithm::CosignatureV1, &[7; 32]).unwrap();
    assert!(matches!(Ledger::open(dir.path(), options), Err(OpenError::UnusableKey { .. })));
    world.open(dir.path()).close();
}

struct Unpark(std::thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

#[test]
fn a_pending_draft_can_be_awaited() {
    let (dir, world) = (tempfile::tempdir().unwrap(), World::new(9));
    let ledger = world.open(dir.path());
    let mut pending = std::pin::pin!(ledger.append(world.draft(RecordKind::Outcome)));
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let receipt = loop {
        match pending.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(result) => break result.unwrap(),
            Poll::Pending => std::thread::park(),
        }
    };
    assert_eq!(receipt.seq(), 0);
    assert_eq!(ledger.reader().records(Filter::default(), Order::Ascending).count(), 1);
}
