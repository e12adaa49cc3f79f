//! Newline-delimited messages over a pair of byte streams.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};

use super::{MessageReader, MessageWriter, Received};
use crate::lines::{Line, Lines, MAX_MESSAGE};

/// Reads a message a line, each of at most [`MAX_MESSAGE`] bytes.
#[derive(Debug)]
pub struct LineReader<R>(Lines<R>);

impl<R: AsyncRead + Unpin> LineReader<R> {
    /// Reads from a stream.
    pub fn new(reader: R) -> LineReader<R> {
        LineReader(Lines::new(reader, MAX_MESSAGE))
    }

    /// The next event; none at the end of the stream.
    pub(crate) async fn next_line(&mut self) -> Option<Received> {
        match self.0.next().await {
            Ok(Some(Line::Text(text))) => Some(Received::Text(text)),
            Ok(Some(Line::TooLong(_))) => Some(Received::Activity),
            Ok(None) | Err(_) => None,
        }
    }
}

impl<R: AsyncRead + Unpin + Send + 'static> MessageReader for LineReader<R> {
    async fn next(&mut self) -> Option<Received> {
        self.next_line().await
    }

    async fn finish(self, _within: Duration) {}
}

/// Writes a message a line.
#[derive(Debug)]
pub struct LineWriter<W>(pub W);

impl<W: AsyncWrite + Unpin + Send + 'static> MessageWriter for LineWriter<W> {
    async fn send(&mut self, mut text: String) -> io::Result<()> {
        text.push('\n');
        self.0.write_all(text.as_bytes()).await?;
        self.0.flush().await
    }

    async fn ping(&mut self) -> io::Result<()> {
        Ok(())
    }

    async fn finish(mut self) {
        let _ = self.0.shutdown().await;
    }
}
