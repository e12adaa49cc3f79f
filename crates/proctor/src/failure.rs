//! Endings of commands: exit codes, and errors for people.

use std::path::Path;

use proctor_door_atp::RecordError;
use proctor_door_attest::assertion_file::AssertionFileError;
use proctor_engine::EngineError;
use proctor_engine::access::{AccessError, RelayError};
use proctor_engine::approvers::CredentialError;
use proctor_engine::orders::OrderError;
use proctor_engine::owner::{CommandError, OwnerError};
use proctor_engine::state_dir::StateDirError;
use proctor_engine::tokens::TokenError;
use proctor_engine::traces::SessionError;
use proctor_follow::{StartError, UnknownEvent};
use proctor_ledger::{OpenError, ReadError};
use proctor_runner::starter::StarterError;
use proctor_runs::{EarlierError, HistoryError, OpenError as UnreachableEngine, ToolSourceError};
use proctor_system::private::PrivateError;

use crate::config::ConfigError;

/// Exit code for success.
pub const OK: u8 = 0;
/// The tool itself failed or was called wrongly.
pub const FAILED: u8 = 1;
/// Checks failed.
pub const CHECKS_FAILED: u8 = 10;
/// Denied by policy.
pub const DENIED: u8 = 11;
/// Verification failed.
pub const NOT_VERIFIED: u8 = 12;
/// Exit code for undecidable results.
pub const UNDECIDED: u8 = 13;

/// Error of a command, with its exit code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The exit code.
    pub code: u8,
    /// Error messages, one line each.
    pub lines: Vec<String>,
}

impl Failure {
    /// A failure with another exit code than 1.
    pub fn with_code(code: u8, message: impl Into<String>) -> Failure {
        Failure { code, lines: vec![message.into()] }
    }

    /// A failure of the operating system to read or write a path.
    pub fn io(path: &Path, error: &std::io::Error) -> Failure {
        Failure::from(format!("{}: {}", path.display(), proctor_system::describe(error)))
    }

    /// A failure with several lines.
    pub fn list(lines: impl IntoIterator<Item = String>) -> Failure {
        Failure { code: FAILED, lines: lines.into_iter().collect() }
    }
}

impl From<String> for Failure {
    fn from(message: String) -> Failure {
        Failure { code: FAILED, lines: vec![message] }
    }
}

impl From<&str> for Failure {
    fn from(message: &str) -> Failure {
        Failure::from(message.to_owned())
    }
}

impl From<AccessError> for Failure {
    fn from(error: AccessError) -> Failure {
        match error {
            // One line each: editors and people find their way by them.
            AccessError::Policy(problems) => Failure::list(problems.iter().map(ToString::to_string)),
            other => Failure::from(other.to_string()),
        }
    }
}

impl From<AssertionFileError> for Failure {
    fn from(error: AssertionFileError) -> Failure {
        Failure::list(error.lines)
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Failure {
        match error {
            ConfigError::File(lines) => Failure::list(lines),
            other => Failure::from(other.to_string()),
        }
    }
}

/// Failures with exit code 1 and the error's own text.
macro_rules! failures {
    ($($error:ty),* $(,)?) => {$(
        impl From<$error> for Failure {
            fn from(error: $error) -> Failure {
                Failure::from(error.to_string())
            }
        }
    )*};
}

failures!(
    CommandError,
    CredentialError,
    EarlierError,
    EngineError,
    HistoryError,
    OpenError,
    OrderError,
    OwnerError,
    PrivateError,
    ReadError,
    RecordError,
    RelayError,
    SessionError,
    StartError,
    StarterError,
    StateDirError,
    TokenError,
    ToolSourceError,
    UnreachableEngine,
    UnknownEvent,
);

/// Result of a command: an exit code, or a failure.
pub type Outcome = Result<u8, Failure>;

/// Outcome of a stream that has ended: a failure if denies were answered that neither a record nor a `gap` record stands for.
pub fn all_on_record(unrecorded: u64) -> Outcome {
    match unrecorded {
        0 => Ok(OK),
        1 => Err(Failure::from(
            "an action was denied without a record, and the ledger could not be told of it",
        )),
        _ => Err(Failure::from(format!(
            "{unrecorded} actions were denied without a record, and the ledger could not be told of it"
        ))),
    }
}
