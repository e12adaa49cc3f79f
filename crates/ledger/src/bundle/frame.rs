//! The frame codec of bundles: a bounded reader over a sliding window, and a writer.

use std::io::{self, Read, Write};

use proctor_core::record::MAX_LEAF;

use super::HEADER;
use super::error::{BundleError, BundlePosition, Problem};
use crate::note::MAX_NOTE_BYTES;

/// The most bytes of a body in a bundle, its salt not counted.
pub const MAX_BODY_BYTES: usize = 16 << 20;

/// The most hashes of an inclusion proof.
pub const MAX_PROOF_HASHES: usize = 64;

/// Bytes of a salt.
pub(super) const SALT_BYTES: usize = 32;

/// The bytes of a sequence or a count in a payload.
pub const NUMBER_BYTES: usize = 8;

/// The bytes of a frame before its payload: type and length.
pub const FRAME_HEADER_BYTES: usize = 5;

/// Bytes of one read, and the buffer's size as long as no body is larger.
const BUFFER_BYTES: usize = 256 << 10;

/// The kinds of frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FrameKind {
    /// The checkpoint of a bundle that holds all its records.
    WholeCheckpoint,
    /// The checkpoint of a bundle that holds some of its records.
    PartCheckpoint,
    /// A record's sequence and leaf.
    Leaf,
    /// A record's salt and body.
    Body,
    /// The proof that a record is in the ledger.
    Proof,
    /// The counts, and the end.
    End,
}

impl FrameKind {
    /// All kinds.
    pub const ALL: [FrameKind; 6] = [
        FrameKind::WholeCheckpoint,
        FrameKind::PartCheckpoint,
        FrameKind::Leaf,
        FrameKind::Body,
        FrameKind::Proof,
        FrameKind::End,
    ];

    /// The type byte.
    pub const fn byte(self) -> u8 {
        match self {
            FrameKind::WholeCheckpoint => b'W',
            FrameKind::PartCheckpoint => b'P',
            FrameKind::Leaf => b'L',
            FrameKind::Body => b'B',
            FrameKind::Proof => b'I',
            FrameKind::End => b'E',
        }
    }

    /// The kind with this type byte.
    pub fn from_byte(byte: u8) -> Option<FrameKind> {
        FrameKind::ALL.into_iter().find(|kind| kind.byte() == byte)
    }

    /// The word for messages.
    pub const fn word(self) -> &'static str {
        match self {
            FrameKind::WholeCheckpoint | FrameKind::PartCheckpoint => "checkpoint",
            FrameKind::Leaf => "leaf",
            FrameKind::Body => "body",
            FrameKind::Proof => "inclusion proof",
            FrameKind::End => "end",
        }
    }

    /// The least and the most bytes of its payload.
    pub const fn bounds(self) -> (usize, usize) {
        match self {
            FrameKind::WholeCheckpoint | FrameKind::PartCheckpoint => (1, MAX_NOTE_BYTES),
            FrameKind::Leaf => (NUMBER_BYTES + 1, NUMBER_BYTES + MAX_LEAF),
            FrameKind::Body => (SALT_BYTES, SALT_BYTES + MAX_BODY_BYTES),
            FrameKind::Proof => (0, MAX_PROOF_HASHES * 32),
            FrameKind::End => (2 * NUMBER_BYTES, 2 * NUMBER_BYTES),
        }
    }
}

/// A frame within the reader's window.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame {
    pub(super) kind: FrameKind,
    /// Offset of its header from the window's start.
    pub(super) at: usize,
    /// Length of its payload.
    pub(super) length: usize,
}

impl Frame {
    /// Offset of the next frame.
    pub(super) const fn end(self) -> usize {
        self.at + FRAME_HEADER_BYTES + self.length
    }
}

/// Reads frames into a window that holds one record at a time.
pub(super) struct FrameReader<'a> {
    input: &'a mut dyn Read,
    buffer: Vec<u8>,
    /// The window: what was read and is still needed.
    start: usize,
    end: usize,
    /// Offset of the window in the bundle.
    offset: u64,
    /// Number of frames before the window.
    frames: u64,
}

