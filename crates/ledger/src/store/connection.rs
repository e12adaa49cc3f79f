//! SQLite connections: open flags, pragmas and durability.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::Durability;
use crate::error::StoreError;

/// Pages that the write-ahead log collects before they go to the database: 32 MiB. Each page of an append-only
/// table is then copied about once, and a copy takes a few tens of milliseconds.
const WAL_PAGES: i64 = 8192;

/// Mode in which the file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Writing, by the one writer.
    Write(Durability),
    /// Reading, also while another process writes.
    Read,
}

/// Opens the database, which must exist, and reads its header.
pub(crate) fn open_connection(path: &Path, access: Access) -> Result<Connection, StoreError> {
    match access {
        Access::Write(durability) => open_to_write(path, durability),
        Access::Read => open_to_read(path),
    }
}

/// The file that belongs to the database, such as its write-ahead log.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

fn open_to_write(path: &Path, durability: Durability) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    configure(&connection)?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "wal_autocheckpoint", WAL_PAGES)?;
    connection.pragma_update(None, "journal_size_limit", WAL_PAGES * 4096)?;
    connection.pragma_update(None, "secure_delete", "on")?;
    set_durability(&connection, durability)?;
    Ok(connection)
}

/// Sets the synchronous mode of later commits.
pub(crate) fn set_durability(connection: &Connection, durability: Durability) -> Result<(), StoreError> {
    let synchronous = match durability {
        Durability::Process => "normal",
        Durability::Power => "full",
    };
    connection.pragma_update(None, "synchronous", synchronous)?;
    Ok(())
}

/// A read-only connection. Where SQLite cannot make its shared-memory file because the directory is not writable,
/// and no write-ahead log is there to be read, the file is read as one that does not change.
fn open_to_read(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let usual = Connection::open_with_flags(path, flags).and_then(|connection| {
        probe(&connection)?;
        Ok(connection)
    });
    match usual {
        Err(error) if cannot_share(&error) && !has_content(&beside(path, "-wal")) => {
            let uri = format!("file:{}?immutable=1", percent_encoded(path));
            let connection = Connection::open_with_flags(uri, flags | OpenFlags::SQLITE_OPEN_URI)?;
            configure(&connection)?;
            probe(&connection)?;
            Ok(connection)
        }
        other => {
            let connection = other?;
            configure(&connection)?;
            Ok(connection)
        }
    }
}

fn configure(connection: &Connection) -> Result<(), StoreError> {
    connection.busy_timeout(Duration::from_secs(5))?;
    connection.set_prepared_statement_cache_capacity(64);
    // A damaged or forged file must not make SQLite do more than read tables.
    connection.pragma_update(None, "trusted_schema", "off")?;
    connection.pragma_update(None, "cell_size_check", "on")?;
    Ok(())
}

/// The first access, where SQLite finds out whether it can read at all.
fn probe(connection: &Connection) -> Result<(), rusqlite::Error> {
    connection.query_row("SELECT count(*) FROM sqlite_schema", (), |row| row.get::<_, i64>(0)).map(|_| ())
}

fn cannot_share(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly | ErrorCode::PermissionDenied)
    )
}

fn has_content(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| metadata.len() > 0)
}

fn percent_encoded(path: &Path) -> String {
    use std::fmt::Write;
    use std::os::unix::ffi::OsStrExt;
    let mut encoded = String::new();
    for byte in path.as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() || b"/-_.~".contains(byte) {
            encoded.push(char::from(*byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}
