//! Newline-delimited text of bounded length: one decoder, with an asynchronous and a synchronous front.

use std::future::{Future, poll_fn};
use std::io::{self, BufRead};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use tokio::io::AsyncRead;
use tokio::time::{Sleep, sleep};
use tokio_util::io::poll_read_buf;

use crate::budget::{Exhausted, MemoryBudget, Reservation, UNCOUNTED, UNFINISHED_TIME};

/// The longest message on any transport that has no smaller limit of its own.
pub const MAX_MESSAGE: usize = 4 * 1024 * 1024;

/// Bytes per read.
const CHUNK: usize = 8 * 1024;
/// A buffer that grew beyond this is released once it is empty: a connection must not hold the size of its longest message for ever.
const RETAINED: usize = 64 * 1024;

/// A decoded line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// A line without its terminator. It may be empty.
    Text(Bytes),
    /// A line longer than the limit, which was discarded. [`Lines`] reports it as soon as the limit is exceeded, with the bytes read
    /// until then; [`read`] reports it at its end, with its length.
    TooLong(u64),
}

/// Time at which a line over the limit is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Overlong {
    /// Report as soon as the limit is exceeded: a peer that never sends a newline is answered, too.
    AtOnce,
    /// Report at the end of the line, when its length is known.
    AtEnd,
}

/// An incremental decoder: bytes are appended to `buffer`, lines are taken from it.
#[derive(Debug)]
struct Decoder {
    buffer: BytesMut,
    /// The prefix of `buffer` that holds no newline.
    searched: usize,
    /// The bytes of the current line that were discarded, if it is over the limit.
    discarded: Option<u64>,
    limit: usize,
    overlong: Overlong,
}

impl Decoder {
    fn new(limit: usize, overlong: Overlong) -> Decoder {
        Decoder { buffer: BytesMut::new(), searched: 0, discarded: None, limit, overlong }
    }

    /// The next complete line of the buffer, or the report of an overlong one.
    fn next_line(&mut self) -> Option<Line> {
        loop {
            let new = self.buffer.get(self.searched..).unwrap_or_default();
            let Some(end) = new.iter().position(|byte| *byte == b'\n').map(|at| at + self.searched) else {
                return self.without_newline();
            };
            let mut line = self.buffer.split_to(end + 1);
            self.searched = 0;
            line.truncate(end);
            match (self.discarded.take(), self.overlong) {
                (None, _) => return Some(self.bounded(line)),
                (Some(before), Overlong::AtEnd) => return Some(Line::TooLong(before + end as u64)),
                (Some(_), Overlong::AtOnce) => {}
            }
        }
    }

    fn bounded(&self, mut line: BytesMut) -> Line {
        // Callers of the synchronous front get the line as it was sent.
        if self.overlong == Overlong::AtOnce && line.last() == Some(&b'\r') {
            line.truncate(line.len() - 1);
        }
        if line.len() > self.limit { Line::TooLong(line.len() as u64) } else { Line::Text(line.freeze()) }
    }

    fn without_newline(&mut self) -> Option<Line> {
        let length = self.buffer.len();
        if let Some(discarded) = &mut self.discarded {
            *discarded += length as u64;
            self.buffer.clear();
            self.searched = 0;
            return None;
        }
        if length > self.limit {
            self.discard();
            return (self.overlong == Overlong::AtOnce).then_some(Line::TooLong(length as u64));
        }
        self.searched = length;
        None
    }

    /// Whether no part of a line was read.
    fn is_empty(&self) -> bool {
        self.buffer.is_empty() && self.discarded.is_none()
    }

    /// Discards the current line up to its newline. The memory is released at once, not when the connection ends.
    fn discard(&mut self) {
        self.discarded = Some(self.buffer.len() as u64);
        self.searched = 0;
        self.buffer = BytesMut::new();
    }

    /// The unterminated line at the end of the input.
    fn finish(&mut self) -> Option<Line> {
        let rest = self.buffer.split().freeze();
        self.searched = 0;
        match (self.discarded.take(), self.overlong) {
            (None, _) => (!rest.is_empty()).then_some(Line::Text(rest)),
            (Some(before), Overlong::AtEnd) => Some(Line::TooLong(before + rest.len() as u64)),
            (Some(_), Overlong::AtOnce) => None,
        }
    }
}

/// Asynchronous reader of lines, without `\n` or `\r\n`. A read that is cancelled loses nothing.
#[derive(Debug)]
pub struct Lines<R> {
    reader: R,
    decoder: Decoder,
    /// Whether the buffer has grown beyond [`RETAINED`].
    large: bool,
    reservation: Option<Reservation>,
    /// Deadline of a counted line.
    due: Option<Pin<Box<Sleep>>>,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// Lines of at most `limit` bytes.
    pub fn new(reader: R, limit: usize) -> Lines<R> {
        Lines {
            reader,
            decoder: Decoder::new(limit, Overlong::AtOnce),
            large: false,
            reservation: None,
            due: None,
        }
    }

