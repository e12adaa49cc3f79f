//! Appends that never block: refused when the queue is full, or on reserved capacity.

use std::sync::Arc;
use std::task::{Context, Poll, Wake as TaskWake, Waker};

use proctor_core::record::RecordKind;
use proctor_ledger::writer::{Capacity, ReserveError, Wake};
use proctor_ledger::{Draft, NotRecorded};

use super::support::{World, assert_in_order};

const ONE: Capacity = Capacity { drafts: 1, bytes: 1000 };

struct Unpark(std::thread::Thread);

impl TaskWake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = std::pin::pin!(future);
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

#[test]
fn a_full_queue_refuses_at_once_except_on_a_permit() {
    let (dir, world) = (tempfile::tempdir().unwrap(), World::new(1));
    let (ledger, store) = world.with_faults(dir.path(), |options| options.queue_drafts = 2);
    let stuck = store.stick();
    let first = ledger.append(world.draft(RecordKind::Outcome));
    stuck.wait_until_stuck();
    let mut permit = ledger.try_reserve(ONE).unwrap();
    let second = ledger.try_append(world.draft(RecordKind::Outcome)).unwrap();
    assert_eq!(ledger.try_append(world.draft(RecordKind::Outcome)).unwrap_err(), ReserveError::Full);
    assert_eq!(ledger.try_reserve(ONE).unwrap_err(), ReserveError::Full);
    let third =
        ledger.append_reserved(&mut permit, 0, world.coded("alice", "3"), Vec::new(), Wake::Writer).unwrap();
    assert_eq!(permit.drafts(), 0);
    let fourth = world.coded("alice", "4");
    let refused = ledger.append_reserved(&mut permit, 0, fourth, Vec::new(), Wake::Writer);
    assert_eq!(refused.unwrap_err(), ReserveError::Full);
    // A draft that cannot be a record is refused for that, and not for the queue.
    let large = Draft { body: Some(vec![0; 17 << 20]), ..world.draft(RecordKind::Outcome) };
    assert!(matches!(ledger.try_append(large).unwrap().refusal(), Some(NotRecorded::Failed(_))));
    stuck.let_go();
    let receipts = [first, second, third].map(|pending| pending.wait().unwrap().seq());
    assert_eq!(receipts, [0, 1, 2]);
    ledger.close();
    assert_in_order(dir.path());
}

#[test]
fn a_reservation_that_was_awaited_holds_until_the_append() {
    let (dir, world) = (tempfile::tempdir().unwrap(), World::new(2));
    let (ledger, store) = world.with_faults(dir.path(), |options| options.queue_drafts = 1);
    let stuck = store.stick();
    let first = ledger.append(world.draft(RecordKind::Outcome));
    stuck.wait_until_stuck();
    let second = ledger.append(world.draft(RecordKind::Outcome));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| block_on(ledger.reserve(ONE)).unwrap());
        let blocking = scope.spawn(|| ledger.append(world.draft(RecordKind::Outcome)).wait().unwrap());
        stuck.let_go();
        let mut permit = waiting.join().unwrap();
        let draft = world.coded("alice", "x");
        let pending =
            ledger.append_reserved(&mut permit, ledger.generation(), draft, Vec::new(), Wake::Deferred);
        ledger.commit_inline();
        assert!(pending.unwrap().wait().is_ok());
        drop(permit);
        assert!(blocking.join().is_ok());
    });
    assert!(first.wait().is_ok() && second.wait().is_ok());
    ledger.close();
    assert_in_order(dir.path());
}

#[test]
fn a_permit_does_not_outlive_a_generation_or_the_ledger() {
    let (dir, world) = (tempfile::tempdir().unwrap(), World::new(3));
    let ledger = world.open(dir.path());
    let mut permit = ledger.try_reserve(Capacity { drafts: 2, bytes: 1000 }).unwrap();
    let draft = || world.coded("alice", "x");
    let stale = ledger.append_reserved(&mut permit, 7, draft(), Vec::new(), Wake::Writer).unwrap();
    assert_eq!(stale.refusal(), Some(&NotRecorded::Stale));
    // A refused draft used nothing up.
    assert_eq!(permit.drafts(), 2);
    ledger.finish();
    let closed = ledger.append_reserved(&mut permit, 0, draft(), Vec::new(), Wake::Writer).unwrap();
    assert_eq!(closed.refusal(), Some(&NotRecorded::Closed));
    assert_eq!(ledger.try_append(draft()).unwrap_err(), ReserveError::Closed);
    assert_eq!(block_on(ledger.reserve(ONE)).unwrap_err(), ReserveError::Closed);
    assert_eq!(ledger.reserve_until(ONE, None).unwrap_err(), ReserveError::Closed);
}

#[test]
fn finishing_wakes_everybody_who_waits_for_capacity() {
    let (dir, world) = (tempfile::tempdir().unwrap(), World::new(4));
    let (ledger, store) = world.with_faults(dir.path(), |options| options.queue_drafts = 1);
    let stuck = store.stick();
    let first = ledger.append(world.draft(RecordKind::Outcome));
    stuck.wait_until_stuck();
    let held = ledger.try_reserve(ONE).unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| block_on(ledger.reserve(ONE)).map(drop));
        let blocking = scope.spawn(|| ledger.reserve_until(ONE, None).map(drop));
        let appending = scope.spawn(|| ledger.append(world.draft(RecordKind::Outcome)).wait());
        let finishing = scope.spawn(|| ledger.finish());
        // They are woken while the writer is stuck and the permit is held.
        assert_eq!(waiting.join().unwrap(), Err(ReserveError::Closed));
        assert_eq!(blocking.join().unwrap(), Err(ReserveError::Closed));
        assert_eq!(appending.join().unwrap(), Err(NotRecorded::Closed));
        stuck.let_go();
        finishing.join().unwrap();
    });
    drop(held);
    assert!(first.wait().is_ok());
}
