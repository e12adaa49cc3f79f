//! `proctor assert` from the outside: exit codes, mistakes, reports, and sessions of the ledger.

pub mod endings;
pub mod mistakes;
pub mod reports;
pub mod sessions;

use std::process::{Command, Output, Stdio};

use crate::support::Folder;
use proctor_core::json::Json;

/// A trace of two steps that says it is done.
pub const TRACE: &str = r#"{
  "trace_id": "refund-1",
  "agent_id": "support",
  "input": {"message": "Refund order 7."},
  "steps": [
    {"type": "tool_call", "name": "lookup_order", "args": {"order": 7}, "result": {"status": "delivered"}},
    {"type": "tool_call", "name": "refund", "args": {"order": 7, "amount": 12.50}, "result": {"ok": true}}
  ],
  "output": {"message": "Your refund is on its way."},
  "metadata": {"cost_usd": 0.02, "total_tokens": 400, "latency_ms": 900}
}"#;

/// An assertion that holds on it.
pub const HOLDS: &str =
    "{ assertion_id: says-refund, type: content, spec: { check: contains, value: refund } }";

/// An assertion that fails.
pub const FAILS: &str = "{ assertion_id: cheap, type: constraint, spec: { field: metadata.cost_usd, operator: lte, value: 0.01 } }";

/// An assertion that fails softly.
pub const FAILS_SOFTLY: &str = "{ assertion_id: brief, type: constraint, spec: { field: metadata.total_tokens, operator: lte, value: 10, soft: true } }";

/// An assertion that needs a model that is not there.
pub const NEEDS_A_JUDGE: &str = "{ assertion_id: kind, type: llm_judge, spec: { criteria: Is it kind? } }";

/// A folder with the trace in it, and a policy that lets everything through.
pub fn folder() -> Folder {
    let folder = Folder::with_policy(
        "version: \"1\"\ndefault: allow\nrules:\n  - { id: no-delete, when: action.tool == \"drop_table\", then: deny, reason: Nothing is deleted here. }\n",
    );
    folder.write("trace.json", TRACE);
    folder
}

/// The program, with an environment that says nothing about assertions.
pub fn command(folder: &Folder, args: &[&str]) -> Command {
    let mut command = folder.command(args);
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("ATTEST_")) {
        command.env_remove(name);
    }
    command.env("HOME", folder.dir.path().join("home")).stdin(Stdio::null());
    command
}

/// Checks the trace against these assertions, with more arguments.
pub fn check(folder: &Folder, assertions: &[&str], more: &[&str]) -> Output {
    folder.write("assertions.yaml", &format!("- {}\n", assertions.join("\n- ")));
    let mut args = vec!["assert", "--trace", "trace.json", "--assertions", "assertions.yaml"];
    args.extend(more);
    command(folder, &args).output().unwrap()
}

/// Standard error of a process.
pub fn said(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Standard output of a process.
pub fn printed(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// The one document that `--json` prints.
pub fn document(output: &Output) -> Json {
    let mut lines = crate::support::lines(output);
    assert_eq!(lines.len(), 1, "{}", said(output));
    lines.remove(0)
}

/// Asserts the exit code.
#[track_caller]
pub fn ends(output: &Output, code: i32) {
    assert_eq!(output.status.code(), Some(code), "{}{}", printed(output), said(output));
}
