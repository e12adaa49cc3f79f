//! Filtered reads: intersects the bitmaps of the search index block by block.

use proctor_core::record::{Envelope, LeafView};
use rusqlite::{Connection, OptionalExtension, Statement};

use super::index::{Bits, Dimension, find_term, has_bit, read_block};
use super::schema::{BLOCK, from_sql, to_sql};
use super::{Filter, Order, Page, PageBound, StoredLeaf};
use crate::error::StoreError;

/// Blocks that are looked at for one page; then the page ends, so that no read takes long.
const BLOCKS_A_PAGE: usize = 2048;

/// Number of records.
pub(super) fn size(connection: &Connection) -> Result<u64, StoreError> {
    let mut statement = connection.prepare_cached("SELECT max(seq) FROM records")?;
    let last: Option<i64> = statement.query_row((), |row| row.get(0))?;
    last.map_or(Ok(0), |last| Ok(from_sql(last)?.saturating_add(1)))
}

/// The records from sequence `from` on, in the given direction, that fit the filter.
pub(super) fn page(
    connection: &Connection,
    filter: &Filter,
    from: u64,
    order: Order,
    bound: PageBound,
) -> Result<Page, StoreError> {
    let size = size(connection)?;
    let (mut low, mut end) = filter.seqs.as_ref().map_or((0, size), |seqs| (seqs.start, seqs.end.min(size)));
    match order {
        Order::Ascending => low = low.max(from),
        Order::Descending => end = end.min(from.saturating_add(1)),
    }
    if low >= end {
        return Ok(Page::default());
    }
    let terms = Terms::of(connection, filter)?;
    let indexed = size / BLOCK * BLOCK;
    let mut search =
        Search { connection, filter, order, bound, low, end, indexed, page: Page::default(), bytes: 0 };
    search.run(terms.as_ref())?;
    Ok(search.page)
}

/// Whether a record passes every condition of the filter on its envelope.
fn fits(filter: &Filter, envelope: &LeafView<'_>) -> bool {
    let within = filter.since.is_none_or(|since| envelope.time >= since)
        && filter.until.is_none_or(|until| envelope.time < until);
    within
        && (filter.kinds.is_empty() || filter.kinds.contains(&envelope.kind))
        && filter.session.is_none_or(|session| envelope.session == Some(session))
        && filter.approval.is_none_or(|approval| envelope.approval == Some(approval))
        // Empty texts are not indexed, so nothing is found by them here either.
        && filter.principal.as_ref().is_none_or(|name| !name.is_empty() && envelope.principal == *name)
        && filter.agent.as_ref().is_none_or(|name| !name.is_empty() && envelope.agent == *name)
}

/// The envelopes of the records that are not in the index yet, in order.
pub(super) fn not_indexed(connection: &Connection) -> Result<Vec<(u64, Envelope)>, StoreError> {
    let first = size(connection)? / BLOCK * BLOCK;
    let mut statement =
        connection.prepare_cached("SELECT seq, leaf FROM records WHERE seq >= ?1 ORDER BY seq")?;
    let mut rows = statement.query([to_sql(first)])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let (seq, leaf): (i64, Vec<u8>) = (row.get(0)?, row.get(1)?);
        found.push((from_sql(seq)?, parse_leaf(seq, &leaf)?.into()));
    }
    Ok(found)
}

/// Decodes a stored leaf.
pub(crate) fn parse_leaf(seq: impl std::fmt::Display, leaf: &[u8]) -> Result<LeafView<'_>, StoreError> {
    LeafView::parse(leaf).map_err(|error| StoreError::Damaged(format!("record {seq}: {error}")))
}

/// The numbers of the filter's terms.
struct Terms {
    /// Terms that must all match.
    all: Vec<i64>,
    /// Terms of kinds, one of which must match; empty if kinds do not matter.
    kinds: Vec<i64>,
}

