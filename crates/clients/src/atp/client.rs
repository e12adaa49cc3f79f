//! The platform's side: one request to an agent under test, and an [`Exchange`] of the messages that come back.
//!
//! A connection to an agent is an [`AgentClient`] for `http`, `https`, `ws`, `wss`, `grpc` and `grpcs` URLs; an agent that runs as a
//! process is spoken to over its pipes ([`stdio::execute`]). Deadlines are the caller's: [`Exchange::next`] may be cancelled at any
//! time, and dropping the exchange closes the connection.
//!
//! ```
//! # #[cfg(feature = "stdio")]
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! use proctor_clients::atp::client::{Item, stdio};
//!
//! let pipes = stdio::Pipes {
//!     stdin: Box::new(tokio::io::sink()),
//!     stdout: Box::new(&br#"{"version":"1.0","task_id":"t","status":"completed"}"#[..]),
//!     stderr: Box::new(&b"starting\n{\"event_type\":\"progress\"}\n"[..]),
//! };
//! let mut exchange = stdio::execute(pipes, r#"{"version":"1.0","task_id":"t","task":{}}"#.into());
//! let mut conversation = proctor_wire::atp::Conversation::new("t");
//! loop {
//!     match exchange.next().await.unwrap() {
//!         Item::End => break,
//!         item => item.feed(&mut conversation),
//!     }
//! }
//! assert_eq!(conversation.events().len(), 1);
//! assert!(conversation.response().is_some());
//! assert_eq!(exchange.last_lines(), ["starting"]);
//! # });
//! ```

#[cfg(feature = "listen")]
mod address;
mod connection;
mod error;
#[cfg(feature = "listen")]
mod headers;
mod shape;

#[cfg(feature = "grpc")]
mod grpc;
#[cfg(feature = "http")]
mod http;
#[cfg(feature = "stdio")]
pub mod stdio;
#[cfg(feature = "websocket")]
mod websocket;

#[cfg(feature = "listen")]
pub use address::{AddressError, AgentClient, ClientOptions};
pub use error::{ConnectError, ExecuteError, OutputError};
#[cfg(feature = "listen")]
pub use headers::Headers;
pub use proctor_wire::atp::limits::MAX_MESSAGE;

use std::time::Duration;

use bytes::Bytes;
use proctor_wire::atp::{Conversation, Source};
use tokio::time::{Instant, timeout_at};

use connection::Connection;

/// Time that a connection is still read after the response: a second response, which is an error of the agent, is found; an agent that
/// keeps the connection open holds up nobody.
const LINGER: Duration = Duration::from_millis(500);

/// An element of an exchange.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// An event, or the response.
    Message(Message),
    /// A line of standard error that is no JSON object, without its newline.
    Line(Bytes),
    /// The end of the exchange. Nothing follows it.
    End,
}

/// A message of an agent, unread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The text as it was sent.
    pub text: Bytes,
    /// The channel that it came by.
    pub origin: Origin,
}

/// The channel of a message, which says what the message may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// A line of standard error.
    StandardError,
    /// The whole of standard output, or those lines of it that may be the response.
    StandardOutput,
    /// A text message of a WebSocket.
    WebSocket,
    /// A server-sent event.
    ServerSentEvent {
        /// Its name; empty if it has none.
        name: String,
    },
    /// An envelope for events.
    Event,
    /// An envelope for the response, or the body of an HTTP reply.
    Response,
}

impl Item {
    /// Feeds a conversation with this element.
    pub fn feed(&self, conversation: &mut Conversation) {
        match self {
            Item::Message(message) => message.feed(conversation),
            Item::Line(line) => {
                conversation.feed(Source::StderrLine, line);
            }
            Item::End => {}
        }
    }
}

impl Message {
    /// Whether it is the response: the transport says so, or else its content.
    pub fn is_response(&self) -> bool {
        match &self.origin {
            Origin::StandardOutput | Origin::Response => true,
            Origin::StandardError | Origin::Event => false,
            Origin::ServerSentEvent { name } if name == "response" => true,
            Origin::ServerSentEvent { .. } | Origin::WebSocket => shape::is_response(&self.text),
        }
    }

