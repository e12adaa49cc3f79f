//! Doubles and helpers that several modules share.

pub(crate) mod atp;
pub(crate) mod engine;
pub(crate) mod harness;
pub(crate) mod port;
pub(crate) mod probe;

/// Set in the process that [`isolated`] starts.
const ISOLATED: &str = "PROCTOR_TEST_ISOLATED";

/// Runs a test again in a process of its own, for tests that measure their process; true in that process.
pub(crate) fn isolated(test: &str) -> bool {
    if std::env::var_os(ISOLATED).is_some() {
        return true;
    }
    let run = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test])
        .env(ISOLATED, "1")
        .output()
        .unwrap();
    let output = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success() && output.contains("1 passed"), "{output}");
    false
}
