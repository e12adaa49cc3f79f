//! Caches of judge answers, vectors and calibrations.
//!
//! Judgements and vectors are bounded in bytes; what was used longest ago goes first. The size of each cache is kept in
//! the file, in the same transactions as its content, so that no process has to add it up.

use rusqlite::{Connection, OptionalExtension, params};

use super::queue::CacheUse;
use super::{Calibration, JudgedAnswer, error};

/// The bytes of a cached judgement besides its explanation.
const JUDGED_OVERHEAD: usize = 100;
/// Entries that are considered together for eviction.
const VICTIMS: i64 = 64;

/// A cache with a limit.
#[derive(Debug, Clone, Copy)]
struct Cache {
    name: &'static str,
    size: &'static str,
    oldest: &'static str,
    delete: &'static str,
}

const VECTORS: Cache = Cache {
    name: "embeddings",
    size: "SELECT length(vector) FROM embeddings WHERE content_hash = ? AND model = ?",
    oldest: "SELECT rowid, length(vector) FROM embeddings ORDER BY accessed_at LIMIT ?",
    delete: "DELETE FROM embeddings WHERE rowid = ?",
};

const JUDGED: Cache = Cache {
    name: "judge_answers",
    size: "SELECT size FROM judge_answers WHERE prompt_hash = ? AND model = ? AND sample = ?",
    oldest: "SELECT rowid, size FROM judge_answers ORDER BY accessed_at LIMIT ?",
    delete: "DELETE FROM judge_answers WHERE rowid = ?",
};

/// The judgement of a prompt by a model.
pub(super) fn judged(
    connection: &Connection,
    prompt_hash: &str,
    model: &str,
    sample: u32,
) -> Result<Option<JudgedAnswer>, rusqlite::Error> {
    let query = "SELECT score, explanation, input_tokens, output_tokens FROM judge_answers \
        WHERE prompt_hash = ? AND model = ? AND sample = ?";
    let mut statement = connection.prepare_cached(query)?;
    let answer = statement.query_row(params![prompt_hash, model, sample], |row| {
        Ok(JudgedAnswer {
            score: row.get(0)?,
            explanation: row.get(1)?,
            input_tokens: unsigned(row.get(2)?),
            output_tokens: unsigned(row.get(3)?),
        })
    });
    answer.optional()
}

pub(super) fn keep_judged(
    connection: &Connection,
    at: i64,
    (prompt_hash, model, sample): (&str, &str, u32),
    answer: &JudgedAnswer,
    limit: u64,
) -> Result<(), rusqlite::Error> {
    let size = signed_size(answer.explanation.len() + JUDGED_OVERHEAD);
    if unsigned(size) > limit || !answer.score.is_finite() {
        return Ok(());
    }
    let insert = "INSERT INTO judge_answers (prompt_hash, model, sample, score, explanation, input_tokens, \
            output_tokens, created_at, accessed_at, size) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8, ?9) \
        ON CONFLICT (prompt_hash, model, sample) DO UPDATE SET score = ?4, explanation = ?5, input_tokens = ?6, \
            output_tokens = ?7, created_at = ?8, accessed_at = ?8, size = ?9";
    let old = old_size(connection, JUDGED, params![prompt_hash, model, sample])?;
    let values = params![
        prompt_hash,
        model,
        sample,
        answer.score,
        answer.explanation,
        signed(answer.input_tokens),
        signed(answer.output_tokens),
        at,
        size
    ];
    connection.prepare_cached(insert)?.execute(values)?;
    grow(connection, JUDGED, size.saturating_sub(old), limit)
}

/// The vector of a text by a model.
pub(super) fn vector(
    connection: &Connection,
    content_hash: &str,
    model: &str,
) -> Result<Option<Vec<f32>>, rusqlite::Error> {
    let query = "SELECT vector FROM embeddings WHERE content_hash = ? AND model = ?";
    let mut statement = connection.prepare_cached(query)?;
    let bytes = statement.query_row([content_hash, model], |row| row.get::<_, Vec<u8>>(0)).optional()?;
    Ok(bytes.and_then(|bytes| floats(&bytes)))
}

pub(super) fn keep_vector(
    connection: &Connection,
    at: i64,
    (content_hash, model): (&str, &str),
    vector: &[f32],
    limit: u64,
) -> Result<(), rusqlite::Error> {
    let bytes: Vec<u8> = vector.iter().flat_map(|value| value.to_le_bytes()).collect();
    let size = signed_size(bytes.len());
    if unsigned(size) > limit || bytes.is_empty() {
        return Ok(());
    }
    let insert = "INSERT INTO embeddings (content_hash, model, vector, created_at, accessed_at) \
            VALUES (?1, ?2, ?3, ?4, ?4) \
        ON CONFLICT (content_hash, model) DO UPDATE SET vector = ?3, created_at = ?4, accessed_at = ?4";
    let old = old_size(connection, VECTORS, params![content_hash, model])?;
    connection.prepare_cached(insert)?.execute(params![content_hash, model, bytes, at])?;
    grow(connection, VECTORS, size.saturating_sub(old), limit)
}

