//! Failures of applying and inspecting.

use std::time::Duration;

use proctor_core::json::{Json, JsonError};
use proctor_wire::agentcli::error::{Code, Failure};

use super::apply::Action;

/// A value that no scheduler can be started with.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is `{value}`: give a path that is not blank and does not begin with `-`")]
pub struct InvocationError {
    /// The parameter.
    pub name: &'static str,
    /// Its value.
    pub value: String,
}

/// A failed call of the scheduler.
#[derive(Debug, thiserror::Error)]
#[error("`{command}` of openclaw-scheduler {problem}")]
pub struct CallError {
    /// The subcommand.
    pub command: &'static str,
    /// The problem.
    #[source]
    pub problem: CallProblem,
}

/// Kinds of failed calls.
#[derive(Debug, thiserror::Error)]
pub enum CallProblem {
    /// The program was not started.
    #[error(
        "could not be started as `{label}`: {error}; install openclaw-scheduler, or say where it is: `--scheduler-bin` or `--scheduler-prefix` (`schedulerBin`, `schedulerPrefix` in requests)"
    )]
    Start {
        /// Program and leading arguments.
        label: String,
        /// The error of the operating system.
        error: std::io::Error,
    },
    /// The pipes failed.
    #[error("could not be read: {0}")]
    Read(std::io::Error),
    /// The time is over.
    #[error("took longer than {} s and was ended", .0.as_secs_f32())]
    Time(Duration),
    /// The answer is too large.
    #[error("answered with more than {0} bytes and was ended")]
    Size(usize),
    /// An argument is longer than the operating system passes on.
    #[error(
        "would need an argument of {bytes} bytes; at most {limit} can be passed: shorten the prompt or the command"
    )]
    Argument {
        /// Its length.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// The scheduler reported an error.
    #[error("failed: {0}")]
    Failed(String),
    /// The answer is no JSON.
    #[error("answered with something that is not JSON: {0}")]
    NotJson(JsonError),
    /// The answer does not say `ok: true`.
    #[error("did not confirm the change with `ok`")]
    NotConfirmed,
    /// The job is still there.
    #[error("answered without `deleted: true`, and the job is still there")]
    NotDeleted,
    /// The scheduler gave another id than asked for.
    #[error("created a job under another id than the compiled one")]
    OtherId,
}

impl CallProblem {
    /// Whether the change may have been made although the call failed.
    pub fn is_outcome_unknown(&self) -> bool {
        !matches!(
            self,
            CallProblem::Start { .. }
                | CallProblem::Argument { .. }
                | CallProblem::Failed(_)
                | CallProblem::NotDeleted
        )
    }
}

impl CallError {
    /// Deletion that left the job where it was.
    pub(super) fn not_deleted() -> CallError {
        CallError { command: "jobs delete", problem: CallProblem::NotDeleted }
    }

    /// Detail code of the protocol.
    pub fn code(&self) -> Code {
        match self.problem {
            CallProblem::NotJson(_) => Code::ParseError,
            _ => Code::SchedulerError,
        }
    }
}

