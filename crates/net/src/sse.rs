//! Server-sent events: an incremental decoder of `text/event-stream`, as browsers read it.
//!
//! Lines end with LF, CR or CRLF; the `data:` lines of a block are joined by LF; comments, `id:`, `retry:` and unknown fields are
//! ignored; a byte order mark at the start is removed. Unlike in browsers, a last block without its blank line is delivered by
//! [`Decoder::finish`], because many servers omit it, and invalid UTF-8 is kept as it is.
//!
//! ```
//! use bytes::Bytes;
//! use proctor_net::sse::Decoder;
//!
//! let mut decoder = Decoder::new(1024);
//! let mut chunk = Bytes::from_static(b": ping\ndata: 1\r\ndata: 2\r\n\r\nevent: end\ndata: 3");
//! let event = decoder.decode(&mut chunk).unwrap().unwrap();
//! assert_eq!((event.name.as_str(), &event.data[..]), ("", &b"1\n2"[..]));
//! assert_eq!(decoder.decode(&mut chunk).unwrap(), None);
//! let event = decoder.finish().unwrap().unwrap();
//! assert_eq!((event.name.as_str(), &event.data[..]), ("end", &b"3"[..]));
//! ```

use bytes::{Buf, Bytes};

/// The longest line, and the longest data of an event, that callers without a limit of their own allow.
pub const MAX_EVENT: usize = 16 * 1024 * 1024;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// A decoded event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The value of its last `event:` line; empty if there is none.
    pub name: String,
    /// The values of its `data:` lines, joined by LF.
    pub data: Bytes,
}

/// A line, or the data of an event, is longer than the limit. The decoder must not be used any further.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event of the stream is longer than {limit} bytes")]
pub struct TooLong {
    /// The limit.
    pub limit: usize,
}

/// Incremental decoder. Its memory is at most two times the limit: the current line, and the data of the current block.
#[derive(Debug)]
pub struct Decoder {
    limit: usize,
    /// The current line, as far as it came in earlier chunks.
    line: Vec<u8>,
    block: Block,
    /// Whether the last byte was a CR: an LF that follows belongs to the same line end, also in the next chunk.
    after_return: bool,
    /// Whether the first line has begun its way through the decoder; before it a byte order mark is removed.
    started: bool,
}

#[derive(Debug, Default)]
struct Block {
    name: String,
    data: Vec<u8>,
    has_data: bool,
}

impl Decoder {
    /// A decoder whose lines and events are at most `limit` bytes long.
    pub fn new(limit: usize) -> Decoder {
        Decoder { limit, line: Vec::new(), block: Block::default(), after_return: false, started: false }
    }

    /// Decodes until an event is complete, or until the chunk is used up: then none. What is left of the chunk stays in it.
    pub fn decode(&mut self, chunk: &mut Bytes) -> Result<Option<Event>, TooLong> {
        loop {
            if self.after_return && !chunk.is_empty() {
                self.after_return = false;
                if chunk.first() == Some(&b'\n') {
                    chunk.advance(1);
                }
            }
            let Some(end) = memchr::memchr2(b'\n', b'\r', chunk) else {
                self.check(self.line.len() + chunk.len())?;
                self.line.extend_from_slice(chunk);
                chunk.clear();
                return Ok(None);
            };
            self.after_return = chunk.get(end) == Some(&b'\r');
            let rest = chunk.split_to(end);
            chunk.advance(1);
            self.check(self.line.len() + rest.len())?;
            let event = if self.line.is_empty() {
                self.end_line(&rest)?
            } else {
                let mut line = std::mem::take(&mut self.line);
                line.extend_from_slice(&rest);
                self.end_line(&line)?
            };
            if event.is_some() {
                return Ok(event);
            }
        }
    }

    /// The last event, if the stream ended without its blank line. Only for streams that ended in good order: one that was cut off may
    /// hold half a line.
    pub fn finish(&mut self) -> Result<Option<Event>, TooLong> {
        let line = std::mem::take(&mut self.line);
        if !line.is_empty()
            && let Some(event) = self.end_line(&line)?
        {
            return Ok(Some(event));
        }
        Ok(self.block.dispatch())
    }

    fn end_line(&mut self, line: &[u8]) -> Result<Option<Event>, TooLong> {
        let line = if self.started { line } else { line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line) };
        self.started = true;
        if line.is_empty() {
            return Ok(self.block.dispatch());
        }
        let (field, value) = match memchr::memchr(b':', line) {
            Some(colon) => line.split_at(colon),
            None => (line, &[][..]),
        };
        let value = value.strip_prefix(b":").unwrap_or_default();
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => {
                let joined = self.block.data.len() + usize::from(self.block.has_data);
                self.check(joined + value.len())?;
                self.block.push(value);
            }
            b"event" => self.block.name = String::from_utf8_lossy(value).into_owned(),
            _ => {}
        }
        Ok(None)
    }

    fn check(&self, length: usize) -> Result<(), TooLong> {
        if length > self.limit { Err(TooLong { limit: self.limit }) } else { Ok(()) }
    }
}

impl Block {
    fn push(&mut self, value: &[u8]) {
        if self.has_data {
            self.data.push(b'\n');
        }
        self.has_data = true;
        self.data.extend_from_slice(value);
    }

    /// Ends the block. One without data is no event, and its name is forgotten.
    fn dispatch(&mut self) -> Option<Event> {
        let Block { name, data, has_data } = std::mem::take(self);
        has_data.then(|| Event { name, data: Bytes::from(data) })
    }
}

#[cfg(test)]
mod tests;
