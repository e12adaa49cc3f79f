//! The bounded buffer of received bytes that do not make a frame yet.

use super::{FrameError, MAX_PAYLOAD, length};
use crate::assembly::varint;

/// A read that is always taken whole, if all frames were taken before it.
pub const READ_CHUNK: usize = 64 * 1024;

/// A tag, a length, the longest payload, and one read more.
const LIMIT: usize = 1 + varint::MAX_BYTES + MAX_PAYLOAD + READ_CHUNK;

/// Bytes in the order they came. Memory follows the bytes that came, never a length that was announced.
#[derive(Debug, Default)]
pub(super) struct Buffer {
    bytes: Vec<u8>,
    /// Number of bytes that were taken already.
    taken: usize,
    /// Set by the first error: nothing after it can be told apart.
    failed: Option<FrameError>,
}

impl Buffer {
    /// Keeps what fits and returns the rest.
    pub(super) fn feed<'bytes>(&mut self, bytes: &'bytes [u8]) -> &'bytes [u8] {
        if self.failed.is_some() {
            return &[];
        }
        self.compact();
        let room = LIMIT.saturating_sub(self.bytes.len());
        let (kept, rest) = bytes.split_at_checked(room).unwrap_or((bytes, &[]));
        self.bytes.extend_from_slice(kept);
        rest
    }

    /// Takes one frame: `read` is shown all bytes and returns the frame with its length.
    pub(super) fn take<T>(
        &mut self,
        read: impl FnOnce(&[u8]) -> Result<Option<(T, usize)>, FrameError>,
    ) -> Result<Option<T>, FrameError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        match read(self.bytes.get(self.taken..).unwrap_or_default()) {
            Ok(None) => Ok(None),
            Ok(Some((found, length))) => {
                self.taken = self.taken.saturating_add(length);
                Ok(Some(found))
            }
            Err(error) => {
                self.failed = Some(error.clone());
                self.bytes = Vec::new();
                self.taken = 0;
                Err(error)
            }
        }
    }

    /// Number of bytes that were fed and not taken.
    pub(super) fn pending(&self) -> usize {
        self.bytes.len().saturating_sub(self.taken)
    }

    /// Drops the taken bytes, and frees the memory of a large frame.
    fn compact(&mut self) {
        if self.taken == 0 {
            return;
        }
        self.bytes.drain(..self.taken.min(self.bytes.len()));
        self.taken = 0;
        if self.bytes.len() <= READ_CHUNK && self.bytes.capacity() > 4 * READ_CHUNK {
            self.bytes.shrink_to(READ_CHUNK);
        }
    }
}

/// A length and that many bytes at the start of `bytes`, and how many bytes both took.
pub(super) fn delimited(bytes: &[u8]) -> Result<Option<(&[u8], usize)>, FrameError> {
    let Some((length, header)) = length::take(bytes)? else { return Ok(None) };
    let end = header.saturating_add(length);
    Ok(bytes.get(header..end).map(|payload| (payload, end)))
}
