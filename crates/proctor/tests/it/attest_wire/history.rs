//! Content and retention of `attest.db`.

use serde_json::json;

use crate::support::attest::{Place, assertion, contains, trace};

#[test]
fn every_result_is_a_row() {
    let place = Place::new();
    let mut engine = place.ready(&[]);
    let before = nanoseconds();
    engine.evaluate(
        &trace(" t-1 "),
        &json!([contains("yes", "hello"), contains("no", "absent"), contains("", "hello")]),
    );
    let half = json!({"check": "keyword_all", "values": ["hello", "absent"], "soft": true});
    engine.evaluate(
        &trace("t-2"),
        &json!([assertion("half", "content", &half), assertion("w", "plugin", &json!({}))]),
    );
    // A batch that is refused leaves nothing.
    assert_eq!(
        engine.refusal("evaluate_batch", &json!({"trace": {}, "assertions": [contains("x", "y")]})).0,
        1001
    );
    assert_eq!(engine.close().0, 0);
    let row = |trace: &str, id: &str, kind: &str, score: f64, status: &str| {
        (trace.to_owned(), id.to_owned(), kind.to_owned(), score, status.to_owned())
    };
    assert_eq!(
        place.rows(),
        [
            row("t-1", "yes", "content", 1.0, "pass"),
            row("t-1", "no", "content", 0.0, "hard_fail"),
            row("t-1", "", "content", 1.0, "pass"),
            row("t-2", "half", "content", 0.5, "soft_fail"),
            row("t-2", "w", "plugin", 0.0, "waiting"),
        ]
    );
    let connection = rusqlite::Connection::open(place.database()).unwrap();
    let mut statement = connection.prepare("SELECT created_at FROM assertion_history").unwrap();
    let times: Vec<i64> = statement.query_map((), |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    assert!(times.iter().all(|time| (before..=nanoseconds()).contains(time)), "{times:?}");
    let mode: String = connection.query_row("PRAGMA journal_mode", (), |row| row.get(0)).unwrap();
    assert_eq!(mode, "wal");
}

fn nanoseconds() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    // The engine's clock counts microseconds.
    i64::try_from(since.as_micros()).unwrap() * 1000
}

#[test]
fn only_the_newest_rows_of_an_assertion_are_kept() {
    let place = Place::new();
    let mut engine = place.ready(&[("ATTEST_HISTORY_MAX_ROWS", "30")]);
    for index in 0..200 {
        engine
            .evaluate(&trace(&format!("t{index}")), &json!([contains("a", "hello"), contains("b", "hello")]));
    }
    // No more than are kept are looked at, whatever still lies in the file.
    let report = engine.result("query_drift", &json!({"assertion_id": "a", "window_size": 1000}));
    assert_eq!(report["report"]["count"], 30, "{report}");
    assert_eq!(engine.close().0, 0);
    let rows = place.rows();
    for id in ["a", "b"] {
        let kept: Vec<&str> = rows.iter().filter(|row| row.1 == id).map(|row| row.0.as_str()).collect();
        assert!((30..=60).contains(&kept.len()), "{id}: {} rows", kept.len());
        assert_eq!(kept.last(), Some(&"t199"));
    }
}

#[test]
fn old_rows_are_forgotten() {
    let place = Place::new();
    let mut engine = place.ready(&[]);
    for index in 0..20 {
        engine.evaluate(&trace(&format!("old{index}")), &json!([contains("a", "hello")]));
    }
    assert_eq!(engine.close().0, 0);
    let connection = rusqlite::Connection::open(place.database()).unwrap();
    let three_days = 3 * 86_400_000_000_000i64;
    connection.execute("UPDATE assertion_history SET created_at = created_at - ?", [three_days]).unwrap();
    drop(connection);
    // The usual 30 days keep them, 2 days do not.
    let report = place.ready(&[]).result("query_drift", &json!({"assertion_id": "a"}));
    assert_eq!(report["report"]["count"], 20);
    let mut engine = place.ready(&[("ATTEST_HISTORY_MAX_AGE_DAYS", "2"), ("ATTEST_HISTORY_MAX_ROWS", "50")]);
    for index in 0..60 {
        engine.evaluate(&trace(&format!("new{index}")), &json!([contains("a", "hello")]));
    }
    let report = engine.result("query_drift", &json!({"assertion_id": "a", "window_size": 1000}));
    assert_eq!(report["report"]["count"], 50);
    assert_eq!(engine.close().0, 0);
    assert!(place.rows().iter().all(|row| row.0.starts_with("new")));
}

#[test]
fn numbers_that_cannot_be_read_are_the_usual_ones() {
    let place = Place::new();
    let variables = [
        ("ATTEST_HISTORY_MAX_ROWS", "many"),
        ("ATTEST_HISTORY_MAX_AGE_DAYS", "-1"),
        ("ATTEST_JUDGE_CACHE_MAX_MB", "0"),
    ];
    let mut engine = place.ready(&variables);
    for index in 0..60 {
        engine.evaluate(&trace(&format!("t{index}")), &json!([contains("a", "hello")]));
    }
    let report = engine.result("query_drift", &json!({"assertion_id": "a", "window_size": 1000}));
    assert_eq!(report["report"]["count"], 60);
}

/// A file of the released engine is used further: its tables have no column of ours.
#[test]
fn a_file_of_another_engine_is_read() {
    let place = Place::new();
    std::fs::create_dir(place.cache()).unwrap();
    let connection = rusqlite::Connection::open(place.database()).unwrap();
    connection
        .execute_batch(
            "CREATE TABLE assertion_history (id INTEGER PRIMARY KEY AUTOINCREMENT, trace_id TEXT NOT NULL,
                 assertion_id TEXT NOT NULL, assertion_type TEXT NOT NULL, score REAL NOT NULL, status TEXT NOT NULL,
                 created_at INTEGER NOT NULL);
             CREATE INDEX idx_history ON assertion_history (assertion_id, created_at);",
        )
        .unwrap();
    let insert =
        "INSERT INTO assertion_history (trace_id, assertion_id, assertion_type, score, status, created_at)
                  VALUES ('old', 'a', 'content', 0.25, 'hard_fail', ?)";
    connection.execute(insert, [nanoseconds()]).unwrap();
    drop(connection);
    let mut engine = place.ready(&[]);
    engine.evaluate(&trace("new"), &json!([contains("a", "hello")]));
    let report = engine.result("query_drift", &json!({"assertion_id": "a"}))["report"].clone();
    assert_eq!(
        (&report["count"], &report["mean"], &report["latest_score"]),
        (&json!(2), &json!(0.625), &json!(1.0))
    );
}
