//! Checks of the database file and its write-ahead log, before their content is read.

use std::path::Path;

use rusqlite::{Connection, Transaction};

use super::tables::check_schema;
use super::{Damage, DamageKind, Report};
use crate::store::{Access, DATABASE_FILE, Durability, FORMAT, beside, open_connection, wal};

/// Checks that the database can be read, has all its pages, and that nothing is lost in its write-ahead log.
///
/// The database file itself is never opened except by SQLite: closing any other handle would drop the locks that
/// SQLite has on it in this process.
pub(crate) fn check_file(path: &Path, durability: Durability) -> Vec<Damage> {
    let unreadable = |what: String| vec![Damage::new(DamageKind::Unreadable, DATABASE_FILE, what)];
    match std::fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() => return unreadable("it is not a file".to_owned()),
        // SQLite would take it for an empty database.
        Ok(metadata) if metadata.len() < 512 => {
            return unreadable(format!("the file has only {} bytes", metadata.len()));
        }
        Ok(_) => {}
        Err(error) => return unreadable(error.to_string()),
    }
    let mut connection = match open_connection(path, Access::Read) {
        Ok(connection) => connection,
        Err(error) => {
            let mut damage = unreadable(error.to_string());
            damage.extend(check_log(path, durability).1);
            return damage;
        }
    };
    // While this transaction is open the log keeps every page that it needs, so that what is read from the log
    // afterwards is not older than the number of pages.
    let transaction = match begin(&mut connection) {
        Ok(transaction) => transaction,
        Err(error) => return unreadable(error.to_string()),
    };
    let pages = page_count(&transaction);
    let (log, mut damage) = check_log(path, durability);
    match pages {
        Ok((pages, page_size)) => damage.extend(missing_pages(path, pages, page_size, &log)),
        Err(error) => damage.extend(unreadable(error.to_string())),
    }
    damage.extend(check_tables(&transaction));
    damage
}

/// Checks the tables' definitions, unless the ledger says that they are of another format.
fn check_tables(connection: &Connection) -> Vec<Damage> {
    let format = connection
        .query_row("SELECT value FROM meta WHERE name = 'format'", (), |row| row.get::<_, String>(0));
    if format.is_ok_and(|format| format != FORMAT) {
        return Vec::new();
    }
    let mut report = Report::default();
    if let Err(error) = check_schema(connection, &mut report) {
        report.add(DamageKind::Unreadable, DATABASE_FILE, error.to_string());
    }
    report.end()
}

fn begin(connection: &mut Connection) -> Result<Transaction<'_>, rusqlite::Error> {
    let transaction = connection.transaction()?;
    transaction.query_row("SELECT count(*) FROM sqlite_schema", (), |row| row.get::<_, i64>(0))?;
    Ok(transaction)
}

fn check_log(path: &Path, durability: Durability) -> (wal::WalContent, Vec<Damage>) {
    let where_ = format!("{DATABASE_FILE}-wal");
    let log = match wal::read_wal(&beside(path, "-wal")) {
        Ok(log) => log,
        Err(error) => {
            let damage = Damage::new(DamageKind::Unreadable, where_, error.to_string());
            return (wal::WalContent::default(), vec![damage]);
        }
    };
    let mut damage = Vec::new();
    if log.bad_header {
        let what = "its header is damaged, so that none of it can be read";
        damage.push(Damage::new(DamageKind::Wal, &where_, what));
    }
    // Without waiting for the disk, a power loss may leave holes: what is before them is then the ledger.
    if log.lost_commits > 0 && durability == Durability::Power {
        let what = format!("it is damaged, and {} commits after the damage cannot be read", log.lost_commits);
        damage.push(Damage::new(DamageKind::Wal, &where_, what));
    }
    (log, damage)
}

fn page_count(connection: &Connection) -> Result<(u32, u32), rusqlite::Error> {
    let number = |pragma: &str| connection.query_row(&format!("PRAGMA {pragma}"), (), |row| row.get(0));
    Ok((number("page_count")?, number("page_size")?))
}

fn missing_pages(path: &Path, pages: u32, page_size: u32, log: &wal::WalContent) -> Option<Damage> {
    let bytes = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    let whole = u32::try_from(bytes / u64::from(page_size.max(512))).unwrap_or(u32::MAX);
    let missing = (whole.saturating_add(1)..=pages).find(|page| !log.pages.contains(page))?;
    let what = format!(
        "the file has {bytes} bytes, but {pages} pages of {page_size} bytes; page {missing} is missing"
    );
    Some(Damage::new(DamageKind::Truncated, DATABASE_FILE, what))
}
