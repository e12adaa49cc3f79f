//! Drafts that are not recorded, and what follows for others.

use std::sync::Arc;
use std::time::{Duration, Instant};

use proctor_core::record::RecordKind;
use proctor_ledger::store::Durability;
use proctor_ledger::{Draft, NotRecorded};

use super::support::{Fault, World, assert_in_order};

fn past() -> Option<Instant> {
    Some(Instant::now())
}

#[test]
fn a_failed_batch_fails_everything_behind_it_and_the_next_one_works() {
    let (dir, world) = (tempfile::tempdir().unwrap(), World::new(1));
    let (ledger, store) = world.with_faults(dir.path(), |_| {});
    ledger.append(world.coded("alice", "0")).wait().unwrap();
    let stuck = store.stick();
    store.order(Fault::Fail);
    let first = ledger.append(world.coded("alice", "1"));
    stuck.wait_until_stuck();
    // These are in the batch that fails, or behind it.
    let behind: Vec<_> = (0..3000).map(|n| ledger.append(world.coded("alice", &n.to_string()))).collect();
    stuck.let_go();
    assert_eq!(first.wait().unwrap().seq(), 1);
    for pending in behind {
        assert!(
            matches!(pending.wait(), Err(NotRecorded::Failed(reason)) if reason.contains("disk is full"))
        );
    }
    assert_eq!(ledger.generation(), 1);
    assert_eq!(ledger.reader().state("code", "alice").unwrap(), Some((b"1".to_vec(), 1)));
    assert_eq!(ledger.append_after(0, world.coded("alice", "x")).wait(), Err(NotRecorded::Stale));
    assert_eq!(ledger.append_after(1, world.coded("alice", "2")).wait().unwrap().seq(), 2);
    ledger.close();
    assert_in_order(dir.path());
}

#[test]
fn a_draft_past_its_deadline_is_left_out_and_what_builds_on_it_is_stale() {
    let (dir, world) = (tempfile::tempdir().unwrap(), World::new(2));
    let (ledger, store) = world.with_faults(dir.path(), |_| {});
    let stuck = store.stick();
    let first = ledger.append(world.coded("alice", "0"));
    stuck.wait_until_stuck();
    let before = ledger.append(world.coded("alice", "1"));
    let mut late = world.coded("alice", "2");
    late.deadline = past();
    let late = ledger.append(late);
    let rows = ledger.append(world.coded("alice", "3"));
    let after = ledger.append_after(0, world.draft(RecordKind::Decision));
    let plain = ledger.append(world.draft(RecordKind::Observation));
    stuck.let_go();
    assert_eq!(first.wait().unwrap().seq(), 0);
    assert_eq!(before.wait().unwrap().seq(), 1);
    assert_eq!(rows.wait(), Err(NotRecorded::Stale));
    assert_eq!(after.wait(), Err(NotRecorded::Stale));
    assert_eq!(plain.wait().unwrap().seq(), 2, "what builds on nothing is recorded");
    assert_eq!(late.wait(), Err(NotRecorded::Deadline));
    assert_eq!(ledger.generation(), 1);
    assert_eq!(ledger.append(world.coded("alice", "4")).wait().unwrap().seq(), 3);
    ledger.close();
    assert_in_order(dir.path());
}

#[test]
fn a_late_draft_that_nobody_builds_on_disturbs_nobody() {
    let (dir, world) = (tempfile::tempdir().unwrap(), World::new(3));
    let (ledger, store) = world.with_faults(dir.path(), |_| {});
    let stuck = store.stick();
    let first = ledger.append(world.draft(RecordKind::Outcome));
    stuck.wait_until_stuck();
    let mut late = world.draft(RecordKind::Observation);
    late.deadline = past();
    let late = ledger.append(late);
    let rows = ledger.append(world.coded("alice", "1"));
    stuck.let_go();
    assert!(first.wait().is_ok() && rows.wait().is_ok());
    assert_eq!(late.wait(), Err(NotRecorded::Deadline));
    assert_eq!(ledger.generation(), 0);
}

