//! Suite runs, read back from the ledger.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use proctor_core::json::Json;
use proctor_core::record::{RUN_ENDED, RecordKind};
use proctor_core::session::SessionKey;
use proctor_core::time::Timestamp;
use proctor_ledger::reader::BodyState;
use proctor_ledger::store::{Filter, Order};
use proctor_ledger::{ReadError, Reader};
use proctor_runner::results::{self, SuiteResult, TestResult};
use proctor_runner::scoring::Verdict;
use proctor_runner::suite::{Suite, TestCase};
use proctor_yaml::Position;

use crate::keys::{
    ID_DIGEST, PAIR_DIGEST, SELECTION, SUITE_RUNS, SUITE_STARTED, TEST_ENDED, TEST_RESULTS, id_digest,
    pair_digest, tests_session,
};

/// Suite runs that are searched for a name.
const MAX_SEARCHED: usize = 10_000;

/// A suite run on record.
#[derive(Debug, Clone, PartialEq)]
pub struct SuiteRun {
    /// Identifier.
    pub id: String,
    /// Name of the suite.
    pub suite: String,
    /// Digest of the suite's source.
    pub suite_digest: String,
    /// Name of the agent.
    pub agent: String,
    /// Number of selected tests.
    pub tests: usize,
    /// Time of its start.
    pub started: Timestamp,
    /// Its end, if it has one: numbers of tests by verdict.
    pub end: Option<SuiteRunEnd>,
    principal: String,
    /// Path of the suite as given; empty in records of versions that did not write it.
    file: String,
    isolation: Option<Json>,
    /// Empty in records of versions that did not write it.
    pair_digest: String,
    /// Digest of the selected tests and of the number of runs; empty in records of versions that did not write it.
    pub(crate) selection: String,
}

/// End of a suite run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SuiteRunEnd {
    /// Tests that passed.
    pub passed: u64,
    /// Tests that failed.
    pub failed: u64,
    /// Tests that could not be evaluated.
    pub errors: u64,
    /// Tests that were not run.
    pub not_run: u64,
    /// Whether the user interrupted it.
    pub is_interrupted: bool,
    /// Milliseconds that it took.
    pub duration_ms: u64,
    /// Time of its end.
    pub ended: Timestamp,
}

/// Error of reading suite runs.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum HistoryError {
    /// The ledger cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// There is no such suite run.
    #[error("there is no suite run `{0}`: `proctor runs list` shows them")]
    Unknown(String),
    /// Several suite runs have this name.
    #[error("`{named}` can be several suite runs: {candidates}")]
    Ambiguous {
        /// The name as given.
        named: String,
        /// Identifiers of some of them.
        candidates: String,
    },
    /// The result of a test was erased, or is not JSON.
    #[error("the result of the test at record {0} cannot be read: it was erased or damaged")]
    Body(u64),
    /// The stored result is none that this version reads.
    #[error("the stored result cannot be read: {0}")]
    Result(#[source] results::ReadError),
}

/// The newest suite runs, the newest first.
pub fn list(reader: &Reader, limit: usize) -> Result<Vec<SuiteRun>, HistoryError> {
    let filter =
        Filter { agent: Some(SUITE_RUNS.to_owned()), kinds: vec![RecordKind::Run], ..Filter::default() };
    let mut runs: Vec<SuiteRun> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut ends: Vec<(String, SuiteRunEnd, Option<Json>)> = Vec::new();
    for record in reader.records(filter, Order::Descending) {
        let record = record?;
        let Some(data) = data(reader, record.seq)? else { continue };
        let text = |name: &str| data.get(name).and_then(Json::as_str).unwrap_or_default().to_owned();
        let number = |name: &str| data.get(name).and_then(Json::as_u64).unwrap_or_default();
        let id = text("suite_run");
        if record.envelope.code == RUN_ENDED {
            ends.push((id, end(&data, record.envelope.time), data.get("isolation").cloned()));
        } else if record.envelope.code == SUITE_STARTED {
            // A resumed suite run starts more than once; it began with the oldest start.
            if let Some(run) = places.get(&id).and_then(|place| runs.get_mut(*place)) {
                run.started = record.envelope.time;
                ends.retain(|(ended, ..)| *ended != id);
                continue;
            }
            if runs.len() == limit {
                break;
            }
            places.insert(id.clone(), runs.len());
            // A resumed suite run ends more than once; the newest end counts, and stands first.
            let newest = ends.iter().find(|(ended, ..)| *ended == id).cloned();
            let (end, isolation) = newest.map_or((None, None), |(_, end, isolation)| (Some(end), isolation));
            ends.retain(|(ended, ..)| *ended != id);
            runs.push(SuiteRun {
                suite: text("suite"),
                file: text("file"),
                suite_digest: text("suite_digest"),
                pair_digest: text(PAIR_DIGEST),
                selection: text(SELECTION),
                agent: text("agent"),
                tests: usize::try_from(number("tests")).unwrap_or(usize::MAX),
                started: record.envelope.time,
                end,
                principal: record.envelope.principal.clone(),
                isolation,
                id,
            });
        }
    }
    Ok(runs)
}

