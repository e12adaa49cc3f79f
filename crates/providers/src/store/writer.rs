//! The writer thread of the store.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use proctor_core::time::Clock;
use rusqlite::{Connection, TransactionBehavior};

use super::history::{Additions, Retention};
use super::queue::{Group, Job, Queue};
use super::{StoreOptions, cache, error, folder, nanos, schema};

pub(super) struct Writer {
    pub(super) queue: Arc<Queue>,
    pub(super) connection: Connection,
    pub(super) identity: Option<(u64, u64)>,
    /// The readers' connection, which moves with ours when the file was replaced.
    pub(super) reader: Arc<Mutex<Connection>>,
    pub(super) dir: PathBuf,
    pub(super) options: StoreOptions,
    pub(super) retention: Retention,
    pub(super) clock: Arc<dyn Clock>,
}

impl Writer {
    /// Writes until the queue is closed and empty, or cannot be emptied.
    pub(super) fn run(self) {
        // Flushing callers are released last, after the connection is closed, and also on a panic.
        let _finish = CloseOnExit(Arc::clone(&self.queue));
        self.write_all();
    }

    fn write_all(mut self) {
        while let Some(group) = self.queue.take() {
            if !self.write_until_done(&group) {
                return;
            }
        }
    }

    fn write_until_done(&mut self, group: &Group) -> bool {
        loop {
            if self.was_replaced() {
                self.open_again();
            }
            match self.write(group) {
                Ok(refused) => {
                    self.queue.count_dropped(refused);
                    self.queue.wrote(group);
                    return true;
                }
                Err(error) => {
                    // After anything but a lock, a new connection may find a file that can be used.
                    if !error::is_busy(&error) {
                        self.open_again();
                    }
                    if !self.queue.failed() {
                        return false;
                    }
                }
            }
        }
    }

    /// Writes a group in one transaction, and says how many of its rows the database refused.
    fn write(&mut self, group: &Group) -> Result<usize, rusqlite::Error> {
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut refused = 0;
        {
            let mut history = Additions::new(&transaction, self.retention)?;
            for (at, job) in &group.jobs {
                match job {
                    Job::History(rows) => rows.iter().try_for_each(|row| history.add(*at, row))?,
                    Job::Plugin(row) => history.replace_plugin(*at, row)?,
                    Job::Judged { prompt_hash, model, sample, answer } => {
                        let limit = self.options.judge_cache_bytes;
                        let entry = (prompt_hash.as_str(), model.as_str(), *sample);
                        refused +=
                            cache::refusal(cache::keep_judged(&transaction, *at, entry, answer, limit))?;
                    }
                    Job::Vector { content_hash, model, vector } => {
                        let limit = self.options.embedding_cache_bytes;
                        let entry = (content_hash.as_str(), model.as_str());
                        refused +=
                            cache::refusal(cache::keep_vector(&transaction, *at, entry, vector, limit))?;
                    }
                    Job::Calibration { rubric, version, calibration } => {
                        let kept = cache::keep_calibration(&transaction, *at, rubric, version, calibration);
                        refused += cache::refusal(kept)?;
                    }
                }
            }
            for (touched, at) in &group.touches {
                cache::touch(&transaction, touched, *at)?;
            }
            history.prune(nanos(self.clock.now()))?;
            refused += history.refused;
        }
        transaction.commit()?;
        Ok(refused)
    }

    /// Whether the file's name has come to mean another file or none, as after `cache clear`.
    fn was_replaced(&self) -> bool {
        let now = folder::identity(&schema::file_in(&self.dir));
        now != self.identity && self.dir.is_dir()
    }

    /// Reopens the file that now has the name. If that cannot be opened, the old one still works.
    fn open_again(&mut self) {
        if let Ok(opened) = schema::open(&self.dir) {
            self.connection = opened.writer;
            self.identity = opened.identity;
            *self.reader.lock().unwrap_or_else(PoisonError::into_inner) = opened.reader;
        }
    }
}

struct CloseOnExit(Arc<Queue>);

impl Drop for CloseOnExit {
    fn drop(&mut self) {
        self.0.finish();
    }
}
