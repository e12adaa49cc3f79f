//! Calls to a running engine.

use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::Serialize;
use serde_json::value::RawValue;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

use super::client::Ending;
use super::error::{ClientError, EngineEnd, Stage};
use super::messages::{self, EncodeError};
use super::options::{EngineBuilder, EngineOptions};
use super::process::{self, Outcome, Running, Shared, Stop};
use crate::pending::CallStage;

/// A running engine; dropping this kills it.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) shared: Arc<Shared>,
    pub(super) options: EngineOptions,
    pub(super) process_id: Option<u32>,
    queue: mpsc::Sender<u64>,
    stop: oneshot::Sender<Stop>,
    slots: Semaphore,
    last_id: AtomicU64,
}

impl Link {
    /// Starts an engine.
    pub(super) fn start(builder: EngineBuilder) -> Result<Link, ClientError> {
        let Running { shared, queue, stop, process_id } = process::start(&builder)?;
        let options = builder.options;
        let slots = Semaphore::new(options.max_in_flight.clamp(1, Semaphore::MAX_PERMITS));
        Ok(Link { shared, options, process_id, queue, stop, slots, last_id: AtomicU64::new(0) })
    }

    /// Lowers the number of concurrent requests to the engine's own limit.
    pub(super) fn limit_concurrency(&self, limit: u64) {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX).max(1);
        self.slots.forget_permits(self.slots.available_permits().saturating_sub(limit));
    }

    /// Calls a method; `limit` is only for the error's text.
    pub(super) async fn call(
        &self,
        method: &str,
        params: &(impl Serialize + ?Sized),
        limit: Duration,
        deadline: Instant,
    ) -> Result<Box<RawValue>, ClientError> {
        let late = |stage| ClientError::Timeout {
            method: method.to_owned(),
            after: limit,
            stage,
            stderr: self.shared.stderr.text(),
        };
        let _slot = timeout_at(deadline, self.slots.acquire()).await.map_err(|_| late(Stage::Slot))?;
        // From 1: engines use id 0 in errors about lines that they could not read.
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let max = self.options.max_request_bytes;
        let line = messages::request(id, method, params, max).map_err(|problem| match problem {
            EncodeError::TooLong => ClientError::RequestTooLong { method: method.to_owned(), max },
            EncodeError::Invalid(problem) => {
                ClientError::Unserializable { method: method.to_owned(), problem }
            }
        })?;
        let Ok((registration, outcome)) = self.shared.calls.register(Some(id), line) else {
            return Err(self.ended().into());
        };
        let answered = async {
            // The queue is closed after the table, which then has settled the outcome.
            let _ = self.queue.send(registration.serial()).await;
            outcome.await
        };
        let outcome = timeout_at(deadline, answered).await.map_err(|_| late(stage(registration.stage())))?;
        match outcome {
            Ok(Outcome::Result(result)) => Ok(result),
            Ok(Outcome::Refused(error)) => Err(ClientError::Refused { method: method.to_owned(), error }),
            Ok(Outcome::Malformed(problem)) => {
                Err(ClientError::Protocol { method: method.to_owned(), problem: problem.to_owned() })
            }
            Ok(Outcome::TooLong) => Err(ClientError::AnswerTooLong {
                method: method.to_owned(),
                max: self.options.max_answer_bytes,
            }),
            Ok(Outcome::Ended(end)) => Err(end.into()),
            // The runtime has ended the task.
            Err(_) => Err(self.ended().into()),
        }
    }

    /// Cause of the engine's end, as far as it is known.
    fn ended(&self) -> EngineEnd {
        let unknown = || EngineEnd { status: None, stderr: self.shared.stderr.text().into() };
        self.shared.end.get().cloned().unwrap_or_else(unknown)
    }

    /// Ends the engine and waits for its exit.
    pub(super) async fn end(
        self,
        until: Instant,
        terminate: Option<Duration>,
    ) -> Result<(Ending, ExitStatus), ClientError> {
        let (done, ended) = oneshot::channel();
        let aborted = || ClientError::Unstoppable("its task was stopped".to_owned());
        self.stop.send(Stop { until, terminate, done }).map_err(|_| aborted())?;
        let ended = ended.await.map_err(|_| aborted())?;
        ended.map_err(|error| ClientError::Unstoppable(error.to_string()))
    }
}

fn stage(stage: CallStage) -> Stage {
    match stage {
        CallStage::Queued | CallStage::Writing => Stage::Write,
        CallStage::Written => Stage::Answer,
    }
}