impl Terms {
    /// Terms of a filter; none if a term does not occur in the index at all.
    fn of(connection: &Connection, filter: &Filter) -> Result<Option<Terms>, StoreError> {
        // The first one drives the search, so those that are likely to be rare come first.
        let wanted = [
            (Dimension::Approval, filter.approval.map(|id| id.to_string())),
            (Dimension::Session, filter.session.map(|id| id.to_string())),
            (Dimension::Agent, filter.agent.clone()),
            (Dimension::Principal, filter.principal.clone()),
        ];
        let mut all = Vec::new();
        for (dimension, text) in wanted {
            let Some(text) = text else { continue };
            let Some(number) = find_term(connection, dimension, &text)? else { return Ok(None) };
            all.push(number);
        }
        let mut kinds = Vec::new();
        for kind in &filter.kinds {
            kinds.extend(find_term(connection, Dimension::Kind, kind.word())?);
        }
        if kinds.is_empty() && !filter.kinds.is_empty() {
            return Ok(None);
        }
        if let [only] = *kinds {
            all.push(only);
            kinds.clear();
        }
        Ok(Some(Terms { all, kinds }))
    }
}

struct Search<'a> {
    connection: &'a Connection,
    filter: &'a Filter,
    order: Order,
    bound: PageBound,
    low: u64,
    end: u64,
    /// Records from here on are not in the index.
    indexed: u64,
    page: Page,
    bytes: usize,
}