fn end(data: &Json, ended: Timestamp) -> SuiteRunEnd {
    let number = |name: &str| data.get(name).and_then(Json::as_u64).unwrap_or_default();
    SuiteRunEnd {
        passed: number("passed"),
        failed: number("failed"),
        errors: number("errors"),
        not_run: number("not_run"),
        is_interrupted: data.get("interrupted").and_then(Json::as_bool).unwrap_or_default(),
        duration_ms: number("duration_ms"),
        ended,
    }
}

/// The suite run that a text names: its identifier, the beginning or end of it, or `last`.
pub fn find(reader: &Reader, named: &str) -> Result<SuiteRun, HistoryError> {
    let unknown = || HistoryError::Unknown(named.to_owned());
    if named == "last" {
        return list(reader, 1)?.into_iter().next().ok_or_else(unknown);
    }
    let runs = list(reader, MAX_SEARCHED)?;
    let is_named = |run: &&SuiteRun| {
        run.id == named || (named.len() >= 4 && (run.id.starts_with(named) || run.id.ends_with(named)))
    };
    let found: Vec<&SuiteRun> = runs.iter().filter(is_named).collect();
    match found.as_slice() {
        [] => Err(unknown()),
        [one] => Ok((*one).clone()),
        several => {
            let ids: Vec<&str> = several.iter().take(5).map(|run| run.id.as_str()).collect();
            Err(HistoryError::Ambiguous { named: named.to_owned(), candidates: ids.join(", ") })
        }
    }
}

/// Suite runs of a suite with an agent, the newest first.
pub(crate) fn of_pair(reader: &Reader, suite: &str, agent: &str) -> Result<Vec<SuiteRun>, HistoryError> {
    let mut runs = list(reader, MAX_SEARCHED)?;
    runs.retain(|run| run.is_of(suite, agent));
    Ok(runs)
}

/// The newest suite run of a suite with an agent.
pub fn newest(reader: &Reader, suite: &str, agent: &str) -> Result<Option<SuiteRun>, HistoryError> {
    let runs = list(reader, MAX_SEARCHED)?;
    Ok(runs.into_iter().find(|run| run.is_of(suite, agent)))
}

impl SuiteRun {
    /// Results of the tests that have ended, in the order of ending.
    pub fn results(&self, reader: &Reader) -> Result<Vec<Json>, HistoryError> {
        let key = SessionKey {
            principal: self.principal.clone(),
            agent: TEST_RESULTS.to_owned(),
            session: tests_session(&self.id),
        };
        // A suite run none of whose tests has ended has no such session.
        let Some(sequence) = reader.once(&format!("session:{}", key.digest()))? else {
            return Ok(Vec::new());
        };
        let Some(session) = reader.envelope(sequence)?.session else { return Ok(Vec::new()) };
        let filter = Filter { session: Some(session), kinds: vec![RecordKind::Run], ..Filter::default() };
        let mut results = Vec::new();
        for record in reader.records(filter, Order::Ascending) {
            let record = record?;
            if record.envelope.code == TEST_ENDED {
                results.push(data(reader, record.seq)?.ok_or(HistoryError::Body(record.seq))?);
            }
        }
        Ok(results)
    }

    /// Whether it was of this suite and agent, by their names. A name that looks like a secret is cut from the record, so digests are compared.
    pub fn is_of(&self, suite: &str, agent: &str) -> bool {
        match self.pair_digest.as_str() {
            "" => self.suite == suite && self.agent == agent,
            digest => digest == pair_digest(suite, agent),
        }
    }

    /// The result of the suite run: that of the tests that have ended.
    pub fn result(&self, reader: &Reader) -> Result<SuiteResult, HistoryError> {
        self.read(self.results(reader)?)
    }

