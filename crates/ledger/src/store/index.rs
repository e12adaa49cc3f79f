//! The index: which of each 256 records have a session, principal, agent, kind or approval; and their times. The last records, as long as
//! they are fewer than 256, are not in it: readers look at them themselves.

use std::collections::HashMap;

use proctor_core::record::Envelope;
use rusqlite::{Connection, OptionalExtension};

use super::schema::{BLOCK, from_sql, to_sql};
use crate::error::StoreError;

/// Terms that are remembered with their numbers before the memory is emptied.
const REMEMBERED_TERMS: usize = 1 << 16;

/// The indexed fields of an envelope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Dimension {
    Session = 1,
    Principal = 2,
    Agent = 3,
    Kind = 4,
    Approval = 5,
}

impl Dimension {
    const ALL: [Dimension; 5] =
        [Dimension::Session, Dimension::Principal, Dimension::Agent, Dimension::Kind, Dimension::Approval];
}

/// Number of dimensions: the highest one plus one.
const DIMENSIONS: usize = 6;

/// Bit set of the records of a block.
pub(crate) type Bits = [u8; 32];

/// The terms that a record is found by. Empty texts are not indexed.
pub(crate) fn terms_of(envelope: &Envelope, mut each: impl FnMut(Dimension, &str)) {
    if let Some(session) = envelope.session {
        each(Dimension::Session, &session.to_string());
    }
    if !envelope.principal.is_empty() {
        each(Dimension::Principal, &envelope.principal);
    }
    if !envelope.agent.is_empty() {
        each(Dimension::Agent, &envelope.agent);
    }
    each(Dimension::Kind, envelope.kind.word());
    if let Some(approval) = envelope.approval {
        each(Dimension::Approval, &approval.to_string());
    }
}

/// The milliseconds that a record's identifier begins with.
pub(crate) fn id_millis(id: &[u8; 16]) -> i64 {
    id.iter().take(6).fold(0, |millis, byte| millis << 8 | i64::from(*byte))
}

/// Sets the bit of the `n`th record of a block.
pub(crate) fn set_bit(bits: &mut Bits, n: u64) {
    let byte = usize::try_from(n / 8).unwrap_or(usize::MAX);
    if let Some(byte) = bits.get_mut(byte) {
        *byte |= 1 << (n % 8);
    }
}

/// Whether the bit of the `n`th record of a block is set.
pub(crate) fn has_bit(bits: &Bits, n: u64) -> bool {
    let byte = usize::try_from(n / 8).unwrap_or(usize::MAX);
    bits.get(byte).is_some_and(|byte| byte >> (n % 8) & 1 == 1)
}

/// The number of a term that is stored.
pub(crate) fn find_term(
    connection: &Connection,
    dimension: Dimension,
    text: &str,
) -> Result<Option<i64>, StoreError> {
    let mut statement =
        connection.prepare_cached("SELECT id FROM terms WHERE dimension = ?1 AND text = ?2")?;
    Ok(statement.query_row((dimension as i64, text), |row| row.get(0)).optional()?)
}

/// A row of `blocks`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlockRow {
    pub(crate) block: u64,
    pub(crate) count: u64,
    pub(crate) times: (i64, i64),
    pub(crate) ids: (i64, i64),
}

impl BlockRow {
    pub(crate) fn new(block: u64) -> BlockRow {
        BlockRow { block, count: 0, times: (i64::MAX, i64::MIN), ids: (i64::MAX, i64::MIN) }
    }

    pub(crate) fn add(&mut self, envelope: &Envelope) {
        let (time, id) = (envelope.time.micros(), id_millis(envelope.id.as_bytes()));
        self.count += 1;
        self.times = (self.times.0.min(time), self.times.1.max(time));
        self.ids = (self.ids.0.min(id), self.ids.1.max(id));
    }
}

/// A stored row of `blocks`; the last one if none is named.
pub(crate) fn read_block(
    connection: &Connection,
    block: Option<u64>,
) -> Result<Option<BlockRow>, StoreError> {
    const COLUMNS: &str = "SELECT block, count, min_time, max_time, min_id, max_id FROM blocks";
    let read = |row: &rusqlite::Row<'_>| {
        Ok((row.get(0)?, row.get(1)?, (row.get(2)?, row.get(3)?), (row.get(4)?, row.get(5)?)))
    };
    let row = if let Some(block) = block {
        let mut statement = connection.prepare_cached(&format!("{COLUMNS} WHERE block = ?1"))?;
        statement.query_row([to_sql(block)], read).optional()?
    } else {
        let mut statement = connection.prepare_cached(&format!("{COLUMNS} ORDER BY block DESC LIMIT 1"))?;
        statement.query_row((), read).optional()?
    };
    row.map(|(block, count, times, ids)| {
        Ok(BlockRow { block: from_sql(block)?, count: from_sql(count)?, times, ids })
    })
    .transpose()
}

