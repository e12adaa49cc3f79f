//! Queue of rows to be written: filled by requests, which wait only when far more comes than can be written, and emptied by the one
//! writer.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::{Calibration, JudgedAnswer, Row};

/// Rows that may wait. More are dropped and counted.
pub(super) const MAX_WAITING_ROWS: usize = 100_000;
/// Rows that wait without slowing anybody down. Beyond them callers wait for the writer, as long as it gets on.
const EASY_ROWS: usize = 20_000;
/// Time limit of a caller that is slowed down by backpressure.
const SLOW_DOWN: Duration = Duration::from_secs(1);
/// Bytes of text and vectors that may wait.
const MAX_WAITING_BYTES: usize = 256 * 1024 * 1024;
/// Rows of one commit.
const GROUP_ROWS: usize = 1_000;
/// Time that the writer collects rows before it commits fewer: what a killed process can lose, and what keeps a
/// steady stream of requests from paying one commit each.
const LINGER: Duration = Duration::from_millis(20);
/// Access times that may wait, and for how long.
const MAX_TOUCHES: usize = 64;
const TOUCH_WAIT: Duration = Duration::from_secs(5);
/// Time limit of `flush`.
const FLUSH_WAIT: Duration = Duration::from_secs(10);
/// Pause of the writer after a failure.
const RETRY_WAIT: Duration = Duration::from_millis(250);

/// A queued write.
#[derive(Debug)]
pub(super) enum Job {
    History(Vec<Row>),
    Plugin(Row),
    Judged { prompt_hash: String, model: String, sample: u32, answer: JudgedAnswer },
    Vector { content_hash: String, model: String, vector: Vec<f32> },
    Calibration { rubric: String, version: String, calibration: Calibration },
}

/// A cache entry whose last use is to be updated.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum CacheUse {
    Judged { prompt_hash: String, model: String, sample: u32 },
    Vector { content_hash: String, model: String },
}

/// The content of one transaction.
#[derive(Debug)]
pub(super) struct Group {
    /// Jobs with their times, in nanoseconds since 1970.
    pub(super) jobs: Vec<(i64, Job)>,
    pub(super) touches: HashMap<CacheUse, i64>,
    pub(super) rows: usize,
    bytes: usize,
    cached: usize,
}

#[derive(Debug, Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    /// Wakes the writer.
    work: Condvar,
    /// Notifies flushing callers of progress.
    done: Condvar,
    dropped: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    jobs: VecDeque<(i64, Job)>,
    /// Rows and bytes of what waits or is being written.
    rows: usize,
    bytes: usize,
    /// Cache entries that wait or are being written: a reader must not miss them.
    cached: usize,
    touches: HashMap<CacheUse, i64>,
    /// Jobs ever pushed and ever written.
    pushed: u64,
    written: u64,
    /// The last job that a flushing caller waits for.
    urgent: u64,
    /// Callers that wait for the writer to catch up.
    slowed: usize,
    /// Attempts to write that failed.
    failures: u64,
    latest: i64,
    writer: Writer,
    closing: bool,
    finished: bool,
}

/// The writer's state, which tells producers whether to wake it.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Writer {
    #[default]
    Working,
    Idle,
    Lingering,
}

impl Queue {
    /// Adds a job with its time, or counts it as dropped when the queue is full.
    pub(super) fn push(&self, at: i64, mut job: Job) {
        let mut state = self.slowed_down();
        let room = if state.finished { 0 } else { MAX_WAITING_ROWS.saturating_sub(state.rows) };
        let dropped = job.shorten(room);
        let (rows, bytes) = job.size();
        let fits = rows > 0 && rows <= room && state.bytes.saturating_add(bytes) <= MAX_WAITING_BYTES;
        self.count_dropped(if fits { dropped } else { dropped + rows });
        if !fits {
            return;
        }
        // Rows are in the order of their times, also when the clock is set back.
        state.latest = state.latest.max(at);
        let at = state.latest;
        state.rows += rows;
        state.bytes += bytes;
        state.cached += usize::from(job.is_cached());
        state.pushed += 1;
        state.jobs.push_back((at, job));
        let wake = match state.writer {
            Writer::Working => false,
            Writer::Idle => true,
            Writer::Lingering => state.rows >= GROUP_ROWS,
        };
        if wake {
            state.writer = Writer::Working;
            drop(state);
            self.work.notify_one();
        }
    }