    fn feed(&self, conversation: &mut Conversation) {
        let source = match &self.origin {
            Origin::StandardOutput => return conversation.feed_output(&self.text),
            Origin::StandardError => Source::StderrLine,
            Origin::WebSocket => Source::Message,
            Origin::ServerSentEvent { name } => Source::Sse { event: name },
            Origin::Event => Source::Event,
            Origin::Response => Source::Response,
        };
        conversation.feed(source, &self.text);
    }
}

/// The messages of one execution, in order of arrival. At most one message and the buffers of the transport are held in memory.
#[derive(Debug)]
pub struct Exchange {
    state: State,
    /// Whether the response was delivered, or the error that there is none.
    is_settled: bool,
    /// Set once the response has come, on transports that have a connection.
    read_until: Option<Instant>,
}

#[allow(
    clippy::large_enum_variant,
    reason = "one value for each execution; which variant is the large one depends on the features"
)]
enum State {
    #[cfg(feature = "listen")]
    Opening(futures_util::future::BoxFuture<'static, Result<Connection, ExecuteError>>),
    Open(Connection),
    Ended,
}

impl std::fmt::Debug for State {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            #[cfg(feature = "listen")]
            State::Opening(_) => "Opening",
            State::Open(_) => "Open",
            State::Ended => "Ended",
        })
    }
}

impl Exchange {
    /// An exchange whose connection is made by this future.
    #[cfg(feature = "listen")]
    fn opening(opening: impl Future<Output = Result<Connection, ExecuteError>> + Send + 'static) -> Exchange {
        Exchange { state: State::Opening(Box::pin(opening)), is_settled: false, read_until: None }
    }

    #[cfg(feature = "stdio")]
    fn open(connection: Connection) -> Exchange {
        Exchange { state: State::Open(connection), is_settled: false, read_until: None }
    }

    /// The next element. Cancelling loses nothing.
    ///
    /// An exchange ends with [`Item::End`] or with an error; a call after either gives [`Item::End`]. Only on stdio does reading go on
    /// after an error, so that the agent is never blocked by a full pipe.
    pub async fn next(&mut self) -> Result<Item, ExecuteError> {
        #[cfg(feature = "listen")]
        if let State::Opening(opening) = &mut self.state {
            match opening.await {
                Ok(connection) => self.state = State::Open(connection),
                Err(error) => return self.deliver(Err(error)),
            }
        }
        let State::Open(connection) = &mut self.state else { return Ok(Item::End) };
        let received = match self.read_until {
            None => connection.next().await,
            // A timeout alone never ends a stream that always has another message.
            Some(until) if Instant::now() >= until => Ok(None),
            Some(until) => timeout_at(until, connection.next()).await.unwrap_or(Ok(None)),
        };
        self.deliver(received)
    }

    /// The last lines of standard error that are no messages, each shortened, for a diagnosis; empty on other transports.
    pub fn last_lines(&self) -> Vec<String> {
        match &self.state {
            State::Open(connection) => connection.last_lines(),
            _ => Vec::new(),
        }
    }

    fn deliver(&mut self, received: Result<Option<Item>, ExecuteError>) -> Result<Item, ExecuteError> {
        match received {
            Ok(Some(item)) => {
                if let Item::Message(message) = &item {
                    self.look_for_response(message);
                }
                Ok(item)
            }
            Ok(None) => {
                self.end();
                if std::mem::replace(&mut self.is_settled, true) {
                    return Ok(Item::End);
                }
                Err(ExecuteError::ClosedBeforeResponse)
            }
            Err(error) => {
                self.end();
                let was_settled = self.is_settled;
                self.is_settled |= error.is_final();
                // A connection that breaks after the response has done its work.
                if was_settled && error.is_final() { Ok(Item::End) } else { Err(error) }
            }
        }
    }

    fn look_for_response(&mut self, message: &Message) {
        if self.is_settled || !message.is_response() {
            return;
        }
        self.is_settled = true;
        if let State::Open(connection) = &mut self.state
            && connection.begin_closing()
        {
            self.read_until = Some(Instant::now() + LINGER);
        }
    }

    /// Closes the connection. Pipes are kept: they may have more to drain, and hold the last lines.
    fn end(&mut self) {
        if !matches!(&self.state, State::Open(connection) if connection.is_kept()) {
            self.state = State::Ended;
        }
    }
}
