//! The Attest engine's database: score history with drift, and caches of model answers.
//!
//! One SQLite file, `attest.db`, which several engines may share. Requests never wait for it to be written: they put rows
//! into a bounded queue, and one thread commits them in groups, waits for locks and forgets old rows. What found no room
//! is counted, never lost in silence.

mod cache;
mod error;
mod folder;
mod history;
mod queue;
mod schema;
#[cfg(test)]
mod tests;
mod writer;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use proctor_core::time::{Clock, Timestamp};
use rusqlite::Connection;

pub use error::StoreError;
pub use folder::{CacheStats, clear, stats};
use history::Retention;
use queue::{CacheUse, Job, Queue};
use writer::Writer;

/// Time that the end of a store waits for its last rows to be written.
const CLOSE_WAIT: Duration = Duration::from_secs(5);

/// Retention limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreOptions {
    /// Rows of one assertion id; the newest are kept. Zero counts as one.
    pub history_max_rows: u64,
    /// Days that a row is kept. Zero counts as one.
    pub history_max_age_days: u64,
    /// Bytes of vectors.
    pub embedding_cache_bytes: u64,
    /// Bytes of judgements: their explanations, and 100 for each.
    pub judge_cache_bytes: u64,
}

impl Default for StoreOptions {
    fn default() -> StoreOptions {
        StoreOptions {
            history_max_rows: 10_000,
            history_max_age_days: 30,
            embedding_cache_bytes: 500 * 1024 * 1024,
            judge_cache_bytes: 100 * 1024 * 1024,
        }
    }
}

/// The status of a row that waits for the result of a plugin: it has no score yet, and counts for nothing.
pub const WAITING_STATUS: &str = "waiting";

/// A result of an assertion.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The trace that was judged.
    pub trace_id: String,
    /// The assertion's id, as the client gave it.
    pub assertion_id: String,
    /// The assertion's type.
    pub kind: String,
    /// The identity of the assertion across client-made ids; derived from type and spec.
    pub key: String,
    /// The score. One that is not finite is not stored, but counted as dropped.
    pub score: f64,
    /// The status.
    pub status: String,
}

/// Statistics of the newest scores of an assertion.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Drift {
    /// Mean of the scores; zero if there are none.
    pub mean: f64,
    /// Population standard deviation of the scores; zero if there are none.
    pub stddev: f64,
    /// Number of scores.
    pub count: u64,
    /// The newest; zero if there is none.
    pub latest: f64,
}

/// A judge's cached answer.
#[derive(Debug, Clone, PartialEq)]
pub struct JudgedAnswer {
    /// The score it gave.
    pub score: f64,
    /// Explanation.
    pub explanation: String,
    /// Tokens read.
    pub input_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
}

/// Agreement of a rubric's judgements with people's labels.
#[derive(Debug, Clone, PartialEq)]
pub struct Calibration {
    /// Hash of the calibrated prompt.
    pub prompt_hash: String,
    /// Labels compared.
    pub label_count: u64,
    /// Share of labels that agree.
    pub agreement: f64,
    /// Cohen's kappa.
    pub cohen_kappa: f64,
    /// Area under the receiver operating characteristic.
    pub roc_auc: f64,
}

/// An open `attest.db`. Dropping it writes what is left, for which it waits up to five seconds.
pub struct Store {
    queue: Arc<Queue>,
    reader: Arc<Mutex<Connection>>,
    retention: Retention,
    clock: Arc<dyn Clock>,
    file: PathBuf,
}

impl Store {
    /// Opens the file in this directory; makes both if they are not there. A file that is damaged is left as it is.
    pub fn open(dir: &Path, options: StoreOptions, clock: Arc<dyn Clock>) -> Result<Store, StoreError> {
        let cannot_make = |source| StoreError::Directory { dir: dir.to_owned(), source };
        folder::make(dir).map_err(cannot_make)?;
        let opened = schema::open(dir)?;
        let queue = Arc::new(Queue::default());
        let reader = Arc::new(Mutex::new(opened.reader));
        let retention = Retention::new(&options);
        let writer = Writer {
            queue: Arc::clone(&queue),
            connection: opened.writer,
            identity: opened.identity,
            reader: Arc::clone(&reader),
            dir: dir.to_owned(),
            options,
            retention,
            clock: Arc::clone(&clock),
        };
        let file = schema::file_in(dir);
        std::thread::Builder::new()
            .name("attest-history".to_owned())
            .spawn(move || writer.run())
            .map_err(|error| StoreError::Io { file: file.clone(), reason: error.to_string() })?;
        Ok(Store { queue, reader, retention, clock, file })
    }

