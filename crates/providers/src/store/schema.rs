//! Opening the database, and its schema.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, TransactionBehavior, ffi};

use super::error::StoreError;
use super::folder;

/// Time limit of one attempt while another program has the file locked.
const BUSY_WAIT: Duration = Duration::from_secs(5);
/// Pages that the write-ahead log collects before they go to the database: 16 MiB.
const WAL_PAGES: i64 = 4096;

/// `assertion_history`, `embeddings` and `judge_cache` have the columns that the released engine gives them. What that
/// one keeps under `judge_cache` does not say which question was judged, so ours is another table.
const TABLES: &str = "
CREATE TABLE IF NOT EXISTS assertion_history (
    id INTEGER PRIMARY KEY,
    trace_id TEXT NOT NULL,
    assertion_id TEXT NOT NULL,
    assertion_type TEXT NOT NULL,
    score REAL NOT NULL,
    status TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    key TEXT NOT NULL DEFAULT ''
);
CREATE TABLE IF NOT EXISTS embeddings (
    content_hash TEXT NOT NULL,
    model TEXT NOT NULL,
    vector BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    accessed_at INTEGER NOT NULL,
    PRIMARY KEY (content_hash, model)
);
CREATE TABLE IF NOT EXISTS judge_cache (
    content_hash TEXT NOT NULL,
    rubric TEXT NOT NULL,
    model TEXT NOT NULL,
    score REAL NOT NULL,
    explanation TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    accessed_at INTEGER NOT NULL,
    PRIMARY KEY (content_hash, rubric, model)
);
CREATE TABLE IF NOT EXISTS judge_answers (
    prompt_hash TEXT NOT NULL,
    model TEXT NOT NULL,
    sample INTEGER NOT NULL,
    score REAL NOT NULL,
    explanation TEXT NOT NULL,
    input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    accessed_at INTEGER NOT NULL,
    size INTEGER NOT NULL,
    PRIMARY KEY (prompt_hash, model, sample)
);
CREATE TABLE IF NOT EXISTS calibration (
    rubric TEXT NOT NULL,
    version TEXT NOT NULL,
    prompt_hash TEXT NOT NULL,
    label_count INTEGER NOT NULL,
    agreement REAL NOT NULL,
    cohen_kappa REAL NOT NULL,
    roc_auc REAL NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (rubric, version, prompt_hash)
);
CREATE TABLE IF NOT EXISTS cache_sizes (cache TEXT PRIMARY KEY, bytes INTEGER NOT NULL);
";

/// An index ends with the row's number in SQLite, so `(key)` is `(key, id)`. The one on plugins costs only plugin rows.
const INDEXES: &str = "
CREATE INDEX IF NOT EXISTS history_by_key ON assertion_history (key);
CREATE INDEX IF NOT EXISTS history_plugins ON assertion_history (trace_id, assertion_id)
    WHERE assertion_type = 'plugin';
CREATE INDEX IF NOT EXISTS embeddings_by_access ON embeddings (accessed_at);
CREATE INDEX IF NOT EXISTS judge_answers_by_access ON judge_answers (accessed_at);
INSERT INTO cache_sizes SELECT 'embeddings', COALESCE(SUM(length(vector)), 0) FROM embeddings WHERE true
    ON CONFLICT DO UPDATE SET bytes = excluded.bytes;
INSERT INTO cache_sizes SELECT 'judge_answers', COALESCE(SUM(size), 0) FROM judge_answers WHERE true
    ON CONFLICT DO UPDATE SET bytes = excluded.bytes;
";

/// The tables and indexes of an up-to-date file.
const OBJECTS: [&str; 10] = [
    "assertion_history",
    "embeddings",
    "judge_cache",
    "judge_answers",
    "calibration",
    "cache_sizes",
    "history_by_key",
    "history_plugins",
    "embeddings_by_access",
    "judge_answers_by_access",
];

/// Statements that name every column in use: a file whose tables are others fails here and not at the first request.
const PROBES: [&str; 5] = [
    "SELECT id, trace_id, assertion_id, assertion_type, score, status, created_at, key FROM assertion_history \
     ORDER BY id DESC LIMIT 1",
    "SELECT rowid, content_hash, model, vector, created_at, accessed_at FROM embeddings LIMIT 1",
    "SELECT rowid, prompt_hash, model, sample, score, explanation, input_tokens, output_tokens, created_at, \
     accessed_at, size FROM judge_answers LIMIT 1",
    "SELECT rubric, version, prompt_hash, label_count, agreement, cohen_kappa, roc_auc, created_at FROM calibration \
     LIMIT 1",
    "SELECT cache, bytes FROM cache_sizes LIMIT 1",
];

