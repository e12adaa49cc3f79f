//! Names of sessions, principals and records of suite runs.

use proctor_core::digest::Digest;
use proctor_core::json::Json;

/// Member of a test's record: the digest of its id. An id that looks like a secret is cut from the record, the digest stays.
pub(crate) const ID_DIGEST: &str = "id_digest";
/// Member of the record that begins a suite run: the digest of the names of suite and agent, for the same reason.
pub(crate) const PAIR_DIGEST: &str = "pair_digest";

/// Member of the record that begins a suite run: the digest of its tests and of the number of runs.
pub(crate) const SELECTION: &str = "selection_digest";

/// Digest of a test's id in records.
pub(crate) fn id_digest(id: &str) -> String {
    grouped(Digest::of(id.as_bytes()))
}

/// Digest of the names of a suite and an agent in records.
pub(crate) fn pair_digest(suite: &str, agent: &str) -> String {
    let pair = Json::Array(vec![Json::from(suite), Json::from(agent)]).to_string();
    grouped(Digest::of(pair.as_bytes()))
}

/// A digest in groups: the scanner of records takes a long word of random letters for a secret.
pub(crate) fn grouped(digest: Digest) -> String {
    let text = digest.to_string();
    let groups: Vec<&str> = (0..text.len()).step_by(8).filter_map(|from| text.get(from..from + 8)).collect();
    groups.join(" ")
}

/// Agent of the records of suite runs, by which they are found.
pub(crate) const SUITE_RUNS: &str = "proctor-test";

/// Code of the record that begins a suite run.
pub(crate) const SUITE_STARTED: &str = "suite_started";
/// Code of the record with the result of a test.
pub(crate) const TEST_ENDED: &str = "test_ended";
/// Code of the record that begins a run.
pub(crate) const STARTED: &str = "started";
/// Code of a block of events.
pub(crate) const EVENTS: &str = "events";

/// Name of the principal of a suite run, below the user's.
pub(crate) fn suite_principal(id: &str) -> String {
    format!("suite-run-{id}")
}

/// Name of the principal of a run, below the user's.
pub(crate) fn run_principal(task_id: &str) -> String {
    format!("run-{task_id}")
}

/// Session of the results of a suite run.
pub(crate) fn tests_session(id: &str) -> String {
    format!("{id}/tests")
}

/// Agent of the results of a suite run: another one than that of the suite runs, so that a list of them does not read all results.
pub(crate) const TEST_RESULTS: &str = "proctor-test-results";
