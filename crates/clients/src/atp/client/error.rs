//! Executions that gave no response.

use bytes::Bytes;

use super::MAX_MESSAGE;

/// An exchange that failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExecuteError {
    /// The agent could not be connected to.
    #[error("the agent cannot be connected to: {0}")]
    Connect(#[from] ConnectError),
    /// The agent answered with an HTTP status other than 2xx.
    #[error("the agent answered `{path}` with HTTP status {status}{}", shown(body))]
    Status {
        /// The status.
        status: u16,
        /// The path of the request.
        path: String,
        /// The start of the body.
        body: Bytes,
    },
    /// The agent answered with a redirect. It is not followed, because the request may hold secrets.
    #[error("the agent answered with a redirect (HTTP status {status}), which is not followed; give the final URL{}", to(location.as_deref()))]
    Redirect {
        /// The status.
        status: u16,
        /// The target, shortened.
        location: Option<String>,
    },
    /// The agent answered in another major version of the protocol.
    #[error("the agent answered with media type `{0}`, but only version 1 of the protocol is spoken")]
    UnsupportedMediaType(String),
    /// The agent ended a call with a gRPC status.
    #[error("the agent ended the call with gRPC status {code}: {message}")]
    GrpcStatus {
        /// The number of the status.
        code: i32,
        /// Its text, shortened.
        message: String,
    },
    /// The connection was lost before the response, perhaps within a message.
    #[error("the connection to the agent was lost before the response")]
    ConnectionLost,
    /// The agent ended the connection in good order, but without a response.
    #[error("the agent closed the connection before it sent a response")]
    ClosedBeforeResponse,
    /// The agent closed a WebSocket with the code of an error.
    #[error("the agent closed the connection with code {code} before it sent a response{}", shown(reason.as_bytes()))]
    ClosedWithCode {
        /// The code.
        code: u16,
        /// Its text, shortened.
        reason: String,
    },
    /// The agent violated the rules of the transport.
    #[error("the agent's messages cannot be read: {0}")]
    Transport(String),
    /// A message is longer than [`MAX_MESSAGE`], and was discarded.
    #[error("a message of the agent is longer than {MAX_MESSAGE} bytes")]
    TooLong,
    /// Standard output ended without a response.
    #[error("{problem}{}", if *request_was_read { "" } else { "; it closed standard input before it had read the request" })]
    Output {
        /// The problem.
        problem: OutputError,
        /// Whether the agent took the whole request.
        request_was_read: bool,
    },
}

impl ExecuteError {
    /// Whether no response can follow. Only an overlong line of standard error does not end the exchange.
    pub(super) fn is_final(&self) -> bool {
        !matches!(self, ExecuteError::TooLong)
    }
}

/// A connection that could not be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    /// Connecting took longer than its time limit.
    #[error("connecting took too long")]
    TimedOut,
    /// Name resolution, TCP or TLS failed.
    #[error("{0}")]
    Failed(String),
}

/// Standard output without a response.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OutputError {
    /// Nothing but white space was written.
    #[error("the agent wrote nothing on standard output")]
    Empty,
    /// Neither the whole output nor one of its lines is a response.
    #[error("the agent wrote no response on standard output, but `{start}`{}", invalid(syntax.as_deref()))]
    NoResponse {
        /// The start of the output.
        start: String,
        /// The reason why an output that begins like an object is none.
        syntax: Option<String>,
    },
    /// A line is longer than [`MAX_MESSAGE`], and there is no other that is a response.
    #[error("the agent wrote a line of more than {MAX_MESSAGE} bytes on standard output")]
    TooLong,
    /// Reading failed.
    #[error("standard output of the agent cannot be read: {0}")]
    Read(String),
}

/// The start of a text, with `…` where it was cut. Control characters are escaped: the text comes from an agent and is shown.
pub(super) fn start_of(text: &[u8], limit: usize) -> String {
    let cut = text.get(..limit).unwrap_or(text);
    let mut start: String = String::from_utf8_lossy(cut)
        .trim()
        .chars()
        .flat_map(|c| {
            let escaped = c.is_control().then(|| c.escape_default());
            let plain = (!c.is_control()).then_some(c);
            escaped.into_iter().flatten().chain(plain)
        })
        .collect();
    if cut.len() < text.len() {
        start.push('…');
    }
    start
}

/// Bytes of a body in an error text.
const SHOWN: usize = 200;

fn shown(body: &[u8]) -> String {
    let start = start_of(body, SHOWN);
    if start.is_empty() { String::new() } else { format!(": `{start}`") }
}

fn invalid(syntax: Option<&str>) -> String {
    syntax.map(|syntax| format!(", which is not valid JSON: {syntax}")).unwrap_or_default()
}

fn to(location: Option<&str>) -> String {
    location.map(|location| format!(" (it names `{location}`)")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_agents_are_shortened_and_cannot_move_the_cursor() {
        assert_eq!(start_of(b" a\x1b[2J\nb ", 100), r"a\u{1b}[2J\nb");
        assert_eq!(start_of("äöü".as_bytes(), 4), "äö…");
        let error = ExecuteError::Status { status: 500, path: "/execute".into(), body: Bytes::from("no\n") };
        assert_eq!(error.to_string(), "the agent answered `/execute` with HTTP status 500: `no`");
        let error = ExecuteError::Output { problem: OutputError::Empty, request_was_read: false };
        assert!(error.to_string().ends_with("before it had read the request"));
    }
}
