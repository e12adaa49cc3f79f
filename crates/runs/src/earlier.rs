//! Earlier suite runs that a new one goes on with, or repeats in part.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use proctor_core::digest::Digest;
use proctor_core::json::Json;
use proctor_core::time::Timestamp;
use proctor_ledger::Reader;
use proctor_runner::results::TestResult;
use proctor_runner::suite::{Suite, TestCase};
use proctor_runner::suite_run::Options;

use crate::history::{self, HistoryError, SuiteRun};
use crate::keys::{ID_DIGEST, grouped, id_digest};

/// A suite and an agent, which earlier suite runs are compared with.
#[derive(Clone, Copy)]
pub struct Pair<'p> {
    /// The suite.
    pub suite: &'p Suite,
    /// Digest of its source.
    pub digest: Digest,
    /// Name of the agent.
    pub agent: &'p str,
}

/// Tests of an earlier suite run that are run again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rerun {
    /// Those that failed or could not be evaluated.
    Failed,
    /// Those that could not be evaluated.
    Errors,
}

/// Error of going on with an earlier suite run.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum EarlierError {
    /// The ledger or the stored result cannot be read.
    #[error(transparent)]
    History(#[from] HistoryError),
    /// There is no suite run of this suite and agent.
    #[error("no suite run of {suite} with {agent} is on record; run it without --resume and --rerun")]
    None {
        /// Name of the suite.
        suite: String,
        /// Name of the agent.
        agent: String,
    },
    /// The suite run was of another suite or agent.
    #[error("suite run {0} had another suite or agent; run this one without --resume")]
    Another(String),
    /// The suite run has ended: its results are final.
    #[error(
        "suite run {0} has ended, so there is nothing to resume; run it without --resume, or with --rerun failed"
    )]
    Ended(String),
    /// The suite run was of another selection of tests.
    #[error(
        "suite run {id} was of {recorded} tests, the flags select {selected}; give the same --tags and --partition"
    )]
    Selection {
        /// Identifier of the suite run.
        id: String,
        /// Number of its tests.
        recorded: usize,
        /// Number of tests that are selected now.
        selected: usize,
    },
    /// The suite run was of other tests, or of another number of runs.
    #[error(
        "suite run {0} was of other tests, or of another number of runs; give the same --tags, --partition and --runs"
    )]
    OtherSelection(String),
}

/// Digest of the selected tests and of the number of runs that the caller asked for. A suite run is resumed only with the same.
pub fn selection(suite: &Suite, options: &Options) -> Digest {
    let selected = options.selected.iter().filter_map(|index| suite.tests.get(*index));
    let ids: Vec<Json> = selected.map(|test| Json::from(test.id.as_str())).collect();
    Digest::of(Json::Array(vec![Json::Array(ids), options.runs.into()]).to_string().as_bytes())
}

/// An earlier suite run, and the part of it that counts.
#[derive(Debug, Clone, PartialEq)]
pub struct Earlier {
    /// Identifier.
    pub id: String,
    /// Time of its start.
    pub started: Timestamp,
    /// Number of its tests whose result is kept, or that are run again.
    pub tests: usize,
    /// Number of all its tests, or of all tests that have a result.
    pub of: usize,
}

impl Earlier {
    /// Sentence about a suite run that is resumed.
    pub fn resumed(&self) -> String {
        let Earlier { id, started, tests, of } = self;
        let rest = of.saturating_sub(*tests);
        format!("going on with suite run {id} of {started}: {tests} of {of} tests are kept, {rest} to run")
    }

    /// Sentence about a suite run of which tests are run again.
    pub fn run_again(&self, rerun: Rerun) -> String {
        let Earlier { id, started, tests, of } = self;
        let what = match rerun {
            Rerun::Failed => "failed or could not be evaluated",
            Rerun::Errors => "could not be evaluated",
        };
        match tests {
            0 => {
                format!("none of {of} tests {what}, up to suite run {id} of {started}: nothing is run again")
            }
            _ => {
                format!("{tests} of {of} tests {what}, up to suite run {id} of {started}, and are run again")
            }
        }
    }
}

