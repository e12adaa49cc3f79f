//! Inspect on databases of the stand-in, and on hostile ones.

use std::path::Path;
use std::time::{Duration, Instant};

use proctor_core::json::Json;
use proctor_flow::scheduler::inspect::{InspectError, Query, inspect};
use rusqlite::Connection;

fn query(params: &str) -> Query {
    Query::from_params(&Json::parse(params.as_bytes()).unwrap()).unwrap()
}

fn database(folder: &Path, statements: &str) -> std::path::PathBuf {
    let path = folder.join("scheduler.db");
    Connection::open(&path).unwrap().execute_batch(statements).unwrap();
    path
}

#[test]
fn rows_come_latest_first_with_the_documented_result() {
    let folder = tempfile::tempdir().unwrap();
    let path = database(
        folder.path(),
        "CREATE TABLE runs (id TEXT, started_at TEXT, shell_exit_code INTEGER, cost REAL, summary TEXT);
         INSERT INTO runs VALUES ('old', '2026-01-01 00:00:00', 0, 1.5, NULL), ('new', '2026-01-02 00:00:00', 1, 2.0, char(27) || '[31mred');",
    );
    let result = inspect(Some(&path), &query(r#"{"entity":"runs"}"#)).unwrap();
    assert_eq!(
        result.to_string(),
        concat!(
            r#"{"ok":true,"target":"openclaw-scheduler","entity":"runs","count":2,"items":["#,
            r#"{"id":"new","started_at":"2026-01-02 00:00:00","shell_exit_code":1,"cost":2,"summary":"\u001b[31mred"},"#,
            r#"{"id":"old","started_at":"2026-01-01 00:00:00","shell_exit_code":0,"cost":1.5,"summary":null}]}"#
        )
    );
    let result = inspect(
        Some(&path),
        &query(r#"{"entity":"runs","limit":1,"fields":["summary","none"],"sanitize":"basic"}"#),
    )
    .unwrap();
    assert_eq!(result["items"].to_string(), r#"[{"summary":"red"}]"#);
    let result = inspect(Some(&path), &query(r#"{"entity":"runs","fields":"none"}"#)).unwrap();
    assert_eq!((result["count"].as_u64(), result["items"].to_string().as_str()), (Some(2), "[{},{}]"));
}

#[test]
fn nothing_is_created_or_written() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("none.db");
    assert!(matches!(inspect(Some(&missing), &Query::default()), Err(InspectError::NoFile(_))));
    assert!(!missing.exists());
    assert!(matches!(inspect(None, &Query::default()), Err(InspectError::NoPath)));
    assert!(matches!(inspect(Some(Path::new("")), &Query::default()), Err(InspectError::NoPath)));
    assert!(matches!(inspect(Some(folder.path()), &Query::default()), Err(InspectError::NoFile(_))));
    let path = database(
        folder.path(),
        "CREATE TABLE jobs (id TEXT, created_at TEXT); INSERT INTO jobs VALUES ('a', 'b');",
    );
    let before = std::fs::read(&path).unwrap();
    inspect(Some(&path), &Query::default()).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), before);
    assert_eq!(inspect(None, &Query::default()).unwrap_err().to_failure().code.rpc_code(), -32602);
}

#[test]
fn a_database_that_a_scheduler_is_writing_can_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("scheduler.db");
    let writer = Connection::open(&path).unwrap();
    writer
        .execute_batch(
            "PRAGMA journal_mode = WAL; CREATE TABLE jobs (id TEXT, created_at TEXT); INSERT INTO jobs VALUES ('a', 'b'); BEGIN IMMEDIATE; INSERT INTO jobs VALUES ('c', 'd');",
        )
        .unwrap();
    let result = inspect(Some(&path), &Query::default()).unwrap();
    assert_eq!(result["count"].as_u64(), Some(1));
}

#[test]
fn hostile_databases_are_errors_within_a_second() {
    let cases: [(&str, &str); 9] = [
        ("no table", "CREATE TABLE other (id TEXT)"),
        ("no order", "CREATE TABLE jobs (id TEXT)"),
        (
            "a view that never ends",
            "CREATE VIEW jobs AS WITH RECURSIVE n(created_at) AS (SELECT 1 UNION ALL SELECT created_at + 1 FROM n) SELECT created_at FROM n",
        ),
        ("a virtual table", "CREATE VIRTUAL TABLE jobs USING fts5(id, created_at)"),
        (
            "a huge text",
            "CREATE TABLE jobs (id TEXT, created_at TEXT); INSERT INTO jobs VALUES (CAST(zeroblob(30000000) AS TEXT), 'x')",
        ),
        (
            "many large texts",
            "CREATE TABLE jobs (id TEXT, created_at TEXT);
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20) INSERT INTO jobs SELECT CAST(zeroblob(1000000) AS TEXT), i FROM n",
        ),
        (
            "an expensive generated column as the order",
            "CREATE TABLE jobs (id TEXT, created_at TEXT AS (hex(zeroblob(1000000)) LIKE '%a%b%c%d%e%') VIRTUAL); INSERT INTO jobs(id) VALUES ('a')",
        ),
        (
            "a virtual generated column",
            "CREATE TABLE jobs (id TEXT, created_at TEXT, slow TEXT AS (printf('%.*c', 100000000, 'x')) VIRTUAL); INSERT INTO jobs(id, created_at) VALUES ('a', 'b')",
        ),
        ("a table with quotes", "CREATE TABLE jobs (id TEXT, \"created_at\"\"; DROP TABLE jobs; --\" TEXT)"),
    ];
    for (name, statements) in cases {
        let folder = tempfile::tempdir().unwrap();
        let path = database(folder.path(), statements);
        let start = Instant::now();
        let result = inspect(Some(&path), &Query::default());
        assert!(start.elapsed() < Duration::from_secs(1), "{name}: {:?}", start.elapsed());
        match name {
            // The column is left out, and never evaluated.
            "a virtual generated column" => assert_eq!(result.unwrap()["count"].as_u64(), Some(1)),
            _ => assert!(result.is_err(), "{name}: {result:?}"),
        }
    }
}

#[test]
fn damaged_files_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let path = database(
        folder.path(),
        "CREATE TABLE jobs (id TEXT, created_at TEXT);
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) INSERT INTO jobs SELECT 'job' || i, i FROM n",
    );
    let whole = std::fs::read(&path).unwrap();
    for (start, length, byte) in [(0, 16, 0u8), (100, 64, 0xff), (4096, 4096, 0xff), (0, whole.len(), b'x')] {
        let mut bytes = whole.clone();
        bytes[start..start + length].fill(byte);
        std::fs::write(&path, bytes).unwrap();
        let result = inspect(Some(&path), &query(r#"{"limit":5000}"#));
        assert!(
            matches!(result, Err(InspectError::Sqlite(_) | InspectError::Schema(_))),
            "{start}: {result:?}"
        );
    }
    std::fs::write(&path, b"").unwrap();
    assert!(matches!(inspect(Some(&path), &Query::default()), Err(InspectError::Schema(_))));
}

#[test]
fn a_large_table_is_read_in_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = database(
        folder.path(),
        "CREATE TABLE runs (id TEXT, started_at TEXT, summary TEXT);
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000) INSERT INTO runs SELECT 'run' || i, i % 977, 'text' FROM n",
    );
    let result = inspect(Some(&path), &query(r#"{"entity":"runs","limit":"50"}"#)).unwrap();
    assert_eq!(result["count"].as_u64(), Some(50));
}
