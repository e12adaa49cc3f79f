//! Tests with foreign, damaged and deleted files.

use std::fs;

use super::*;

/// The tables of the released engine, as far as they are known.
const RELEASED: &str = "
    CREATE TABLE assertion_history (id INTEGER PRIMARY KEY AUTOINCREMENT, trace_id TEXT NOT NULL,
        assertion_id TEXT NOT NULL, assertion_type TEXT NOT NULL, score REAL NOT NULL, status TEXT NOT NULL,
        created_at INTEGER NOT NULL);
    CREATE INDEX idx_history ON assertion_history (assertion_id, created_at);
    CREATE TABLE embeddings (content_hash TEXT NOT NULL, model TEXT NOT NULL, vector BLOB NOT NULL,
        created_at INTEGER NOT NULL, accessed_at INTEGER NOT NULL, PRIMARY KEY (content_hash, model));
    INSERT INTO embeddings VALUES ('hash', 'model', x'0000803f', 1, 1);
";

#[test]
fn a_file_of_the_released_engine_is_used_as_it_is() {
    let bench = Bench::new();
    let file = bench.file();
    file.execute_batch(RELEASED).unwrap();
    let now = nanos(bench.clock.now());
    let insert = "INSERT INTO assertion_history (trace_id, assertion_id, assertion_type, score, status, created_at) \
        VALUES ('t', 'a', 'content', 0.5, 'pass', ?)";
    file.execute(insert, [now]).unwrap();
    let store = bench.open(StoreOptions::default());
    store.record(vec![row("t", "a", "k", 1.0)]);
    assert_eq!(store.drift("a", 50).unwrap(), Drift { mean: 0.75, stddev: 0.25, count: 2, latest: 1.0 });
    assert_eq!(store.scores("k", 50).unwrap(), [1.0]);
    assert_eq!(store.vector("hash", "model"), Some(vec![1.0]));
    assert_eq!(number(&file, "SELECT bytes FROM cache_sizes WHERE cache = 'embeddings'"), 4);
    let doubled =
        "SELECT count(*) FROM sqlite_schema WHERE type = 'index' AND sql LIKE '%assertion_id, created_at%'";
    assert_eq!(number(&file, doubled), 1);
    // And the released engine still can write to it.
    file.execute(insert, [now + 1]).unwrap();
    assert_eq!(store.drift("a", 50).unwrap().count, 3);
}

#[test]
fn the_directory_is_made_and_readable_by_all() {
    use std::os::unix::fs::PermissionsExt;
    let bench = Bench::new();
    let dir = bench.dir().join("new/cache");
    let store =
        Store::open(&dir, StoreOptions::default(), Arc::clone(&bench.clock) as Arc<dyn Clock>).unwrap();
    drop(store);
    assert!(dir.join("attest.db").is_file());
    let mode = fs::metadata(&dir).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode & 0o700, 0o700);
    assert_eq!(mode & !0o755, 0, "{mode:o}");
}

#[test]
fn a_file_that_is_no_database_is_named_and_left() {
    let bench = Bench::new();
    let file = schema::file_in(bench.dir());
    let text = "this is a shopping list, and no database at all\n".repeat(50);
    fs::write(&file, &text).unwrap();
    let error = bench.try_open(StoreOptions::default()).unwrap_err();
    assert!(matches!(error, StoreError::Damaged { .. }), "{error:?}");
    let message = error.to_string();
    assert!(message.contains("attest.db` is not a usable history: file is not a database"), "{message}");
    assert!(message.ends_with("move it away or delete it to begin a new one"), "{message}");
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
}

#[test]
fn a_database_with_other_columns_is_named_and_left() {
    let bench = Bench::new();
    bench.file().execute_batch("CREATE TABLE assertion_history (id INTEGER PRIMARY KEY, note TEXT)").unwrap();
    let error = bench.try_open(StoreOptions::default()).unwrap_err();
    assert!(matches!(error, StoreError::Damaged { .. }), "{error:?}");
    assert_eq!(number(&bench.file(), "SELECT count(*) FROM sqlite_schema"), 1, "nothing was added");
}

#[test]
fn a_file_that_is_cut_off_is_an_error_or_readable_but_never_deleted() {
    let bench = Bench::new();
    let store = bench.open(StoreOptions::default());
    store.record(vec![row("t", "a", "k", 0.5); 5_000]);
    drop(store);
    let file = schema::file_in(bench.dir());
    let whole = fs::read(&file).unwrap();
    assert!(whole.len() > 100_000, "closing brings the database up to date");
    assert_eq!(stats(bench.dir()).unwrap().files, 1, "and leaves nothing beside it");
    for length in [50, 4_096, 10_000, whole.len() / 2] {
        for suffix in ["-wal", "-shm"] {
            let _ = fs::remove_file(bench.dir().join(format!("attest.db{suffix}")));
        }
        fs::write(&file, &whole[..length]).unwrap();
        if let Ok(store) = bench.try_open(StoreOptions::default()) {
            store.record(vec![row("t", "a", "k", 0.5)]);
            let _ = store.scores("k", 50);
            let _ = store.drift("a", 50);
        }
        assert!(fs::metadata(&file).unwrap().len() >= length as u64);
    }
}

