//! Errors of calls to a gateway.

use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

use proctor_net::grpc::client::NotConnected;
use tonic::{Code, Status};

/// A call without an answer. On a request for permission, every one of these means that there is none.
///
/// ```
/// use proctor_clients::assembly::client::{Client, ClientError, Options};
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let error = Client::connect("ftp://gateway", Options::default()).await.unwrap_err();
/// assert!(matches!(error, ClientError::Endpoint { .. }));
/// assert!(!error.may_pass());
/// # });
/// ```
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ClientError {
    /// The address cannot be used.
    #[error(
        "endpoint `{endpoint}` cannot be used: {problem}; write `http://host:port`, `https://host:port` or `unix:/path`"
    )]
    Endpoint {
        /// The address.
        endpoint: String,
        /// The reason.
        problem: String,
    },
    /// The settings cannot be used; a retry does not help.
    #[error("the client's settings cannot work: {0}")]
    Settings(String),
    /// The file of an identity cannot be read or created.
    #[error("identity file `{}`: {problem}", path.display())]
    Identity {
        /// The file.
        path: PathBuf,
        /// The reason.
        problem: String,
    },
    /// The connection could not be made.
    #[error("the gateway cannot be reached: {0}")]
    Unreachable(String),
    /// The connection ended before the answer came. The gateway may have seen the request.
    #[error("the connection to the gateway ended before the answer to `{method}`: {problem}")]
    Closed {
        /// The method.
        method: &'static str,
        /// The cause.
        problem: String,
    },
    /// The time limit passed.
    #[error("`{method}` took longer than {ms} ms")]
    Timeout {
        /// The method.
        method: &'static str,
        /// The limit in milliseconds.
        ms: u64,
    },
    /// The gateway answered with an error.
    #[error("the gateway refused `{method}`: {message} ({code:?})")]
    Refused {
        /// The method.
        method: &'static str,
        /// The gRPC code.
        code: Code,
        /// The gateway's message.
        message: String,
    },
    /// The request is longer than the protocol's limit; nothing was sent.
    #[error("the request of `{method}` has {bytes} bytes, gateways take at most {max}")]
    TooLarge {
        /// The method.
        method: &'static str,
        /// The encoded size.
        bytes: usize,
        /// The limit.
        max: usize,
    },
    /// The request contradicts itself; nothing was sent.
    #[error("the request of `{method}` cannot be sent: {problem}")]
    Request {
        /// The method.
        method: &'static str,
        /// The reason.
        problem: String,
    },
    /// The answer violates the protocol.
    #[error("the answer to `{method}` breaks the protocol: {problem}")]
    Protocol {
        /// The method.
        method: &'static str,
        /// The reason.
        problem: String,
    },
}

impl ClientError {
    /// Whether a retry may succeed: the gateway was unreachable, slow, or busy.
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

    /// The gateway's code, if it answered with an error.
    pub fn code(&self) -> Option<Code> {
        match self {
            Self::Refused { code, .. } => Some(*code),
            _ => None,
        }
    }

    /// Classifies a status.
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

/// The connection error behind a status: whether the connection was never made, and the cause. A status that the gateway sent has no
/// source.
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
