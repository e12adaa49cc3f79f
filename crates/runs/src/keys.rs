//! Names of sessions, principals and records of suite runs.

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
