//! Newline-delimited messages over a stream of bytes: stdio, Unix sockets, any reader and writer.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use crate::connection::{self, End, Progress, TextHandler, Transport, Work};
use crate::lines::{Line, Lines, MAX_MESSAGE};
use crate::peer::Peer;

/// An output buffer that grew beyond this is released once it is empty.
const RETAINED: usize = 64 * 1024;

/// Limits of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamLimits {
    /// The longest message, in bytes. A longer one is refused, and the connection goes on.
    pub max_message: usize,
    /// Time limit of a peer for reading a part of its replies.
    pub write_deadline: Duration,
    /// Idle time limit of a peer with no message in flight; none: for ever.
    pub idle: Option<Duration>,
}

impl StreamLimits {
    /// Limits of a socket: idle peers are closed after ten minutes.
    pub fn socket() -> StreamLimits {
        StreamLimits { idle: Some(Duration::from_secs(600)), ..StreamLimits::stdio() }
    }

    /// Limits of standard input and output: a peer may be idle for ever.
    pub fn stdio() -> StreamLimits {
        StreamLimits { max_message: MAX_MESSAGE, write_deadline: Duration::from_secs(30), idle: None }
    }
}

impl Default for StreamLimits {
    fn default() -> StreamLimits {
        StreamLimits::socket()
    }
}

/// Serves one peer, a message a line, until it closes its side and has all its replies. Once `stop` is cancelled nothing more is read,
/// and the messages in flight are answered. Blank lines are skipped.
pub async fn serve<H, R, W>(
    handler: &H,
    peer: &Peer,
    reader: R,
    writer: W,
    limits: &StreamLimits,
    stop: &CancellationToken,
) -> io::Result<End>
where
    H: TextHandler,
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    serve_noted(|| None::<()>, handler, peer, (reader, writer), limits, stop).await
}

/// [`serve`] with a guard for each message, held until it is handled.
pub(crate) async fn serve_noted<H, R, W, G: Send>(
    note: impl Fn() -> G,
    handler: &H,
    peer: &Peer,
    (reader, writer): (R, W),
    limits: &StreamLimits,
    stop: &CancellationToken,
) -> io::Result<End>
where
    H: TextHandler,
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let bounds = handler.bounds();
    let mut transport = LineTransport {
        lines: Lines::new(reader, limits.max_message).with_budget(&bounds.unfinished),
        writer,
        out: BytesMut::new(),
        progress: Progress::default(),
        unflushed: false,
    };
    let begin = |line| match line {
        Line::Text(text) if text.iter().all(u8::is_ascii_whitespace) => Work::Done,
        Line::Text(text) => connection::holding_guard(note(), handler.begin(peer, text)),
        Line::TooLong(_) => Work::Reply(handler.refuse_overlong(peer, limits.max_message)),
    };
    connection::serve(&mut transport, bounds, limits, stop, begin).await
}

struct LineTransport<R, W> {
    lines: Lines<R>,
    writer: W,
    out: BytesMut,
    progress: Progress,
    unflushed: bool,
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Transport for LineTransport<R, W> {
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
            self.progress.sent += written as u64;
            self.unflushed = true;
        }
        if self.unflushed {
            ready!(Pin::new(&mut self.writer).poll_flush(cx))?;
            self.unflushed = false;
            if self.out.capacity() > RETAINED {
                self.out = BytesMut::new();
            }
        }
        Poll::Ready(Ok(()))
    }
}