    /// The result for reports. Tests without a result stand in it as one: an error if the suite run did not end by itself, so that no
    /// report of a part is green.
    pub fn reported(&self, reader: &Reader) -> Result<SuiteResult, HistoryError> {
        let mut result = self.result(reader)?;
        let missing = self.tests.saturating_sub(result.tests.len());
        if missing > 0 {
            let (verdict, why) = match self.end {
                None => (Some(Verdict::Error), "the suite run did not end"),
                Some(SuiteRunEnd { is_interrupted: true, .. }) => {
                    (Some(Verdict::Error), "the suite run was interrupted")
                }
                Some(_) => (None, "an earlier test did not pass"),
            };
            let name = if missing == 1 { "1 test".to_owned() } else { format!("{missing} tests") };
            result.tests.push(TestResult {
                id: "without-result".to_owned(),
                name: format!("{name} without a result"),
                tags: Arc::from([]),
                at: Position::default(),
                network: false,
                verdict,
                not_run: Some(format!("{missing} of {} tests have no result: {why}", self.tests)),
                required: 0,
                runs: Vec::new(),
                took: Duration::ZERO,
            });
        }
        Ok(result)
    }

    /// Whether it goes on when it is resumed: it did not end, or was interrupted.
    pub fn is_resumable(&self) -> bool {
        self.end.is_none_or(|end| end.is_interrupted)
    }

    /// The result, with the ids of tests as this suite has them. An id that looks like a secret is cut from the record, and found by its digest.
    pub fn result_in(&self, reader: &Reader, suite: &Suite) -> Result<SuiteResult, HistoryError> {
        let results = self.results(reader)?;
        let digests: Vec<Option<String>> = results
            .iter()
            .map(|result| result.get(ID_DIGEST).and_then(Json::as_str).map(str::to_owned))
            .collect();
        let known: HashMap<String, &TestCase> =
            suite.tests.iter().map(|test| (id_digest(&test.id), test)).collect();
        let mut result = self.read(results)?;
        for (test, digest) in result.tests.iter_mut().zip(digests) {
            if let Some(known) = digest.and_then(|digest| known.get(&digest)) {
                test.id.clone_from(&known.id);
            }
        }
        Ok(result)
    }

    fn read(&self, tests: Vec<Json>) -> Result<SuiteResult, HistoryError> {
        let document = self.document(tests).to_string();
        SuiteResult::read(document.as_bytes()).map_err(HistoryError::Result)
    }

    /// The suite run in lists.
    pub fn to_json(&self) -> Json {
        let mut json = Json::object()
            .with("run", self.id.as_str())
            .with("suite", self.suite.as_str())
            .with("agent", self.agent.as_str())
            .with("started", self.started.to_string())
            .with("tests", self.tests);
        if let Some(end) = self.end {
            json.push("passed", end.passed);
            json.push("failed", end.failed);
            json.push("errors", end.errors);
            json.push("not_run", end.not_run);
            json.push("interrupted", end.is_interrupted);
        }
        json
    }

    /// The result in the form of the JSON report.
    fn document(&self, tests: Vec<Json>) -> Json {
        let isolation = self.isolation.clone();
        let duration = self.end.map_or(0, |end| end.duration_ms);
        let mut document = Json::object()
            .with("format", "proctor test")
            .with("version", "1.0")
            .with("run", self.id.as_str())
            .with("suite", self.suite.as_str())
            .with("file", self.file.as_str())
            .with("agent", self.agent.as_str())
            .with("interrupted", self.end.is_none_or(|end| end.is_interrupted))
            .with(
                "duration_seconds",
                Json::Number(format!("{}.{:03}", duration / 1000, duration % 1000).into()),
            );
        if let Some(end) = self.end {
            document.push("ended", end.ended.to_string());
        }
        if let Some(isolation) = isolation {
            document.push("isolation", isolation);
        }
        document.with("tests", tests)
    }
}

/// The data of a record of kind `run`; none if it was erased.
fn data(reader: &Reader, sequence: u64) -> Result<Option<Json>, HistoryError> {
    match reader.body(sequence)? {
        BodyState::Present { bytes, .. } => {
            let body = Json::parse(&bytes).map_err(|_| HistoryError::Body(sequence))?;
            Ok(body.get("data").cloned())
        }
        _ => Ok(None),
    }
}
