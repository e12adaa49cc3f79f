//! Sequential check of all records: leaf, hash, body, links, `once` keys, tiles and checkpoints.

use std::collections::BTreeSet;

use proctor_core::record::{Envelope, RecordKind, body_digest};
use rusqlite::{Connection, OptionalExtension, Row};

use super::index::BlockCheck;
use super::{DamageKind, FsckOptions, Report};
use crate::error::StoreError;
use crate::keys::VerifierKey;
use crate::merkle::leaf_hash;
use crate::store::schema::{BLOCK, from_sql, to_sql};
use crate::store::{CheckpointRow, TileRow};
use crate::writer::{Tree, read_checkpoint};

/// Records between two reports of progress.
const PROGRESS_STEP: u64 = 1024;

/// Row counts that the records account for.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counts {
    pub(super) records: u64,
    pub(super) blocks: u64,
    pub(super) postings: u64,
    pub(super) once: u64,
    pub(super) tiles: u64,
    pub(super) bodies: u64,
}

/// Checks every record, and what is stored about it.
pub(super) fn check_records(
    connection: &Connection,
    key: Option<&VerifierKey>,
    options: &mut FsckOptions<'_>,
    report: &mut Report,
) -> Result<Counts, StoreError> {
    let last: Option<i64> = connection.query_row("SELECT max(seq) FROM records", (), |row| row.get(0))?;
    let size = last.map_or(Ok(0), |last| from_sql(last).map(|last| last.saturating_add(1)))?;
    let mut walk = Walk {
        connection,
        key,
        report,
        size,
        counts: Counts::default(),
        tree: Tree::default(),
        whole: true,
        block: None,
        missing: BTreeSet::new(),
        erased: BTreeSet::new(),
    };
    let mut statement = connection.prepare(
        "SELECT records.seq, leaf, salt, bytes FROM records LEFT JOIN bodies ON bodies.seq = records.seq \
         ORDER BY records.seq",
    )?;
    let mut rows = statement.query(())?;
    walk.checkpoints_here()?;
    while let Some(row) = rows.next()? {
        let seq = from_sql(row.get(0)?)?;
        walk.step_to(seq);
        let leaf: Vec<u8> = row.get(1)?;
        if let Some(envelope) = walk.record(seq, &leaf, row)?
            && let Some(refold) = &mut options.refold
        {
            refold.record(seq, &envelope);
        }
        walk.checkpoints_here()?;
        if let Some(progress) = &mut options.progress
            && (walk.counts.records.is_multiple_of(PROGRESS_STEP) || walk.counts.records == size)
        {
            progress(walk.counts.records, size);
        }
    }
    walk.end()?;
    Ok(walk.counts)
}

struct Walk<'a> {
    connection: &'a Connection,
    key: Option<&'a VerifierKey>,
    report: &'a mut Report,
    size: u64,
    counts: Counts,
    tree: Tree,
    /// No record was missing so far, so that tree hashes can be compared.
    whole: bool,
    block: Option<BlockCheck>,
    /// Records whose bodies are not there.
    missing: BTreeSet<u64>,
    /// Records whose bodies are said to be erased.
    erased: BTreeSet<u64>,
}