#[test]
fn a_once_collision_makes_what_builds_on_it_stale() {
    let (dir, world) = (tempfile::tempdir().unwrap(), World::new(4));
    let (ledger, store) = world.with_faults(dir.path(), |_| {});
    let stuck = store.stick();
    let first = ledger.append(world.draft(RecordKind::Outcome));
    stuck.wait_until_stuck();
    let with_key = |code: &str| {
        let mut draft = world.coded("alice", code);
        draft.envelope.once = Some("grant".to_owned());
        draft
    };
    // All in one batch.
    let granted = ledger.append(with_key("1"));
    let again = ledger.append(with_key("2"));
    let builds_on_it = ledger.append(world.coded("alice", "3"));
    stuck.let_go();
    assert!(first.wait().is_ok());
    assert_eq!(granted.wait().unwrap().seq(), 1);
    assert_eq!(again.wait(), Err(NotRecorded::Once { first: 1 }));
    assert_eq!(builds_on_it.wait(), Err(NotRecorded::Stale));
    assert_eq!(ledger.reader().state("code", "alice").unwrap(), Some((b"1".to_vec(), 1)));
    assert_eq!(ledger.generation(), 1);
    ledger.close();
    assert_in_order(dir.path());
}

#[test]
fn a_record_whose_caller_gave_up_is_retracted_by_the_next_one() {
    let (dir, world) = (tempfile::tempdir().unwrap(), World::new(5));
    let (ledger, store) = world.with_faults(dir.path(), |_| {});
    let stuck = store.stick();
    let mut draft = world.coded("alice", "0");
    draft.envelope.session = Some(world.session());
    let session = draft.envelope.session;
    let given_up = ledger.append(draft);
    stuck.wait_until_stuck();
    let builds_on_it = ledger.append(world.coded("alice", "1"));
    let plain = ledger.append(world.draft(RecordKind::Observation));
    assert_eq!(given_up.wait_until(Instant::now()), Err(NotRecorded::Deadline));
    stuck.let_go();
    assert_eq!(plain.wait().unwrap().seq(), 2);
    assert_eq!(builds_on_it.wait(), Err(NotRecorded::Stale));
    let reader = ledger.reader();
    let retraction = reader.envelope(1).unwrap();
    assert_eq!(
        (retraction.kind, &retraction.links, retraction.session),
        (RecordKind::Retracted, &vec![0], session)
    );
    assert_eq!(retraction.principal, "alice");
    // The rows stay as they were written: the owner of the state folds the retraction itself.
    assert_eq!(reader.state("code", "alice").unwrap(), Some((b"0".to_vec(), 0)));
    assert_eq!(ledger.generation(), 1);
    ledger.close();
}

#[test]
fn a_draft_whose_caller_gave_up_before_it_was_taken_is_not_recorded() {
    let (dir, world) = (tempfile::tempdir().unwrap(), World::new(6));
    let (ledger, store) = world.with_faults(dir.path(), |_| {});
    let stuck = store.stick();
    let first = ledger.append(world.draft(RecordKind::Outcome));
    stuck.wait_until_stuck();
    let given_up = ledger.append(world.coded("alice", "1"));
    assert_eq!(given_up.give_up(), Err(NotRecorded::Deadline));
    let builds_on_it = ledger.append(world.coded("alice", "2"));
    stuck.let_go();
    assert!(first.wait().is_ok());
    assert_eq!(builds_on_it.wait(), Err(NotRecorded::Stale));
    assert_eq!(ledger.reader().size().unwrap(), 1);
    ledger.close();
    assert_in_order(dir.path());
}

#[test]
fn a_commit_that_was_told_as_failed_but_happened_is_retracted() {
    let (dir, world) = (tempfile::tempdir().unwrap(), World::new(7));
    let (ledger, store) = world.with_faults(dir.path(), |_| {});
    store.order(Fault::CommitAndFail);
    assert!(matches!(ledger.append(world.draft(RecordKind::Decision)).wait(), Err(NotRecorded::Failed(_))));
    assert_eq!(ledger.append(world.draft(RecordKind::Decision)).wait().unwrap().seq(), 2);
    let retraction = ledger.reader().envelope(1).unwrap();
    assert_eq!((retraction.kind, retraction.links), (RecordKind::Retracted, vec![0]));
    ledger.close();
    assert_in_order(dir.path());
}

