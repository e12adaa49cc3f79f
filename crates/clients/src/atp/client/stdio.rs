//! Agents that run as a process: request on standard input, response on standard output, events on standard error.
//!
//! Only the pipes are known here; starting, stopping and waiting for the process are the caller's.

mod output;
mod tail;

use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use proctor_net::lines::{Line, Lines};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};

use super::connection::Connection;
use super::{Exchange, ExecuteError, Item, MAX_MESSAGE, Message, Origin, OutputError, shape};
use output::Output;
use tail::Tail;

/// The reading end of a pipe.
pub type ReadPipe = Box<dyn AsyncRead + Send + Unpin>;
/// The writing end of a pipe.
pub type WritePipe = Box<dyn AsyncWrite + Send + Unpin>;

/// The standard streams of an agent's process, seen from outside.
pub struct Pipes {
    /// Its standard input.
    pub stdin: WritePipe,
    /// Its standard output.
    pub stdout: ReadPipe,
    /// Its standard error.
    pub stderr: ReadPipe,
}

/// Sends a request, which must be one line without its newline, and closes standard input.
///
/// Both outputs are read at the same time for as long as [`Exchange::next`] is called. Lines of standard error that are JSON objects are
/// messages, all others are [`Item::Line`]. Standard output is one message, once it was closed: the whole of it, or, of more than
/// [`MAX_MESSAGE`] bytes, the lines that may be the response. Without any such line it is an error. An agent that does not read its input, or
/// closes it early, is an error only if it gives no response.
///
/// The exchange ends once both outputs are closed. Processes that the agent has started may hold them open for longer than the agent
/// lives.
pub fn execute(pipes: Pipes, request: Bytes) -> Exchange {
    Exchange::open(Connection::Stdio(PipeConnection::new(pipes, request)))
}

/// The state of an exchange over pipes.
pub(super) struct PipeConnection {
    /// Writes the request and closes the pipe; none once that is done, or of no more use.
    writing: Option<BoxFuture<'static, io::Result<()>>>,
    request_was_read: bool,
    /// None once it is closed.
    stdout: Option<Lines<ReadPipe>>,
    output: Output,
    /// What standard output gave, until it is delivered.
    outcome: Option<Result<Bytes, ExecuteError>>,
    /// None once it is closed.
    stderr: Option<Lines<ReadPipe>>,
    tail: Tail,
}

impl PipeConnection {
    fn new(pipes: Pipes, request: Bytes) -> PipeConnection {
        let Pipes { mut stdin, stdout, stderr } = pipes;
        let writing = async move {
            stdin.write_all(&request).await?;
            stdin.write_all(b"\n").await?;
            stdin.flush().await?;
            stdin.shutdown().await
        };
        PipeConnection {
            writing: Some(writing.boxed()),
            request_was_read: false,
            stdout: Some(Lines::new(stdout, MAX_MESSAGE)),
            output: Output::default(),
            outcome: None,
            stderr: Some(Lines::new(stderr, MAX_MESSAGE)),
            tail: Tail::default(),
        }
    }

    pub(super) async fn next(&mut self) -> Result<Option<Item>, ExecuteError> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    pub(super) fn last_lines(&self) -> Vec<String> {
        self.tail.lines()
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Item>, ExecuteError>> {
        loop {
            self.poll_write(cx);
            // One line of each in turn: a flood on one pipe does not keep the agent waiting at the other.
            let has_read = self.poll_stdout(cx);
            if let Poll::Ready(item) = self.poll_stderr(cx) {
                return Poll::Ready(item.map(Some));
            }
            // Only now: events that the agent wrote before the end of its output come before its response.
            if let Some(outcome) = self.outcome.take() {
                let message = |text| Item::Message(Message { text, origin: Origin::StandardOutput });
                return Poll::Ready(outcome.map(|text| Some(message(text))));
            }
            if self.stdout.is_none() && self.stderr.is_none() {
                return Poll::Ready(Ok(None));
            }
            if !has_read {
                return Poll::Pending;
            }
        }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>) {
        if let Some(writing) = &mut self.writing
            && let Poll::Ready(written) = writing.poll_unpin(cx)
        {
            self.request_was_read = written.is_ok();
            self.writing = None;
        }
    }

    /// Reads one line; whether there was one, or the end.
    fn poll_stdout(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(stdout) = &mut self.stdout else { return false };
        let problem = match stdout.poll_next(cx) {
            Poll::Pending => return false,
            Poll::Ready(Ok(Some(line))) => {
                self.output.push(&line);
                return true;
            }
            Poll::Ready(Ok(None)) => None,
            Poll::Ready(Err(error)) => Some(OutputError::Read(error.to_string())),
        };
        self.stdout = None;
        // The rest of the request can change nothing any more.
        self.writing = None;
        let finished = std::mem::take(&mut self.output).finish();
        self.outcome = Some(match (finished, problem) {
            (Ok(text), _) => Ok(text),
            (Err(problem), None) | (Err(_), Some(problem)) => {
                Err(ExecuteError::Output { problem, request_was_read: self.request_was_read })
            }
        });
        true
    }

    /// The next line; pending also if the pipe is closed.
    fn poll_stderr(&mut self, cx: &mut Context<'_>) -> Poll<Result<Item, ExecuteError>> {
        let Some(stderr) = &mut self.stderr else { return Poll::Pending };
        match stderr.poll_next(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Ok(Some(Line::Text(text)))) => Poll::Ready(Ok(self.classify(text))),
            Poll::Ready(Ok(Some(Line::TooLong(_)))) => Poll::Ready(Err(ExecuteError::TooLong)),
            // A pipe that cannot be read is as good as closed: the response does not depend on it.
            Poll::Ready(Ok(None) | Err(_)) => {
                self.stderr = None;
                Poll::Pending
            }
        }
    }

    fn classify(&mut self, text: Bytes) -> Item {
        if shape::is_object(&text) {
            return Item::Message(Message { text, origin: Origin::StandardError });
        }
        self.tail.push(&text);
        Item::Line(text)
    }
}
