//! Results of a workflow run so far.

use proctor_core::json::Json;
use proctor_wire::agentcli::error::Code;

use crate::run::refusal::Refusal;
use crate::run::result::Execution;

/// Bytes of output that the result of a workflow shows, at most. Tasks beyond it show none: their sizes and files remain.
const MAX_SHOWN: usize = 32 << 20;

/// End of a task in a workflow run.
#[derive(Debug)]
pub(super) enum TaskEnd {
    Ended(Box<Execution>),
    Refused(Refusal),
}

impl TaskEnd {
    pub(super) fn is_ok(&self) -> bool {
        matches!(self, TaskEnd::Ended(execution) if execution.is_ok)
    }

    pub(super) fn stdout(&self) -> &str {
        match self {
            TaskEnd::Ended(execution) => &execution.stdout,
            TaskEnd::Refused(_) => "",
        }
    }

    fn to_json(&self, task: &str) -> Json {
        let status = match self {
            TaskEnd::Ended(execution) if execution.is_ok => "ok",
            TaskEnd::Ended(_) => "failed",
            TaskEnd::Refused(_) => "refused",
        };
        let entry = Json::object().with("task_id", task).with("status", status);
        match self {
            TaskEnd::Ended(execution) => entry
                .with("execution_id", execution.execution_id.as_str())
                .with("execution", execution.json.clone()),
            TaskEnd::Refused(refusal) => {
                let mut entry = entry.with("code", refusal.failure.code.word());
                entry.push("error", refusal.failure.message.as_str());
                entry.push("execution_id", refusal.execution_id.as_deref());
                entry.push("approval_id", refusal.approval.as_ref().map(|approval| approval.id.to_string()));
                entry
            }
        }
    }
}

impl From<Result<Execution, Refusal>> for TaskEnd {
    fn from(end: Result<Execution, Refusal>) -> TaskEnd {
        match end {
            Ok(execution) => TaskEnd::Ended(Box::new(execution)),
            Err(refusal) => TaskEnd::Refused(refusal),
        }
    }
}

/// Results so far.
#[derive(Default)]
pub(super) struct Tally {
    pub(super) tasks: Vec<Json>,
    pub(super) succeeded: u64,
    /// Tasks that did not succeed, refused ones included.
    pub(super) failed: u64,
    /// Codes of the refusals among them.
    pub(super) refused: Vec<Code>,
    pub(super) skipped: u64,
    /// Bytes of output in `tasks`.
    pub(super) shown: usize,
}

impl Tally {
    /// Counts the end of a task, and lists it.
    pub(super) fn count(&mut self, task: &str, end: &TaskEnd) {
        if end.is_ok() {
            self.succeeded += 1;
        } else {
            self.failed += 1;
        }
        if let TaskEnd::Refused(refusal) = end {
            self.refused.push(refusal.failure.code);
        }
        let mut entry = end.to_json(task);
        let output = ["stdout", "stderr"].map(|name| format!("/execution/result/{name}"));
        let length = |pointer: &String| entry.pointer(pointer).and_then(Json::as_str).map_or(0, str::len);
        let shown = output.iter().map(length).fold(self.shown, usize::saturating_add);
        if shown > MAX_SHOWN {
            for pointer in &output {
                entry.set_pointer(pointer, Json::from(""));
                entry.set_pointer(&format!("{pointer}_truncated"), Json::Bool(true));
            }
        } else {
            self.shown = shown;
        }
        self.tasks.push(entry);
    }
}