#[test]
fn a_retraction_that_fails_is_still_the_next_record() {
    let (dir, world) = (tempfile::tempdir().unwrap(), World::new(8));
    let (ledger, store) = world.with_faults(dir.path(), |_| {});
    let stuck = store.stick();
    store.order(Fault::Fail);
    let given_up = ledger.append(world.draft(RecordKind::Decision));
    stuck.wait_until_stuck();
    assert_eq!(given_up.give_up(), Err(NotRecorded::Deadline));
    stuck.let_go();
    assert_eq!(ledger.append(world.draft(RecordKind::Outcome)).wait().unwrap().seq(), 2);
    assert_eq!(ledger.reader().envelope(1).unwrap().kind, RecordKind::Retracted);
    ledger.close();
    assert_in_order(dir.path());
}

#[test]
fn a_full_queue_refuses_at_the_deadline_and_lets_in_when_there_is_room() {
    let (dir, world) = (tempfile::tempdir().unwrap(), World::new(9));
    let (ledger, store) = world.with_faults(dir.path(), |options| options.queue_drafts = 2);
    let ledger = Arc::new(ledger);
    let stuck = store.stick();
    let first = ledger.append(world.draft(RecordKind::Outcome));
    stuck.wait_until_stuck();
    let queued: Vec<_> = (0..2).map(|_| ledger.append(world.draft(RecordKind::Outcome))).collect();
    let mut draft = world.draft(RecordKind::Outcome);
    draft.deadline = past();
    let refused = ledger.append(draft);
    assert_eq!(refused.refusal(), Some(&NotRecorded::Full));
    let (blocked_ledger, draft) = (Arc::clone(&ledger), world.draft(RecordKind::Outcome));
    let blocked = std::thread::spawn(move || blocked_ledger.append(draft).wait());
    stuck.let_go();
    assert_eq!(blocked.join().unwrap().unwrap().seq(), 3);
    assert!(first.wait().is_ok() && queued.into_iter().all(|pending| pending.wait().is_ok()));
}

#[test]
fn bytes_are_bounded_too_but_one_large_draft_goes_through() {
    let (dir, world) = (tempfile::tempdir().unwrap(), World::new(10));
    let (ledger, store) = world.with_faults(dir.path(), |options| options.queue_bytes = 10_000);
    let large =
        |deadline| Draft { body: Some(vec![0; 100_000]), deadline, ..world.draft(RecordKind::Outcome) };
    ledger.append(large(None)).wait().unwrap();
    let stuck = store.stick();
    let first = ledger.append(large(None));
    stuck.wait_until_stuck();
    let second = ledger.append(large(None));
    assert_eq!(ledger.append(large(past())).refusal(), Some(&NotRecorded::Full));
    stuck.let_go();
    assert!(first.wait().is_ok() && second.wait().is_ok());
}

#[test]
fn answers_without_a_record_become_one_gap_record() {
    let (dir, world) = (tempfile::tempdir().unwrap(), World::new(11));
    let (ledger, store) = world.with_faults(dir.path(), |_| {});
    let stuck = store.stick();
    store.order(Fault::Fail);
    let first = ledger.append(world.draft(RecordKind::Outcome));
    stuck.wait_until_stuck();
    let failed = ledger.append(world.draft(RecordKind::Outcome));
    ledger.note_unrecorded();
    ledger.note_unrecorded();
    stuck.let_go();
    assert!(first.wait().is_ok());
    assert!(matches!(failed.wait(), Err(NotRecorded::Failed(_))));
    ledger.note_unrecorded();
    ledger.close();
    let reader = proctor_ledger::Reader::open(dir.path()).unwrap();
    let gap = reader.envelope(1).unwrap();
    assert_eq!((gap.kind, gap.code.as_str()), (RecordKind::Gap, "3"));
    assert_eq!(reader.size().unwrap(), 2);
    assert_in_order(dir.path());
}

#[test]
fn waiting_with_a_deadline_returns_as_soon_as_the_receipt_is_there() {
    let (dir, world) = (tempfile::tempdir().unwrap(), World::new(12));
    let ledger = world.open(dir.path());
    let far = Instant::now() + Duration::from_secs(3600);
    assert_eq!(ledger.append(world.draft(RecordKind::Outcome)).wait_until(far).unwrap().seq(), 0);
    let mut draft = world.draft(RecordKind::Outcome);
    draft.deadline = Some(far);
    assert_eq!(ledger.append(draft).wait().unwrap().seq(), 1);
}

