//! Finding records, following them, and reading in pages.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use proctor_core::id::{ApprovalId, SessionId};
use proctor_core::random::SeededRandomness;
use proctor_core::record::RecordKind;
use proctor_core::time::{Clock, Timestamp};
use proctor_ledger::merkle::{HashReader, consistency_proof, leaf_hash, root_of, verify_consistency};
use proctor_ledger::reader::{BodyState, Filter, Order, PageBound, Record};
use proctor_ledger::store::{Field, SqliteReader, StoreReader};
use proctor_ledger::{Ledger, ReadError, Reader, StateRow};

use super::support::World;

fn choose<'a, T>(random: &SeededRandomness, of: &'a [T]) -> &'a T {
    &of[usize::try_from(random.below(of.len() as u64)).unwrap()]
}

struct Sample {
    sessions: Vec<SessionId>,
    approvals: Vec<ApprovalId>,
    all: Vec<Record>,
}

const PRINCIPALS: [&str; 4] = ["", "alice", "bob", "caröl"];
const AGENTS: [&str; 3] = ["", "claude", "alice"];
const KINDS: [RecordKind; 3] = [RecordKind::Decision, RecordKind::Outcome, RecordKind::Approval];

fn populate(ledger: &Ledger, world: &World, count: u64) -> Sample {
    let random = &world.randomness;
    let sessions: Vec<SessionId> = (0..6).map(|_| world.session()).collect();
    let approvals: Vec<ApprovalId> =
        (0..4).map(|_| ApprovalId::new(world.clock.now(), random.as_ref())).collect();
    for _ in 0..count {
        let mut draft = world.draft(*choose(random, &KINDS));
        // Times are only nearly in order.
        let later = i64::try_from(random.below(100_000)).unwrap();
        draft.envelope.time = draft.envelope.time.plus_micros(later);
        draft.envelope.session = (random.below(3) > 0).then(|| *choose(random, &sessions));
        draft.envelope.approval = (random.below(20) == 0).then(|| *choose(random, &approvals));
        draft.envelope.principal = (*choose(random, &PRINCIPALS)).to_owned();
        draft.envelope.agent = (*choose(random, &AGENTS)).to_owned();
        drop(ledger.append(draft));
        world.clock.advance(100);
    }
    ledger.checkpoint().unwrap();
    let all = ledger.reader().records(Filter::default(), Order::Ascending).collect::<Result<_, _>>().unwrap();
    Sample { sessions, approvals, all }
}

fn fits(filter: &Filter, record: &Record) -> bool {
    let envelope = &record.envelope;
    filter.seqs.as_ref().is_none_or(|seqs| seqs.contains(&record.seq))
        && filter.session.is_none_or(|session| envelope.session == Some(session))
        && filter.principal.as_ref().is_none_or(|principal| envelope.principal == *principal)
        && filter.agent.as_ref().is_none_or(|agent| envelope.agent == *agent)
        && (filter.kinds.is_empty() || filter.kinds.contains(&envelope.kind))
        && filter.approval.is_none_or(|approval| envelope.approval == Some(approval))
        && filter.since.is_none_or(|since| envelope.time >= since)
        && filter.until.is_none_or(|until| envelope.time < until)
}

#[test]
fn filters_find_what_a_plain_search_finds() {
    assert!(searches_that_find(3000) > 150);
}

#[test]
fn filters_find_the_same_before_and_after_a_block_is_full() {
    for size in [1, 255, 256, 257, 511, 512, 513] {
        searches_that_find(size);
    }
}

/// Compares searches in a ledger of this size with plain ones; how many found something.
fn searches_that_find(size: u64) -> usize {
    let (dir, world) = (tempfile::tempdir().unwrap(), World::new(20));
    let ledger = world.open(dir.path());
    let sample = populate(&ledger, &world, size);
    assert!(sample.all.iter().map(|record| record.seq).eq(0..size));
    ledger.close();
    let reader = Reader::open(dir.path()).unwrap();
    let random = SeededRandomness::new(99);
    let start = sample.all[0].envelope.time;
    let mut found_any = 0;
    for round in 0..400 {
        let some = |chance: u64| random.below(chance) == 0;
        let moment = || start.plus_micros(i64::try_from(random.below(size * 110 + 120_000)).unwrap());
        let mut filter = Filter::default();
        if some(3) {
            filter.seqs = Some(random.below(size)..random.below(size + size / 3 + 1));
        }
        if some(3) {
            filter.session = Some(*choose(&random, &sample.sessions));
        }
        if some(3) {
            filter.principal = Some((*choose(&random, &PRINCIPALS[1..])).to_owned());
        }
        if some(4) {
            filter.agent = Some((*choose(&random, &["claude", "alice", "nobody"])).to_owned());
        }
        if some(3) {
            filter.kinds = KINDS[..usize::try_from(1 + random.below(3)).unwrap()].to_vec();
        }
        if some(6) {
            filter.approval = Some(*choose(&random, &sample.approvals));
        }
        if some(3) {
            filter.since = Some(moment());
        }
        if some(3) {
            filter.until = Some(moment());
        }
        let mut expected: Vec<&Record> = sample.all.iter().filter(|record| fits(&filter, record)).collect();
        let order = if round % 2 == 0 { Order::Ascending } else { Order::Descending };
        if order == Order::Descending {
            expected.reverse();
        }
        let bound = PageBound { records: usize::try_from(1 + random.below(300)).unwrap(), bytes: 1 << 20 };
        let found: Vec<Record> =
            reader.records_in_pages(filter.clone(), order, bound).collect::<Result<_, _>>().unwrap();
        assert!(found.iter().eq(expected.iter().copied()), "{filter:?} {order:?} {bound:?}");
        found_any += usize::from(!found.is_empty());
    }
    found_any
}