/// Takes over the results of a suite run that did not end, or was interrupted: the newest if none is named.
pub fn resume(
    reader: &Reader,
    named: Option<&str>,
    pair: Pair<'_>,
    options: &mut Options,
) -> Result<Earlier, EarlierError> {
    let run = match named {
        Some(named) => history::find(reader, named)?,
        None => newest(reader, pair)?,
    };
    let is_same = run.is_of(&pair.suite.name, pair.agent) && run.suite_digest == grouped(pair.digest);
    if !is_same {
        return Err(EarlierError::Another(run.id));
    }
    // Results of a finished suite run are never taken for new ones: runs are not cached.
    if !run.is_resumable() {
        return Err(EarlierError::Ended(run.id));
    }
    if run.tests != options.selected.len() {
        let (id, recorded) = (run.id, run.tests);
        return Err(EarlierError::Selection { id, recorded, selected: options.selected.len() });
    }
    if !run.selection.is_empty() && run.selection != grouped(selection(pair.suite, options)) {
        return Err(EarlierError::OtherSelection(run.id));
    }
    let mut known: HashMap<String, TestResult> =
        run.result_in(reader, pair.suite)?.tests.into_iter().map(|test| (test.id.clone(), test)).collect();
    for test in &pair.suite.tests {
        // The suite is the same: texts that were cut from the record are those of the suite.
        if let Some(known) = known.get_mut(&test.id) {
            known.name.clone_from(&test.name);
            known.tags = Arc::clone(&test.tags);
        }
    }
    // Records of earlier versions do not say which tests were selected, but each of their results must be of one that is.
    let selected: HashSet<&str> = options
        .selected
        .iter()
        .filter_map(|index| pair.suite.tests.get(*index))
        .map(|test| test.id.as_str())
        .collect();
    if known.keys().any(|id| !selected.contains(id.as_str())) {
        return Err(EarlierError::OtherSelection(run.id));
    }
    let kept = known.len();
    options.known.extend(known);
    Ok(Earlier { id: run.id, started: run.started, tests: kept, of: run.tests })
}

/// Leaves only the tests that are run again; none if nothing is. The newest result of each test counts, whichever suite run it is of, and
/// a test that a suite run left out is none of its results: tests that failed stay to be run until they pass.
pub fn select(
    reader: &Reader,
    rerun: Rerun,
    pair: Pair<'_>,
    options: &mut Options,
) -> Result<Earlier, EarlierError> {
    let runs = history::of_pair(reader, &pair.suite.name, pair.agent)?;
    let Some(newest) = runs.first() else { return Err(none(pair)) };
    let ids: HashMap<String, &TestCase> =
        pair.suite.tests.iter().map(|test| (id_digest(&test.id), test)).collect();
    let member = |result: &Json, name: &str| result.get(name).and_then(Json::as_str).map(str::to_owned);
    let mut verdicts: HashMap<String, bool> = HashMap::new();
    let mut missing: HashSet<&str> = pair.suite.tests.iter().map(|test| test.id.as_str()).collect();
    for run in runs.iter().filter(|run| run.suite_digest == newest.suite_digest) {
        for result in run.results(reader)? {
            let known = member(&result, ID_DIGEST).and_then(|digest| ids.get(&digest).copied());
            let Some(id) = known.map(|test| test.id.clone()).or_else(|| member(&result, "id")) else {
                continue;
            };
            let is_wanted = match member(&result, "verdict").as_deref() {
                Some("error") => true,
                Some("failed") => rerun == Rerun::Failed,
                _ => false,
            };
            missing.remove(id.as_str());
            verdicts.entry(id).or_insert(is_wanted);
        }
        // Older suite runs say nothing about tests that all have a newer result.
        if missing.is_empty() {
            break;
        }
    }
    let is_wanted = |test: &TestCase| verdicts.get(&test.id).copied().unwrap_or_default();
    let tests = &pair.suite.tests;
    options.selected.retain(|index| tests.get(*index).is_some_and(is_wanted));
    let (id, started) = (newest.id.clone(), newest.started);
    Ok(Earlier { id, started, tests: options.selected.len(), of: verdicts.len() })
}

fn none(pair: Pair<'_>) -> EarlierError {
    EarlierError::None { suite: pair.suite.name.clone(), agent: pair.agent.to_owned() }
}

fn newest(reader: &Reader, pair: Pair<'_>) -> Result<SuiteRun, EarlierError> {
    let found = history::newest(reader, &pair.suite.name, pair.agent)?;
    found.ok_or_else(|| none(pair))
}
