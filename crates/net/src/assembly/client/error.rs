//! What can go wrong for who calls a gateway.

use std::error::Error;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use tonic::{Code, Status};

/// Why a call has no answer. Whoever asked for permission and gets any of these has none.
///
/// ```
/// use proctor_net::assembly::client::{Client, ClientError, Options};
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let error = Client::connect("ftp://gateway", Options::default()).await.unwrap_err();
/// assert!(matches!(error, ClientError::Endpoint { .. }));
/// assert!(!error.may_pass());
/// # });
/// ```
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ClientError {
    /// The endpoint is none.
    #[error(
        "endpoint `{endpoint}` cannot be used: {problem}; write `http://host:port`, `https://host:port` or `unix:/path`"
    )]
    Endpoint {
        /// As it was given.
        endpoint: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The settings cannot work; trying again will not help.
    #[error("the client's settings cannot work: {0}")]
    Settings(String),
    /// The file of an identity cannot be read or made.
    #[error("identity file `{}`: {problem}", path.display())]
    Identity {
        /// Where it is.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// Nobody answers at the endpoint.
    #[error("the gateway cannot be reached: {0}")]
    Unreachable(String),
    /// The connection ended before the answer came. The gateway may have seen the request.
    #[error("the connection to the gateway ended before the answer to `{method}`: {problem}")]
    Closed {
        /// What was called.
        method: &'static str,
        /// What is known of the end.
        problem: String,
    },
    /// The answer took too long.
    #[error("`{method}` took longer than {ms} ms")]
    Timeout {
        /// What was called.
        method: &'static str,
        /// How long it could have taken.
        ms: u64,
    },
    /// The gateway refused.
    #[error("the gateway refused `{method}`: {message} ({code:?})")]
    Refused {
        /// What was called.
        method: &'static str,
        /// The kind of refusal.
        code: Code,
        /// What the gateway says.
        message: String,
    },
    /// The request is longer than gateways take; nothing was sent.
    #[error("the request of `{method}` has {bytes} bytes, gateways take at most {max}")]
    TooLarge {
        /// What was called.
        method: &'static str,
        /// How long the request is.
        bytes: usize,
        /// What gateways take.
        max: usize,
    },
    /// The request contradicts itself; nothing was sent.
    #[error("the request of `{method}` cannot be sent: {problem}")]
    Request {
        /// What was called.
        method: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// The answer breaks a rule of the protocol.
    #[error("the answer to `{method}` breaks the protocol: {problem}")]
    Protocol {
        /// What was called.
        method: &'static str,
        /// What is wrong with it.
        problem: String,
    },
}

impl ClientError {
    /// Whether the same call may succeed later: the gateway was away, slow, or busy.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Unreachable(_) | Self::Closed { .. } | Self::Timeout { .. } => true,
            Self::Refused { code, .. } => matches!(
                code,
                Code::Unavailable
                    | Code::ResourceExhausted
                    | Code::DeadlineExceeded
                    | Code::Aborted
                    | Code::Cancelled
            ),
            _ => false,
        }
    }

    /// The gateway's own code, if it refused.
    pub fn code(&self) -> Option<Code> {
        match self {
            Self::Refused { code, .. } => Some(*code),
            _ => None,
        }
    }

    /// What a status means.
    pub(super) fn from_status(method: &'static str, status: &Status) -> Self {
        match connection_problem(status) {
            Some((true, problem)) => Self::Unreachable(problem),
            Some((false, problem)) => Self::Closed { method, problem },
            None => Self::Refused { method, code: status.code(), message: status.message().to_owned() },
        }
    }

    pub(super) fn timeout(method: &'static str, limit: Duration) -> Self {
        Self::Timeout { method, ms: u64::try_from(limit.as_millis()).unwrap_or(u64::MAX) }
    }
}

/// A status that the gateway sent has no source; one that has is about the connection: whether it was never made, and what happened.
fn connection_problem(status: &Status) -> Option<(bool, String)> {
    let mut cause = status.source()?;
    let mut never_made = false;
    loop {
        never_made |= cause.downcast_ref::<NotConnected>().is_some();
        match cause.source() {
            Some(deeper) => cause = deeper,
            None => return Some((never_made, cause.to_string())),
        }
    }
}

/// Marks the errors of making a connection, so that they can be told from those of a connection that was there.
#[derive(Debug, thiserror::Error)]
#[error("no connection")]
pub(super) struct NotConnected(#[source] pub(super) io::Error);

/// The cause of causes.
pub(super) fn innermost(error: &(dyn Error + 'static)) -> String {
    let mut innermost = error;
    while let Some(cause) = innermost.source() {
        innermost = cause;
    }
    innermost.to_string()
}