#[test]
fn single_records_are_found() {
    let (dir, world) = (tempfile::tempdir().unwrap(), World::new(21));
    let ledger = world.open(dir.path());
    let sample = populate(&ledger, &world, 700);
    let reader = ledger.reader();
    for record in sample.all.iter().step_by(37) {
        assert_eq!(reader.by_id(&record.envelope.id).unwrap(), Some(record.seq));
        assert_eq!(reader.leaf(record.seq).unwrap(), record.leaf);
    }
    let unknown = world.envelope(RecordKind::Outcome).id;
    assert_eq!(reader.by_id(&unknown).unwrap(), None);
    assert_eq!(reader.leaf(700), Err(ReadError::NoRecord { seq: 700, size: 700 }));
    assert!(matches!(reader.body(u64::MAX), Err(ReadError::NoRecord { .. })));
    assert_eq!(reader.body(0).unwrap(), BodyState::None);
    assert_eq!(reader.values(Field::Principal, "", 10).unwrap(), ["alice", "bob", "caröl"]);
    assert_eq!(reader.values(Field::Agent, "al", 10).unwrap(), ["alice"]);
    let session = sample.sessions[3].to_string();
    assert_eq!(reader.values(Field::Session, &session[..], 10).unwrap(), [&*session]);
    assert_eq!(reader.values(Field::Session, "", 2).unwrap().len(), 2);
    let mut seqs = Vec::new();
    assert_eq!(reader.fold(690, |seq, _| seqs.push(seq)).unwrap(), 700);
    assert!(seqs.into_iter().eq(690..700));
}

#[test]
fn proofs_are_made_from_stored_hashes_of_any_size() {
    let (dir, world) = (tempfile::tempdir().unwrap(), World::new(22));
    let ledger = world.open(dir.path());
    let sample = populate(&ledger, &world, 1000);
    let reader = ledger.reader();
    let hashes: Vec<_> = sample.all.iter().map(|record| leaf_hash(&record.leaf)).collect();
    for (old, new) in [(1, 1000), (255, 256), (256, 257), (300, 999), (512, 1000), (768, 770)] {
        let roots = (root_of(hashes[..old].iter().copied()), root_of(hashes[..new].iter().copied()));
        let (old, new) = (old as u64, new as u64);
        let proof = consistency_proof(old, new, &reader.tree(new)).unwrap();
        verify_consistency(old, &roots.0, new, &roots.1, &proof).unwrap();
    }
    assert!(reader.tree(1000).hash(8, 3).is_err(), "that subtree is not complete");
}

#[test]
fn a_long_session_is_read_in_small_pages() {
    let (dir, world) = (tempfile::tempdir().unwrap(), World::new(23));
    let ledger = world.open(dir.path());
    let (mine, other) = (world.session(), world.session());
    for n in 0..50_000 {
        let mut draft = world.draft(RecordKind::Observation);
        draft.envelope.session = Some(if n % 5 == 0 { other } else { mine });
        draft.envelope.code = "x".repeat(if n % 1000 == 0 { 20_000 } else { 10 });
        drop(ledger.append(draft));
    }
    ledger.close();
    let store = SqliteReader::open(dir.path()).unwrap();
    let filter = Filter { session: Some(mine), ..Filter::default() };
    for order in [Order::Ascending, Order::Descending] {
        let mut from = if order == Order::Ascending { 0 } else { u64::MAX };
        let mut total = 0;
        loop {
            let bound = PageBound { records: 256, bytes: 100_000 };
            let page = store.page(&filter, from, order, bound).unwrap();
            let bytes: usize = page.records.iter().map(|record| record.leaf.len()).sum();
            assert!(page.records.len() <= 256 && bytes < 100_000 + 65_536);
            total += page.records.len();
            let Some(next) = page.next else { break };
            from = next;
        }
        assert_eq!(total, 40_000);
    }
    let reader = Reader::open(dir.path()).unwrap();
    assert_eq!(reader.records(filter, Order::Ascending).count(), 40_000);
}

