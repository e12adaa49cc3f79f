//! `fsck`: compares everything that is stored with everything else, without writing.

mod damage;
mod file;
mod index;
mod records;
mod tables;

use std::path::Path;

use proctor_core::record::Envelope;
use rusqlite::Connection;

use crate::error::StoreError;
use crate::keys::VerifierKey;
use crate::store::{Access, DATABASE_FILE, Durability, open_connection};
use crate::writer::StateRow;

pub use damage::{Damage, DamageKind};
pub(crate) use file::check_file;

/// Items of damage after which further ones are only counted: one broken disk block can make thousands.
pub const MAX_REPORTED: usize = 1000;

/// Options of a check.
#[derive(Default)]
pub struct FsckOptions<'a> {
    /// The key that must have signed. If absent, the key that the ledger itself names: then a ledger that somebody
    /// made anew, with a key of their own, is found to be in order.
    pub key: Option<VerifierKey>,
    /// Computes the state rows from the records. If absent, state rows are only checked for their form.
    pub refold: Option<&'a mut dyn Refold>,
    /// Progress callback: records checked, and records in all.
    pub progress: Option<&'a mut dyn FnMut(u64, u64)>,
}

/// Computes state rows from records once more.
pub trait Refold {
    /// Folds the next record.
    fn record(&mut self, seq: u64, envelope: &Envelope);

    /// All rows that must be there after the last record.
    fn expected_rows(&mut self) -> Vec<ExpectedRow>;
}

/// A state row that must be there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpectedRow {
    /// The row.
    pub row: StateRow,
    /// The record that made it, if that is to be checked.
    pub seq: Option<u64>,
}

/// Checks the ledger in a state directory; an empty list means that everything fits.
///
/// Reads only, in memory that does not grow with the ledger, and may run while the owner writes: it then
/// checks what was there when it began.
pub fn fsck(dir: &Path, options: FsckOptions<'_>) -> Vec<Damage> {
    let path = dir.join(DATABASE_FILE);
    let mut report = Report { damage: check_file(&path, Durability::Power), left_out: 0 };
    if report.damage.iter().any(|damage| damage.kind == DamageKind::Unreadable) {
        return report.damage;
    }
    let checked = open_connection(&path, Access::Read).and_then(|mut connection| {
        let transaction = connection.transaction()?;
        check(&transaction, options, &mut report)
    });
    if let Err(error) = checked {
        report.add(DamageKind::Database, DATABASE_FILE, error.to_string());
    }
    report.end()
}

fn check(
    connection: &Connection,
    mut options: FsckOptions<'_>,
    report: &mut Report,
) -> Result<(), StoreError> {
    tables::check_integrity(connection, report)?;
    let key = tables::check_meta(connection, options.key.take(), report)?;
    let size = records::check_records(connection, key.as_ref(), &mut options, report)?;
    tables::check_counts(connection, size, report)?;
    tables::check_state(connection, size, options.refold, report)
}

/// Damage found so far.
#[derive(Default)]
struct Report {
    damage: Vec<Damage>,
    left_out: u64,
}

impl Report {
    fn add(&mut self, kind: DamageKind, where_: impl Into<String>, what: impl Into<String>) {
        if self.damage.len() < MAX_REPORTED {
            self.damage.push(Damage::new(kind, where_, what));
        } else {
            self.left_out += 1;
        }
    }

    fn end(mut self) -> Vec<Damage> {
        if self.left_out > 0 {
            let what = format!("{} more findings are not listed", self.left_out);
            self.damage.push(Damage::new(DamageKind::Database, DATABASE_FILE, what));
        }
        self.damage
    }
}
