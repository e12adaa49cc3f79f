//! Records of runs.

use futures_util::future::BoxFuture;
use proctor_core::json::Json;
use proctor_core::record::RUN_ENDED;
use proctor_engine::RunReport;
use proctor_runner::recording::{EndedRun, Recorder, RecordingError, StartedRun};
use proctor_runner::results::TestResult;

use crate::keys::{EVENTS, STARTED};
use crate::store::RunStore;

/// Events of one record.
const BLOCK_EVENTS: usize = 256;

/// Bytes of events of one record; a longer event stands alone. A connection to the owner carries lines of 4 MiB.
const BLOCK_BYTES: usize = 256 * 1024;

/// Longest event that is recorded; of longer ones only length and digest are.
const MAX_EVENT: usize = 1024 * 1024;

/// Longest text of the response that is recorded.
const MAX_OUTPUT: usize = 64 * 1024;

fn failed(error: impl std::error::Error + Send + Sync + 'static) -> RecordingError {
    RecordingError(Box::new(error))
}

impl Recorder for RunStore {
    fn run_started<'a>(&'a self, run: StartedRun<'a>) -> BoxFuture<'a, Result<(), RecordingError>> {
        Box::pin(async move {
            let StartedRun { agent, test, identity } = run;
            let data = Json::object()
                .with("suite_run", self.id())
                .with("suite", self.start.suite.as_str())
                .with("test_id", test.id.as_str())
                .with("test_name", test.name.as_str())
                .with("run_number", identity.number)
                .with("total_runs", identity.total);
            self.part(&identity.task_id, &agent.name, STARTED, &test.id, data).await
        })
    }

    fn run_ended<'a>(&'a self, run: EndedRun<'a>) -> BoxFuture<'a, Result<(), RecordingError>> {
        Box::pin(async move {
            let (agent, test) = (&run.agent.name, &run.test.id);
            let task_id = &run.result.task_id;
            for block in blocks(&run) {
                self.part(task_id, agent, EVENTS, test, block).await?;
            }
            let mut data = run.result.to_json().with("suite_run", self.id()).with("test_id", test.as_str());
            let output = run.execution.output_text();
            if let Some(output) = output.get(..output.floor_char_boundary(MAX_OUTPUT)) {
                data.push("output", output);
            }
            let ended = self.part(task_id, agent, RUN_ENDED, test, data).await;
            self.forget(task_id);
            ended
        })
    }

    fn test_ended<'a>(&'a self, test: &'a TestResult) -> BoxFuture<'a, Result<(), RecordingError>> {
        Box::pin(async move { self.record_test(&test.id, test.to_json()).await.map_err(failed) })
    }
}

impl RunStore {
    async fn part(
        &self,
        task_id: &str,
        agent: &str,
        code: &str,
        name: &str,
        data: Json,
    ) -> Result<(), RecordingError> {
        let (decider, run) = self.run(task_id, agent).map_err(failed)?;
        let report = RunReport { code: code.to_owned(), name: name.to_owned(), data, once: None };
        decider.record(&run, report).await.map(drop).map_err(failed)
    }
}

/// The events of a run in blocks, with the indices of those that the tools endpoint saw as calls.
fn blocks(run: &EndedRun<'_>) -> Vec<Json> {
    let at_endpoint = run.execution.events_at_endpoint();
    let mut blocks = Vec::new();
    let (mut events, mut seen, mut bytes, mut first) = (Vec::new(), Vec::new(), 0, 0_usize);
    let mut close = |events: &mut Vec<Json>, seen: &mut Vec<Json>, first: usize| {
        if !events.is_empty() {
            let (events, seen) = (std::mem::take(events), std::mem::take(seen));
            let block = Json::object().with("first", first).with("events", events);
            blocks.push(if seen.is_empty() { block } else { block.with("at_endpoint", seen) });
        }
    };
    for (index, (event, is_seen)) in run.events().zip(at_endpoint).enumerate() {
        let text = event.to_string();
        let kept = if text.len() <= MAX_EVENT { event.clone() } else { shortened(&text) };
        let length = text.len().min(MAX_EVENT);
        if events.len() == BLOCK_EVENTS || bytes + length > BLOCK_BYTES {
            close(&mut events, &mut seen, first);
            (bytes, first) = (0, index);
        }
        if is_seen {
            seen.push(Json::from(events.len()));
        }
        bytes += length;
        events.push(kept);
    }
    close(&mut events, &mut seen, first);
    blocks
}

fn shortened(text: &str) -> Json {
    let digest = proctor_core::digest::Digest::of(text.as_bytes());
    Json::object().with("omitted_bytes", text.len()).with("sha256", digest.to_string())
}