impl Search<'_> {
    fn run(&mut self, terms: Option<&Terms>) -> Result<(), StoreError> {
        if self.order == Order::Descending && !self.scan_unindexed()? {
            return Ok(());
        }
        if let Some(terms) = terms
            && self.low < self.indexed
            && !self.scan_index(terms)?
        {
            return Ok(());
        }
        if self.order == Order::Ascending {
            self.scan_unindexed()?;
        }
        Ok(())
    }

    /// Filters the records that are not indexed yet one by one; false once the page is full.
    fn scan_unindexed(&mut self) -> Result<bool, StoreError> {
        let (first, end) = (self.low.max(self.indexed), self.end);
        if first >= end {
            return Ok(true);
        }
        let direction = self.direction();
        let connection = self.connection;
        let mut statement = connection.prepare_cached(&format!(
            "SELECT seq, leaf FROM records WHERE seq >= ?1 AND seq < ?2 ORDER BY seq {direction}"
        ))?;
        let mut rows = statement.query((to_sql(first), to_sql(end)))?;
        let mut expected = if self.order == Order::Ascending { first } else { end - 1 };
        for _ in first..end {
            let row = rows.next()?;
            let found =
                row.map(|row| Ok::<_, StoreError>((from_sql(row.get(0)?)?, row.get(1)?))).transpose()?;
            let Some((seq, leaf)) = found.filter(|(seq, _): &(u64, Vec<u8>)| *seq == expected) else {
                return Err(StoreError::Damaged(format!("record {expected} is missing")));
            };
            expected = if self.order == Order::Ascending { seq + 1 } else { seq.saturating_sub(1) };
            if !fits(self.filter, &parse_leaf(seq, &leaf)?) {
                continue;
            }
            if !self.has_room(seq) {
                return Ok(false);
            }
            self.add(seq, leaf);
        }
        Ok(true)
    }

    fn direction(&self) -> &'static str {
        match self.order {
            Order::Ascending => "ASC",
            Order::Descending => "DESC",
        }
    }

    /// Whether the page takes another record; if not, the next page begins with this one.
    fn has_room(&mut self, seq: u64) -> bool {
        let full = self.page.records.len() >= self.bound.records || self.bytes >= self.bound.bytes;
        if full {
            self.page.next = Some(seq);
        }
        !full
    }

    fn add(&mut self, seq: u64, leaf: Vec<u8>) {
        self.bytes += leaf.len();
        self.page.records.push(StoredLeaf { seq, leaf });
    }

    /// Collects indexed records; false if the page ends there.
    fn scan_index(&mut self, terms: &Terms) -> Result<bool, StoreError> {
        let direction = self.direction();
        let sql = if terms.all.is_empty() {
            format!(
                "SELECT block, NULL FROM blocks WHERE block >= ?1 AND block <= ?2 \
                 AND max_time >= ?3 AND min_time < ?4 ORDER BY block {direction} LIMIT ?5"
            )
        } else {
            format!(
                "SELECT block, bits FROM postings WHERE term = ?3 AND block >= ?1 AND block <= ?2 \
                 ORDER BY block {direction} LIMIT ?4"
            )
        };
        let connection = self.connection;
        let mut blocks = connection.prepare_cached(&sql)?;
        let last = self.end.min(self.indexed).saturating_sub(1) / BLOCK;
        let (first, last) = (to_sql(self.low / BLOCK), to_sql(last));
        let limit = i64::try_from(BLOCKS_A_PAGE).unwrap_or(i64::MAX);
        let mut rows = match terms.all.first() {
            None => blocks.query((first, last, self.since(), self.until(), limit))?,
            Some(term) => blocks.query((first, last, *term, limit))?,
        };
        let mut leaf = connection.prepare_cached("SELECT leaf FROM records WHERE seq = ?1")?;
        let mut looked_at = 0;
        let mut last_block = None;
        while let Some(row) = rows.next()? {
            let block = from_sql(row.get(0)?)?;
            looked_at += 1;
            last_block = Some(block);
            let mut bits: Bits = row.get::<_, Option<Bits>>(1)?.unwrap_or([0xff; 32]);
            self.narrow(terms, block, &mut bits)?;
            if !self.take(block, &bits, &mut leaf)? {
                return Ok(false);
            }
        }
        if looked_at == BLOCKS_A_PAGE
            && let Some(block) = last_block
        {
            self.page.next = match self.order {
                Order::Ascending => Some(block.saturating_add(1).saturating_mul(BLOCK)),
                Order::Descending => block.saturating_mul(BLOCK).checked_sub(1),
            };
            return Ok(false);
        }
        Ok(true)
    }

    /// Clears the bits that the filter's other parts rule out.
    fn narrow(&self, terms: &Terms, block: u64, bits: &mut Bits) -> Result<(), StoreError> {
        if !terms.all.is_empty() && (self.filter.since.is_some() || self.filter.until.is_some()) {
            let outside = read_block(self.connection, Some(block))?
                .is_none_or(|row| row.times.1 < self.since() || row.times.0 >= self.until());
            if outside {
                *bits = [0; 32];
                return Ok(());
            }
        }
        for term in terms.all.iter().skip(1) {
            let other = self.bits(*term, block)?;
            bits.iter_mut().zip(other).for_each(|(byte, other)| *byte &= other);
        }
        if !terms.kinds.is_empty() {
            let mut any: Bits = [0; 32];
            for term in &terms.kinds {
                let other = self.bits(*term, block)?;
                any.iter_mut().zip(other).for_each(|(byte, other)| *byte |= other);
            }
            bits.iter_mut().zip(any).for_each(|(byte, any)| *byte &= any);
        }
        Ok(())
    }

    fn bits(&self, term: i64, block: u64) -> Result<Bits, StoreError> {
        let mut statement =
            self.connection.prepare_cached("SELECT bits FROM postings WHERE term = ?1 AND block = ?2")?;
        Ok(statement.query_row((term, to_sql(block)), |row| row.get(0)).optional()?.unwrap_or([0; 32]))
    }

    /// Adds the block's records that are left; false once the page is full.
    fn take(&mut self, block: u64, bits: &Bits, leaf: &mut Statement<'_>) -> Result<bool, StoreError> {
        let first = block.saturating_mul(BLOCK);
        for step in 0..BLOCK {
            let n = if self.order == Order::Ascending { step } else { BLOCK - 1 - step };
            let seq = first.saturating_add(n);
            if !has_bit(bits, n) || seq < self.low || seq >= self.end {
                continue;
            }
            if !self.has_room(seq) {
                return Ok(false);
            }
            let Some(found) = leaf.query_row([to_sql(seq)], |row| row.get::<_, Vec<u8>>(0)).optional()?
            else {
                return Err(StoreError::Damaged(format!("record {seq} is missing")));
            };
            if self.fits_time(seq, &found)? {
                self.add(seq, found);
            }
        }
        Ok(true)
    }

    fn fits_time(&self, seq: u64, leaf: &[u8]) -> Result<bool, StoreError> {
        if self.filter.since.is_none() && self.filter.until.is_none() {
            return Ok(true);
        }
        let time = parse_leaf(seq, leaf)?.time;
        Ok((self.since()..self.until()).contains(&time.micros()))
    }

    fn since(&self) -> i64 {
        self.filter.since.map_or(i64::MIN, proctor_core::time::Timestamp::micros)
    }

    fn until(&self) -> i64 {
        self.filter.until.map_or(i64::MAX, proctor_core::time::Timestamp::micros)
    }
}
