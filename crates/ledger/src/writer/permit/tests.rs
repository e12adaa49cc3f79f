use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::task::{Wake as TaskWake, Waker};
use std::time::Duration;

use proctor_core::id::RecordId;
use proctor_core::random::SeededRandomness;
use proctor_core::record::{Envelope, RecordKind};
use proctor_core::time::{ManualClock, Timestamp};

use super::super::Options;
use super::super::entry::{Entry, PreparedRecord};
use super::super::queue::Wake;
use super::*;
use crate::keys::{Algorithm, SecretKey};

fn queue(drafts: usize, bytes: usize) -> Arc<Queue> {
    let key = SecretKey::from_seed("example.com/ledger", Algorithm::Ed25519, &[7; 32]).unwrap();
    let clock = Arc::new(ManualClock::new(Timestamp::from_micros(0)));
    let mut options = Options::new(key, clock, Arc::new(SeededRandomness::new(1)));
    (options.queue_drafts, options.queue_bytes) = (drafts, bytes);
    Arc::new(Queue::new(&options))
}

fn entry(leaf: usize) -> Box<Entry> {
    let time = Timestamp::from_micros(0);
    let id = RecordId::new(time, &SeededRandomness::new(1));
    Box::new(Entry {
        record: PreparedRecord {
            envelope: Envelope::new(id, time, RecordKind::Observation),
            leaf: vec![0; leaf],
            hash: [0; 32],
            body: None,
            rows: Vec::new(),
        },
        trailing: Vec::new(),
        erase: None,
        deadline: None,
        seq: None,
        stateful: false,
        generation: 0,
        slot: Arc::new(Slot::new()),
    })
}

fn one(queue: &Arc<Queue>) -> Reserve {
    Reserve::new(Arc::clone(queue), Capacity { drafts: 1, bytes: 0 })
}

/// Counts how often a task was woken.
#[derive(Default)]
struct Count(AtomicUsize);

impl TaskWake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// A future with the waker that it was polled with.
struct Task {
    future: Pin<Box<Reserve>>,
    woken: Arc<Count>,
}

impl Task {
    fn new(queue: &Arc<Queue>) -> Task {
        Task { future: Box::pin(one(queue)), woken: Arc::default() }
    }

    fn poll(&mut self) -> Poll<Result<Permit, ReserveError>> {
        let waker = Waker::from(Arc::clone(&self.woken));
        self.future.as_mut().poll(&mut Context::from_waker(&waker))
    }

    fn woken(&self) -> usize {
        self.woken.0.load(Ordering::SeqCst)
    }
}

