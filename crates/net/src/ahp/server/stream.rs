//! Lines over a stream of bytes: stdio, Unix sockets, anything.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, BytesMut};
use proctor_wire::ahp::rpc::{self, INVALID_REQUEST, Id, RpcError, Unreadable};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use super::connection::{self, Progress, Wire, Work};
use super::safe;
use super::{AhpServer, EventHandler, Peer};
use crate::lines::{Line, Lines, MAX_MESSAGE};

/// An output buffer that grew beyond this goes back when it is empty.
const KEPT: usize = 64 * 1024;

/// What a connection may take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamLimits {
    /// The longest message, in bytes. A longer one is refused, and the connection goes on.
    pub max_message: usize,
    /// How long a peer may take to read what it was sent.
    pub write_deadline: Duration,
    /// How long a peer may say nothing while it waits for nothing; none: for ever.
    pub idle: Option<Duration>,
}

impl StreamLimits {
    /// For a socket: idle peers are closed after ten minutes.
    pub fn socket() -> StreamLimits {
        StreamLimits { idle: Some(Duration::from_secs(600)), ..StreamLimits::stdio() }
    }

    /// For standard input and output: a peer may be idle for ever.
    pub fn stdio() -> StreamLimits {
        StreamLimits { max_message: MAX_MESSAGE, write_deadline: Duration::from_secs(30), idle: None }
    }
}

impl Default for StreamLimits {
    fn default() -> StreamLimits {
        StreamLimits::socket()
    }
}

impl<H: EventHandler> AhpServer<H> {
    /// Serves one peer, a JSON message a line, until it has no more to say and has all its answers.
    pub async fn serve_stream<R, W>(
        &self,
        peer: Peer,
        reader: R,
        writer: W,
        limits: &StreamLimits,
    ) -> io::Result<()>
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        self.serve_stream_until(peer, reader, writer, limits, &CancellationToken::new()).await
    }

    /// The same; when `stop` is cancelled nothing more is read, and what is in flight is answered.
    pub async fn serve_stream_until<R, W>(
        &self,
        peer: Peer,
        reader: R,
        writer: W,
        limits: &StreamLimits,
        stop: &CancellationToken,
    ) -> io::Result<()>
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        let mut wire = LineWire {
            lines: Lines::new(reader, limits.max_message).with_budget(self.budget()),
            writer,
            out: BytesMut::new(),
            progress: Progress::default(),
            unflushed: false,
        };
        let begin = |line| match line {
            Line::Text(text) if text.iter().all(u8::is_ascii_whitespace) => Work::Nothing,
            Line::Text(text) => match (rpc::read(&text), self.budget().for_work(text.len())) {
                (Ok(message), Some(share)) => Work::Later(self.handle_admitted(&peer, message, share)),
                (Ok(message), None) => refused(safe::overloaded(&message)),
                (Err(unreadable), _) => Work::Now(self.refuse_unreadable(&peer, &unreadable)),
            },
            Line::TooLong => Work::Now(self.refuse_unreadable(&peer, &too_long(limits.max_message))),
        };
        let window = self.connection_window();
        connection::serve(&mut wire, window, self.messages(), limits, stop, begin).await.map(|_end| ())
    }
}

fn refused<F>(reply: Option<String>) -> Work<F, String> {
    reply.map_or(Work::Nothing, Work::Now)
}

fn too_long(limit: usize) -> Unreadable {
    let message = format!("Invalid request: a message is at most {limit} bytes long");
    Unreadable { id: Id::Null, error: RpcError::new(INVALID_REQUEST, message) }
}

struct LineWire<R, W> {
    lines: Lines<R>,
    writer: W,
    out: BytesMut,
    progress: Progress,
    unflushed: bool,
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Wire for LineWire<R, W> {
    type Incoming = Line;
    type Reply = String;

    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Line>>> {
        self.lines.poll_next(cx)
    }

    fn queue(&mut self, reply: String) {
        self.out.reserve(reply.len() + 1);
        self.out.extend_from_slice(reply.as_bytes());
        self.out.extend_from_slice(b"\n");
        self.progress.queued += reply.len() as u64 + 1;
    }

    fn progress(&self) -> Progress {
        self.progress
    }

    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.out.is_empty() {
            let written = ready!(Pin::new(&mut self.writer).poll_write(cx, &self.out))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.out.advance(written);
            self.progress.gone += written as u64;
            self.unflushed = true;
        }
        if self.unflushed {
            ready!(Pin::new(&mut self.writer).poll_flush(cx))?;
            self.unflushed = false;
            if self.out.capacity() > KEPT {
                self.out = BytesMut::new();
            }
        }
        Poll::Ready(Ok(()))
    }
}
