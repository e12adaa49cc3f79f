//! Tests of the store within one process.

mod caches;
mod files;
mod model;

use std::path::Path;
use std::sync::Arc;

use proctor_core::time::{ManualClock, Timestamp};
use rusqlite::Connection;

use super::*;

const DAY: i64 = 86_400_000_000;

struct Bench {
    dir: tempfile::TempDir,
    clock: Arc<ManualClock>,
}

impl Bench {
    fn new() -> Bench {
        let clock = Arc::new(ManualClock::new(Timestamp::from_micros(1_763_239_507_000_000)));
        Bench { dir: tempfile::tempdir().unwrap(), clock }
    }

    fn dir(&self) -> &Path {
        self.dir.path()
    }

    fn open(&self, options: StoreOptions) -> Store {
        self.try_open(options).unwrap()
    }

    fn try_open(&self, options: StoreOptions) -> Result<Store, StoreError> {
        Store::open(self.dir(), options, Arc::clone(&self.clock) as Arc<dyn Clock>)
    }

    /// The file, past the store.
    fn file(&self) -> Connection {
        let connection = Connection::open(schema::file_in(self.dir())).unwrap();
        connection.busy_timeout(Duration::from_secs(5)).unwrap();
        connection
    }

    fn count(&self, condition: &str) -> i64 {
        number(&self.file(), &format!("SELECT count(*) FROM assertion_history WHERE {condition}"))
    }
}

fn number(connection: &Connection, query: &str) -> i64 {
    connection.query_row(query, (), |row| row.get(0)).unwrap()
}

fn row(trace: &str, id: &str, key: &str, score: f64) -> Row {
    Row {
        trace_id: trace.to_owned(),
        assertion_id: id.to_owned(),
        kind: "content".to_owned(),
        key: key.to_owned(),
        score,
        status: "pass".to_owned(),
    }
}

fn plugin(trace: &str, id: &str, score: f64, status: &str) -> Row {
    Row { kind: "plugin".to_owned(), status: status.to_owned(), ..row(trace, id, "", score) }
}

#[test]
fn what_was_recorded_is_seen_at_once() {
    let bench = Bench::new();
    let store = bench.open(StoreOptions::default());
    store.record(vec![row("t", "a", "k", 0.25), row("t", "b", "k", 0.5)]);
    store.record(vec![row("t", "a", "k", 0.75)]);
    assert_eq!(store.scores("k", 50).unwrap(), [0.75, 0.5, 0.25]);
    assert_eq!(store.scores("k", 2).unwrap(), [0.75, 0.5]);
    assert_eq!(store.scores("other", 50).unwrap(), [0.0; 0]);
    assert_eq!(store.drift("a", 50).unwrap(), Drift { mean: 0.5, stddev: 0.25, count: 2, latest: 0.75 });
    assert_eq!(store.drift("a", 1).unwrap(), Drift { mean: 0.75, stddev: 0.0, count: 1, latest: 0.75 });
    assert_eq!(store.drift("none", 50).unwrap(), Drift { mean: 0.0, stddev: 0.0, count: 0, latest: 0.0 });
    assert_eq!(store.dropped(), 0);
}

#[test]
fn the_newest_score_is_the_last_recorded_also_when_the_clock_is_set_back() {
    let bench = Bench::new();
    let store = bench.open(StoreOptions::default());
    store.record(vec![row("t", "a", "k", 0.1)]);
    bench.clock.advance(-DAY);
    store.record(vec![row("t", "a", "k", 0.2)]);
    assert_eq!(store.drift("a", 1).unwrap(), Drift { mean: 0.2, stddev: 0.0, count: 1, latest: 0.2 });
    assert_eq!(store.scores("k", 1).unwrap(), [0.2]);
}

#[test]
fn statistics_of_enormous_scores_are_numbers() {
    for count in 1..300 {
        let drift = history::drift_of(&vec![0.1; count]);
        assert_eq!((drift.mean, drift.stddev), (0.1, 0.0), "{count} equal scores");
    }
    let drift = history::drift_of(&[f64::MAX, f64::MAX, f64::MIN]);
    assert!(drift.mean.is_finite() && drift.stddev.is_finite());
}

#[test]
fn a_score_that_is_no_number_is_counted_and_harms_no_other() {
    let bench = Bench::new();
    let store = bench.open(StoreOptions::default());
    store.record(vec![
        row("t", "a", "k", f64::NAN),
        row("t", "a", "k", 0.5),
        row("t", "a", "k", f64::INFINITY),
    ]);
    store.replace_plugin(plugin("t", "p", f64::NAN, "pass"));
    assert_eq!(store.scores("k", 50).unwrap(), [0.5]);
    assert_eq!(store.dropped(), 3);
}

