//! The SQLite writer: one connection, one transaction a batch.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, TransactionBehavior};

use super::connection::{Access, open_connection, set_durability};
use super::identity::DatabaseFiles;
use super::index::IndexWriter;
use super::schema::{DATABASE_FILE, to_sql};
use super::{Batch, Durability, SqliteReader, Store, StoreReader};
use crate::error::StoreError;

/// The ledger in one SQLite file.
pub struct SqliteStore {
    writing: Mutex<Writing>,
    files: DatabaseFiles,
    reader: Arc<SqliteReader>,
    durability: Durability,
}

struct Writing {
    connection: Connection,
    /// Index writer; none after a failure, because it may be ahead of the stored records.
    index: Option<IndexWriter>,
    /// A failed commit may have left frames in the write-ahead log that look like lost ones.
    remains: bool,
}

impl SqliteStore {
    /// Opens the database in `dir`, which must exist. Only the owner of the directory may do this.
    pub fn open(dir: &Path, durability: Durability) -> Result<SqliteStore, StoreError> {
        let path = dir.join(DATABASE_FILE);
        let connection = open_connection(&path, Access::Write(durability))?;
        let files = DatabaseFiles::of(&path)?;
        let reader = Arc::new(SqliteReader::at(path));
        Ok(SqliteStore {
            writing: Mutex::new(Writing { connection, index: None, remains: false }),
            files,
            reader,
            durability,
        })
    }

    /// Bounds the pages that the writer keeps in memory.
    pub fn limit_cache(&self, bytes: usize) -> Result<(), StoreError> {
        let writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        // A negative number is one of KiB instead of pages.
        let kibibytes = i64::try_from(bytes / 1024).unwrap_or(i64::MAX);
        writing.connection.pragma_update(None, "cache_size", -kibibytes)?;
        Ok(())
    }

    fn commit_into(writing: &mut Writing, batch: &Batch) -> Result<(), StoreError> {
        let Writing { connection, index, .. } = writing;
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let index = match index {
            Some(index) => index,
            None => index.insert(IndexWriter::load(&transaction)?),
        };
        write_records(&transaction, index, batch)?;
        write_rows(&transaction, batch)?;
        write_tree(&transaction, batch)?;
        transaction.commit()?;
        Ok(())
    }
}

impl Store for SqliteStore {
    fn commit(&self, batch: &Batch) -> Result<(), StoreError> {
        let mut writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        self.files.check()?;
        if writing.remains && truncate_log(&writing.connection).is_ok_and(|done| done) {
            writing.remains = false;
        }
        let once_more = batch.to_disk && self.durability == Durability::Process;
        if once_more {
            set_durability(&writing.connection, Durability::Power)?;
        }
        let result = SqliteStore::commit_into(&mut writing, batch);
        if result.is_err() {
            writing.index = None;
            writing.remains = true;
        }
        if once_more {
            set_durability(&writing.connection, Durability::Process)?;
        }
        // Compared once more: files that were taken away during the commit do not hold it.
        result.and(self.files.written())
    }

    fn purge(&self) -> Result<bool, StoreError> {
        let writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        // Emptying the log must not hide that it was cut before.
        self.files.check()?;
        let truncated = truncate_log(&writing.connection)?;
        self.files.written()?;
        Ok(truncated)
    }

    fn check_files(&self) -> Result<(), StoreError> {
        self.files.check_presence()
    }

    fn reader(&self) -> Arc<dyn StoreReader> {
        Arc::clone(&self.reader) as Arc<dyn StoreReader>
    }
}

/// Moves everything from the write-ahead log to the tables and empties it; false if a reader still needs it.
///
/// Deleted cells are overwritten in the tables (`secure_delete`), so that afterwards no erased byte is left. It is
/// not waited for readers here.
fn truncate_log(connection: &Connection) -> Result<bool, StoreError> {
    connection.busy_timeout(Duration::ZERO)?;
    let busy = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |row| row.get::<_, i64>(0));
    connection.busy_timeout(Duration::from_secs(5))?;
    match busy {
        Ok(busy) => Ok(busy == 0),
        Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn write_records(connection: &Connection, index: &mut IndexWriter, batch: &Batch) -> Result<(), StoreError> {
    let mut leaf = connection.prepare_cached("INSERT INTO records(seq, leaf) VALUES (?1, ?2)")?;
    let mut body = connection.prepare_cached("INSERT INTO bodies(seq, salt, bytes) VALUES (?1, ?2, ?3)")?;
    let mut once = connection.prepare_cached("INSERT INTO once(key, seq) VALUES (?1, ?2)")?;
    let mut erase = connection.prepare_cached("DELETE FROM bodies WHERE seq = ?1")?;
    for record in &batch.records {
        let seq = to_sql(record.seq);
        leaf.execute((seq, record.leaf.as_slice()))?;
        if let Some(stored) = &record.body {
            body.execute((seq, stored.salt.as_slice(), stored.bytes.as_slice()))?;
        }
        if let Some(key) = &record.envelope.once {
            once.execute((key, seq))?;
        }
        index.add(connection, record.seq, &record.envelope)?;
    }
    for seq in &batch.erased {
        erase.execute([to_sql(*seq)])?;
    }
    Ok(())
}

fn write_rows(connection: &Connection, batch: &Batch) -> Result<(), StoreError> {
    let mut set = connection.prepare_cached(
        "INSERT INTO state(fold, key, value, seq) VALUES (?1, ?2, ?3, ?4) \
         ON CONFLICT(fold, key) DO UPDATE SET value = excluded.value, seq = excluded.seq",
    )?;
    let mut delete = connection.prepare_cached("DELETE FROM state WHERE fold = ?1 AND key = ?2")?;
    for row in &batch.rows {
        match &row.value {
            Some(value) => set.execute((row.fold, &row.key, value.as_slice(), to_sql(row.seq)))?,
            None => delete.execute((row.fold, &row.key))?,
        };
    }
    Ok(())
}

fn write_tree(connection: &Connection, batch: &Batch) -> Result<(), StoreError> {
    let mut tile = connection.prepare_cached(
        "INSERT INTO tiles(level, idx, hashes) VALUES (?1, ?2, ?3) \
         ON CONFLICT(level, idx) DO UPDATE SET hashes = excluded.hashes",
    )?;
    for row in &batch.tiles {
        tile.execute((row.level, to_sql(row.index), row.hashes.as_slice()))?;
    }
    let mut statement =
        connection.prepare_cached("INSERT OR REPLACE INTO checkpoints(size, note) VALUES (?1, ?2)")?;
    for checkpoint in &batch.checkpoints {
        statement.execute((to_sql(checkpoint.size), &checkpoint.note))?;
    }
    Ok(())
}
