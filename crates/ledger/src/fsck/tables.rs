//! Checks of whole tables: schema, metadata, row counts and derived state.

use std::collections::BTreeMap;

use rusqlite::Connection;

use super::{DamageKind, ExpectedRow, Refold, Report};
use crate::error::StoreError;
use crate::keys::VerifierKey;
use crate::store::schema::{APPLICATION_ID, BLOCK, TABLES};
use crate::store::{DATABASE_FILE, FORMAT};

/// Maximum of lines of SQLite's own check.
const INTEGRITY_LINES: u32 = 100;

/// Runs SQLite's own integrity check.
pub(super) fn check_integrity(connection: &Connection, report: &mut Report) -> Result<(), StoreError> {
    let mut statement = connection.prepare(&format!("PRAGMA integrity_check({INTEGRITY_LINES})"))?;
    let mut rows = statement.query(())?;
    while let Some(row) = rows.next()? {
        let line: String = row.get(0)?;
        if line != "ok" {
            report.add(DamageKind::Database, DATABASE_FILE, line);
        }
    }
    Ok(())
}

/// Checks that the tables are those of this format, letter by letter.
pub(super) fn check_schema(connection: &Connection, report: &mut Report) -> Result<(), StoreError> {
    let number =
        |pragma: &str| connection.query_row(&format!("PRAGMA {pragma}"), (), |row| row.get::<_, i64>(0));
    if number("application_id")? != i64::from(APPLICATION_ID) || number("user_version")? != 1 {
        report.add(
            DamageKind::Format,
            DATABASE_FILE,
            "the file's header is not that of a ledger of format 1",
        );
    }
    let mut statement =
        connection.prepare("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name")?;
    let mut rows = statement.query(())?;
    let mut expected = TABLES.iter();
    while let Some(row) = rows.next()? {
        let (name, sql): (String, String) = (row.get(0)?, row.get(1)?);
        match expected.next() {
            Some((known, definition)) if *known == name && *definition == sql => {}
            _ => {
                report.add(
                    DamageKind::Format,
                    format!("table `{name}`"),
                    "it is not defined as format 1 says",
                );
                return Ok(());
            }
        }
    }
    if let Some((name, _)) = expected.next() {
        report.add(DamageKind::Format, format!("table `{name}`"), "it is missing");
    }
    Ok(())
}

/// Checks what the ledger says about itself; its key if that is one.
pub(super) fn check_meta(
    connection: &Connection,
    trusted: Option<VerifierKey>,
    report: &mut Report,
) -> Result<Option<VerifierKey>, StoreError> {
    let mut meta = BTreeMap::new();
    let mut statement = connection.prepare("SELECT name, value FROM meta LIMIT 100")?;
    let mut rows = statement.query(())?;
    while let Some(row) = rows.next()? {
        meta.insert(row.get::<_, String>(0)?, row.get::<_, String>(1)?);
    }
    let mut take = |name: &str| meta.remove(name).unwrap_or_default();
    let (format, origin, key) = (take("format"), take("origin"), take("key"));
    if format != FORMAT {
        report.add(DamageKind::Format, "meta", format!("the format is `{format}`, not `{FORMAT}`"));
    }
    if let Some(name) = meta.keys().next() {
        report.add(DamageKind::Format, "meta", format!("there is an unknown entry `{name}`"));
    }
    let own = match key.parse::<VerifierKey>() {
        Ok(key) => Some(key),
        Err(error) => {
            report.add(DamageKind::Format, "meta", format!("the ledger's key is not one: {error}"));
            None
        }
    };
    if own.as_ref().is_some_and(|key| key.name() != origin) {
        report.add(
            DamageKind::Format,
            "meta",
            format!("the origin `{origin}` is not the name of the ledger's key"),
        );
    }
    match (trusted, own) {
        (Some(trusted), Some(own)) if trusted != own => {
            let what = format!("the ledger names key `{own}`, but `{trusted}` was expected");
            report.add(DamageKind::Checkpoint, "meta", what);
            Ok(Some(trusted))
        }
        (trusted, own) => Ok(trusted.or(own)),
    }
}

/// Checks that no table has rows that no record accounts for.
pub(super) fn check_counts(
    connection: &Connection,
    counts: super::records::Counts,
    report: &mut Report,
) -> Result<(), StoreError> {
    let count = |sql: &str| connection.query_row(sql, (), |row| row.get::<_, i64>(0)).map(i64::unsigned_abs);
    let tables = [
        ("blocks", counts.blocks, DamageKind::Index),
        ("postings", counts.postings, DamageKind::Index),
        ("once", counts.once, DamageKind::Once),
        ("tiles", counts.tiles, DamageKind::Tile),
        ("bodies", counts.bodies, DamageKind::BodyPresent),
    ];
    // An earlier version wrote rows also for the last block while it was being filled; nobody reads them.
    let open = count("SELECT count(*) FROM records")? / BLOCK;
    for (table, expected, kind) in tables {
        let of_full_blocks = match table {
            "blocks" | "postings" => format!(" WHERE block != {open}"),
            _ => String::new(),
        };
        let found = count(&format!("SELECT count(*) FROM {table}{of_full_blocks}"))?;
        if found != expected {
            report.add(
                kind,
                format!("table `{table}`"),
                format!("it has {found} rows, but the records account for {expected}"),
            );
        }
    }
    let unused =
        count("SELECT count(*) FROM terms WHERE NOT EXISTS (SELECT 1 FROM postings WHERE term = terms.id)")?;
    if unused > 0 {
        report.add(DamageKind::Index, "table `terms`", format!("{unused} terms belong to no record"));
    }
    Ok(())
}

/// Compares the state rows with the fold of the records.
pub(super) fn check_state(
    connection: &Connection,
    counts: super::records::Counts,
    refold: Option<&mut dyn Refold>,
    report: &mut Report,
) -> Result<(), StoreError> {
    let mut expected: Option<BTreeMap<(String, String), ExpectedRow>> = refold.map(|refold| {
        let rows = refold.expected_rows().into_iter().filter(|expected| expected.row.value.is_some());
        rows.map(|expected| ((expected.row.fold.to_owned(), expected.row.key.clone()), expected)).collect()
    });
    let mut statement = connection.prepare("SELECT fold, key, value, seq FROM state ORDER BY fold, key")?;
    let mut rows = statement.query(())?;
    while let Some(row) = rows.next()? {
        let (fold, key): (String, String) = (row.get(0)?, row.get(1)?);
        let (value, seq): (Vec<u8>, i64) = (row.get(2)?, row.get(3)?);
        let where_ = format!("state row `{key}` of fold `{fold}`");
        if !u64::try_from(seq).is_ok_and(|seq| seq < counts.records) {
            report.add(
                DamageKind::State,
                where_.as_str(),
                format!("it names record {seq}, which does not exist"),
            );
        }
        let Some(expected) = &mut expected else { continue };
        match expected.remove(&(fold, key)) {
            None => report.add(DamageKind::State, where_, "the records give no such row"),
            Some(row) if row.row.value.as_deref() != Some(value.as_slice()) => {
                report.add(DamageKind::State, where_, "the records give another value");
            }
            Some(ExpectedRow { seq: Some(made), .. }) if i64::try_from(made) != Ok(seq) => {
                report.add(DamageKind::State, where_, format!("record {made} made it, but it names {seq}"));
            }
            Some(_) => {}
        }
    }
    for (fold, key) in expected.unwrap_or_default().into_keys() {
        report.add(DamageKind::State, format!("state row `{key}` of fold `{fold}`"), "it is missing");
    }
    Ok(())
}
