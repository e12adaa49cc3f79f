//! The store of a suite run.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use proctor_core::digest::Digest;
use proctor_core::json::Json;
use proctor_core::random::Randomness;
use proctor_core::record::RUN_ENDED;
use proctor_core::session::Caller;
use proctor_core::time::Clock;
use proctor_door_atp::{Decider, RecordError, Run};
use proctor_engine::RunReport;
use proctor_engine::access::local_caller;
use proctor_runner::results::SuiteResult;

use crate::backend::ToolSource;
use crate::keys::{
    ID_DIGEST, PAIR_DIGEST, SELECTION, SUITE_RUNS, SUITE_STARTED, TEST_RESULTS, grouped, id_digest,
    pair_digest, run_principal, suite_principal, tests_session,
};

/// A source of deciders: for each principal the engine of this process, or a connection to the owner of the state directory.
pub type DeciderSource = Arc<dyn Fn(&str) -> Result<Decider, OpenError> + Send + Sync>;

/// Error of reaching the engine for a run.
#[derive(Debug, thiserror::Error)]
#[error("the state directory cannot be reached: {0}")]
pub struct OpenError(#[source] pub Box<dyn std::error::Error + Send + Sync>);

/// A suite run that begins.
#[derive(Debug, Clone, PartialEq)]
pub struct SuiteRunStart {
    /// Identifier of the suite run, a UUID.
    pub id: String,
    /// Name of the suite.
    pub suite: String,
    /// Path of the suite as given.
    pub file: String,
    /// Digest of the suite's source.
    pub suite_digest: Digest,
    /// Name of the agent.
    pub agent: String,
    /// Number of selected tests.
    pub tests: usize,
    /// Digest of the selected tests and of the number of runs, of [`crate::earlier::selection`].
    pub selection: Digest,
}

/// The store of one suite run: its records, and the tools of its runs.
pub struct RunStore {
    pub(crate) start: SuiteRunStart,
    source: DeciderSource,
    uid: u32,
    pub(crate) tools: ToolSource,
    /// Whether tools of a server are called without a policy that the operator wrote.
    pub(crate) has_unguarded_server: bool,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) randomness: Arc<dyn Randomness>,
    suite: Decider,
    runs: Mutex<HashMap<String, (Decider, Run)>>,
}

impl RunStore {
    /// Connects a suite run to the engine. Nothing is recorded yet. Without a policy, a tool server is reached only for tools that the
    /// suite names.
    pub fn new(
        start: SuiteRunStart,
        source: DeciderSource,
        uid: u32,
        tools: ToolSource,
        has_policy: bool,
        clock: Arc<dyn Clock>,
        randomness: Arc<dyn Randomness>,
    ) -> Result<RunStore, OpenError> {
        let suite = source(&suite_principal(&start.id))?;
        let has_unguarded_server = !has_policy && tools.is_server();
        let runs = Mutex::default();
        Ok(RunStore { start, source, uid, tools, has_unguarded_server, clock, randomness, suite, runs })
    }

    /// Identifier of the suite run.
    pub fn id(&self) -> &str {
        &self.start.id
    }

    /// Records that the suite run begins; once, also if it is resumed.
    pub async fn suite_started(&self) -> Result<(), RecordError> {
        let SuiteRunStart { id, suite, file, suite_digest, agent, tests, selection } = &self.start;
        let data = Json::object()
            .with("suite_run", id.as_str())
            .with("suite", suite.as_str())
            .with("file", file.as_str())
            .with("suite_digest", grouped(*suite_digest))
            .with("agent", agent.as_str())
            .with(PAIR_DIGEST, pair_digest(suite, agent))
            .with("tests", *tests)
            .with(SELECTION, grouped(*selection));
        self.record_for_suite(SUITE_RUNS, id.clone(), SUITE_STARTED, suite, data, None).await
    }

    /// Records the end of the suite run.
    pub async fn suite_ended(&self, result: &SuiteResult) -> Result<(), RecordError> {
        let counts = result.counts();
        let data = Json::object()
            .with("suite_run", self.start.id.as_str())
            .with("passed", counts.passed)
            .with("failed", counts.failed)
            .with("errors", counts.errors)
            .with("not_run", counts.not_run)
            .with("interrupted", result.is_interrupted)
            .with("isolation", result.isolation.to_json())
            .with("duration_ms", u64::try_from(result.took.as_millis()).unwrap_or(u64::MAX));
        let session = self.start.id.clone();
        self.record_for_suite(SUITE_RUNS, session, RUN_ENDED, &self.start.suite, data, None).await
    }

    pub(crate) async fn record_test(&self, test: &str, data: Json) -> Result<(), RecordError> {
        let once = format!("{}/{test}", self.start.id);
        let session = tests_session(&self.start.id);
        let data = data.with(ID_DIGEST, id_digest(test));
        self.record_for_suite(TEST_RESULTS, session, crate::keys::TEST_ENDED, test, data, Some(once)).await
    }

    async fn record_for_suite(
        &self,
        agent: &str,
        session: String,
        code: &str,
        name: &str,
        data: Json,
        once: Option<String>,
    ) -> Result<(), RecordError> {
        let run = Run::new(session, self.caller(&suite_principal(&self.start.id)), agent);
        let report = RunReport { code: code.to_owned(), name: name.to_owned(), data, once };
        self.suite.record(&run, report).await.map(drop)
    }

    /// The decider of a run, and its settings for records; opened at the first call.
    pub(crate) fn run(&self, task_id: &str, agent: &str) -> Result<(Decider, Run), OpenError> {
        if let Some(known) = self.lock().get(task_id) {
            return Ok(known.clone());
        }
        let principal = run_principal(task_id);
        let decider = (self.source)(&principal)?;
        let run = Run::new(task_id, self.caller(&principal), agent);
        self.lock().insert(task_id.to_owned(), (decider.clone(), run.clone()));
        Ok((decider, run))
    }

    /// Closes the connection of a run that has ended.
    pub(crate) fn forget(&self, task_id: &str) {
        self.lock().remove(task_id);
    }

    fn caller(&self, name: &str) -> Caller {
        local_caller(self.uid, name, "", "")
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, (Decider, Run)>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
