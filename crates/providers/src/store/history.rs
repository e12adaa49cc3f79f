//! Score history: insertion, replacement of a plugin's row, retention, and queries.

use std::collections::BTreeSet;

use rusqlite::{CachedStatement, Connection, OptionalExtension, params};

use super::{Drift, Row, StoreOptions, error};

const NANOS_PER_DAY: i64 = 86_400_000_000_000;
/// Rows of one key that are kept, as a multiple of what one assertion id keeps. Ids that a client makes up anew for each
/// run never reach their own limit.
const KEY_FACTOR: u64 = 10;
/// Rows in a row that are looked at together.
const NEIGHBOURS: u64 = 8;
/// Rows too old that one group removes at most, so that its commit stays short.
const OLD_ROWS: usize = 10_000;

const INSERT: &str = "INSERT INTO assertion_history \
    (trace_id, assertion_id, assertion_type, score, status, created_at, key) VALUES (?, ?, ?, ?, ?, ?, ?)";

/// Retention rules: number and age of kept rows, and the schedule of pruning.
#[derive(Debug, Clone, Copy)]
pub(super) struct Retention {
    max_rows: u64,
    max_age: i64,
    /// Rows per pruning: one row of so many makes its assertion id be pruned.
    every: u64,
}

impl Retention {
    pub(super) fn new(options: &StoreOptions) -> Retention {
        let max_rows = options.history_max_rows.clamp(1, 1 << 40);
        let days = i64::try_from(options.history_max_age_days.max(1)).unwrap_or(i64::MAX);
        Retention {
            max_rows,
            max_age: days.saturating_mul(NANOS_PER_DAY),
            every: (max_rows / 20).clamp(1, 500),
        }
    }

    /// Rows created before this are too old.
    pub(super) fn oldest(&self, now: i64) -> i64 {
        now.saturating_sub(self.max_age)
    }

    /// Pruning schedule: it follows from the row's number alone, so that no process must remember how often it met an id, and engines that
    /// live for a few rows only do their share. Adjacent ids are pruned together, because rows of a batch are then removed from one page at
    /// once. Multiplying by the golden ratio spreads the schedule evenly.
    fn turn(row: i64) -> u64 {
        (row.cast_unsigned() / NEIGHBOURS).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32
    }
}

/// Rows that one group adds. Pruning is left to the end, when the ids to prune are known.
pub(super) struct Additions<'a> {
    connection: &'a Connection,
    insert: CachedStatement<'a>,
    retention: Retention,
    ids: BTreeSet<String>,
    keys: BTreeSet<String>,
    /// Rows that the database refused.
    pub(super) refused: usize,
}