#[test]
fn a_plugins_result_replaces_its_newest_row_or_is_added() {
    let bench = Bench::new();
    let store = bench.open(StoreOptions::default());
    store.record(vec![plugin("t1", "p", 0.0, "hard_fail"), row("t1", "p", "", 0.3)]);
    store.record(vec![plugin("t1", "p", 0.1, "hard_fail"), plugin("t2", "p", 0.2, "hard_fail")]);
    store.replace_plugin(plugin("t1", "p", 0.9, "pass"));
    store.replace_plugin(plugin("t3", "p", 0.8, "pass"));
    store.replace_plugin(plugin("t3", "p", 0.7, "soft_fail"));
    store.flush();
    let file = bench.file();
    let mut statement =
        file.prepare("SELECT trace_id, score, status FROM assertion_history ORDER BY id").unwrap();
    let rows = statement.query_map((), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap();
    let rows: Vec<(String, f64, String)> = rows.collect::<Result<_, _>>().unwrap();
    let rows: Vec<(&str, f64, &str)> =
        rows.iter().map(|(trace, score, status)| (&**trace, *score, &**status)).collect();
    let expected = [
        ("t1", 0.0, "hard_fail"),
        ("t1", 0.3, "pass"),
        ("t1", 0.9, "pass"),
        ("t2", 0.2, "hard_fail"),
        ("t3", 0.7, "soft_fail"),
    ];
    assert_eq!(rows, expected);
}

#[test]
fn the_file_keeps_little_more_than_the_newest_rows_of_an_id() {
    let bench = Bench::new();
    let store = bench.open(StoreOptions { history_max_rows: 200, ..StoreOptions::default() });
    for round in 0..3_000 {
        store.record(
            (0..4).map(|id| row("t", &format!("a{id}"), &format!("k{id}"), f64::from(round))).collect(),
        );
    }
    store.record(vec![row("t", "rare", "rare", 0.5)]);
    store.flush();
    for id in 0..4 {
        let count = bench.count(&format!("assertion_id = 'a{id}'"));
        assert!((200..=500).contains(&count), "{count} rows of a{id}");
        let drift = store.drift(&format!("a{id}"), 1_000).unwrap();
        assert_eq!((drift.count, drift.latest), (200, 2_999.0));
    }
    assert_eq!(store.drift("rare", 50).unwrap().count, 1);
}

#[test]
fn ids_that_are_made_up_anew_do_not_fill_the_file() {
    let bench = Bench::new();
    let store = bench.open(StoreOptions { history_max_rows: 20, ..StoreOptions::default() });
    for round in 0..3_000 {
        store.record(vec![row("t", &format!("a{round}"), "k", f64::from(round))]);
    }
    store.flush();
    let count = bench.count("true");
    assert!((200..=600).contains(&count), "{count} rows under one key");
    assert_eq!(store.scores("k", 1).unwrap(), [2_999.0]);
}

#[test]
fn rows_that_are_too_old_leave_the_file() {
    let bench = Bench::new();
    let options = StoreOptions { history_max_rows: 20, history_max_age_days: 30, ..StoreOptions::default() };
    let store = bench.open(options);
    for number in 0..100 {
        store.record(vec![row("t", &format!("once-{number}"), "", 0.5)]);
    }
    store.flush();
    bench.clock.advance(30 * DAY + 1);
    assert_eq!(store.drift("once-1", 50).unwrap().count, 0, "not seen, even before it is removed");
    store.record(vec![row("t", "new", "", 0.5)]);
    store.flush();
    assert_eq!(bench.count("true"), 1);
}

#[test]
fn each_engine_does_its_share_of_forgetting_however_short_it_lives() {
    let bench = Bench::new();
    let options = StoreOptions { history_max_rows: 40, ..StoreOptions::default() };
    for _ in 0..150 {
        bench.open(options).record((0..4).map(|id| row("t", &format!("a{id}"), "", 0.5)).collect());
    }
    let count = bench.count("true");
    assert!((160..=300).contains(&count), "{count} rows");
}

#[test]
fn dropping_the_store_writes_what_waits() {
    let bench = Bench::new();
    let store = bench.open(StoreOptions::default());
    for _ in 0..5_000 {
        store.record(vec![row("t", "a", "k", 0.5)]);
    }
    drop(store);
    assert_eq!(bench.count("true"), 5_000);
}

#[test]
fn a_lock_delays_rows_but_loses_none_and_stops_no_request() {
    let bench = Bench::new();
    let store = bench.open(StoreOptions::default());
    let other = bench.file();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    for _ in 0..1_000 {
        store.record(vec![row("t", "a", "k", 0.5); 4]);
    }
    assert_eq!(bench.count("true"), 0);
    other.execute_batch("COMMIT").unwrap();
    assert_eq!(store.scores("k", 10_000).unwrap().len(), 4_000);
    assert_eq!(store.dropped(), 0);
}

#[test]
fn what_finds_no_room_is_counted() {
    let bench = Bench::new();
    let store = bench.open(StoreOptions { history_max_rows: 1_000_000, ..StoreOptions::default() });
    let other = bench.file();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let batch = vec![row("t", "a", "k", 0.5); 7_000];
    for _ in 0..15 {
        store.record(batch.clone());
    }
    store.replace_plugin(plugin("t", "p", 0.5, "pass"));
    assert_eq!(store.dropped(), 5_001);
    other.execute_batch("COMMIT").unwrap();
    store.flush();
    assert_eq!(bench.count("true"), 100_000);
    store.record(vec![row("t", "a", "k", 0.5)]);
    store.flush();
    assert_eq!((bench.count("true"), store.dropped()), (100_001, 5_001));
}

#[test]
fn a_flush_ends_when_writing_fails() {
    let queue = Queue::default();
    queue.push(1, Job::History(vec![row("t", "a", "k", 0.5)]));
    let group = queue.take().unwrap();
    let mut failures = 0;
    std::thread::scope(|scope| {
        let flush = scope.spawn(|| queue.flush());
        while !flush.is_finished() {
            assert!(queue.failed());
            failures += 1;
        }
    });
    // Each failure is followed by a rest, so a flush that waits for its time to be over would see many more.
    assert!(failures < 20, "{failures} failures");
    queue.wrote(&group);
    queue.flush();
}
