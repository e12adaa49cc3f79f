//! The SQLite reader: a pool of read-only connections.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use proctor_core::id::RecordId;
use proctor_core::record::LeafView;
use rusqlite::{Connection, OptionalExtension, Transaction};

use super::connection::{Access, open_connection};
use super::index::{Dimension, id_millis, terms_of};
use super::schema::{BLOCK, DATABASE_FILE, FORMAT, from_sql, to_sql};
use super::{
    CheckpointRow, Field, Filter, Order, Page, PageBound, StoreReader, StoredBody, StoredState, query,
};
use crate::error::{ReadError, StoreError};

/// Idle connections that are kept.
const KEPT: usize = 4;

/// Bytes of values after which a page of state rows ends.
const STATE_PAGE_BYTES: usize = 1 << 20;

/// Reads a ledger in SQLite; it may be written by this or another process meanwhile.
#[derive(Debug)]
pub struct SqliteReader {
    path: PathBuf,
    idle: Mutex<Vec<Connection>>,
}

impl SqliteReader {
    /// Opens the ledger in `dir`, only to read. The directory need not be writable.
    pub fn open(dir: &Path) -> Result<SqliteReader, ReadError> {
        let path = dir.join(DATABASE_FILE);
        if !path.exists() {
            return Err(ReadError::NotThere { dir: dir.to_owned() });
        }
        let reader = SqliteReader::at(path);
        match reader.meta("format")? {
            Some(format) if format == FORMAT => Ok(reader),
            other => Err(ReadError::Format { found: other.unwrap_or_default(), expected: FORMAT.to_owned() }),
        }
    }

    pub(super) fn at(path: PathBuf) -> SqliteReader {
        SqliteReader { path, idle: Mutex::new(Vec::new()) }
    }

    /// Reads from one state of the ledger.
    fn read<T>(&self, work: impl FnOnce(&Transaction<'_>) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let kept = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut connection = match kept {
            Some(connection) => connection,
            None => open_connection(&self.path, Access::Read)?,
        };
        let transaction = connection.transaction()?;
        let result = work(&transaction);
        drop(transaction);
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < KEPT {
            idle.push(connection);
        }
        result
    }
}

impl StoreReader for SqliteReader {
    fn size(&self) -> Result<u64, StoreError> {
        self.read(|connection| query::size(connection))
    }

    fn meta(&self, name: &str) -> Result<Option<String>, StoreError> {
        self.read(|connection| {
            let mut statement = connection.prepare_cached("SELECT value FROM meta WHERE name = ?1")?;
            Ok(statement.query_row([name], |row| row.get(0)).optional()?)
        })
    }

    fn page(&self, filter: &Filter, from: u64, order: Order, bound: PageBound) -> Result<Page, StoreError> {
        self.read(|connection| query::page(connection, filter, from, order, bound))
    }

    fn by_id(&self, id: &RecordId) -> Result<Option<u64>, StoreError> {
        self.read(|connection| {
            let last = query::size(connection)? / BLOCK;
            if let Some(seq) = find_in_block(connection, last, id)? {
                return Ok(Some(seq));
            }
            let mut blocks = connection.prepare_cached(
                "SELECT block FROM blocks WHERE min_id <= ?1 AND max_id >= ?1 ORDER BY block DESC",
            )?;
            let mut rows = blocks.query([id_millis(id.as_bytes())])?;
            while let Some(row) = rows.next()? {
                if let Some(seq) = find_in_block(connection, from_sql(row.get(0)?)?, id)? {
                    return Ok(Some(seq));
                }
            }
            Ok(None)
        })
    }

    fn body(&self, seq: u64) -> Result<Option<StoredBody>, StoreError> {
        self.read(|connection| {
            let mut statement = connection.prepare_cached("SELECT salt, bytes FROM bodies WHERE seq = ?1")?;
            let found = statement
                .query_row([to_sql(seq)], |row| Ok(StoredBody { salt: row.get(0)?, bytes: row.get(1)? }))
                .optional()?;
            Ok(found)
        })
    }

    fn once(&self, key: &str) -> Result<Option<u64>, StoreError> {
        self.read(|connection| {
            let mut statement = connection.prepare_cached("SELECT seq FROM once WHERE key = ?1")?;
            statement.query_row([key], |row| row.get(0)).optional()?.map(from_sql).transpose()
        })
    }

