//! Length-delimited frames, as protobuf libraries write them: a varint length, then that many bytes.

use super::FrameError;
use super::buffer::{Buffer, delimited};
use super::length;

/// Appends a payload and its length before it.
pub fn encode(payload: &[u8], out: &mut Vec<u8>) -> Result<(), FrameError> {
    length::put(payload.len(), out)?;
    out.extend_from_slice(payload);
    Ok(())
}

/// Reads payloads.
#[derive(Debug, Default)]
pub struct BareDecoder {
    buffer: Buffer,
}

impl BareDecoder {
    /// A decoder that was fed nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Keeps what was read, and returns what did not fit: feed that once the frames were taken.
    #[must_use = "what did not fit must be fed again"]
    pub fn feed<'bytes>(&mut self, bytes: &'bytes [u8]) -> &'bytes [u8] {
        self.buffer.feed(bytes)
    }

    /// The next payload, or `None` until more is fed. An error stays.
    pub fn next_frame(&mut self) -> Result<Option<Vec<u8>>, FrameError> {
        self.buffer.take(|bytes| Ok(delimited(bytes)?.map(|(payload, length)| (payload.to_vec(), length))))
    }

    /// Number of bytes that were fed and belong to no frame yet: at the end of a stream, not 0 means that it was cut.
    pub fn pending(&self) -> usize {
        self.buffer.pending()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{MAX_PAYLOAD, READ_CHUNK};
    use super::*;

    #[test]
    fn the_longest_payload_passes_and_one_byte_more_does_not() {
        let payload = vec![7; MAX_PAYLOAD];
        let mut bytes = Vec::new();
        encode(&payload, &mut bytes).unwrap();
        let mut decoder = BareDecoder::new();
        for chunk in bytes.chunks(READ_CHUNK) {
            assert_eq!(decoder.next_frame(), Ok(None));
            assert!(decoder.feed(chunk).is_empty());
        }
        assert_eq!(decoder.next_frame(), Ok(Some(payload)));
        assert_eq!(decoder.pending(), 0);

        let mut out = Vec::new();
        assert_eq!(encode(&vec![7; MAX_PAYLOAD + 1], &mut out), Err(FrameError::TooLong(8_388_609)));
        assert!(out.is_empty());
        assert!(decoder.feed(&[0x81, 0x80, 0x80, 0x04]).is_empty());
        assert_eq!(decoder.next_frame(), Err(FrameError::TooLong(8_388_609)));
        // Nothing after it is read.
        assert!(decoder.feed(&[0; 100]).is_empty());
        assert_eq!(decoder.next_frame(), Err(FrameError::TooLong(8_388_609)));
        assert_eq!(decoder.pending(), 0);
    }

    #[test]
    fn what_does_not_fit_comes_back_and_nothing_is_lost() {
        let mut bytes = Vec::new();
        for _ in 0..3 {
            encode(&vec![1; MAX_PAYLOAD / 2], &mut bytes).unwrap();
        }
        let mut decoder = BareDecoder::new();
        let mut rest = decoder.feed(&bytes);
        assert!(!rest.is_empty());
        assert!(decoder.pending() <= MAX_PAYLOAD + READ_CHUNK + 11);
        let mut frames = 0;
        while let Some(frame) = decoder.next_frame().unwrap() {
            assert_eq!(frame.len(), MAX_PAYLOAD / 2);
            frames += 1;
            rest = decoder.feed(rest);
        }
        assert_eq!((frames, rest.len(), decoder.pending()), (3, 0, 0));
    }
}