/// The writer's part of the index: the block that is being filled, and the numbers of known terms.
///
/// A block is indexed when it is full, so that a commit of few records does not have to change a page for each of their terms. It runs
/// ahead of the database within a transaction; if that fails, it must be thrown away and loaded anew.
#[derive(Debug)]
pub(super) struct IndexWriter {
    open: BlockRow,
    terms: [HashMap<String, Bits>; DIMENSIONS],
    numbers: HashMap<Dimension, HashMap<String, i64>>,
    next_number: i64,
}

impl IndexWriter {
    /// The index as it is stored, and the records that it does not have yet.
    pub(super) fn load(connection: &Connection) -> Result<IndexWriter, StoreError> {
        let last: Option<i64> = connection.query_row("SELECT max(id) FROM terms", (), |row| row.get(0))?;
        let size = super::query::size(connection)?;
        let mut index = IndexWriter {
            open: BlockRow::new(size / BLOCK),
            terms: Default::default(),
            numbers: HashMap::new(),
            next_number: last.unwrap_or(0).saturating_add(1),
        };
        let first = index.open.block.saturating_mul(BLOCK);
        let mut statement =
            connection.prepare("SELECT seq, leaf FROM records WHERE seq >= ?1 ORDER BY seq")?;
        let mut rows = statement.query([to_sql(first)])?;
        while let Some(row) = rows.next()? {
            let (seq, leaf): (i64, Vec<u8>) = (row.get(0)?, row.get(1)?);
            let envelope = super::query::parse_leaf(seq, &leaf)?.into();
            index.note(from_sql(seq)?, &envelope);
        }
        Ok(index)
    }

    /// Adds a record, whose sequence follows the last one's.
    pub(super) fn add(
        &mut self,
        connection: &Connection,
        seq: u64,
        envelope: &Envelope,
    ) -> Result<(), StoreError> {
        self.note(seq, envelope);
        if seq % BLOCK == BLOCK - 1 {
            self.write_block(connection)?;
            self.open = BlockRow::new(seq / BLOCK + 1);
        }
        Ok(())
    }

    fn note(&mut self, seq: u64, envelope: &Envelope) {
        self.open.add(envelope);
        terms_of(envelope, |dimension, text| {
            let Some(terms) = self.terms.get_mut(dimension as usize) else { return };
            // Most records have terms that their neighbours have.
            match terms.get_mut(text) {
                Some(bits) => set_bit(bits, seq % BLOCK),
                None => set_bit(terms.entry(text.to_owned()).or_insert([0; 32]), seq % BLOCK),
            }
        });
    }

    /// Writes the block, which is full.
    fn write_block(&mut self, connection: &Connection) -> Result<(), StoreError> {
        let mut rows = Vec::new();
        for dimension in Dimension::ALL {
            let terms = self.terms.get_mut(dimension as usize).map(std::mem::take).unwrap_or_default();
            for (text, bits) in terms {
                rows.push((self.number(connection, dimension, text)?, bits));
            }
        }
        // In order, so that neighbours in the table are written together.
        rows.sort_unstable();
        let mut statement = connection.prepare_cached(
            "INSERT INTO postings(term, block, bits) VALUES (?1, ?2, ?3) \
             ON CONFLICT(term, block) DO UPDATE SET bits = excluded.bits",
        )?;
        let block = to_sql(self.open.block);
        for (number, bits) in rows {
            statement.execute((number, block, bits.as_slice()))?;
        }
        let BlockRow { count, times, ids, .. } = self.open;
        let mut statement = connection.prepare_cached(
            "INSERT OR REPLACE INTO blocks(block, count, min_time, max_time, min_id, max_id) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?;
        statement.execute((block, to_sql(count), times.0, times.1, ids.0, ids.1))?;
        Ok(())
    }

    fn number(
        &mut self,
        connection: &Connection,
        dimension: Dimension,
        text: String,
    ) -> Result<i64, StoreError> {
        let known = self.numbers.entry(dimension).or_default();
        if let Some(number) = known.get(&text) {
            return Ok(*number);
        }
        if known.len() >= REMEMBERED_TERMS {
            known.clear();
        }
        let number = if let Some(number) = find_term(connection, dimension, &text)? {
            number
        } else {
            let mut statement =
                connection.prepare_cached("INSERT INTO terms(id, dimension, text) VALUES (?1, ?2, ?3)")?;
            statement.execute((self.next_number, dimension as i64, &text))?;
            self.next_number += 1;
            self.next_number - 1
        };
        known.insert(text, number);
        Ok(number)
    }
}
