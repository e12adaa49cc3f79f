//! Replacement of `:authority` in HTTP/2 requests over a Unix socket.
//!
//! gRPC clients fill `:authority` with the path of the socket, as it is or percent-encoded. Neither is an authority, and the HTTP/2 library resets
//! such streams. Over a Unix socket the field says nothing: the peer is known by its user id. So its value is replaced before the library reads it.
//!
//! Only the first fragment of a header block is looked at, where pseudo-header fields are. The compression state stays the same on both sides: a
//! replaced literal is indexed as the original one is, and is never longer, so that the library keeps every entry that the client refers to.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The bytes that an HTTP/2 client begins with.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const FRAME_HEADER: usize = 9;
/// Largest frame that our server announces; the library refuses a larger one, whatever it holds.
const MAX_FRAME: usize = 16 * 1024;
/// Type and flags of a frame with a header block.
const HEADERS: u8 = 1;
const PADDED: u8 = 0x08;
const PRIORITY: u8 = 0x20;
/// The name in a literal that does not refer to the table, plain and Huffman-coded.
const NAME: &[u8] = b":authority";
const CODED_NAME: &[u8] = &[0xb8, 0x3b, 0x53, 0x39, 0xec, 0x32, 0x7d, 0x7f];
/// Index of the name in the static table.
const NAME_INDEX: usize = 1;
/// The value that is put in; a part of it where the original is shorter.
const VALUE: &[u8] = b"localhost";

/// What the next bytes of the connection are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Preface,
    Frame,
    /// This many bytes of a frame that is passed on as it is.
    Payload(usize),
    /// Not HTTP/2, or not to be understood: everything is passed on.
    Anything,
}

/// A stream whose input has its authorities replaced. Its output is untouched.
pub(super) struct AuthorityFilter<S> {
    stream: S,
    next: Next,
    /// Bytes that were read and not looked at.
    input: BytesMut,
    /// Bytes that can be taken.
    ready: BytesMut,
    ended: bool,
}

impl<S> AuthorityFilter<S> {
    pub(super) fn new(stream: S) -> AuthorityFilter<S> {
        AuthorityFilter {
            stream,
            next: Next::Preface,
            input: BytesMut::new(),
            ready: BytesMut::new(),
            ended: false,
        }
    }

    /// Moves input to `ready` as far as it is complete.
    fn advance(&mut self) {
        loop {
            let length = self.input.len();
            let (taken, next) = match self.next {
                _ if length == 0 => return,
                Next::Anything => (length, Next::Anything),
                Next::Payload(left) if left > length => (length, Next::Payload(left - length)),
                Next::Payload(left) => (left, Next::Frame),
                Next::Preface => {
                    let known = length.min(PREFACE.len());
                    if self.input.get(..known) != PREFACE.get(..known) {
                        (0, Next::Anything)
                    } else if known < PREFACE.len() {
                        return;
                    } else {
                        (known, Next::Frame)
                    }
                }
                Next::Frame => {
                    let Some(header) = self.input.first_chunk::<FRAME_HEADER>() else { return };
                    let [high, middle, low, kind, flags, ..] = *header;
                    let payload = usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low);
                    if kind != HEADERS || payload > MAX_FRAME {
                        (FRAME_HEADER, Next::Payload(payload))
                    } else if length < FRAME_HEADER + payload {
                        return;
                    } else {
                        let frame = self.input.split_to(FRAME_HEADER + payload);
                        match replaced(&frame, flags) {
                            Some(changed) => self.ready.extend_from_slice(&changed),
                            None => self.ready.extend_from_slice(&frame),
                        }
                        continue;
                    }
                }
            };
            let taken = self.input.split_to(taken);
            self.ready.extend_from_slice(&taken);
            self.next = match next {
                Next::Payload(0) => Next::Frame,
                next => next,
            };
        }
    }
}