    /// The queue, once the writer has caught up, or does not get on.
    fn slowed_down(&self) -> MutexGuard<'_, State> {
        let mut state = self.lock();
        if state.rows < EASY_ROWS {
            return state;
        }
        let failures = state.failures;
        state.slowed += 1;
        let waited = self.done.wait_timeout_while(state, SLOW_DOWN, |state| {
            state.rows >= EASY_ROWS && state.failures == failures && !state.finished
        });
        let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
        state.slowed -= 1;
        state
    }

    /// Remembers that a cache entry was used. Written with the next commit, or soon.
    pub(super) fn touch(&self, touched: CacheUse, at: i64) {
        let mut state = self.lock();
        if state.touches.len() < MAX_TOUCHES || state.touches.contains_key(&touched) {
            state.touches.insert(touched, at);
        }
        let wake =
            state.writer == Writer::Idle && (state.touches.len() == 1 || state.touches.len() >= MAX_TOUCHES);
        drop(state);
        if wake {
            self.work.notify_one();
        }
    }

    /// Returns when everything pushed before is written, or when writing it failed or takes too long.
    pub(super) fn flush(&self) {
        self.wait_for_writer(false);
    }

    /// Waits as `flush` does, if a cache entry is queued.
    pub(super) fn flush_cached(&self) {
        self.wait_for_writer(true);
    }

    fn wait_for_writer(&self, only_cached: bool) {
        let mut state = self.lock();
        let target = state.pushed;
        let failures = state.failures;
        if state.written >= target || (only_cached && state.cached == 0) {
            return;
        }
        state.urgent = target;
        self.work.notify_one();
        let _ = self.done.wait_timeout_while(state, FLUSH_WAIT, |state| {
            state.written < target && state.failures == failures && !state.finished
        });
    }

    /// Closes the queue, and waits until the writer has written the rest and ended.
    pub(super) fn close(&self, wait: Duration) {
        let mut state = self.lock();
        state.closing = true;
        self.work.notify_one();
        let _ = self.done.wait_timeout_while(state, wait, |state| !state.finished);
    }

    pub(super) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    pub(super) fn count_dropped(&self, rows: usize) {
        if rows > 0 {
            self.dropped.fetch_add(u64::try_from(rows).unwrap_or(u64::MAX), Ordering::Relaxed);
        }
    }

    /// Next group of writes, for the writer; none when the queue is closed and empty.
    pub(super) fn take(&self) -> Option<Group> {
        let mut state = self.lock();
        let mut touches_due = None;
        while state.jobs.is_empty() && !state.closing {
            state.writer = Writer::Idle;
            if state.touches.is_empty() {
                state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let due = *touches_due.get_or_insert_with(|| Instant::now() + TOUCH_WAIT);
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() || state.touches.len() >= MAX_TOUCHES {
                break;
            }
            state = self.work.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        if !state.jobs.is_empty() && state.should_linger() {
            state.writer = Writer::Lingering;
            let lingered = self.work.wait_timeout_while(state, LINGER, |state| state.should_linger());
            state = lingered.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.writer = Writer::Working;
        state.next_group()
    }

    /// Reports, from the writer, that a group is committed.
    pub(super) fn wrote(&self, group: &Group) {
        let mut state = self.lock();
        state.rows = state.rows.saturating_sub(group.rows);
        state.bytes = state.bytes.saturating_sub(group.bytes);
        state.cached = state.cached.saturating_sub(group.cached);
        state.written = state.written.saturating_add(u64::try_from(group.jobs.len()).unwrap_or(0));
        let waited_for = state.urgent > 0 || (state.slowed > 0 && state.rows < EASY_ROWS);
        if state.written >= state.urgent {
            state.urgent = 0;
        }
        drop(state);
        if waited_for {
            self.done.notify_all();
        }
    }

    /// Reports, from the writer, that a group failed; pauses, and returns whether to retry.
    pub(super) fn failed(&self) -> bool {
        let mut state = self.lock();
        state.failures += 1;
        state.urgent = 0;
        self.done.notify_all();
        if state.closing {
            return false;
        }
        let rested =
            self.work.wait_timeout_while(state, RETRY_WAIT, |state| !state.closing && state.urgent == 0);
        drop(rested);
        true
    }

    /// Reports, from the writer, that it has ended. Queued jobs are lost, and counted.
    pub(super) fn finish(&self) {
        let mut state = self.lock();
        state.finished = true;
        state.jobs.clear();
        let lost = std::mem::take(&mut state.rows);
        self.count_dropped(lost);
        drop(state);
        self.done.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn should_linger(&self) -> bool {
        self.rows < GROUP_ROWS && self.urgent <= self.written && !self.closing
    }

    fn next_group(&mut self) -> Option<Group> {
        if self.jobs.is_empty() && self.touches.is_empty() {
            return None;
        }
        let touches = std::mem::take(&mut self.touches);
        let mut group = Group { jobs: Vec::new(), touches, rows: 0, bytes: 0, cached: 0 };
        while group.rows < GROUP_ROWS {
            let Some((at, job)) = self.jobs.pop_front() else { break };
            let (rows, bytes) = job.size();
            group.rows += rows;
            group.bytes += bytes;
            group.cached += usize::from(job.is_cached());
            group.jobs.push((at, job));
        }
        Some(group)
    }
}

impl Job {
    /// Number of rows and bytes of the job.
    fn size(&self) -> (usize, usize) {
        let row_bytes = |row: &Row| {
            let texts = [&row.trace_id, &row.assertion_id, &row.kind, &row.key, &row.status];
            texts.iter().map(|text| text.len()).sum::<usize>() + size_of::<Row>()
        };
        match self {
            Job::History(rows) => (rows.len(), rows.iter().map(row_bytes).sum()),
            Job::Plugin(row) => (1, row_bytes(row)),
            Job::Judged { prompt_hash, model, answer, .. } => {
                (1, prompt_hash.len() + model.len() + answer.explanation.len() + size_of::<Job>())
            }
            Job::Vector { content_hash, model, vector, .. } => {
                (1, content_hash.len() + model.len() + size_of_val(vector.as_slice()) + size_of::<Job>())
            }
            Job::Calibration { rubric, version, calibration, .. } => {
                (1, rubric.len() + version.len() + calibration.prompt_hash.len() + size_of::<Job>())
            }
        }
    }

    /// Leaves at most so many rows, and says how many went.
    fn shorten(&mut self, room: usize) -> usize {
        match self {
            Job::History(rows) => {
                let gone = rows.len().saturating_sub(room);
                rows.truncate(room);
                gone
            }
            _ => 0,
        }
    }

    fn is_cached(&self) -> bool {
        matches!(self, Job::Judged { .. } | Job::Vector { .. } | Job::Calibration { .. })
    }
}
