//! Input of a WebSocket with its memory bounded: long frames are split, and the bytes of unfinished messages are counted.
//!
//! The WebSocket library makes space for a whole frame, and keeps that space for as long as the connection lives. Split into short fragments, a message
//! is collected in memory that is returned with it. Fragments have lengths that are multiples of four, so that the frame's masking key fits all of
//! them.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncBufRead, AsyncRead, AsyncWrite, BufReader, ReadBuf};
use tokio::time::{Sleep, sleep};

use crate::budget::{Exhausted, MemoryBudget, Reservation, UNCOUNTED, UNFINISHED_TIME};

/// Longest fragment that is passed on.
const FRAGMENT: u64 = 16 * 1024;
/// Longest header: flags, length, masking key.
const HEADER: usize = 14;
const FINAL: u8 = 0x80;
/// Opcodes of control frames have this bit.
const CONTROL: u8 = 0x08;
const MASKED: u8 = 0x80;

/// A stream whose frames are split and counted on reading.
pub(super) struct BoundedFrames<S> {
    stream: BufReader<S>,
    reservation: Option<Reservation>,
    /// The longest message. A longer frame is passed on as it is, for the library to refuse.
    limit: u64,
    header: [u8; HEADER],
    header_length: usize,
    /// Header to be passed on, and how much of it was.
    out: [u8; HEADER],
    out_length: usize,
    out_sent: usize,
    /// Flags and masking key of the frame that is being passed on.
    first: u8,
    mask: Option<[u8; 4]>,
    /// Bytes of the fragment, and of the frame after it, that were not passed on.
    fragment_left: u64,
    frame_left: u64,
    /// Bytes of the message so far.
    message: u64,
    due: Option<Pin<Box<Sleep>>>,
}

impl<S: AsyncRead> BoundedFrames<S> {
    pub(super) fn new(stream: S, budget: &MemoryBudget, limit: usize) -> BoundedFrames<S> {
        BoundedFrames {
            stream: BufReader::with_capacity(super::READ_BUFFER, stream),
            reservation: budget.try_reserve(0),
            limit: limit as u64,
            header: [0; HEADER],
            header_length: 0,
            out: [0; HEADER],
            out_length: 0,
            out_sent: 0,
            first: 0,
            mask: None,
            fragment_left: 0,
            frame_left: 0,
            message: 0,
            due: None,
        }
    }
}

