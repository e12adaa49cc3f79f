//! Ends of runs that started nothing.

use proctor_core::json::Json;
use proctor_wire::agentcli::error::{Code, Failure};

use super::recorder::{Approval, Decided};

/// Refused run.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{failure}")]
pub struct Refusal {
    /// Code and message.
    pub failure: Failure,
    /// Identifier of the run, if it came far enough to have one: its end is then on record.
    pub execution_id: Option<String>,
    /// Approval that has to be given before another attempt.
    pub approval: Option<Approval>,
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Refusal {
        Refusal { failure, execution_id: None, approval: None }
    }
}

impl Refusal {
    /// The refusal as commands print it.
    pub fn to_json(&self) -> Json {
        let code = self.failure.code;
        let mut out = Json::object()
            .with("ok", false)
            .with("error", self.failure.message.as_str())
            .with("error_type", code.error_type().word())
            .with("code", code.word());
        if let Some(validation) = &self.failure.validation {
            out.push("validation", validation.to_json());
        }
        if let Some(id) = &self.execution_id {
            out.push("execution_id", id.as_str());
        }
        if let Some(approval) = &self.approval {
            out.push("approval_id", approval.id.to_string());
            if let Some(expires) = approval.expires {
                out.push("approval_expires_at", expires.to_string());
            }
        }
        out
    }
}

/// Reason to stop a run before its process is started.
#[derive(Debug)]
pub(super) struct Stop {
    pub(super) failure: Failure,
    pub(super) approval: Option<Approval>,
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Stop {
        Stop { failure, approval: None }
    }
}

/// Stop by a decision that does not let the run through as it is written; `None` if it does. `ask` is the code of a question.
pub(super) fn stop_of(decided: &Decided, ask: Code) -> Option<Stop> {
    use proctor_core::decision::Effect;

    let Decided { rule, reason, .. } = decided;
    let (code, message) = match decided.effect {
        Effect::Allow => return None,
        Effect::Deny => {
            (Code::AuthorizationDenied, format!("policy denies the run: {reason} (rule `{rule}`)"))
        }
        Effect::Ask => {
            let id = decided.approval.as_ref().map(|approval| approval.id.to_string()).unwrap_or_default();
            let how = format!("decide with `proctor approve allow {id}`, then run the task again");
            (ask, format!("the run needs an approval: {reason} (rule `{rule}`); {how}"))
        }
        Effect::Defer => {
            let seconds = decided.retry_after_ms.unwrap_or_default().div_ceil(1000);
            let message = format!("policy defers the run for {seconds} s: {reason} (rule `{rule}`)");
            (Code::AuthorizationDenied, message)
        }
        // A task is bound to its digest: a changed one is another task.
        Effect::Modify | Effect::Redact => {
            let how = "a task runs as it is written or not at all; present secrets through an identity";
            let message = format!("policy changes the command or prompt: {reason} (rule `{rule}`); {how}");
            (Code::AuthorizationDenied, message)
        }
    };
    let approval = decided.approval.clone().filter(|_| decided.effect == Effect::Ask);
    Some(Stop { failure: Failure::new(code, message), approval })
}
