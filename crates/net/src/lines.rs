//! Lines of text from a stream, bounded: one that is too long is reported and left out, and never held.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use tokio::io::AsyncRead;
use tokio_util::io::poll_read_buf;

use crate::budget::{Budget, FREE, Share};

/// The longest message on any transport that has no smaller limit of its own.
pub const MAX_MESSAGE: usize = 4 * 1024 * 1024;

/// How much is read at once.
const CHUNK: usize = 8 * 1024;
/// A buffer that grew beyond this goes back when it is empty: a connection must not hold what its longest message once took.
const KEPT: usize = 64 * 1024;

/// What came in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// A line without its end. It may be empty.
    Text(Bytes),
    /// A line longer than the limit; reported once, as soon as that is known.
    TooLong,
}

/// Reads lines. A read that is cancelled loses nothing.
#[derive(Debug)]
pub struct Lines<R> {
    reader: R,
    buffer: BytesMut,
    searched: usize,
    skipping: bool,
    large: bool,
    limit: usize,
    share: Option<Share>,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// Lines of at most `limit` bytes.
    pub fn new(reader: R, limit: usize) -> Lines<R> {
        Lines {
            reader,
            buffer: BytesMut::new(),
            searched: 0,
            skipping: false,
            large: false,
            limit,
            share: None,
        }
    }

    /// Long lines take their memory from this budget; without room they are reported as too long.
    #[must_use]
    pub fn with_budget(mut self, budget: &Budget) -> Lines<R> {
        self.share = budget.try_take(0);
        self
    }

    /// What was read and is no whole line yet, and the reader.
    pub fn into_parts(self) -> (BytesMut, R) {
        (self.buffer, self.reader)
    }

    /// The next line; none at the end. An unfinished line at the end is a line.
    pub async fn next(&mut self) -> io::Result<Option<Line>> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// The same, for who polls by hand.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Line>>> {
        loop {
            if let Some(line) = self.buffered() {
                return Poll::Ready(Ok(Some(line)));
            }
            if self.buffer.is_empty() && std::mem::take(&mut self.large) {
                self.buffer = BytesMut::new();
            }
            if self.buffer.capacity() == self.buffer.len() {
                let more = CHUNK.max(self.buffer.len());
                if !self.has_room_for(self.buffer.len() + more) {
                    self.skip();
                    return Poll::Ready(Ok(Some(Line::TooLong)));
                }
                self.buffer.reserve(more);
            }
            if ready!(poll_read_buf(Pin::new(&mut self.reader), cx, &mut self.buffer))? == 0 {
                let rest = self.buffer.split().freeze();
                self.searched = 0;
                return Poll::Ready(Ok((!rest.is_empty() && !self.skipping).then_some(Line::Text(rest))));
            }
            self.large |= self.buffer.len() > KEPT;
        }
    }

    fn has_room_for(&mut self, bytes: usize) -> bool {
        match &mut self.share {
            Some(share) if bytes > FREE && !self.skipping => share.grow_to(bytes),
            _ => true,
        }
    }

    /// Leaves out the rest of the line. The memory goes back at once, not when the connection ends.
    fn skip(&mut self) {
        self.skipping = true;
        self.searched = 0;
        self.buffer = BytesMut::new();
        if let Some(share) = &mut self.share {
            share.clear();
        }
    }

    /// The next line of what was read already.
    pub fn buffered(&mut self) -> Option<Line> {
        loop {
            let new = self.buffer.get(self.searched..).unwrap_or_default();
            let end = new.iter().position(|byte| *byte == b'\n').map(|at| at + self.searched);
            match end {
                Some(end) => {
                    let mut line = self.buffer.split_to(end + 1);
                    self.searched = 0;
                    if self.buffer.len() <= FREE
                        && let Some(share) = &mut self.share
                    {
                        share.clear();
                    }
                    if std::mem::take(&mut self.skipping) {
                        continue;
                    }
                    line.truncate(end);
                    if line.last() == Some(&b'\r') {
                        line.truncate(end - 1);
                    }
                    return Some(if line.len() > self.limit {
                        Line::TooLong
                    } else {
                        Line::Text(line.freeze())
                    });
                }
                None if self.skipping => {
                    self.buffer.clear();
                    self.searched = 0;
                    return None;
                }
                None if self.buffer.len() > self.limit => {
                    self.skip();
                    return Some(Line::TooLong);
                }
                None => {
                    self.searched = self.buffer.len();
                    return None;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn all(text: &[u8], limit: usize) -> Vec<Line> {
        let mut lines = Lines::new(text, limit);
        let mut out = Vec::new();
        while let Some(line) = lines.next().await.unwrap() {
            out.push(line);
        }
        out
    }

    fn text(line: &str) -> Line {
        Line::Text(Bytes::copy_from_slice(line.as_bytes()))
    }

    #[tokio::test]
    async fn lines_end_with_either_ending_or_with_the_stream() {
        assert_eq!(all(b"a\r\n\nb\nrest", 10).await, [text("a"), text(""), text("b"), text("rest")]);
    }

    #[tokio::test]
    async fn a_long_line_is_reported_once_and_the_next_one_is_whole() {
        let mut input = vec![b'x'; 100_000];
        input.extend_from_slice(b"\nok\n");
        assert_eq!(all(&input, 1000).await, [Line::TooLong, text("ok")]);
        assert_eq!(all(b"12345\n1234\n", 4).await, [Line::TooLong, text("1234")]);
        assert_eq!(all(&vec![b'x'; 50_000], 1000).await, [Line::TooLong]);
    }
}