impl<S> BoundedFrames<S> {
    /// Length of the header that begins with the bytes so far; none if more are needed to tell.
    fn header_needed(&self) -> Option<usize> {
        if self.header_length < 2 {
            return None;
        }
        let [_, second, ..] = self.header;
        let length = match second & 0x7f {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        Some(2 + length + if second & MASKED == 0 { 0 } else { 4 })
    }

    /// Begins a frame whose header is complete.
    fn begin_frame(&mut self) -> io::Result<()> {
        let header = self.header.get(..std::mem::take(&mut self.header_length)).unwrap_or_default();
        let [first, second, rest @ ..] = header else { return Ok(()) };
        let (length, rest) = match (second & 0x7f, rest) {
            (126, [high, low, rest @ ..]) => (u64::from(u16::from_be_bytes([*high, *low])), rest),
            (127, rest) => match rest.split_first_chunk() {
                Some((length, rest)) => (u64::from_be_bytes(*length), rest),
                None => return Ok(()),
            },
            (length, rest) => (u64::from(length), rest),
        };
        self.first = *first;
        self.mask = rest.first_chunk().copied();
        self.frame_left = length;
        if first & CONTROL == 0 && length <= self.limit {
            self.message = self.message.saturating_add(length);
            self.reserve()?;
        }
        self.begin_fragment();
        Ok(())
    }

    fn reserve(&mut self) -> io::Result<()> {
        // The library refuses a message that its fragments make longer than the limit.
        let bytes = usize::try_from(self.message.min(self.limit)).unwrap_or(usize::MAX);
        if bytes <= UNCOUNTED {
            return Ok(());
        }
        self.due.get_or_insert_with(|| Box::pin(sleep(UNFINISHED_TIME)));
        let fits = self.reservation.as_mut().is_some_and(|reservation| reservation.resize(bytes));
        if fits { Ok(()) } else { Err(io::Error::other(Exhausted)) }
    }

    /// Writes the header of the next fragment of the frame. A control frame is never split; the library refuses one that is too long.
    fn begin_fragment(&mut self) {
        let is_whole = self.first & CONTROL != 0 || self.frame_left > self.limit;
        let length = if is_whole { self.frame_left } else { self.frame_left.min(FRAGMENT) };
        let is_last = length == self.frame_left;
        let flags = if is_last { self.first } else { self.first & !FINAL };
        let mut out = Vec::with_capacity(HEADER);
        let masked = if self.mask.is_some() { MASKED } else { 0 };
        out.push(flags);
        match (u8::try_from(length), u16::try_from(length)) {
            (Ok(short @ ..126), _) => out.push(masked | short),
            (_, Ok(medium)) => {
                out.push(masked | 0x7e);
                out.extend_from_slice(&medium.to_be_bytes());
            }
            _ => {
                out.push(masked | 0x7f);
                out.extend_from_slice(&length.to_be_bytes());
            }
        }
        out.extend_from_slice(self.mask.as_ref().map_or(&[][..], |mask| mask.as_slice()));
        if let Some(space) = self.out.get_mut(..out.len()) {
            space.copy_from_slice(&out);
        }
        (self.out_length, self.out_sent) = (out.len(), 0);
        self.fragment_left = length;
        self.frame_left -= length;
        // What follows continues the message; reserved bits are those of its first fragment.
        let continued = self.first & FINAL;
        if !is_last {
            self.first = continued;
        }
    }

    /// Ends a frame that was passed on as a whole.
    fn end_frame(&mut self) {
        if self.first & CONTROL == 0 && self.first & FINAL != 0 {
            self.message = 0;
            self.due = None;
            if let Some(reservation) = &mut self.reservation {
                reservation.release();
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for BoundedFrames<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let before = buffer.filled().len();
        loop {
            if let Some(due) = &mut this.due
                && due.as_mut().poll(cx).is_ready()
            {
                let text = "a message was begun and not finished in time";
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, text)));
            }
            if buffer.remaining() == 0 {
                return Poll::Ready(Ok(()));
            }
            if let Some(header @ [_, ..]) = this.out.get(this.out_sent..this.out_length) {
                let length = header.len().min(buffer.remaining());
                buffer.put_slice(header.get(..length).unwrap_or_default());
                this.out_sent += length;
                continue;
            }
            if this.out_length > 0 && this.fragment_left == 0 {
                if this.frame_left > 0 {
                    this.begin_fragment();
                    continue;
                }
                this.out_length = 0;
                this.out_sent = 0;
                this.end_frame();
            }
            let available = match Pin::new(&mut this.stream).poll_fill_buf(cx) {
                Poll::Ready(Ok(available)) => available,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                // What is there already is passed on.
                Poll::Pending if buffer.filled().len() > before => return Poll::Ready(Ok(())),
                Poll::Pending => return Poll::Pending,
            };
            if available.is_empty() {
                return Poll::Ready(Ok(()));
            }
            if this.fragment_left > 0 {
                let left = usize::try_from(this.fragment_left).unwrap_or(usize::MAX);
                let length = available.len().min(buffer.remaining()).min(left);
                buffer.put_slice(available.get(..length).unwrap_or_default());
                Pin::new(&mut this.stream).consume(length);
                this.fragment_left -= length as u64;
                continue;
            }
            let byte = available.first().copied().unwrap_or_default();
            Pin::new(&mut this.stream).consume(1);
            if let Some(space) = this.header.get_mut(this.header_length) {
                *space = byte;
            }
            this.header_length += 1;
            if this.header_needed() == Some(this.header_length)
                && let Err(error) = this.begin_frame()
            {
                return Poll::Ready(Err(error));
            }
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for BoundedFrames<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests;
