//! Reading rows of a database that may be hostile.

use std::path::Path;
use std::time::{Duration, Instant};

use proctor_core::json::Json;
use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, OptionalExtension};

use super::query::Query;
use super::{InspectError, MAX_BYTES};

/// Time that reading may take.
pub(super) const TIME: Duration = Duration::from_millis(900);
/// Time to wait for a writer that holds the database.
const BUSY_TIME: Duration = Duration::from_millis(500);
/// Instructions of SQLite's machine between two looks at the clock.
const STEPS_BETWEEN_CHECKS: i32 = 1000;

pub(super) fn read(path: &Path, query: &Query) -> Result<Vec<Json>, InspectError> {
    // SQLite would wait on a pipe.
    if !std::fs::metadata(path).is_ok_and(|about| about.is_file()) {
        return Err(InspectError::NoFile(path.display().to_string()));
    }
    let mut connection = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    let end = Instant::now() + TIME;
    restrict(&mut connection, end)?;
    rows(&connection, query).map_err(|error| match error {
        InspectError::Sqlite(rusqlite::Error::SqliteFailure(failure, _))
            if failure.code == rusqlite::ErrorCode::OperationInterrupted =>
        {
            InspectError::Time
        }
        other => other,
    })
}

/// Bounds set before the first statement, which parses the schema.
fn restrict(connection: &mut Connection, end: Instant) -> Result<(), InspectError> {
    let limit = i32::try_from(MAX_BYTES).unwrap_or(i32::MAX);
    for (kind, value) in [
        (Limit::SQLITE_LIMIT_LENGTH, limit),
        (Limit::SQLITE_LIMIT_SQL_LENGTH, 256 << 10),
        (Limit::SQLITE_LIMIT_COLUMN, 512),
        (Limit::SQLITE_LIMIT_EXPR_DEPTH, 64),
        (Limit::SQLITE_LIMIT_COMPOUND_SELECT, 8),
        (Limit::SQLITE_LIMIT_VDBE_OP, 100_000),
        (Limit::SQLITE_LIMIT_FUNCTION_ARG, 32),
        (Limit::SQLITE_LIMIT_ATTACHED, 0),
        (Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1000),
        (Limit::SQLITE_LIMIT_TRIGGER_DEPTH, 1),
        (Limit::SQLITE_LIMIT_WORKER_THREADS, 0),
    ] {
        connection.set_limit(kind, value)?;
    }
    connection.progress_handler(STEPS_BETWEEN_CHECKS, Some(move || Instant::now() > end))?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    connection.busy_timeout(BUSY_TIME)?;
    Ok(())
}

fn rows(connection: &Connection, query: &Query) -> Result<Vec<Json>, InspectError> {
    let table = query.entity.table();
    // A view or a virtual table of that name would run statements of the file.
    let kind: Option<String> = connection
        .query_row("SELECT type FROM pragma_table_list WHERE schema = 'main' AND name = ?1", [table], |row| {
            row.get(0)
        })
        .optional()?;
    if kind.as_deref() != Some("table") {
        return Err(InspectError::Schema(table));
    }
    // Generated columns are expressions of the file; the scheduler has none.
    let mut statement = connection.prepare("SELECT name FROM pragma_table_xinfo(?1) WHERE hidden = 0")?;
    let columns: Vec<String> =
        statement.query_map([table], |row| row.get(0))?.collect::<Result<Vec<String>, rusqlite::Error>>()?;
    if !columns.iter().any(|name| name == query.entity.order()) {
        return Err(InspectError::Schema(table));
    }
    let wanted = query.columns();
    let selected: Vec<&str> = columns
        .iter()
        .map(String::as_str)
        .filter(|name| wanted.as_ref().is_none_or(|wanted| wanted.contains(name)))
        .collect();
    let list: Vec<String> = selected.iter().map(|name| quoted(name)).collect();
    // Without a known column the rows are still counted.
    let list = if list.is_empty() { "NULL".to_owned() } else { list.join(", ") };
    let sql = format!(
        "SELECT {list} FROM {} ORDER BY {} DESC LIMIT ?1",
        quoted(table),
        quoted(query.entity.order())
    );
    let mut statement = connection.prepare(&sql)?;
    let mut rows = statement.query([query.limit])?;
    let mut items = Vec::new();
    let mut bytes = 0usize;
    while let Some(row) = rows.next()? {
        let mut item = Vec::with_capacity(selected.len());
        // Bytes of an empty item in the answer.
        bytes = bytes.saturating_add(32);
        for (index, name) in selected.iter().enumerate() {
            let value = row.get_ref(index)?;
            bytes = bytes.saturating_add(name.len() + size(value));
            if bytes > MAX_BYTES {
                return Err(InspectError::Size);
            }
            item.push(((*name).to_owned(), json(value)));
        }
        if bytes > MAX_BYTES {
            return Err(InspectError::Size);
        }
        items.push(Json::Object(item));
    }
    Ok(items)
}

/// A name as SQL writes it.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn size(value: ValueRef<'_>) -> usize {
    match value {
        ValueRef::Text(bytes) => bytes.len().saturating_add(8),
        _ => 24,
    }
}

fn json(value: ValueRef<'_>) -> Json {
    match value {
        ValueRef::Integer(number) => Json::from(number),
        ValueRef::Real(number) if number.is_finite() => Json::Number(number.to_string().into()),
        ValueRef::Null | ValueRef::Real(_) => Json::Null,
        ValueRef::Text(bytes) => Json::String(String::from_utf8_lossy(bytes).into_owned()),
        // The scheduler stores no blobs: their size says enough.
        ValueRef::Blob(bytes) => Json::object().with("blob_bytes", bytes.len()),
    }
}
