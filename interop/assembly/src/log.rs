//! The gateway's log of decisions, one JSON object a line, and the released `aasm` as its judge.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// The variable that says where the released `aasm` is.
pub const AASM: &str = "AASM";

/// A line of the log.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The line as written.
    pub line: Value,
    /// The parsed payload.
    pub payload: Value,
}

impl Entry {
    /// Kind of the entry: `ToolCallIntercepted`, `PolicyViolation`, …
    pub fn event_type(&self) -> &str {
        self.line["event_type"].as_str().unwrap_or_default()
    }

    /// The trace that it belongs to.
    pub fn trace(&self) -> &str {
        self.payload["trace_id"].as_str().unwrap_or_default()
    }
}

/// All lines of a log. A log that does not exist has none.
pub fn entries(log: &Path) -> Vec<Entry> {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let entry = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let payload = line["payload"].as_str().unwrap_or_else(|| panic!("a payload that is text: {line}"));
        let payload = serde_json::from_str(payload).unwrap_or_else(|error| panic!("{error}: {payload}"));
        Entry { line, payload }
    };
    text.lines().map(entry).collect()
}

/// Output of the released `aasm` about the chain of a log.
pub fn verdict(log: &Path) -> String {
    let output = Command::new(aasm()).args(["audit", "verify-chain"]).arg(log).output().expect("aasm runs");
    format!(
        "{}{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
        output.status
    )
}

/// Fails unless the released `aasm` finds the chain whole.
pub fn assert_whole(log: &Path) {
    let output = Command::new(aasm()).args(["audit", "verify-chain"]).arg(log).output().expect("aasm runs");
    assert!(output.status.success(), "{}", verdict(log));
}

fn aasm() -> PathBuf {
    std::env::var_os(AASM).map_or_else(
        || panic!("{AASM} is not set: it names the released `aasm` (run `scripts/interop`)"),
        PathBuf::from,
    )
}
