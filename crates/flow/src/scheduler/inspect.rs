//! Inspect: rows of openclaw-scheduler's database, read without its program.
//!
//! The file may be anything. It is opened read-only and never created, only ordinary tables are read, and memory, time and the size
//! of the answer are bounded.

mod database;
mod query;
mod sanitize;

use std::path::Path;

use proctor_core::json::Json;
use proctor_wire::agentcli::error::{Code, Failure};

pub use query::{Entity, Query, QueryError, Sanitize};

/// Largest answer, in bytes of names and values.
pub const MAX_BYTES: usize = 8 << 20;

/// A database that cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum InspectError {
    /// A parameter is wrong.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// No database is named.
    #[error("no database is named: give `dbPath`")]
    NoPath,
    /// The file is not there, or no file.
    #[error("`{0}` is not a file that can be read")]
    NoFile(String),
    /// The file has no such table.
    #[error("the database has no table `{0}` as openclaw-scheduler makes it")]
    Schema(&'static str),
    /// The answer would be too large.
    #[error(
        "the answer would be larger than {MAX_BYTES} bytes: ask for fewer rows with `limit`, or for some `fields`"
    )]
    Size,
    /// Reading took too long.
    #[error("the database could not be read within {} ms", database::TIME.as_millis())]
    Time,
    /// SQLite refused.
    #[error("the database cannot be read: {0}")]
    Sqlite(#[from] rusqlite::Error),
}

impl InspectError {
    /// The failure as doors answer it.
    pub fn to_failure(&self) -> Failure {
        Failure::new(Code::InvalidArgument, self.to_string())
    }
}

/// Reads rows. The result is that of `agentcli.inspect`. Blocks on the file.
pub fn inspect(path: Option<&Path>, query: &Query) -> Result<Json, InspectError> {
    let path = path.filter(|path| !path.as_os_str().is_empty()).ok_or(InspectError::NoPath)?;
    let rows = database::read(path, query)?;
    let items: Vec<Json> = rows
        .into_iter()
        .map(|row| query.project(row))
        .map(|item| match query.sanitize {
            Sanitize::None => item,
            Sanitize::Basic => sanitize::basic(item),
        })
        .collect();
    Ok(Json::object()
        .with("ok", true)
        .with("target", "openclaw-scheduler")
        .with("entity", query.entity.word())
        .with("count", items.len())
        .with("items", items))
}
