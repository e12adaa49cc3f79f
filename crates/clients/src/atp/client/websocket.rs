//! Agents behind a WebSocket: the request, the events and the response are text messages.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use proctor_net::message::{MessageWriter, Received};
use proctor_net::websocket::client as socket;
use proctor_net::websocket::client::{ReceiveError, SocketReader, SocketWriter, Target};

use super::address::{AddressError, ClientOptions};
use super::connection::Connection;
use super::error::start_of;
use super::{ConnectError, Exchange, ExecuteError, Item, MAX_MESSAGE, Message, Origin};

/// Bytes of the text of a close frame that are kept; the protocol allows 123.
const CLOSE_REASON: usize = 200;

/// A client of a WebSocket agent. Each execution has a connection of its own.
#[derive(Clone)]
pub(super) struct SocketAgent {
    target: Arc<Target>,
    path: Arc<str>,
    connect_timeout: Duration,
}

impl SocketAgent {
    pub(super) fn new(url: &str, options: &ClientOptions) -> Result<SocketAgent, AddressError> {
        let target = Target::new(url, None, &options.tls);
        let mut target = target.map_err(|error| AddressError::Invalid(error.to_string()))?;
        for (name, value) in options.headers.iter() {
            let changed = target.with_header(name, value);
            target = changed.map_err(|_| AddressError::InvalidHeader(name.to_owned()))?;
        }
        let path = Arc::from(target.path());
        Ok(SocketAgent { target: Arc::new(target), path, connect_timeout: options.connect_timeout })
    }

    pub(super) fn execute(&self, request: Bytes) -> Exchange {
        let agent = self.clone();
        Exchange::opening(async move { agent.open(request).await.map(Connection::WebSocket) })
    }

    async fn open(&self, request: Bytes) -> Result<Socket, ExecuteError> {
        let connecting = self.target.connect_with_limit(MAX_MESSAGE);
        let (reader, mut writer) = match tokio::time::timeout(self.connect_timeout, connecting).await {
            Ok(Ok(halves)) => halves,
            Ok(Err(error)) => return Err(self.refused(&error)),
            Err(_elapsed) => return Err(ConnectError::TimedOut.into()),
        };
        // A text message is UTF-8 by the rules of the transport.
        let request = String::from_utf8_lossy(&request).into_owned();
        let sending = async move {
            // If this fails, so does reading, which tells why.
            let _ = writer.send(request).await;
            Some(writer)
        };
        Ok(Socket { reader, sending: Some(sending.boxed()), writer: None, is_closing: false })
    }

    fn refused(&self, error: &socket::ConnectError) -> ExecuteError {
        match error {
            socket::ConnectError::Unauthorized(status) | socket::ConnectError::NotUpgraded(status) => {
                let status = status.as_u16();
                if (300..400).contains(&status) {
                    return ExecuteError::Redirect { status, location: None };
                }
                ExecuteError::Status { status, path: self.path.to_string(), body: Bytes::new() }
            }
            socket::ConnectError::Url | socket::ConnectError::Failed(_) => {
                ConnectError::Failed(error.to_string()).into()
            }
        }
    }
}

/// A connection. The request is sent while messages are already read: an agent that talks first cannot block itself.
pub(super) struct Socket {
    reader: SocketReader,
    /// Sends the request or the close frame; gives back the writing half unless it was closed.
    sending: Option<BoxFuture<'static, Option<SocketWriter>>>,
    writer: Option<SocketWriter>,
    is_closing: bool,
}

impl Socket {
    pub(super) async fn next(&mut self) -> Result<Option<Item>, ExecuteError> {
        loop {
            let Socket { reader, sending, .. } = self;
            let sent = async {
                match sending {
                    Some(sending) => sending.await,
                    None => pending().await,
                }
            };
            tokio::select! {
                biased;
                received = reader.receive() => match received {
                    Ok(Some(Received::Text(text))) => {
                        return Ok(Some(Item::Message(Message { text, origin: Origin::WebSocket })));
                    }
                    Ok(Some(Received::Activity)) => {}
                    Ok(None) => return Ok(None),
                    Err(ReceiveError::TooLong) => return Err(ExecuteError::TooLong),
                    Err(ReceiveError::ConnectionLost) => return Err(ExecuteError::ConnectionLost),
                    Err(ReceiveError::Closed { code, reason }) => {
                        let reason = start_of(reason.as_bytes(), CLOSE_REASON);
                        return Err(ExecuteError::ClosedWithCode { code, reason });
                    }
                    Err(error @ ReceiveError::Binary) => {
                        return Err(ExecuteError::Transport(error.to_string()));
                    }
                    Err(ReceiveError::Protocol(problem)) => return Err(ExecuteError::Transport(problem)),
                },
                writer = sent => {
                    self.sending = None;
                    self.writer = writer;
                    if self.is_closing {
                        self.close();
                    }
                }
            }
        }
    }

    /// Begins the closing handshake.
    pub(super) fn close(&mut self) {
        self.is_closing = true;
        if let Some(writer) = self.writer.take() {
            let closing = async move {
                writer.finish().await;
                None
            };
            self.sending = Some(closing.boxed());
        }
    }
}