/// Connections of a store to its file: one reads, one writes. They stay open for its whole life, because a file that was deleted can still
/// be used through them but no longer be opened.
pub(super) struct Connections {
    pub(super) writer: Connection,
    pub(super) reader: Connection,
    /// Identity of the file, to notice that the name has come to mean another.
    pub(super) identity: Option<(u64, u64)>,
}

/// Opens the file in a directory that is there.
pub(super) fn open(dir: &Path) -> Result<Connections, StoreError> {
    let file = file_in(dir);
    let _lock = folder::lock(dir);
    remove_leftovers(&file);
    // What cannot be made shows when the database is opened.
    let _ = folder::make_private(&file);
    let connect = || -> Result<Connections, rusqlite::Error> {
        let mut writer = connection(&file)?;
        // SQLite opens a file that may only be read without a word, and every row would be lost later.
        if writer.is_readonly(rusqlite::MAIN_DB)? {
            return Err(rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_READONLY), None));
        }
        writer.pragma_update(None, "journal_mode", "wal")?;
        writer.pragma_update(None, "wal_autocheckpoint", WAL_PAGES)?;
        writer.pragma_update(None, "journal_size_limit", WAL_PAGES * 4096)?;
        writer.pragma_update(None, "cache_size", -16 * 1024)?;
        make_tables(&mut writer)?;
        let reader = connection(&file)?;
        reader.pragma_update(None, "query_only", "on")?;
        for probe in PROBES {
            reader.prepare(probe)?.query(())?.next()?;
        }
        Ok(Connections { writer, reader, identity: folder::identity(&file) })
    };
    connect().map_err(|error| StoreError::of(&file, &error))
}

/// The database's file in its directory.
pub(super) fn file_in(dir: &Path) -> PathBuf {
    dir.join("attest.db")
}

/// Without its database a write-ahead log belongs to one that was deleted, perhaps while an engine still uses both.
/// A new database must not share that engine's shared-memory file.
fn remove_leftovers(file: &Path) {
    if folder::identity(file).is_some() {
        return;
    }
    for suffix in ["-wal", "-shm"] {
        let mut name = file.as_os_str().to_owned();
        name.push(suffix);
        // What cannot be removed shows when the database is opened.
        let _ = std::fs::remove_file(PathBuf::from(name));
    }
}

fn connection(file: &Path) -> Result<Connection, rusqlite::Error> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(file, flags)?;
    connection.busy_timeout(BUSY_WAIT)?;
    connection.set_prepared_statement_cache_capacity(32);
    // A forged file must not make SQLite do more than read tables.
    connection.pragma_update(None, "trusted_schema", "off")?;
    connection.pragma_update(None, "synchronous", "normal")?;
    Ok(connection)
}

fn make_tables(connection: &mut Connection) -> Result<(), rusqlite::Error> {
    if is_complete(connection)? {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute_batch(TABLES)?;
    if !has_key(&transaction)? {
        transaction.execute_batch("ALTER TABLE assertion_history ADD COLUMN key TEXT NOT NULL DEFAULT ''")?;
    }
    if !has_index(&transaction)? {
        transaction
            .execute_batch("CREATE INDEX history_by_id ON assertion_history (assertion_id, created_at)")?;
    }
    transaction.execute_batch(INDEXES)?;
    transaction.commit()
}

/// Whether all tables exist, read without a lock: then a busy file can be opened too.
fn is_complete(connection: &Connection) -> Result<bool, rusqlite::Error> {
    let mut statement = connection.prepare("SELECT name FROM sqlite_schema")?;
    let names = statement.query_map((), |row| row.get::<_, String>(0))?.collect::<Result<Vec<_>, _>>()?;
    let all = OBJECTS.iter().all(|object| names.iter().any(|name| name == object));
    Ok(all && has_key(connection)? && has_index(connection)?)
}

fn has_key(connection: &Connection) -> Result<bool, rusqlite::Error> {
    let columns = "SELECT count(*) FROM pragma_table_info('assertion_history') WHERE name = 'key'";
    connection.query_row(columns, (), |row| row.get::<_, i64>(0)).map(|count| count > 0)
}

/// Whether some index begins with assertion id and time; another program may have made it under a name of its own.
fn has_index(connection: &Connection) -> Result<bool, rusqlite::Error> {
    let indexes = "SELECT count(*) FROM pragma_index_list('assertion_history') AS list WHERE list.partial = 0 \
        AND (SELECT name FROM pragma_index_info(list.name) WHERE seqno = 0) = 'assertion_id' \
        AND (SELECT name FROM pragma_index_info(list.name) WHERE seqno = 1) = 'created_at'";
    connection.query_row(indexes, (), |row| row.get::<_, i64>(0)).map(|count| count > 0)
}