    /// Adds results to the history. They are committed soon, together with others.
    pub fn record(&self, rows: Vec<Row>) {
        self.queue.push(self.now(), Job::History(rows));
    }

    /// Updates score and status of the newest `plugin` row of this trace and assertion. If there is none, adds one.
    pub fn replace_plugin(&self, row: Row) {
        self.queue.push(self.now(), Job::Plugin(row));
    }

    /// Returns when everything recorded before is committed. Does not wait longer than an attempt to do so: while
    /// another program locks the file for more than five seconds, or the disk is full, rows stay in the queue.
    pub fn flush(&self) {
        self.queue.flush();
    }

    /// The newest scores under a key, newest first, with everything that this store recorded before.
    pub fn scores(&self, key: &str, window: usize) -> Result<Vec<f64>, StoreError> {
        self.flush();
        let oldest = self.retention.oldest(self.now());
        let scores = history::scores_of_key(&self.reader(), key, oldest, window);
        scores.map_err(|error| StoreError::of(&self.file, &error))
    }

    /// Statistics of the newest scores of an assertion id, with everything that this store recorded before.
    pub fn drift(&self, assertion_id: &str, window: usize) -> Result<Drift, StoreError> {
        self.flush();
        let oldest = self.retention.oldest(self.now());
        let scores = history::scores_of_id(&self.reader(), assertion_id, &self.retention, oldest, window);
        scores.map(|scores| history::drift_of(&scores)).map_err(|error| StoreError::of(&self.file, &error))
    }

    /// The cached answer of this model to this prompt. An unreadable entry counts as none.
    pub fn judged(&self, prompt_hash: &str, model: &str, sample: u32) -> Option<JudgedAnswer> {
        self.queue.flush_cached();
        let answer = cache::judged(&self.reader(), prompt_hash, model, sample).ok()??;
        let touched =
            CacheUse::Judged { prompt_hash: prompt_hash.to_owned(), model: model.to_owned(), sample };
        self.queue.touch(touched, self.now());
        Some(answer)
    }

    /// Keeps what a model said about a prompt, under a digest of the whole prompt.
    pub fn keep_judged(&self, prompt_hash: &str, model: &str, sample: u32, answer: JudgedAnswer) {
        let (prompt_hash, model) = (prompt_hash.to_owned(), model.to_owned());
        self.queue.push(self.now(), Job::Judged { prompt_hash, model, sample, answer });
    }

    /// The vector that this model made of this text before.
    pub fn vector(&self, content_hash: &str, model: &str) -> Option<Vec<f32>> {
        self.queue.flush_cached();
        let vector = cache::vector(&self.reader(), content_hash, model).ok()??;
        let touched = CacheUse::Vector { content_hash: content_hash.to_owned(), model: model.to_owned() };
        self.queue.touch(touched, self.now());
        Some(vector)
    }

    /// Keeps the vector that a model made of a text, under the text's digest. An empty one is not kept.
    pub fn keep_vector(&self, content_hash: &str, model: &str, vector: Vec<f32>) {
        let (content_hash, model) = (content_hash.to_owned(), model.to_owned());
        self.queue.push(self.now(), Job::Vector { content_hash, model, vector });
    }

    /// The newest calibration of this version of a rubric.
    pub fn calibration(&self, rubric: &str, version: &str) -> Option<Calibration> {
        self.queue.flush_cached();
        cache::calibration(&self.reader(), rubric, version).ok()?
    }

    /// Stores a calibration, which replaces an earlier one for the same prompt.
    pub fn keep_calibration(&self, rubric: &str, version: &str, calibration: Calibration) {
        let (rubric, version) = (rubric.to_owned(), version.to_owned());
        self.queue.push(self.now(), Job::Calibration { rubric, version, calibration });
    }

    /// Rows and cache entries that were not stored: the queue was full, or the database refused them.
    pub fn dropped(&self) -> u64 {
        self.queue.dropped()
    }

    fn reader(&self) -> MutexGuard<'_, Connection> {
        self.reader.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> i64 {
        nanos(self.clock.now())
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.queue.close(CLOSE_WAIT);
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Store")
            .field("file", &self.file)
            .field("dropped", &self.dropped())
            .finish_non_exhaustive()
    }
}

fn nanos(moment: Timestamp) -> i64 {
    moment.micros().saturating_mul(1_000)
}