#[test]
fn what_stands_together_is_committed_together_or_not_at_all() {
    let (dir, world) = (tempfile::tempdir().unwrap(), World::new(21));
    let (ledger, store) = world.with_faults(dir.path(), |options| options.batch_records = 1);
    let behind = || vec![world.coded("bob", "1"), world.draft(RecordKind::Alarm)];
    store.order(Fault::Fail);
    let failed = ledger.append_together(0, world.coded("alice", "0"), behind());
    assert!(matches!(failed.wait(), Err(NotRecorded::Failed(_))));
    assert_eq!(ledger.reader().size().unwrap(), 0);
    let mut linked = behind();
    linked[1].envelope.links = vec![0];
    let generation = ledger.generation();
    let pending = ledger.append_together(generation, world.coded("alice", "0"), linked);
    assert_eq!(pending.wait().map(|receipt| (receipt.seq(), receipt.size())), Ok((0, 3)));
    assert_eq!(ledger.reader().state("code", "bob").unwrap(), Some((b"1".to_vec(), 1)));
    let mut later = behind();
    later[1].envelope.links = vec![5];
    let refused = ledger.append_together(generation, world.coded("alice", "2"), later).wait();
    assert!(matches!(refused, Err(NotRecorded::Failed(reason)) if reason.contains("record 5")));
    assert_eq!(ledger.reader().size().unwrap(), 3);
    ledger.close();
    assert_in_order(dir.path());
}

#[test]
fn a_key_that_is_taken_behind_a_record_refuses_all_of_them() {
    let (dir, world) = (tempfile::tempdir().unwrap(), World::new(22));
    let (ledger, _) = world.with_faults(dir.path(), |_| {});
    ledger.append(world.once("alice:1")).wait().unwrap();
    let behind = vec![world.once("alice:1")];
    let refused = ledger.append_together(0, world.coded("alice", "0"), behind).wait();
    assert_eq!(refused, Err(NotRecorded::Stale));
    assert_eq!((ledger.reader().size().unwrap(), ledger.generation()), (1, 1));
    ledger.close();
    assert_in_order(dir.path());
}

#[test]
fn a_record_whose_caller_left_it_stands() {
    let (dir, world) = (tempfile::tempdir().unwrap(), World::new(23));
    let (ledger, store) = world.with_faults(dir.path(), |_| {});
    let stuck = store.stick();
    let left = ledger.append(world.coded("alice", "0"));
    stuck.wait_until_stuck();
    let builds_on_it = ledger.append(world.coded("alice", "1"));
    assert_eq!(left.wait_or_leave(Instant::now()), Err(NotRecorded::Unknown));
    stuck.let_go();
    assert_eq!(builds_on_it.wait().map(|receipt| receipt.seq()), Ok(1));
    assert_eq!((ledger.reader().size().unwrap(), ledger.generation()), (2, 0));
    let stuck = store.stick();
    let left = ledger.append(world.coded("alice", "2"));
    stuck.wait_until_stuck();
    assert_eq!(left.leave(), Err(NotRecorded::Unknown));
    stuck.let_go();
    ledger.close();
    assert_in_order(dir.path());
}

#[test]
fn records_appended_without_a_wake_are_committed_inline_or_by_the_writer() {
    for durability in [Durability::Process, Durability::Power] {
        let (dir, world) = (tempfile::tempdir().unwrap(), World::new(24));
        let (ledger, store) = world.with_faults(dir.path(), |options| options.durability = durability);
        for seq in 0..20 {
            let pending = ledger.append_without_wake(0, world.coded("alice", "x"), Vec::new());
            ledger.commit_inline();
            assert_eq!(pending.wait().map(|receipt| receipt.seq()), Ok(seq));
        }
        // Who finds the writer at work does not wait for it, and the writer sees what was put there meanwhile.
        let stuck = store.stick();
        let first = ledger.append(world.coded("alice", "first"));
        stuck.wait_until_stuck();
        let second = ledger.append_without_wake(0, world.coded("alice", "second"), Vec::new());
        ledger.commit_inline();
        stuck.let_go();
        assert_eq!(first.wait().map(|receipt| receipt.seq()), Ok(20));
        assert_eq!(second.wait().map(|receipt| receipt.seq()), Ok(21));
        ledger.close();
        assert_in_order(dir.path());
    }
}
