//! Errors of calls to a harness.

use proctor_core::json::Json;
use proctor_wire::ahp::EventType;

/// The outcome of a call.
pub type Result<T> = std::result::Result<T, AhpError>;

/// A call without an answer. On a request for permission, every one of these means that there is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AhpError {
    /// The harness cannot be reached, or the transport failed.
    #[error("the harness cannot be reached: {0}")]
    Transport(String),
    /// The settings cannot be used; a retry does not help.
    #[error("the client's settings cannot work: {0}")]
    InvalidConfig(String),
    /// The harness's message violates the protocol.
    #[error("the harness broke the protocol: {0}")]
    Protocol(String),
    /// The harness answered with an error.
    #[error("the harness refused `{method}`: {message} (code {code})")]
    Rpc {
        /// The method.
        method: &'static str,
        /// The error code.
        code: i32,
        /// The message.
        message: String,
        /// The details.
        data: Option<Json>,
    },
    /// A time limit passed.
    #[error("{what} took longer than {ms} ms")]
    Timeout {
        /// The operation: `connect`, `write` or `reply`.
        what: &'static str,
        /// The limit in milliseconds.
        ms: u64,
    },
    /// The connection ended before the answer came, or the client is closed. The harness may have seen the message.
    #[error("the connection to the harness is closed")]
    ConnectionClosed,
    /// The harness does not accept the credentials.
    #[error("the harness does not accept the credentials: {0}")]
    AuthFailed(String),
    /// The event violates the protocol; nothing was sent.
    #[error("the `{kind}` event is not valid: {problem}")]
    InvalidEvent {
        /// The kind of event.
        kind: EventType,
        /// The reason.
        problem: String,
    },
    /// A request with this identifier waits for its answer already, or the identifier cannot be sent; nothing was sent.
    #[error("the request id `{id}` cannot be used: {problem}")]
    InvalidId {
        /// The identifier, shortened if it is long.
        id: String,
        /// The reason.
        problem: &'static str,
    },
    /// A call before the handshake; nothing was sent.
    #[error("no handshake yet: call `handshake` first")]
    NotHandshaken,
    /// The harness takes no events this deep; nothing was sent.
    #[error("the event is {depth} agents deep, the harness takes at most {max}")]
    TooDeep {
        /// The event's depth.
        depth: u32,
        /// The harness's limit.
        max: u32,
    },
    /// The harness takes no batches this large; nothing was sent.
    #[error("the batch has {events} events, the harness takes at most {max}: send several batches")]
    BatchTooLarge {
        /// The number of events.
        events: usize,
        /// The harness's limit.
        max: u64,
    },
    /// The kind gets no generic decision and cannot stand in a batch; nothing was sent.
    #[error("a `{0}` event cannot be sent in a batch: send it on its own")]
    NotBatchable(EventType),
    /// The message is longer than the transport carries; nothing was sent.
    #[error("the message has {bytes} bytes, this transport carries at most {max}")]
    TooLarge {
        /// The size of the message.
        bytes: usize,
        /// The transport's limit.
        max: usize,
    },
    /// A value could not be written as JSON, or an answer could not be read as the wanted type.
    #[error("{0}")]
    Serialization(String),
}

impl AhpError {
    /// Whether a reconnect cannot help.
    #[cfg(feature = "ahp-stream")]
    pub(super) fn is_final(&self) -> bool {
        !matches!(self, AhpError::Transport(_) | AhpError::Timeout { .. } | AhpError::ConnectionClosed)
    }
}

/// A time limit in milliseconds.
#[cfg(feature = "ahp-client")]
pub(super) fn millis(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
