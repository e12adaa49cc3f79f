//! Recording of runs, as the runner needs it. What cannot be recorded does not count as run.

mod announced;

use futures_util::future::BoxFuture;
use proctor_core::json::Json;

use crate::agent::Agent;
use crate::execute::{Execution, RunIdentity};
use crate::results::TestResult;
use crate::run::RunResult;
use crate::suite::TestCase;

pub use announced::AnnouncedRuns;

/// A store of runs.
pub trait Recorder: Send + Sync {
    /// Records that a run begins. It is started only after that.
    fn run_started<'a>(&'a self, run: StartedRun<'a>) -> BoxFuture<'a, Result<(), RecordingError>>;

    /// Records the events and the result of a run.
    fn run_ended<'a>(&'a self, run: EndedRun<'a>) -> BoxFuture<'a, Result<(), RecordingError>>;

    /// Records the result of a test, once for each test of a suite run.
    fn test_ended<'a>(&'a self, test: &'a TestResult) -> BoxFuture<'a, Result<(), RecordingError>>;
}

/// A run that begins.
#[derive(Clone, Copy)]
pub struct StartedRun<'r> {
    /// The agent.
    pub agent: &'r Agent,
    /// The test.
    pub test: &'r TestCase,
    /// Task id and numbers.
    pub identity: &'r RunIdentity,
}

/// A run that has ended.
#[derive(Clone, Copy)]
pub struct EndedRun<'r> {
    /// The agent.
    pub agent: &'r Agent,
    /// The test.
    pub test: &'r TestCase,
    /// Everything that came from the agent, with secrets cut.
    pub execution: &'r Execution,
    /// The result.
    pub result: &'r RunResult,
}

impl EndedRun<'_> {
    /// The events as they are kept.
    pub fn events(&self) -> impl Iterator<Item = &Json> {
        self.execution.events.iter().map(|event| &event.json)
    }
}

/// Error of recording. A run that is not on record is an error.
#[derive(Debug, thiserror::Error)]
#[error("not recorded: {0}")]
pub struct RecordingError(#[source] pub Box<dyn std::error::Error + Send + Sync>);