#[test]
fn state_rows_are_read_in_order_and_the_last_value_of_a_batch_holds() {
    let (dir, world) = (tempfile::tempdir().unwrap(), World::new(24));
    let ledger = world.open(dir.path());
    let row = |key: String, value: Option<&str>| StateRow {
        fold: "f",
        key,
        value: value.map(|v| v.as_bytes().to_vec()),
    };
    let mut pending = Vec::new();
    for n in 0..1000 {
        let mut draft = world.draft(RecordKind::Outcome);
        draft.rows = vec![
            row(format!("key-{n:04}"), Some("first")),
            row("shared".to_owned(), Some(&n.to_string())),
            row(String::new(), (n % 2 == 1).then_some("odd")),
        ];
        draft.rows.push(row(format!("key-{:04}", n / 2), (n % 4 != 0).then_some("second")));
        pending.push(ledger.append(draft));
    }
    pending.into_iter().for_each(|pending| assert!(pending.wait().is_ok()));
    let mut rows = Vec::new();
    ledger.reader().state_rows("f", |row| rows.push(row)).unwrap();
    assert!(rows.is_sorted_by(|one, other| one.key < other.key));
    let value = |key: &str| {
        rows.iter()
            .find(|row| row.key == key)
            .map(|row| (String::from_utf8(row.value.clone()).unwrap(), row.seq))
    };
    assert_eq!(value(""), Some(("odd".to_owned(), 999)));
    assert_eq!(value("shared"), Some(("999".to_owned(), 999)));
    assert_eq!(value("key-0999"), Some(("first".to_owned(), 999)));
    assert_eq!(value("key-0400"), Some(("second".to_owned(), 801)));
    let mut none = 0;
    ledger.reader().state_rows("g", |_| none += 1).unwrap();
    assert_eq!(none, 0);
}

#[test]
fn a_follower_in_the_owners_process_is_woken_by_new_records() {
    let (dir, world) = (tempfile::tempdir().unwrap(), World::new(25));
    let ledger = world.open(dir.path());
    let append = |ledger: &Ledger, kind| ledger.append(world.draft(kind)).wait().unwrap();
    append(&ledger, RecordKind::Outcome);
    append(&ledger, RecordKind::Alarm);
    let filter = Filter { kinds: vec![RecordKind::Alarm], ..Filter::default() };
    let mut follow = ledger.reader().follow(filter, || Some(Duration::from_secs(3600)));
    let seqs = |records: Vec<Record>| records.into_iter().map(|record| record.seq).collect::<Vec<_>>();
    assert_eq!(follow.next_page().unwrap().map(seqs), Some(vec![1]));
    std::thread::scope(|scope| {
        let follower = scope.spawn(move || {
            let page = follow.next_page();
            (page, follow.next_page())
        });
        append(&ledger, RecordKind::Outcome);
        append(&ledger, RecordKind::Alarm);
        // The end of the writer ends the following, too.
        ledger.close();
        let (page, end) = follower.join().unwrap();
        assert_eq!(page.unwrap().map(seqs), Some(vec![3]));
        assert!(end.unwrap().is_none());
    });
}

#[test]
fn a_follower_in_another_process_looks_again_when_told() {
    let (dir, world) = (tempfile::tempdir().unwrap(), World::new(26));
    let ledger = Arc::new(world.open(dir.path()));
    ledger.append(world.draft(RecordKind::Outcome)).wait().unwrap();
    let reader = Reader::open(dir.path()).unwrap();
    let asked = Arc::new(Mutex::new(0));
    let (appending, times) = (Arc::clone(&ledger), Arc::clone(&asked));
    let mut follow = reader.follow(Filter::default(), move || {
        let mut times = times.lock().unwrap();
        *times += 1;
        if *times < 3 {
            appending.append(world.draft(RecordKind::Alarm)).wait().unwrap();
        }
        (*times < 4).then_some(Duration::ZERO)
    });
    for seq in 0..3 {
        let page = follow.next_page().unwrap().unwrap();
        assert_eq!(page.iter().map(|record| record.seq).collect::<Vec<_>>(), [seq]);
    }
    assert!(follow.next_page().unwrap().is_none());
    assert_eq!(*asked.lock().unwrap(), 4);
}

#[test]
fn a_reader_needs_a_ledger() {
    let dir = tempfile::tempdir().unwrap();
    assert!(matches!(Reader::open(dir.path()), Err(ReadError::NotThere { .. })));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn times_before_and_after_everything_are_bounds_like_others() {
    let (dir, world) = (tempfile::tempdir().unwrap(), World::new(27));
    let ledger = world.open(dir.path());
    let sample = populate(&ledger, &world, 300);
    let count = |since: i64, until: i64| {
        let filter = Filter {
            since: Some(Timestamp::from_micros(since)),
            until: Some(Timestamp::from_micros(until)),
            ..Filter::default()
        };
        ledger.reader().records(filter, Order::Ascending).count()
    };
    assert_eq!(count(i64::MIN, i64::MAX), sample.all.len());
    assert_eq!(count(i64::MIN, 0), 0);
    assert_eq!(count(i64::MAX, i64::MAX), 0);
    assert_eq!(count(i64::MAX, i64::MIN), 0);
}