fn granted(task: &mut Task) -> Permit {
    match task.poll() {
        Poll::Ready(Ok(permit)) => permit,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_reserved_counts_against_the_bound_until_it_is_used_or_dropped() {
    let queue = queue(2, 1 << 20);
    let mut permit = queue.try_reserve(2, 1024).unwrap();
    assert_eq!(queue.try_reserve(1, 0).unwrap_err(), ReserveError::Full);
    assert!(!queue.has_room());
    queue.push_reserved(&mut permit, entry(10), None, Wake::Writer).unwrap();
    assert_eq!(permit.drafts(), 1);
    assert_eq!(queue.try_reserve(1, 0).unwrap_err(), ReserveError::Full);
    // One of two places is used; the other one is given back.
    drop(permit);
    let again = queue.try_reserve(1, 0).unwrap();
    assert_eq!(queue.try_reserve(1, 0).unwrap_err(), ReserveError::Full);
    drop(again);
    assert_eq!(queue.take().items.len(), 1);
    drop(queue.try_reserve(2, 0).unwrap());
}

#[test]
fn bytes_are_reserved_too_and_an_underestimate_is_let_in() {
    let queue = queue(100, 10_000);
    let mut permit = queue.try_reserve(1, 4_000).unwrap();
    assert_eq!(queue.try_reserve(1, 8_000).unwrap_err(), ReserveError::Full);
    queue.push_reserved(&mut permit, entry(9_000), None, Wake::Writer).unwrap();
    drop(permit);
    assert_eq!(queue.try_reserve(1, 1_000).unwrap_err(), ReserveError::Full);
    assert_eq!(queue.take().items.len(), 1);
    // Larger than the whole queue: alone.
    let alone = queue.try_reserve(1, 20_000).unwrap();
    assert_eq!(queue.try_reserve(1, 0).unwrap_err(), ReserveError::Full);
    drop(alone);
}

#[test]
fn a_waiter_is_woken_once_its_permit_is_there_and_never_lost() {
    let queue = queue(1, 1 << 20);
    queue.push(entry(1), None, Wake::Writer).unwrap();
    let mut task = Task::new(&queue);
    assert!(task.poll().is_pending());
    assert_eq!(task.woken(), 0);
    queue.take();
    assert_eq!(task.woken(), 1);
    // The permit was handed over: nobody else can have it, however late the task is.
    assert_eq!(queue.try_reserve(1, 0).unwrap_err(), ReserveError::Full);
    let permit = granted(&mut task);
    assert_eq!(permit.drafts(), 1);
    drop(permit);
    drop(queue.try_reserve(1, 0).unwrap());
}

#[test]
fn waiters_are_served_in_order_and_nobody_overtakes() {
    let queue = queue(1, 1 << 20);
    let held = queue.try_reserve(1, 0).unwrap();
    let mut tasks: Vec<Task> = (0..3).map(|_| Task::new(&queue)).collect();
    assert!(tasks.iter_mut().all(|task| task.poll().is_pending()));
    drop(held);
    for turn in 0..3 {
        let woken: Vec<usize> = tasks.iter().map(Task::woken).collect();
        let expected: Vec<usize> = (0..3).map(|at| usize::from(at <= turn)).collect();
        assert_eq!(woken, expected);
        assert_eq!(queue.try_reserve(1, 0).unwrap_err(), ReserveError::Full);
        drop(granted(&mut tasks[turn]));
    }
    // A large request at the front is not passed by a small one behind it.
    let held = queue.try_reserve(1, 0).unwrap();
    let mut large = Reserve::new(Arc::clone(&queue), Capacity { drafts: 1, bytes: 2 << 20 });
    let mut context = Context::from_waker(Waker::noop());
    assert!(Pin::new(&mut large).poll(&mut context).is_pending());
    let mut small = Task::new(&queue);
    assert!(small.poll().is_pending());
    drop(held);
    assert_eq!(small.woken(), 0);
    assert!(Pin::new(&mut large).poll(&mut context).is_ready());
    assert_eq!(small.woken(), 1);
}

#[test]
fn a_waiter_that_leaves_passes_its_turn_on() {
    let queue = queue(1, 1 << 20);
    let held = queue.try_reserve(1, 0).unwrap();
    let (mut first, mut second, mut third) = (Task::new(&queue), Task::new(&queue), Task::new(&queue));
    assert!(first.poll().is_pending() && second.poll().is_pending() && third.poll().is_pending());
    // Before its turn.
    drop(second);
    drop(held);
    assert_eq!((first.woken(), third.woken()), (1, 0));
    // After its permit was handed over, but before it took it.
    drop(first);
    assert_eq!(third.woken(), 1);
    drop(granted(&mut third));
    drop(queue.try_reserve(1, 0).unwrap());
}

#[test]
fn closing_wakes_everybody_with_an_error() {
    let queue = queue(1, 1 << 20);
    let mut held = queue.try_reserve(1, 0).unwrap();
    let mut tasks: Vec<Task> = (0..3).map(|_| Task::new(&queue)).collect();
    assert!(tasks.iter_mut().all(|task| task.poll().is_pending()));
    std::thread::scope(|scope| {
        let (started, starts) = mpsc::sync_channel(2);
        let blocked: Vec<_> = (0..2)
            .map(|_| {
                let (queue, started) = (&queue, started.clone());
                scope.spawn(move || {
                    let Reservation::Queued(waiter) = queue.reserve_or_join(1, 0).unwrap() else {
                        panic!("the queue is full")
                    };
                    started.send(()).unwrap();
                    waiter.wait(queue, None).map(drop)
                })
            })
            .collect();
        starts.iter().take(2).for_each(drop);
        queue.close();
        for thread in blocked {
            assert_eq!(thread.join().unwrap(), Err(ReserveError::Closed));
        }
    });
    for task in &mut tasks {
        assert_eq!(task.woken(), 1);
        assert!(matches!(task.poll(), Poll::Ready(Err(ReserveError::Closed))));
    }
    assert_eq!(queue.try_reserve(1, 0).unwrap_err(), ReserveError::Closed);
    let refused = queue.push_reserved(&mut held, entry(1), None, Wake::Writer);
    assert_eq!(refused, Err(NotRecorded::Closed));
}

#[test]
fn a_blocking_caller_waits_until_its_deadline_and_leaves_the_line() {
    let queue = queue(1, 1 << 20);
    let held = queue.try_reserve(1, 0).unwrap();
    let Reservation::Queued(waiter) = queue.reserve_or_join(1, 0).unwrap() else {
        panic!("the queue is full")
    };
    let deadline = Some(Instant::now() + Duration::from_millis(5));
    assert_eq!(waiter.wait(&queue, deadline).map(drop), Err(ReserveError::Full));
    drop(held);
    drop(queue.try_reserve(1, 0).unwrap());
}

/// Concurrent threads, tasks and a writer: each draft is queued exactly once, within the bound.
#[test]
fn everybody_is_served_under_contention() {
    const THREADS: usize = 8;
    const EACH: usize = 500;
    let queue = queue(3, 1 << 20);
    let mut taken = 0;
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let queue = &queue;
            scope.spawn(move || {
                for round in 0..EACH {
                    if (thread + round) % 2 == 0 {
                        queue.push(entry(1), None, Wake::Writer).unwrap();
                        continue;
                    }
                    let mut permit = match queue.reserve_or_join(1, 0).unwrap() {
                        Reservation::Granted(permit) => permit,
                        Reservation::Queued(waiter) => waiter.wait(queue, None).unwrap(),
                    };
                    // Every seventh one changes its mind, and then appends on a permit of its own.
                    if round % 7 == 0 {
                        drop(permit);
                        queue.push(entry(1), None, Wake::Writer).unwrap();
                    } else {
                        queue.push_reserved(&mut permit, entry(1), None, Wake::Writer).unwrap();
                    }
                }
            });
        }
        while taken < THREADS * EACH {
            queue.wait();
            let items = queue.take().items.len();
            assert!(items <= 3);
            taken += items;
        }
    });
    assert_eq!(queue.take().items.len(), 0);
    drop(queue.try_reserve(3, 0).unwrap());
}
