//! Connections of lines: a Unix socket, or the standard streams of a program.

#[cfg(feature = "stdio")]
pub(super) mod stdio;

use std::io;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};

#[cfg(feature = "unix-socket")]
use super::link::Incoming;
use super::link::{Received, Writing};
use crate::lines::{Line, Lines};

/// Reads lines.
#[cfg(feature = "unix-socket")]
pub(super) struct LineReader<R>(Lines<R>);

#[cfg(feature = "unix-socket")]
impl<R: AsyncRead + Unpin + Send + 'static> Incoming for LineReader<R> {
    async fn next(&mut self) -> Option<Received> {
        next(&mut self.0).await
    }

    async fn finish(self, _within: std::time::Duration) {}
}

/// Writes lines.
pub(super) struct LineWriter<W>(pub(super) W);

impl<W: AsyncWrite + Unpin + Send + 'static> Writing for LineWriter<W> {
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

async fn next<R: AsyncRead + Unpin>(lines: &mut Lines<R>) -> Option<Received> {
    match lines.next().await {
        Ok(Some(Line::Text(text))) => Some(Received::Text(text)),
        Ok(Some(Line::TooLong)) => Some(Received::Other),
        Ok(None) | Err(_) => None,
    }
}

/// Connects to a Unix socket.
#[cfg(feature = "unix-socket")]
pub(super) async fn unix(
    path: &std::path::Path,
    times: super::link::Times,
) -> super::error::Result<super::link::Link> {
    let stream = tokio::net::UnixStream::connect(path).await.map_err(|error| {
        super::error::AhpError::Transport(format!("the socket `{}`: {error}", path.display()))
    })?;
    let (reader, writer) = stream.into_split();
    let reader = LineReader(Lines::new(reader, crate::lines::MAX_MESSAGE));
    Ok(super::link::Link::start(reader, LineWriter(writer), times))
}
