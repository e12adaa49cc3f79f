//! Check of the search index against one block of records.

use std::collections::BTreeMap;

use proctor_core::record::Envelope;
use rusqlite::{Connection, OptionalExtension};

use super::{DamageKind, Report};
use crate::error::StoreError;
use crate::store::index::{Bits, BlockRow, Dimension, find_term, read_block, set_bit, terms_of};
use crate::store::schema::{BLOCK, to_sql};

/// The index rows that the records of the current block require.
pub(super) struct BlockCheck {
    row: BlockRow,
    terms: BTreeMap<(Dimension, String), Bits>,
}

impl BlockCheck {
    pub(super) fn new(block: u64) -> BlockCheck {
        BlockCheck { row: BlockRow::new(block), terms: BTreeMap::new() }
    }

    pub(super) fn block(&self) -> u64 {
        self.row.block
    }

    /// Whether it is full; only then it is in the index.
    pub(super) fn is_full(&self) -> bool {
        self.row.count == BLOCK
    }

    pub(super) fn add(&mut self, seq: u64, envelope: &Envelope) {
        self.row.add(envelope);
        terms_of(envelope, |dimension, text| {
            set_bit(self.terms.entry((dimension, text.to_owned())).or_insert([0; 32]), seq % BLOCK);
        });
    }

    /// Compares with what is stored; how many rows of `postings` belong to the block.
    pub(super) fn compare(self, connection: &Connection, report: &mut Report) -> Result<u64, StoreError> {
        let block = self.row.block;
        let where_ = format!("block {block} (records {} and following)", block * BLOCK);
        if read_block(connection, Some(block))? != Some(self.row) {
            report.add(
                DamageKind::Index,
                where_.as_str(),
                "its row of count and times does not fit its records",
            );
        }
        let mut statement =
            connection.prepare_cached("SELECT bits FROM postings WHERE term = ?1 AND block = ?2")?;
        let mut count = 0;
        for ((dimension, text), bits) in self.terms {
            count += 1;
            let stored: Option<Vec<u8>> = match find_term(connection, dimension, &text)? {
                Some(number) => statement.query_row((number, to_sql(block)), |row| row.get(0)).optional()?,
                None => None,
            };
            if stored.as_deref() != Some(bits.as_slice()) {
                let what = format!("the index does not have the right records for {dimension:?} `{text}`");
                report.add(DamageKind::Index, where_.as_str(), what);
            }
        }
        Ok(count)
    }
}
