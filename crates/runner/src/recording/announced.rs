//! Recorder that tells somebody else of each run that begins.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::{EndedRun, Recorder, RecordingError, StartedRun};
use crate::results::TestResult;

/// Recorder that calls a function for each run that begins, before the run is recorded by another recorder.
pub struct AnnouncedRuns<F> {
    /// The recorder.
    pub recorder: Arc<dyn Recorder>,
    /// The function; it must not block.
    pub announce: F,
}

impl<F: Fn(StartedRun<'_>) + Send + Sync> Recorder for AnnouncedRuns<F> {
    fn run_started<'a>(&'a self, run: StartedRun<'a>) -> BoxFuture<'a, Result<(), RecordingError>> {
        (self.announce)(run);
        self.recorder.run_started(run)
    }

    fn run_ended<'a>(&'a self, run: EndedRun<'a>) -> BoxFuture<'a, Result<(), RecordingError>> {
        self.recorder.run_ended(run)
    }

    fn test_ended<'a>(&'a self, test: &'a TestResult) -> BoxFuture<'a, Result<(), RecordingError>> {
        self.recorder.test_ended(test)
    }
}
