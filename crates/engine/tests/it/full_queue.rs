//! A full ledger queue: callers wait for capacity before the engine's lock, never under it.

use std::fs;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use proctor_core::action::Action;
use proctor_core::random::SeededRandomness;
use proctor_core::time::{ManualClock, Timestamp};
use proctor_engine::access::local_caller;
use proctor_engine::{Answer, Engine, Parts, Proposal, Wait, to_its_end};
use proctor_ledger::keys::{Algorithm, SecretKey};
use proctor_ledger::{Ledger, Options};
use proctor_policy::policy::{Policy, Source};
use proctor_test_forges::store::{FaultyStore, Stuck};

/// Longer than a test may take: a caller that waits this long under the lock is noticed.
const ANSWER: Duration = Duration::from_secs(600);
const PATIENCE: Duration = Duration::from_secs(60);
const BLOCKED: usize = 4;

fn engine(folder: &std::path::Path, answer: Duration) -> (Arc<Engine>, Arc<FaultyStore>) {
    let clock = Arc::new(ManualClock::new(Timestamp::from_micros(1_800_000_000_000_000)));
    let randomness = Arc::new(SeededRandomness::new(7));
    let options = || {
        let key = SecretKey::from_seed("example.com/ledger", Algorithm::Ed25519, &[7; 32]).unwrap();
        let mut options = Options::new(key, clock.clone(), randomness.clone());
        options.queue_drafts = 32;
        options
    };
    Ledger::open(folder, options()).unwrap().close();
    let store = Arc::new(FaultyStore::open(folder, options().durability).unwrap());
    let parts = Parts {
        ledger: Ledger::with_store(store.clone(), options()).unwrap(),
        policy: Policy::compile(vec![Source::document("policy.yaml", "version: \"1\"\ndefault: allow\n")])
            .unwrap(),
        secret: [1; 32],
        clock,
        randomness,
        resolver: None,
        answer,
    };
    (Arc::new(Engine::start(parts).unwrap()), store)
}

fn proposal(session: &str) -> Proposal {
    Proposal {
        action: Action { name: "deploy".to_owned(), ..Action::default() },
        caller: local_caller(1000, "ci", "", ""),
        agent: "ci".to_owned(),
        session: session.to_owned(),
    }
}

/// Queues decisions behind a commit that blocks until no reservation fits. Returns their threads.
fn fill(engine: &Arc<Engine>, stuck: &Stuck) -> Vec<thread::JoinHandle<Answer>> {
    let mut threads = vec![deciding(engine, "first")];
    stuck.wait_until_stuck();
    let mut number = 0;
    while let Ok(reservation) = engine.try_reserve() {
        let undelivered = engine.submit_until(reservation, proposal(&format!("fill-{number}")), engine.due());
        let own = Arc::clone(engine);
        threads.push(thread::spawn(move || own.deliver(undelivered)));
        number += 1;
        assert!(number < 1000, "the queue is never full");
    }
    threads
}

fn deciding(engine: &Arc<Engine>, session: &str) -> thread::JoinHandle<Answer> {
    let (own, proposal) = (Arc::clone(engine), proposal(session));
    thread::spawn(move || own.deliver(own.submit(proposal)))
}

/// Waits until the thread that sent its id sleeps in the kernel.
fn until_asleep(thread_id: &str) {
    let started = Instant::now();
    loop {
        let stat = fs::read_to_string(format!("/proc/self/task/{thread_id}/stat")).unwrap_or_default();
        let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
        if state == Some('S') {
            return;
        }
        assert!(started.elapsed() < PATIENCE, "the thread never waited: {stat}");
        thread::yield_now();
    }
}

#[test]
fn a_full_queue_stalls_no_other_door() {
    let folder = tempfile::tempdir().unwrap();
    let (engine, store) = engine(folder.path(), ANSWER);
    let stuck = store.stick();
    let mut threads = fill(&engine, &stuck);

    // Threads, as the gate's, wait for capacity.
    for number in 0..BLOCKED {
        let (own, proposal) = (Arc::clone(&engine), proposal(&format!("thread-{number}")));
        let (sender, receiver) = sync_channel(1);
        threads.push(thread::spawn(move || {
            let own_id = fs::read_link("/proc/thread-self").unwrap();
            sender.send(own_id.file_name().unwrap().to_string_lossy().into_owned()).unwrap();
            own.deliver(own.submit(proposal))
        }));
        until_asleep(&receiver.recv_timeout(PATIENCE).unwrap());
    }

    // So do tasks, as those of the other doors; one with a short deadline gives up in time.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut waiting = Vec::new();
    {
        let _entered = runtime.enter();
        for _ in 0..BLOCKED {
            let own = Arc::clone(&engine);
            let mut reserving = Box::pin(async move {
                let deadline = own.due();
                let reservation = own.reserve(deadline).await.expect("the queue empties in time");
                (own, reservation)
            });
            assert!(matches!(
                reserving.as_mut().poll(&mut Context::from_waker(Waker::noop())),
                Poll::Pending
            ));
            waiting.push(reserving);
        }
    }
    let given_up = runtime.block_on(engine.reserve(Instant::now() + Duration::from_millis(20)));
    assert!(given_up.is_none(), "a full queue has no capacity");

    // Whoever only needs the lock has it.
    let (sender, receiver) = sync_channel(1);
    let own = Arc::clone(&engine);
    let looking = thread::spawn(move || {
        let state = own.look_at_approvals(|approvals, _| approvals.count());
        sender.send(state.unwrap()).unwrap();
    });
    assert_eq!(
        receiver.recv_timeout(PATIENCE),
        Ok(0),
        "somebody waits for the queue under the engine's lock"
    );
    looking.join().unwrap();

    // When the disk goes on, everybody is answered from the ledger, once.
    stuck.let_go();
    let mut sequences: Vec<u64> = Vec::new();
    for thread in threads {
        let answer = thread.join().unwrap();
        assert_eq!(answer.decision().effect.word(), "allow", "{:?}", answer.decision().reason);
        sequences.push(answer.record().unwrap().1);
    }
    for (number, reserving) in waiting.into_iter().enumerate() {
        let answer = runtime.block_on(async {
            let (own, reservation) = reserving.await;
            let undelivered = own.submit_until(reservation, proposal(&format!("task-{number}")), own.due());
            to_its_end(async move { own.deliver_waiting(undelivered, Wait::Task).await }).await
        });
        sequences.push(answer.record().unwrap().1);
    }
    let answered = sequences.len();
    sequences.sort_unstable();
    sequences.dedup();
    assert_eq!(sequences.len(), answered, "two answers have one record");
    engine.finish();
}

#[test]
fn a_caller_that_finds_no_capacity_in_time_is_denied() {
    let folder = tempfile::tempdir().unwrap();
    let (engine, store) = engine(folder.path(), Duration::from_millis(300));
    let stuck = store.stick();
    let threads = fill(&engine, &stuck);
    let late = deciding(&engine, "late").join().unwrap();
    assert_eq!(late.decision().effect.word(), "deny");
    assert!(late.record().is_none(), "a deny without a record");
    stuck.let_go();
    for thread in threads {
        thread.join().unwrap();
    }
    engine.finish();
}