#[test]
fn a_directory_that_cannot_be_made_is_named() {
    let bench = Bench::new();
    let file = bench.dir().join("file");
    fs::write(&file, "").unwrap();
    for dir in [file.join("below"), file, PathBuf::from("/proc/attest/cache")] {
        let error = Store::open(&dir, StoreOptions::default(), Arc::clone(&bench.clock) as Arc<dyn Clock>)
            .unwrap_err();
        assert!(matches!(error, StoreError::Directory { .. }), "{error:?}");
        assert!(error.to_string().contains(&format!("`{}` cannot be made", dir.display())), "{error}");
    }
}

#[test]
fn after_clear_an_open_store_goes_on_in_a_new_file() {
    let bench = Bench::new();
    let store = bench.open(StoreOptions::default());
    store.record(vec![row("t", "a", "k", 0.1)]);
    store.keep_vector("hash", "m", vec![1.0]);
    store.flush();
    assert!(clear(bench.dir()).unwrap() >= 1);
    assert_eq!(
        store.vector("hash", "m"),
        Some(vec![1.0]),
        "the deleted file can be read until there is a new one"
    );
    store.record(vec![row("t", "a", "k", 0.2)]);
    assert_eq!(store.scores("k", 50).unwrap(), [0.2]);
    assert_eq!(store.vector("hash", "m"), None);
    assert_eq!(bench.count("true"), 1);
}

#[test]
fn after_clear_two_generations_of_engines_do_not_harm_each_other() {
    // The first way deletes everything, the second only the database, as the Python tool does.
    for only_database in [false, true] {
        let bench = Bench::new();
        let old = bench.open(StoreOptions::default());
        old.record(vec![row("t", "old", "k", 0.1); 500]);
        old.flush();
        if only_database {
            fs::remove_file(schema::file_in(bench.dir())).unwrap();
        } else {
            clear(bench.dir()).unwrap();
        }
        let new = bench.open(StoreOptions::default());
        new.record(vec![row("t", "new", "k", 0.2); 500]);
        new.flush();
        assert_eq!(
            old.drift("old", 1_000).unwrap().count,
            500,
            "the old file is read until something is written"
        );
        // Ends without having written: it must not take the new file's log with it.
        drop(old);
        new.record(vec![row("t", "new", "k", 0.3); 500]);
        new.flush();
        let third = bench.open(StoreOptions::default());
        assert_eq!(third.drift("new", 2_000).unwrap().count, 1_000);
        third.record(vec![row("t", "new", "k", 0.4)]);
        third.flush();
        assert_eq!(new.drift("new", 2_000).unwrap().count, 1_001);
        let check: String = bench.file().query_row("PRAGMA integrity_check", (), |row| row.get(0)).unwrap();
        assert_eq!(check, "ok");
    }
}

#[test]
fn a_directory_that_vanishes_stops_nothing() {
    let bench = Bench::new();
    let dir = bench.dir().join("cache");
    let store =
        Store::open(&dir, StoreOptions::default(), Arc::clone(&bench.clock) as Arc<dyn Clock>).unwrap();
    fs::remove_dir_all(&dir).unwrap();
    store.record(vec![row("t", "a", "k", 0.5)]);
    assert_eq!(store.scores("k", 50).unwrap(), [0.5]);
    drop(store);
    assert!(!dir.exists());
}

#[test]
fn the_database_is_for_its_owner_alone_also_if_it_was_not_before() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let bench = Bench::new();
    let mode = |name: &str| fs::metadata(bench.dir.path().join(name)).map(|found| found.mode() & 0o777).ok();
    let store = bench.open(StoreOptions::default());
    store.record(vec![row("t", "a", "k", 1.0)]);
    store.flush();
    assert_eq!(mode("attest.db"), Some(0o600));
    assert!(mode("attest.db-wal").is_none_or(|mode| mode == 0o600));
    drop(store);
    fs::set_permissions(bench.dir.path().join("attest.db"), fs::Permissions::from_mode(0o644)).unwrap();
    drop(bench.open(StoreOptions::default()));
    assert_eq!(mode("attest.db"), Some(0o600));
}
