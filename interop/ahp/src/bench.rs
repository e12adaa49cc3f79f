//! Driver common to all servers; the differences are in the links.

mod link;
mod table;

use std::time::{Duration, Instant};

use serde_json::json;

use crate::process::{cpu_time, thread_time};
use crate::samples::{event, payload};

pub use link::Link;
pub use table::{Row, environment, markdown};

/// Number of concurrent callers.
pub const CALLERS: usize = 64;
/// The thread of ours that writes the ledger.
const WRITER: &str = "ledger-writer";
/// Calls before the clock starts.
const WARM_UP: usize = 200;

/// Totals of one or several runs.
#[derive(Debug, Clone, Default)]
pub struct Run {
    /// Latency of each call; empty where that was not measured.
    pub latencies: Vec<Duration>,
    /// Number of answered calls.
    pub decisions: u64,
    /// Duration.
    pub time: Duration,
    /// Processor time of the server.
    pub cpu: Duration,
    /// Processor time of the thread that writes the ledger.
    pub writer: Duration,
}

impl Run {
    /// Adds another run of the same.
    pub fn add(&mut self, other: Run) {
        self.latencies.extend(other.latencies);
        self.decisions += other.decisions;
        self.time += other.time;
        self.cpu += other.cpu;
        self.writer += other.writer;
    }

    /// Decisions a second.
    pub fn rate(&self) -> f64 {
        self.decisions as f64 / self.time.as_secs_f64()
    }

    /// Processor time of the server for each decision.
    pub fn cpu_each(&self) -> Duration {
        self.cpu.div_f64(self.decisions.max(1) as f64)
    }

    /// Processor time of the ledger's writer for each decision.
    pub fn writer_each(&self) -> Duration {
        self.writer.div_f64(self.decisions.max(1) as f64)
    }

    /// The latency that this share of the calls stays below.
    pub fn percentile(&self, share: f64) -> Option<Duration> {
        let mut sorted = self.latencies.clone();
        sorted.sort_unstable();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a position within the list"
        )]
        let position = (sorted.len() as f64 * share) as usize;
        sorted.get(position.min(sorted.len().saturating_sub(1))).copied()
    }
}

/// A server under measurement, connected.
pub struct Contender {
    /// Name in the table.
    pub name: String,
    /// The connection.
    pub link: Link,
    /// Process whose processor time counts.
    pub pid: u32,
    /// Runs with one caller.
    pub alone: Run,
    /// Runs with many callers.
    pub crowded: Run,
}

impl Contender {
    /// A server and a connection to it.
    pub fn new(name: &str, link: Link, pid: u32) -> Contender {
        Contender { name: name.to_owned(), link, pid, alone: Run::default(), crowded: Run::default() }
    }

    /// Runs one caller, which asks again and again.
    pub async fn run_alone(&mut self, time: Duration) {
        let request = Request::new();
        for _ in 0..WARM_UP {
            self.link.call(&request).await;
        }
        let (cpu, start) = (self.cpu(), Instant::now());
        let mut run = Run::default();
        while start.elapsed() < time {
            let asked = Instant::now();
            self.link.call(&request).await;
            run.latencies.push(asked.elapsed());
            run.decisions += 1;
        }
        (run.time, run.cpu) = (start.elapsed(), self.cpu().saturating_sub(cpu));
        self.alone.add(run);
    }

    /// Runs many callers, each of which asks as soon as it has its answer.
    pub async fn run_crowded(&mut self, time: Duration) {
        let request = Request::new();
        self.link.crowd(&request, time.min(Duration::from_millis(200))).await;
        let (cpu, writer, start) = (self.cpu(), thread_time(self.pid, WRITER), Instant::now());
        let decisions = self.link.crowd(&request, time).await;
        let (time, cpu) = (start.elapsed(), self.cpu().saturating_sub(cpu));
        let writer = thread_time(self.pid, WRITER).saturating_sub(writer);
        self.crowded.add(Run { latencies: Vec::new(), decisions, time, cpu, writer });
    }

    fn cpu(&self) -> Duration {
        cpu_time(self.pid).expect("the server runs")
    }
}

/// The one question that is asked all the time, as text around its identifier.
pub struct Request {
    before: String,
    after: String,
    /// The parameters alone.
    pub params: String,
}

impl Request {
    fn new() -> Request {
        let params = event("pre_action", &payload("pre_action")).to_string();
        let text = json!({ "jsonrpc": "2.0", "id": "ID", "method": "ahp/event", "params": null }).to_string();
        let text = text.replace("null", &params);
        let (before, after) = text.split_once("ID").expect("it has an id");
        Request { before: before.to_owned(), after: after.to_owned(), params }
    }

    /// The text with this identifier.
    pub fn text(&self, slot: usize) -> String {
        format!("{}{slot}{}", self.before, self.after)
    }
}

/// Number of the call that this answers. It must be allowed: anything else would measure something else.
pub fn answered(reply: &[u8]) -> usize {
    let text = std::str::from_utf8(reply).expect("a reply is text");
    assert!(text.contains(r#""decision":"allow""#), "not allowed: {text}");
    let id = text.split_once(r#""id":""#).and_then(|(_, rest)| rest.split_once('"')).map(|(id, _)| id);
    id.and_then(|id| id.parse().ok()).unwrap_or_else(|| panic!("no id of ours: {text}"))
}