impl<'a> Additions<'a> {
    pub(super) fn new(
        connection: &'a Connection,
        retention: Retention,
    ) -> Result<Additions<'a>, rusqlite::Error> {
        let insert = connection.prepare_cached(INSERT)?;
        Ok(Additions {
            connection,
            insert,
            retention,
            ids: BTreeSet::new(),
            keys: BTreeSet::new(),
            refused: 0,
        })
    }

    pub(super) fn add(&mut self, at: i64, row: &Row) -> Result<(), rusqlite::Error> {
        // SQLite has no NaN: it would store nothing, and a score that is infinite makes every mean useless.
        if !row.score.is_finite() {
            self.refused += 1;
            return Ok(());
        }
        let values = params![row.trace_id, row.assertion_id, row.kind, row.score, row.status, at, row.key];
        match self.insert.insert(values) {
            Ok(number) => {
                let chosen = Retention::turn(number);
                if chosen.is_multiple_of(self.retention.every) {
                    note(&mut self.ids, &row.assertion_id);
                }
                // Ten times the rows to pass over, so a tenth as often.
                if chosen.is_multiple_of(self.retention.every * KEY_FACTOR) && !row.key.is_empty() {
                    note(&mut self.keys, &row.key);
                }
                Ok(())
            }
            Err(error) if error::is_refusal(&error) => {
                self.refused += 1;
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Corrects the newest row of a plugin for this trace and assertion, or adds one.
    pub(super) fn replace_plugin(&mut self, at: i64, row: &Row) -> Result<(), rusqlite::Error> {
        let find = "SELECT max(id) FROM assertion_history \
            WHERE trace_id = ? AND assertion_id = ? AND assertion_type = 'plugin' AND created_at >= ?";
        let mut find = self.connection.prepare_cached(find)?;
        let values = params![row.trace_id, row.assertion_id, self.retention.oldest(at)];
        let found: Option<i64> = find.query_row(values, |found| found.get(0))?;
        let Some(number) = found.filter(|_| row.score.is_finite()) else {
            return self.add(at, &Row { kind: "plugin".to_owned(), ..row.clone() });
        };
        let change = "UPDATE assertion_history SET score = ?, status = ? WHERE id = ?";
        self.connection.prepare_cached(change)?.execute(params![row.score, row.status, number])?;
        Ok(())
    }

    /// Forgets what is too old or too much, where it is due.
    pub(super) fn prune(&self, now: i64) -> Result<(), rusqlite::Error> {
        if self.ids.is_empty() {
            return Ok(());
        }
        let oldest = self.retention.oldest(now);
        prune_old(self.connection, oldest)?;
        for id in &self.ids {
            prune_id(self.connection, id, self.retention.max_rows, oldest)?;
        }
        for key in &self.keys {
            prune_key(self.connection, key, self.retention.max_rows.saturating_mul(KEY_FACTOR))?;
        }
        Ok(())
    }
}

/// The newest scores under a key, newest first.
pub(super) fn scores_of_key(
    connection: &Connection,
    key: &str,
    oldest: i64,
    window: usize,
) -> Result<Vec<f64>, rusqlite::Error> {
    let query = "SELECT score FROM assertion_history WHERE key = ? AND created_at >= ? AND status <> 'waiting' \
        ORDER BY id DESC LIMIT ?";
    read_scores(connection, query, key, oldest, window)
}

/// The newest scores of an assertion id, newest first; never more than are kept.
pub(super) fn scores_of_id(
    connection: &Connection,
    id: &str,
    retention: &Retention,
    oldest: i64,
    window: usize,
) -> Result<Vec<f64>, rusqlite::Error> {
    let query = "SELECT score FROM assertion_history WHERE assertion_id = ? AND created_at >= ? \
        AND status <> 'waiting' ORDER BY created_at DESC, id DESC LIMIT ?";
    let window = window.min(usize::try_from(retention.max_rows).unwrap_or(usize::MAX));
    read_scores(connection, query, id, oldest, window)
}

/// Mean and population deviation of scores that are given newest first.
pub(super) fn drift_of(scores: &[f64]) -> Drift {
    let count = scores.len() as f64;
    let sum: f64 = scores.iter().sum();
    let mean = match scores {
        [] => 0.0,
        // Equal scores have no spread, and none that rounding makes.
        [first, rest @ ..] if rest.iter().all(|score| score.total_cmp(first).is_eq()) => *first,
        _ if sum.is_finite() => sum / count,
        // Divided first, no sum of finite scores is infinite.
        _ => scores.iter().map(|score| score / count).sum(),
    };
    let variance: f64 = scores.iter().map(|score| (score - mean).powi(2) / count).sum();
    Drift {
        mean: mean.clamp(f64::MIN, f64::MAX),
        stddev: variance.sqrt().min(f64::MAX),
        count: u64::try_from(scores.len()).unwrap_or(u64::MAX),
        latest: scores.first().copied().unwrap_or(0.0),
    }
}

fn read_scores(
    connection: &Connection,
    query: &str,
    name: &str,
    oldest: i64,
    window: usize,
) -> Result<Vec<f64>, rusqlite::Error> {
    let limit = i64::try_from(window).unwrap_or(i64::MAX);
    let mut statement = connection.prepare_cached(query)?;
    let scores = statement.query_map(params![name, oldest, limit], |row| row.get(0))?;
    scores.collect()
}

/// Removes the oldest rows as far as they are too old. Rows are numbered in the order of time, so this looks at one row
/// more than it removes.
fn prune_old(connection: &Connection, oldest: i64) -> Result<(), rusqlite::Error> {
    let mut first_kept = None;
    let mut statement =
        connection.prepare_cached("SELECT id, created_at FROM assertion_history ORDER BY id")?;
    let mut rows = statement.query(())?;
    let mut seen = 0;
    while let Some(row) = rows.next()? {
        let (id, created): (i64, i64) = (row.get(0)?, row.get(1)?);
        if created >= oldest || seen == OLD_ROWS {
            first_kept = Some(id).filter(|_| seen > 0);
            break;
        }
        seen += 1;
    }
    drop(rows);
    if let Some(first_kept) = first_kept {
        connection.prepare_cached("DELETE FROM assertion_history WHERE id < ?")?.execute([first_kept])?;
    }
    Ok(())
}

/// Removes what one assertion id has beyond its newest rows, and what of it is too old.
fn prune_id(connection: &Connection, id: &str, keep: u64, oldest: i64) -> Result<(), rusqlite::Error> {
    let last_kept = "SELECT created_at, id FROM assertion_history WHERE assertion_id = ? \
        ORDER BY created_at DESC, id DESC LIMIT 1 OFFSET ?";
    let skip = i64::try_from(keep.saturating_sub(1)).unwrap_or(i64::MAX);
    let boundary: Option<(i64, i64)> = connection
        .prepare_cached(last_kept)?
        .query_row(params![id, skip], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    // Without a boundary, everything before the age limit goes: no row has a number below the smallest.
    let (created, number) = boundary.filter(|(created, _)| *created >= oldest).unwrap_or((oldest, i64::MIN));
    let delete = "DELETE FROM assertion_history WHERE assertion_id = ?1 AND created_at <= ?2 \
        AND (created_at < ?2 OR id < ?3)";
    connection.prepare_cached(delete)?.execute(params![id, created, number])?;
    Ok(())
}

fn prune_key(connection: &Connection, key: &str, keep: u64) -> Result<(), rusqlite::Error> {
    let last_kept = "SELECT id FROM assertion_history WHERE key = ? ORDER BY id DESC LIMIT 1 OFFSET ?";
    let skip = i64::try_from(keep.saturating_sub(1)).unwrap_or(i64::MAX);
    let boundary: Option<i64> =
        connection.prepare_cached(last_kept)?.query_row(params![key, skip], |row| row.get(0)).optional()?;
    if let Some(boundary) = boundary {
        let delete = "DELETE FROM assertion_history WHERE key = ? AND id < ?";
        connection.prepare_cached(delete)?.execute(params![key, boundary])?;
    }
    Ok(())
}

fn note(names: &mut BTreeSet<String>, name: &str) {
    if !names.contains(name) {
        names.insert(name.to_owned());
    }
}