    fn state(&self, fold: &str, key: &str) -> Result<Option<(Vec<u8>, u64)>, StoreError> {
        self.read(|connection| {
            let mut statement =
                connection.prepare_cached("SELECT value, seq FROM state WHERE fold = ?1 AND key = ?2")?;
            let found = statement.query_row((fold, key), |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
            found.map(|(value, seq)| Ok((value, from_sql(seq)?))).transpose()
        })
    }

    fn state_page(
        &self,
        fold: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<StoredState>, StoreError> {
        self.read(|connection| {
            // Every text is greater than or equal to the empty one, and one key may be empty.
            let comparison = if after.is_some() { ">" } else { ">=" };
            let mut statement = connection.prepare_cached(&format!(
                "SELECT key, value, seq FROM state WHERE fold = ?1 AND key {comparison} ?2 ORDER BY key"
            ))?;
            let mut rows = statement.query((fold, after.unwrap_or_default()))?;
            let (mut page, mut bytes) = (Vec::new(), 0);
            while let Some(row) = rows.next()? {
                let value: Vec<u8> = row.get(1)?;
                bytes += value.len();
                page.push(StoredState { key: row.get(0)?, value, seq: from_sql(row.get(2)?)? });
                if page.len() >= limit || bytes >= STATE_PAGE_BYTES {
                    break;
                }
            }
            Ok(page)
        })
    }

    fn tile(&self, level: u8, index: u64) -> Result<Option<Vec<u8>>, StoreError> {
        self.read(|connection| {
            let mut statement =
                connection.prepare_cached("SELECT hashes FROM tiles WHERE level = ?1 AND idx = ?2")?;
            Ok(statement.query_row((level, to_sql(index)), |row| row.get(0)).optional()?)
        })
    }

    fn leaves(&self, range: Range<u64>) -> Result<Vec<Vec<u8>>, StoreError> {
        self.read(|connection| leaves(connection, range))
    }

    fn checkpoints(
        &self,
        sizes: Range<u64>,
        order: Order,
        limit: usize,
    ) -> Result<Vec<CheckpointRow>, StoreError> {
        self.read(|connection| {
            let direction = match order {
                Order::Ascending => "ASC",
                Order::Descending => "DESC",
            };
            let mut statement = connection.prepare_cached(&format!(
                "SELECT size, note FROM checkpoints WHERE size >= ?1 AND size < ?2 ORDER BY size {direction} LIMIT ?3"
            ))?;
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            let mut rows = statement.query((to_sql(sizes.start), to_sql(sizes.end), limit))?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                found.push(CheckpointRow { size: from_sql(row.get(0)?)?, note: row.get(1)? });
            }
            Ok(found)
        })
    }

    fn values(&self, field: Field, prefix: &str, limit: usize) -> Result<Vec<String>, StoreError> {
        let dimension = match field {
            Field::Session => Dimension::Session,
            Field::Principal => Dimension::Principal,
            Field::Agent => Dimension::Agent,
        };
        self.read(|connection| {
            let mut statement = connection
                .prepare_cached("SELECT text FROM terms WHERE dimension = ?1 AND text >= ?2 ORDER BY text")?;
            let mut rows = statement.query((dimension as i64, prefix))?;
            let mut found = BTreeSet::new();
            for (_, envelope) in query::not_indexed(connection)? {
                terms_of(&envelope, |of, text| {
                    if of == dimension && text.starts_with(prefix) {
                        found.insert(text.to_owned());
                    }
                });
            }
            let mut indexed = 0;
            while let Some(row) = rows.next()? {
                let text: String = row.get(0)?;
                if indexed >= limit || !text.starts_with(prefix) {
                    break;
                }
                indexed += 1;
                found.insert(text);
            }
            Ok(found.into_iter().take(limit).collect())
        })
    }
}

/// The record of a block that has this identifier.
fn find_in_block(connection: &Connection, block: u64, id: &RecordId) -> Result<Option<u64>, StoreError> {
    // The leaf is a text that has the identifier in it; which member that is, is seen when it is read.
    let mut statement = connection.prepare_cached(
        "SELECT seq, leaf FROM records WHERE seq >= ?1 AND seq < ?2 AND instr(leaf, ?3) > 0",
    )?;
    let first = block.saturating_mul(BLOCK);
    let text = id.to_string().into_bytes();
    let mut rows = statement.query((to_sql(first), to_sql(first.saturating_add(BLOCK)), text))?;
    while let Some(row) = rows.next()? {
        let leaf: Vec<u8> = row.get(1)?;
        if LeafView::parse(&leaf).is_ok_and(|record| record.id == *id) {
            return from_sql(row.get(0)?).map(Some);
        }
    }
    Ok(None)
}

/// The leaves from the start of the range up to the first that is missing.
fn leaves(connection: &Connection, range: Range<u64>) -> Result<Vec<Vec<u8>>, StoreError> {
    let mut statement = connection
        .prepare_cached("SELECT seq, leaf FROM records WHERE seq >= ?1 AND seq < ?2 ORDER BY seq")?;
    let mut rows = statement.query((to_sql(range.start), to_sql(range.end)))?;
    let mut found = Vec::new();
    let mut expected = range.start;
    while let Some(row) = rows.next()? {
        if from_sql(row.get(0)?)? != expected {
            break;
        }
        expected += 1;
        found.push(row.get(1)?);
    }
    Ok(found)
}