impl Walk<'_> {
    /// Reports missing sequences before the record `seq`.
    fn step_to(&mut self, seq: u64) {
        if seq != self.counts.records {
            let what = format!("records {} to {} are missing", self.counts.records, seq.saturating_sub(1));
            self.report.add(DamageKind::Sequence, "table `records`", what);
            self.whole = false;
            self.counts.records = seq;
        }
    }

    fn record(&mut self, seq: u64, leaf: &[u8], row: &Row<'_>) -> Result<Option<Envelope>, StoreError> {
        self.counts.records = seq.saturating_add(1);
        let mut tiles = Vec::new();
        self.tree.append(leaf_hash(leaf), &mut tiles);
        self.compare_tiles(&tiles)?;
        let where_ = format!("record {seq}");
        let envelope = match Envelope::from_leaf(leaf) {
            Ok(envelope) => envelope,
            Err(error) => {
                self.report.add(DamageKind::Leaf, where_, error.to_string());
                self.counts.bodies += u64::from(row.get_ref(2)?.as_blob().is_ok());
                return Ok(None);
            }
        };
        self.index(seq, &envelope)?;
        self.body(seq, &envelope, row)?;
        if let Some(key) = &envelope.once {
            self.counts.once += 1;
            let mut statement = self.connection.prepare_cached("SELECT seq FROM once WHERE key = ?1")?;
            let found: Option<i64> = statement.query_row([key], |row| row.get(0)).optional()?;
            if found != Some(to_sql(seq)) {
                let what =
                    format!("its unique key `{key}` is not in the table of such keys under this record");
                self.report.add(DamageKind::Once, where_.as_str(), what);
            }
        }
        if let Some(link) = envelope.links.iter().find(|link| **link >= seq) {
            self.report.add(
                DamageKind::Link,
                where_.as_str(),
                format!("it links to record {link}, which is not before it"),
            );
        }
        self.own_kinds(seq, &envelope)?;
        Ok(Some(envelope))
    }

    /// Checks the required members of gap, erasure and retraction records.
    fn own_kinds(&mut self, seq: u64, envelope: &Envelope) -> Result<(), StoreError> {
        let where_ = format!("record {seq}");
        match envelope.kind {
            RecordKind::Gap if !envelope.code.parse::<u64>().is_ok_and(|count| count > 0) => {
                self.report.add(
                    DamageKind::Record,
                    where_,
                    "a gap record must say how many answers it stands for",
                );
            }
            RecordKind::Retracted | RecordKind::Erasure => {
                let [link] = *envelope.links else {
                    let what = format!("a record of kind `{}` must link to one record", envelope.kind);
                    self.report.add(DamageKind::Record, where_, what);
                    return Ok(());
                };
                if link >= seq {
                    return Ok(());
                }
                let target = self.envelope(link)?;
                let fits = target.as_ref().is_some_and(|target| match envelope.kind {
                    RecordKind::Erasure => target.body.is_some(),
                    _ => {
                        !matches!(target.kind, RecordKind::Retracted | RecordKind::Erasure | RecordKind::Gap)
                    }
                });
                if !fits {
                    let what = format!("a record of kind `{}` cannot be about record {link}", envelope.kind);
                    self.report.add(DamageKind::Record, where_, what);
                }
                if fits && envelope.kind == RecordKind::Erasure {
                    self.erased.insert(link);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn envelope(&self, seq: u64) -> Result<Option<Envelope>, StoreError> {
        let mut statement = self.connection.prepare_cached("SELECT leaf FROM records WHERE seq = ?1")?;
        let leaf: Option<Vec<u8>> = statement.query_row([to_sql(seq)], |row| row.get(0)).optional()?;
        Ok(leaf.and_then(|leaf| Envelope::from_leaf(&leaf).ok()))
    }

    fn body(&mut self, seq: u64, envelope: &Envelope, row: &Row<'_>) -> Result<(), StoreError> {
        let where_ = format!("body of record {seq}");
        let stored: Option<(Vec<u8>, Vec<u8>)> = match row.get::<_, Option<Vec<u8>>>(2)? {
            Some(salt) => Some((salt, row.get(3)?)),
            None => None,
        };
        self.counts.bodies += u64::from(stored.is_some());
        match (envelope.body, stored) {
            (None, None) => {}
            (None, Some(_)) => {
                self.report.add(DamageKind::BodyPresent, where_, "it is there, but the record has none");
            }
            (Some(_), None) => {
                self.missing.insert(seq);
            }
            (Some(digest), Some((salt, bytes))) => {
                let fits = <[u8; 32]>::try_from(salt).is_ok_and(|salt| body_digest(&salt, &bytes) == digest);
                if !fits {
                    self.report.add(
                        DamageKind::BodyDigest,
                        where_,
                        "it does not have the digest that is on record",
                    );
                }
            }
        }
        Ok(())
    }

    fn index(&mut self, seq: u64, envelope: &Envelope) -> Result<(), StoreError> {
        if self.block.as_ref().is_none_or(|check| check.block() != seq / BLOCK) {
            self.end_block()?;
            self.block = Some(BlockCheck::new(seq / BLOCK));
        }
        if let Some(check) = &mut self.block {
            check.add(seq, envelope);
        }
        Ok(())
    }

    fn end_block(&mut self) -> Result<(), StoreError> {
        if let Some(check) = self.block.take().filter(BlockCheck::is_full) {
            self.counts.blocks += 1;
            self.counts.postings += check.compare(self.connection, self.report)?;
        }
        Ok(())
    }

    fn compare_tiles(&mut self, tiles: &[TileRow]) -> Result<(), StoreError> {
        let mut statement =
            self.connection.prepare_cached("SELECT hashes FROM tiles WHERE level = ?1 AND idx = ?2")?;
        for tile in tiles {
            self.counts.tiles += 1;
            let stored: Option<Vec<u8>> =
                statement.query_row((tile.level, to_sql(tile.index)), |row| row.get(0)).optional()?;
            if self.whole && stored.as_ref() != Some(&tile.hashes) {
                let where_ = format!("tile {} of level {}", tile.index, tile.level);
                self.report.add(DamageKind::Tile, where_, "its hashes are not those of the records");
            }
        }
        Ok(())
    }

    /// Checks the checkpoint of the present size, if there is one.
    fn checkpoints_here(&mut self) -> Result<(), StoreError> {
        let mut statement = self.connection.prepare_cached("SELECT note FROM checkpoints WHERE size = ?1")?;
        let size = self.counts.records;
        let Some(note) = statement.query_row([to_sql(size)], |row| row.get(0)).optional()? else {
            return Ok(());
        };
        let where_ = format!("checkpoint of {size} records");
        let Some(key) = self.key else { return Ok(()) };
        match read_checkpoint(&CheckpointRow { size, note }, key) {
            Err(error) => self.report.add(DamageKind::Checkpoint, where_, error.to_string()),
            Ok(root) if self.whole && root != self.tree.root() => {
                self.report.add(
                    DamageKind::Checkpoint,
                    where_,
                    "the records have another root than was signed",
                );
            }
            Ok(_) => {}
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), StoreError> {
        self.end_block()?;
        let mut growing = Vec::new();
        self.tree.take_partial_tiles(&mut growing);
        self.compare_tiles(&growing)?;
        let outside: Option<i64> = self
            .connection
            .query_row(
                "SELECT size FROM checkpoints WHERE size < 0 OR size > ?1 LIMIT 1",
                [to_sql(self.size)],
                |row| row.get(0),
            )
            .optional()?;
        if let Some(outside) = outside {
            let what = format!("only {} records are there", self.size);
            self.report.add(DamageKind::Checkpoint, format!("checkpoint of {outside} records"), what);
        }
        let any: Option<i64> =
            self.connection.query_row("SELECT max(size) FROM checkpoints", (), |row| row.get(0))?;
        if any.is_none() && self.size > 0 {
            self.report.add(
                DamageKind::Checkpoint,
                "checkpoints",
                format!("there are {} records, but no checkpoint", self.size),
            );
        }
        for seq in self.missing.difference(&self.erased) {
            let what = "it is missing, but no record says that it was erased";
            self.report.add(DamageKind::BodyMissing, format!("body of record {seq}"), what);
        }
        for seq in self.erased.difference(&self.missing) {
            let what = "a record says that it was erased, but it is there";
            self.report.add(DamageKind::BodyPresent, format!("body of record {seq}"), what);
        }
        Ok(())
    }
}