/// The newest calibration of a rubric's version.
pub(super) fn calibration(
    connection: &Connection,
    rubric: &str,
    version: &str,
) -> Result<Option<Calibration>, rusqlite::Error> {
    let query = "SELECT prompt_hash, label_count, agreement, cohen_kappa, roc_auc FROM calibration \
        WHERE rubric = ? AND version = ? ORDER BY created_at DESC, rowid DESC LIMIT 1";
    let found = connection.prepare_cached(query)?.query_row([rubric, version], |row| {
        Ok(Calibration {
            prompt_hash: row.get(0)?,
            label_count: unsigned(row.get(1)?),
            agreement: row.get(2)?,
            cohen_kappa: row.get(3)?,
            roc_auc: row.get(4)?,
        })
    });
    found.optional()
}

pub(super) fn keep_calibration(
    connection: &Connection,
    at: i64,
    rubric: &str,
    version: &str,
    calibration: &Calibration,
) -> Result<(), rusqlite::Error> {
    // Replaced rather than changed: of two calibrations at one moment, the one with the higher row number is newer.
    let insert = "INSERT OR REPLACE INTO calibration \
        (rubric, version, prompt_hash, label_count, agreement, cohen_kappa, roc_auc, created_at) \
        VALUES (?, ?, ?, ?, ?, ?, ?, ?)";
    let values = params![
        rubric,
        version,
        calibration.prompt_hash,
        signed(calibration.label_count),
        calibration.agreement,
        calibration.cohen_kappa,
        calibration.roc_auc,
        at
    ];
    connection.prepare_cached(insert)?.execute(values)?;
    Ok(())
}

/// Writes down when a cache entry was used last.
pub(super) fn touch(connection: &Connection, touched: &CacheUse, at: i64) -> Result<(), rusqlite::Error> {
    match touched {
        CacheUse::Judged { prompt_hash, model, sample } => {
            let update = "UPDATE judge_answers SET accessed_at = max(accessed_at, ?) \
                WHERE prompt_hash = ? AND model = ? AND sample = ?";
            connection.prepare_cached(update)?.execute(params![at, prompt_hash, model, sample])?;
        }
        CacheUse::Vector { content_hash, model } => {
            let update = "UPDATE embeddings SET accessed_at = max(accessed_at, ?) WHERE content_hash = ? AND model = ?";
            connection.prepare_cached(update)?.execute(params![at, content_hash, model])?;
        }
    }
    Ok(())
}

/// Turns what concerns one entry only into a refusal, which is counted, and leaves other errors as they are.
pub(super) fn refusal(result: Result<(), rusqlite::Error>) -> Result<usize, rusqlite::Error> {
    match result {
        Ok(()) => Ok(0),
        Err(error) if error::is_refusal(&error) => Ok(1),
        Err(error) => Err(error),
    }
}

fn old_size(
    connection: &Connection,
    cache: Cache,
    entry: impl rusqlite::Params,
) -> Result<i64, rusqlite::Error> {
    let size = connection.prepare_cached(cache.size)?.query_row(entry, |row| row.get(0)).optional()?;
    Ok(size.unwrap_or(0))
}

/// Adds to a cache's size and, above its limit, evicts down to nine tenths of it: the cost of each eviction is shared by the entries added.
fn grow(connection: &Connection, cache: Cache, by: i64, limit: u64) -> Result<(), rusqlite::Error> {
    let add = "INSERT INTO cache_sizes (cache, bytes) VALUES (?1, ?2) \
        ON CONFLICT (cache) DO UPDATE SET bytes = bytes + ?2 RETURNING bytes";
    let bytes: i64 = connection.prepare_cached(add)?.query_row(params![cache.name, by], |row| row.get(0))?;
    let limit = signed(limit);
    if bytes <= limit {
        return Ok(());
    }
    let left = evict(connection, cache, bytes, limit / 10 * 9)?;
    connection
        .prepare_cached("UPDATE cache_sizes SET bytes = ? WHERE cache = ?")?
        .execute(params![left, cache.name])?;
    Ok(())
}

fn evict(connection: &Connection, cache: Cache, mut bytes: i64, enough: i64) -> Result<i64, rusqlite::Error> {
    let mut oldest = connection.prepare_cached(cache.oldest)?;
    let mut delete = connection.prepare_cached(cache.delete)?;
    loop {
        let victims: Vec<(i64, i64)> =
            oldest.query_map([VICTIMS], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<Result<_, _>>()?;
        if victims.is_empty() {
            return Ok(0);
        }
        for (row, size) in victims {
            if bytes <= enough {
                return Ok(bytes);
            }
            delete.execute([row])?;
            bytes = bytes.saturating_sub(size);
        }
    }
}

/// The floats of a blob, if it is one of ours.
fn floats(bytes: &[u8]) -> Option<Vec<f32>> {
    let (values, rest) = bytes.as_chunks::<4>();
    (rest.is_empty() && !values.is_empty()).then(|| values.iter().copied().map(f32::from_le_bytes).collect())
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn signed_size(value: usize) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn unsigned(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}
