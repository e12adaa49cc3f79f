//! The current state of a run, reduced from its durable contracts.
//!
//! The protocol checks the shape of a contract and nothing else. What does not fit together is reported as a problem and never stops the
//! reduction: the state is always what the agent said last.
//!
//! ```
//! use proctor_core::json::Json;
//! use proctor_wire::ahp::{Contract, run::RunState};
//!
//! let contract = |status: &str| {
//!     let text = format!(r#"{{"run_id": "r", "session_id": "s", "status": "{status}", "updated_at": "now"}}"#);
//!     Contract::RunLifecycle(Json::parse(text.as_bytes()).unwrap().read().unwrap())
//! };
//! let mut run = RunState::default();
//! assert!(run.apply(&contract("completed")).is_empty());
//! assert_eq!(run.apply(&contract("executing"))[0].code, "run_transition");
//! assert_eq!(run.to_json()["status"], "executing");
//! ```

mod bounds;
mod problem;
mod tasks;
mod verification;

#[cfg(test)]
mod tests;

use proctor_core::json::Json;
use serde::{Deserialize, Serialize};

use super::{
    Contract, RunLifecycleEvent, RunStatus, TaskItem, TaskListEvent, VerificationEvent, VerificationStatus,
};
use bounds::cut;
pub use bounds::{MAX_ITEMS, MAX_REFERENCES, MAX_TEXT};
pub use problem::{MAX_PROBLEMS, Problem};
use problem::{Problems, quote};

/// The reduced state of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RunState {
    /// The run, as the first contract named it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// The session that it belongs to, as the first contract named it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The status; none before the agent reported one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<RunStatus>,
    /// The prompt, as last reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// The result, as last reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_summary: Option<String>,
    /// The error, as last reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Start time, as last reported; any text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
    /// The time in the last contract of any kind; any text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<String>,
    /// The tasks of the last list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<TaskItem>,
    /// The last verification.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verification: Option<VerificationEvent>,
}

impl RunState {
    /// Applies a contract, and returns its violations.
    pub fn apply(&mut self, contract: &Contract) -> Vec<Problem> {
        let mut problems = Problems::default();
        self.identify(contract, &mut problems);
        match contract {
            Contract::RunLifecycle(event) => self.lifecycle(event, &mut problems),
            Contract::TaskList(event) => self.task_list(event, &mut problems),
            Contract::Verification(event) => self.verification(event, &mut problems),
        }
        self.updated_at = Some(cut(contract.updated_at()).to_owned());
        problems.finish()
    }

    /// Converts the state to JSON, for people and for storage; reads back with [`Json::read`].
    pub fn to_json(&self) -> Json {
        // What `apply` keeps is within the depth that a text may have, and all its numbers are numbers.
        Json::from_type(self).unwrap_or_else(|_| Json::object())
    }

    fn identify(&mut self, contract: &Contract, problems: &mut Problems) {
        let run = self.run_id.get_or_insert_with(|| cut(contract.run_id()).to_owned());
        if run != cut(contract.run_id()) {
            problems.add("run_mismatch", || {
                format!("a contract of run {} reached run {}", quote(contract.run_id()), quote(run))
            });
        }
        let session = self.session_id.get_or_insert_with(|| cut(contract.session_id()).to_owned());
        if session != cut(contract.session_id()) {
            problems.add("session_changed", || {
                format!(
                    "the run belonged to session {}, now it says {}",
                    quote(session),
                    quote(contract.session_id())
                )
            });
        }
    }

    fn lifecycle(&mut self, event: &RunLifecycleEvent, problems: &mut Problems) {
        if let Some(before) = self.status.filter(|before| !before.may_become(event.status)) {
            problems.add("run_transition", || {
                format!("a run that is `{}` cannot become `{}`", before.name(), event.status.name())
            });
        }
        self.status = Some(event.status);
        for (known, said) in [
            (&mut self.prompt, &event.prompt),
            (&mut self.result_summary, &event.result_summary),
            (&mut self.error, &event.error),
            (&mut self.started_at, &event.started_at),
        ] {
            if let Some(said) = said {
                *known = Some(cut(said).to_owned());
            }
        }
        self.completed_with_open_tasks(problems);
        self.completed_with_failed_verification(problems);
    }

    fn task_list(&mut self, event: &TaskListEvent, problems: &mut Problems) {
        tasks::check(&self.tasks, &event.tasks, problems);
        self.tasks = bounds::tasks(&event.tasks, problems);
        self.completed_with_open_tasks(problems);
    }

    fn verification(&mut self, event: &VerificationEvent, problems: &mut Problems) {
        verification::check(event, problems);
        self.verification = Some(bounds::verification(event, problems));
        self.completed_with_failed_verification(problems);
    }

    fn completed_with_open_tasks(&self, problems: &mut Problems) {
        if self.status != Some(RunStatus::Completed) {
            return;
        }
        let open = self.tasks.iter().filter(|task| task.status.is_open());
        if let Some(first) = open.clone().next() {
            problems.add("completed_unfinished", || {
                format!(
                    "the run is completed, but {} of its tasks are not: {}",
                    open.count(),
                    quote(&first.id)
                )
            });
        }
    }

    fn completed_with_failed_verification(&self, problems: &mut Problems) {
        let failed = self.verification.as_ref().is_some_and(|last| last.status == VerificationStatus::Failed);
        if failed && self.status == Some(RunStatus::Completed) {
            problems.add("completed_unverified", || {
                "the run is completed, but its verification failed".to_owned()
            });
        }
    }
}

/// Whether a contract belongs to the session of the event that brought it; a problem if not.
pub fn session_matches(event_session_id: &str, contract: &Contract) -> Option<Problem> {
    (event_session_id != contract.session_id()).then(|| Problem {
        code: "session_mismatch",
        message: format!(
            "the event is of session {}, its contract of {}",
            quote(event_session_id),
            quote(contract.session_id())
        ),
    })
}
