//! The connection loop's transport over a WebSocket, with pings.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Sink, Stream};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::time::Instant;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::{self, Message, Utf8Bytes};

use super::frames::BoundedFrames;
use crate::budget::Exhausted;
use crate::connection::{Progress, Transport};

/// The server's side of an upgraded connection.
pub(super) type Socket = WebSocketStream<BoundedFrames<TokioIo<Upgraded>>>;

pub(super) struct SocketTransport {
    socket: Socket,
    ready: VecDeque<Message>,
    progress: Progress,
    unflushed: bool,
    heard: Instant,
    pinged: bool,
    ping: Duration,
}

impl SocketTransport {
    pub(super) fn new(socket: Socket, ping: Duration) -> SocketTransport {
        SocketTransport {
            socket,
            ready: VecDeque::new(),
            progress: Progress::default(),
            unflushed: false,
            heard: Instant::now(),
            pinged: false,
            ping,
        }
    }

    pub(super) fn into_socket(self) -> Socket {
        self.socket
    }

    fn push(&mut self, message: Message, length: usize) {
        self.ready.push_back(message);
        self.progress.queued += length as u64;
    }
}

impl Transport for SocketTransport {
    type Incoming = Utf8Bytes;
    type Reply = String;

    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Utf8Bytes>>> {
        loop {
            let message = match ready!(Pin::new(&mut self.socket).poll_next(cx)) {
                Some(Ok(message)) => message,
                Some(Err(error)) => return Poll::Ready(Err(io::Error::other(error))),
                None => return Poll::Ready(Ok(None)),
            };
            self.heard = Instant::now();
            self.pinged = false;
            match message {
                Message::Text(text) => return Poll::Ready(Ok(Some(text))),
                // The library has queued the pong, which is sent by a flush.
                Message::Ping(_) => self.unflushed = true,
                Message::Pong(_) | Message::Binary(_) | Message::Frame(_) => {}
                Message::Close(_) => {
                    self.unflushed = true;
                    return Poll::Ready(Ok(None));
                }
            }
        }
    }

    fn queue(&mut self, reply: String) {
        let length = reply.len();
        self.push(Message::Text(reply.into()), length);
    }

    fn progress(&self) -> Progress {
        self.progress
    }

    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.ready.is_empty() {
            ready!(Pin::new(&mut self.socket).poll_ready(cx)).map_err(io::Error::other)?;
            let Some(message) = self.ready.pop_front() else { break };
            let length = match &message {
                Message::Text(text) => text.len(),
                _ => 0,
            };
            Pin::new(&mut self.socket).start_send(message).map_err(io::Error::other)?;
            self.progress.sent += length as u64;
            self.unflushed = true;
        }
        if self.unflushed {
            ready!(Pin::new(&mut self.socket).poll_flush(cx)).map_err(io::Error::other)?;
            self.unflushed = false;
        }
        Poll::Ready(Ok(()))
    }

    fn keep_alive_due(&self) -> Option<Instant> {
        Some(self.heard + if self.pinged { self.ping * 2 } else { self.ping })
    }

    fn keep_alive(&mut self, _now: Instant) -> io::Result<()> {
        if self.pinged {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "the peer does not answer"));
        }
        self.pinged = true;
        self.push(Message::Ping(Bytes::new()), 0);
        Ok(())
    }
}

/// Whether a message was longer than allowed.
pub(super) fn is_too_large(error: &io::Error) -> bool {
    is_capacity_error(error.get_ref().map(|inner| inner as &(dyn std::error::Error + 'static)))
}

/// Whether the memory for messages was used up.
pub(super) fn is_exhausted(error: &io::Error) -> bool {
    let Some(tungstenite::Error::Io(cause)) = error.get_ref().and_then(|inner| inner.downcast_ref()) else {
        return false;
    };
    cause.get_ref().is_some_and(<dyn std::error::Error + Send + Sync>::is::<Exhausted>)
}

pub(super) fn is_capacity_error(mut cause: Option<&(dyn std::error::Error + 'static)>) -> bool {
    while let Some(error) = cause {
        if let Some(tungstenite::Error::Capacity(_)) = error.downcast_ref() {
            return true;
        }
        cause = error.source();
    }
    false
}
