//! How a command ends: exit codes, and errors for people.

/// All went well.
pub const OK: u8 = 0;
/// The tool itself failed or was called wrongly.
pub const FAILED: u8 = 1;
/// Checks failed.
pub const CHECKS_FAILED: u8 = 10;
/// Denied by policy.
pub const DENIED: u8 = 11;
/// Verification failed.
pub const NOT_VERIFIED: u8 = 12;
/// Not enough to decide.
pub const UNDECIDED: u8 = 13;

/// Why a command ended early.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The exit code.
    pub code: u8,
    /// What to tell, one line each.
    pub lines: Vec<String>,
}

impl Failure {
    /// A failure with another exit code than 1.
    pub fn with_code(code: u8, message: impl Into<String>) -> Failure {
        Failure { code, lines: vec![message.into()] }
    }

    /// Several things at once.
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

/// What a command gives: an exit code, or a failure.
pub type Outcome = Result<u8, Failure>;