    /// Reserves the memory of long lines in this budget; a line that does not fit is reported as too long.
    #[must_use]
    pub fn with_budget(mut self, budget: &MemoryBudget) -> Lines<R> {
        self.reservation = budget.try_reserve(0);
        self
    }

    /// The bytes that were read and belong to no complete line yet, and the reader.
    pub fn into_parts(self) -> (BytesMut, R) {
        (self.decoder.buffer, self.reader)
    }

    /// The next line; none at the end of the input. An unterminated last line counts.
    pub async fn next(&mut self) -> io::Result<Option<Line>> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// Poll form of [`Lines::next`].
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Line>>> {
        loop {
            if let Some(line) = self.buffered() {
                return Poll::Ready(Ok(Some(line)));
            }
            let buffer = &mut self.decoder.buffer;
            if buffer.is_empty() && std::mem::take(&mut self.large) {
                *buffer = BytesMut::new();
            }
            let length = buffer.len();
            if buffer.capacity() == length {
                let more = CHUNK.max(length);
                if !self.reserve(length + more) {
                    self.decoder.discard();
                    self.release();
                    return Poll::Ready(Ok(Some(Line::TooLong(length as u64))));
                }
                self.decoder.buffer.reserve(more);
            }
            if let Some(due) = &mut self.due
                && due.as_mut().poll(cx).is_ready()
            {
                let text = "a message was begun and not finished in time";
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, text)));
            }
            let buffer = &mut self.decoder.buffer;
            if ready!(poll_read_buf(Pin::new(&mut self.reader), cx, buffer))? == 0 {
                return Poll::Ready(Ok(self.decoder.finish()));
            }
            self.large |= buffer.len() > RETAINED;
        }
    }

    /// The next line of the bytes that were read already.
    pub fn buffered(&mut self) -> Option<Line> {
        let line = self.decoder.next_line();
        if self.decoder.buffer.len() <= UNCOUNTED && (line.is_some() || self.decoder.discarded.is_some()) {
            self.release();
        }
        line
    }

    fn reserve(&mut self, bytes: usize) -> bool {
        match &mut self.reservation {
            Some(reservation) if bytes > UNCOUNTED && self.decoder.discarded.is_none() => {
                self.due.get_or_insert_with(|| Box::pin(sleep(UNFINISHED_TIME)));
                reservation.grow_to(bytes)
            }
            _ => true,
        }
    }

    fn release(&mut self) {
        self.due = None;
        if let Some(reservation) = &mut self.reservation {
            reservation.release();
        }
    }
}

/// Reads the next line of at most `limit` bytes, synchronously; none at the end of the input. An unterminated last line counts.
///
/// Nothing beyond the line is consumed, and only `\n` is removed from it.
pub fn read(input: &mut impl BufRead, limit: usize) -> io::Result<Option<Line>> {
    read_counted(input, limit, None)
}

/// [`read`] for connections: a long line is reserved in `budget` until it is complete. Fails with [`Exhausted`] if it does not fit, and with
/// [`io::ErrorKind::TimedOut`] if the input has a read timeout and a line is incomplete for longer than that.
pub fn read_within(
    input: &mut impl BufRead,
    limit: usize,
    budget: &MemoryBudget,
) -> io::Result<Option<Line>> {
    read_counted(input, limit, budget.try_reserve(0))
}

fn read_counted(
    input: &mut impl BufRead,
    limit: usize,
    mut reservation: Option<Reservation>,
) -> io::Result<Option<Line>> {
    let mut decoder = Decoder::new(limit, Overlong::AtEnd);
    loop {
        let available = match input.fill_buf() {
            Ok(available) => available,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            // Without a part of a line, this is a peer that is silent.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && !decoder.is_empty() => {
                return Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    "a line was begun and not finished in time",
                ));
            }
            Err(error) => return Err(error),
        };
        if available.is_empty() {
            return Ok(decoder.finish());
        }
        let end = available.iter().position(|byte| *byte == b'\n').map_or(available.len(), |at| at + 1);
        let needed = decoder.buffer.len() + end;
        if let Some(reservation) = &mut reservation
            && needed > UNCOUNTED
            && decoder.discarded.is_none()
            // The buffer doubles when it grows.
            && !reservation.grow_to(needed.next_power_of_two().min(limit.saturating_mul(2)))
        {
            return Err(io::Error::other(Exhausted));
        }
        decoder.buffer.extend_from_slice(available.get(..end).unwrap_or_default());
        input.consume(end);
        if let Some(line) = decoder.next_line() {
            return Ok(Some(line));
        }
    }
}

#[cfg(test)]
mod tests;