/// A failed apply or plan.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// The manifest or its compilation was refused.
    #[error("{}", .0.message)]
    Manifest(Failure),
    /// The call's parameters are wrong.
    #[error(transparent)]
    Invocation(#[from] InvocationError),
    /// Jobs trigger each other in a circle, so that no order has parents first.
    #[error("jobs {} trigger each other in a circle", names(.0))]
    Cycle(Vec<String>),
    /// Adoption by name needs unique names.
    #[error("several {0} jobs are named `{1}`, so that adoption by name is ambiguous: rename all but one")]
    AmbiguousName(&'static str, String),
    /// The scheduler lacks features that the jobs need.
    #[error("{}", .0.join("; "))]
    Unsupported(Vec<String>),
    /// A job would show a secret in the process list.
    #[error(
        "job `{job}` holds a secret ({kind}) in `{field}`, and the scheduler takes jobs as command-line arguments, which other processes can read: present it through an identity instead"
    )]
    Secret {
        /// Name of the job, redacted.
        job: String,
        /// The field.
        field: String,
        /// Kind of secret.
        kind: &'static str,
    },
    /// A proof was not accepted.
    #[error("{}", .0.message)]
    Proof(Failure),
    /// A proof was used before.
    #[error(transparent)]
    Consume(#[from] ConsumeError),
    /// A call failed before anything was written.
    #[error(transparent)]
    Call(#[from] CallError),
    /// A write failed.
    #[error("job `{job}` was not written: {call}{}{}", unknown(.call), written_text(.written))]
    Interrupted {
        /// Name of the job.
        job: String,
        /// The failed call.
        call: CallError,
        /// Actions that were done before.
        written: Vec<Action>,
    },
    /// The deletion of an adopted job failed.
    #[error(
        "job `{job}` was not adopted: {call}; {}{}",
        match .rollback { None => "the new job was deleted again".to_owned(), Some(error) => format!("the new job `{new_id}` could not be deleted either ({error}): delete one of the two") },
        written_text(.written)
    )]
    Adoption {
        /// Name of the job.
        job: String,
        /// Id of the new job.
        new_id: String,
        /// The failed deletion of the old one.
        call: Box<CallError>,
        /// Failed deletion of the new one.
        rollback: Option<Box<CallError>>,
        /// Actions that were done before.
        written: Vec<Action>,
    },
}

/// A proof that cannot be consumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ConsumeError {
    /// An earlier apply used it.
    #[error("the authorization proof was used by an earlier apply: changing jobs needs a new proof")]
    Used,
    /// The use could not be recorded, so that a second one would not be noticed.
    #[error("the use of the authorization proof could not be recorded; nothing was changed")]
    NotRecorded,
}

impl ApplyError {
    /// Detail code of the protocol.
    pub fn code(&self) -> Code {
        match self {
            ApplyError::Manifest(failure) | ApplyError::Proof(failure) => failure.code,
            // As in `run`: the manifest is at fault, although `validate` does not look for circles.
            ApplyError::Cycle(_) => Code::ValidationError,
            ApplyError::Invocation(_) | ApplyError::AmbiguousName(..) | ApplyError::Secret { .. } => {
                Code::InvalidArgument
            }
            ApplyError::Unsupported(_) => Code::UnsupportedCapability,
            ApplyError::Consume(_) => Code::AuthorizationProofFailed,
            ApplyError::Call(call) | ApplyError::Interrupted { call, .. } => call.code(),
            ApplyError::Adoption { call, .. } => call.code(),
        }
    }

    /// Actions that were done before the failure.
    pub fn written(&self) -> &[Action] {
        match self {
            ApplyError::Interrupted { written, .. } | ApplyError::Adoption { written, .. } => written,
            _ => &[],
        }
    }

    /// Actions that were done before the failure, as results have them.
    pub fn written_json(&self) -> Json {
        Json::Array(self.written().iter().map(Action::to_json).collect())
    }

    /// The failure as doors answer it.
    pub fn to_failure(&self) -> Failure {
        match self {
            ApplyError::Manifest(failure) | ApplyError::Proof(failure) => failure.clone(),
            other => Failure::new(other.code(), other.to_string()),
        }
    }
}

fn unknown(call: &CallError) -> &'static str {
    if call.problem.is_outcome_unknown() {
        " (it is not known whether the scheduler stored it; applying again is safe)"
    } else {
        ""
    }
}

fn written_text(written: &[Action]) -> String {
    if written.is_empty() {
        return "; nothing was written before".to_owned();
    }
    let actions: Vec<String> =
        written.iter().map(|action| format!("{} `{}`", action.kind.word(), action.name)).collect();
    format!("; written before: {}", actions.join(", "))
}

fn names(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<String>>().join(", ")
}