impl<'a> FrameReader<'a> {
    pub(super) fn new(input: &'a mut dyn Read) -> FrameReader<'a> {
        FrameReader { input, buffer: vec![0; BUFFER_BYTES], start: 0, end: 0, offset: 0, frames: 0 }
    }

    /// Reads the first line.
    pub(super) fn header(&mut self) -> Result<(), BundleError> {
        let position = BundlePosition { offset: 0, frame: 0, kind: None, seq: None };
        self.ensure(HEADER.len()).map_err(|error| BundleError::new(position, Problem::Read(error)))?;
        if self.bytes(0, HEADER.len()) != Some(HEADER.as_bytes()) {
            return Err(BundleError::new(position, Problem::NotABundle));
        }
        self.consume(HEADER.len(), 0);
        Ok(())
    }

    /// The frame whose header is at `at` of the window, its payload read. `nth` is its number within the window.
    pub(super) fn frame(&mut self, at: usize, nth: u64) -> Result<Frame, BundleError> {
        let mut position = self.position(at, nth);
        let header = match self.ensure(at + FRAME_HEADER_BYTES) {
            Ok(true) => self.bytes(at, FRAME_HEADER_BYTES).and_then(|bytes| bytes.split_first_chunk::<1>()),
            Ok(false) => None,
            Err(error) => return Err(BundleError::new(position, Problem::Read(error))),
        };
        let Some(([byte], length)) = header else {
            return Err(BundleError::new(position, Problem::Truncated));
        };
        let Some(kind) = FrameKind::from_byte(*byte) else {
            return Err(BundleError::new(position, Problem::UnknownFrame { byte: *byte }));
        };
        position.kind = Some(kind);
        let length = length.try_into().map_or(u32::MAX, u32::from_be_bytes);
        let (least, most) = kind.bounds();
        let length = match usize::try_from(length) {
            Ok(length) if (least..=most).contains(&length) => length,
            _ => return Err(BundleError::new(position, Problem::FrameLength { length, least, most })),
        };
        match self.ensure(at + FRAME_HEADER_BYTES + length) {
            Ok(true) => Ok(Frame { kind, at, length }),
            Ok(false) => Err(BundleError::new(position, Problem::Truncated)),
            Err(error) => Err(BundleError::new(position, Problem::Read(error))),
        }
    }

    /// The payload of a frame of the window.
    pub(super) fn payload(&self, frame: Frame) -> &[u8] {
        // INVARIANT: `frame` ensured these bytes; nothing was forgotten since.
        self.bytes(frame.at + FRAME_HEADER_BYTES, frame.length).unwrap_or_default()
    }

    /// Drops the first bytes and frames of the window.
    pub(super) fn consume(&mut self, bytes: usize, frames: u64) {
        self.start = self.start.saturating_add(bytes).min(self.end);
        self.offset += bytes as u64;
        self.frames += frames;
    }

    /// Whether the input has ended too.
    pub(super) fn is_at_end(&mut self) -> io::Result<bool> {
        Ok(!self.ensure(1)?)
    }

    /// The position of a frame of the window.
    pub(super) fn position(&self, at: usize, nth: u64) -> BundlePosition {
        BundlePosition { offset: self.offset + at as u64, frame: self.frames + nth, kind: None, seq: None }
    }

    fn bytes(&self, at: usize, length: usize) -> Option<&[u8]> {
        let from = self.start.checked_add(at)?;
        self.buffer.get(..self.end)?.get(from..from.checked_add(length)?)
    }

    /// Reads until the window has so many bytes; false if the input ends before.
    fn ensure(&mut self, length: usize) -> io::Result<bool> {
        while self.end - self.start < length {
            if self.end == self.buffer.len() {
                if self.start > 0 {
                    self.buffer.copy_within(self.start..self.end, 0);
                    self.end -= self.start;
                    self.start = 0;
                } else {
                    // It grows with what has come in, not with what a length promises.
                    let larger = (self.buffer.len() * 2).min(length.max(self.buffer.len() + 1));
                    self.buffer.resize(larger, 0);
                }
            }
            let room = self.buffer.get_mut(self.end..).unwrap_or_default();
            match self.input.read(room) {
                Ok(0) => return Ok(false),
                // A reader that claims more than its buffer holds is not believed.
                Ok(read) => self.end += read.min(room.len()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }
}

/// Writes one frame, its payload given in pieces. The caller has checked the length.
pub(super) fn write_frame(out: &mut dyn Write, kind: FrameKind, pieces: &[&[u8]]) -> io::Result<u64> {
    let length: usize = pieces.iter().map(|piece| piece.len()).sum();
    let stated = u32::try_from(length)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "a frame's payload is over 4 GiB"))?;
    out.write_all(&[kind.byte()])?;
    out.write_all(&stated.to_be_bytes())?;
    for piece in pieces {
        out.write_all(piece)?;
    }
    Ok((FRAME_HEADER_BYTES + length) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_grows_with_what_comes_in_and_not_with_what_is_promised() {
        let length = u32::try_from(SALT_BYTES + MAX_BODY_BYTES).unwrap();
        let promised = [b"B", length.to_be_bytes().as_slice(), &[1; 100]].concat();
        let mut input = promised.as_slice();
        let mut frames = FrameReader::new(&mut input);
        let error = frames.frame(0, 0).unwrap_err();
        assert!(matches!(*error.problem, Problem::Truncated));
        assert_eq!(frames.buffer.len(), BUFFER_BYTES);
    }

    #[test]
    fn the_window_moves_over_frames_of_any_length() {
        let lengths = [40, BUFFER_BYTES, 33, BUFFER_BYTES * 3 + 7, 32, 90_000, 90_000, 90_000, 90_000];
        let mut bytes = Vec::new();
        for (number, length) in (0u8..).zip(lengths) {
            write_frame(&mut bytes, FrameKind::Body, &[&vec![number; length]]).unwrap();
        }
        let mut input = bytes.as_slice();
        let mut frames = FrameReader::new(&mut input);
        for (number, length) in (0u8..).zip(lengths) {
            let frame = frames.frame(0, 0).unwrap();
            assert_eq!(frames.payload(frame), vec![number; length]);
            frames.consume(frame.end(), 1);
        }
        assert!(frames.is_at_end().unwrap());
        assert!(frames.buffer.len() <= SALT_BYTES + MAX_BODY_BYTES + FRAME_HEADER_BYTES);
        let position = frames.position(0, 0);
        assert_eq!((position.offset, position.frame), (bytes.len() as u64, lengths.len() as u64));
    }
}