/// The frame with its authority replaced; none if it has none that is found.
fn replaced(frame: &[u8], flags: u8) -> Option<Vec<u8>> {
    let (header, payload) = frame.split_at_checked(FRAME_HEADER)?;
    let padding = if flags & PADDED == 0 { 0 } else { usize::from(*payload.first()?) };
    let begin = usize::from(flags & PADDED != 0) + if flags & PRIORITY == 0 { 0 } else { 5 };
    let block = payload.get(begin..payload.len().checked_sub(padding)?)?;
    let value = authority(block)?;
    let (before, after) = (block.get(..value.begin)?, block.get(value.end..)?);
    let text = VALUE.get(..value.least_length.min(VALUE.len()))?;
    let mut changed = header.to_vec();
    changed.extend_from_slice(payload.get(..begin)?);
    changed.extend_from_slice(before);
    // A length below 127, without Huffman coding.
    changed.push(u8::try_from(text.len()).ok()?);
    changed.extend_from_slice(text);
    changed.extend_from_slice(after);
    changed.extend_from_slice(payload.get(payload.len() - padding..)?);
    let length = u32::try_from(changed.len() - FRAME_HEADER).ok()?.to_be_bytes();
    changed.get_mut(..3)?.copy_from_slice(length.get(1..)?);
    Some(changed)
}

/// The place of a value in a header block, its length included.
struct Value {
    begin: usize,
    end: usize,
    /// The value has at least this many bytes once it is decoded.
    least_length: usize,
}

/// Finds the literal value of `:authority`.
fn authority(block: &[u8]) -> Option<Value> {
    let mut at = 0;
    loop {
        let first = *block.get(at)?;
        // An indexed field, or a change of the table's size.
        if first & 0x80 != 0 || first & 0xe0 == 0x20 {
            at = integer(block, at, if first & 0x80 != 0 { 7 } else { 5 })?.1;
            continue;
        }
        let (index, mut end) = integer(block, at, if first & 0x40 != 0 { 6 } else { 4 })?;
        let mut is_authority = index == NAME_INDEX;
        if index == 0 {
            let name = string(block, end)?;
            is_authority = name.bytes == if name.is_coded { CODED_NAME } else { NAME };
            end = name.end;
        }
        let value = string(block, end)?;
        if is_authority {
            let length = value.bytes.len();
            // A code has 5 to 30 bits, and at most 7 bits are padding.
            let least_length =
                if value.is_coded { (8 * length).saturating_sub(7).div_ceil(30) } else { length };
            return (length > 0).then_some(Value { begin: end, end: value.end, least_length });
        }
        at = value.end;
    }
}

struct Text<'a> {
    bytes: &'a [u8],
    is_coded: bool,
    end: usize,
}

/// The string that begins at `at`.
fn string(block: &[u8], at: usize) -> Option<Text<'_>> {
    let is_coded = block.get(at)? & 0x80 != 0;
    let (length, begin) = integer(block, at, 7)?;
    let end = begin.checked_add(length)?;
    Some(Text { bytes: block.get(begin..end)?, is_coded, end })
}

/// The integer whose first byte has this many bits of it, and the place after it.
fn integer(block: &[u8], at: usize, bits: u32) -> Option<(usize, usize)> {
    let most = (1_usize << bits) - 1;
    let mut number = usize::from(*block.get(at)?) & most;
    if number < most {
        return Some((number, at + 1));
    }
    for (position, byte) in block.get(at + 1..)?.iter().take(4).enumerate() {
        number += usize::from(byte & 0x7f) << (7 * position);
        if byte & 0x80 == 0 {
            return Some((number, at + 2 + position));
        }
    }
    None
}

impl<S: AsyncRead + Unpin> AsyncRead for AuthorityFilter<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.next == Next::Anything && this.input.is_empty() && this.ready.is_empty() {
            return Pin::new(&mut this.stream).poll_read(cx, buffer);
        }
        while this.ready.is_empty() && !this.ended {
            let mut chunk = [0; 4096];
            let mut read = ReadBuf::new(&mut chunk);
            ready!(Pin::new(&mut this.stream).poll_read(cx, &mut read))?;
            if read.filled().is_empty() {
                this.ended = true;
                let rest = this.input.split();
                this.ready.extend_from_slice(&rest);
            }
            this.input.extend_from_slice(read.filled());
            this.advance();
        }
        let length = this.ready.len().min(buffer.remaining());
        buffer.put_slice(this.ready.get(..length).unwrap_or_default());
        this.ready.advance(length);
        if this.ready.is_empty() && this.input.is_empty() {
            // Idle connections hold nothing.
            (this.ready, this.input) = (BytesMut::new(), BytesMut::new());
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for AuthorityFilter<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests;
