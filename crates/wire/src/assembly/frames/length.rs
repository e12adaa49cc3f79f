//! The varint length before a payload, with its limit.

use super::{FrameError, MAX_PAYLOAD};
use crate::assembly::varint;

/// Appends a length, unless a payload may not be that long.
pub(super) fn put(length: usize, out: &mut Vec<u8>) -> Result<(), FrameError> {
    if length > MAX_PAYLOAD {
        return Err(FrameError::TooLong(u64::try_from(length).unwrap_or(u64::MAX)));
    }
    let mut rest = length;
    while let (low, 1..) = (rest & 0x7F, rest >> 7) {
        out.push(u8::try_from(low).unwrap_or_default() | 0x80);
        rest >>= 7;
    }
    out.push(u8::try_from(rest).unwrap_or_default());
    Ok(())
}

/// Reads a length at the start of `bytes`: the length, and how many bytes it took. `None`: more bytes are needed.
///
/// A length over the limit is an error as soon as it is known, before anything is kept for it.
pub(super) fn take(bytes: &[u8]) -> Result<Option<(usize, usize)>, FrameError> {
    let Some((value, taken)) = varint::read(bytes).map_err(|varint::Overlong| FrameError::BadLength)? else {
        return Ok(None);
    };
    match usize::try_from(value) {
        Ok(length) if length <= MAX_PAYLOAD => Ok(Some((length, taken))),
        _ => Err(FrameError::TooLong(value)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lengths_are_read_up_to_64_bits_and_accepted_up_to_the_limit() {
        assert_eq!(take(&[]), Ok(None));
        assert_eq!(take(&[0]), Ok(Some((0, 1))));
        assert_eq!(take(&[0xAC, 0x02, 9]), Ok(Some((300, 2))));
        // Longer than it needs to be, and still a number.
        assert_eq!(take(&[0x80, 0x80, 0]), Ok(Some((0, 3))));
        assert_eq!(take(&[0x80, 0x80, 0x80, 0x04]), Ok(Some((MAX_PAYLOAD, 4))));
        assert_eq!(take(&[0x81, 0x80, 0x80, 0x04]), Err(FrameError::TooLong(8_388_609)));
        assert_eq!(take(&[0xFF; 9]), Ok(None));
        let mut most = [0xFF; 10];
        most[9] = 1;
        assert_eq!(take(&most), Err(FrameError::TooLong(u64::MAX)));
        most[9] = 2;
        assert_eq!(take(&most), Err(FrameError::BadLength));
        assert_eq!(take(&[0x80; 10]), Err(FrameError::BadLength));
        assert_eq!(take(&[0x80; 11]), Err(FrameError::BadLength));
    }

    #[test]
    fn a_length_over_the_limit_is_not_written() {
        let mut out = Vec::new();
        assert_eq!(put(MAX_PAYLOAD + 1, &mut out), Err(FrameError::TooLong(8_388_609)));
        assert!(out.is_empty());
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(length in 0..=MAX_PAYLOAD, after: Vec<u8>) {
            let mut out = Vec::new();
            put(length, &mut out).unwrap();
            let taken = out.len();
            out.extend(after);
            prop_assert_eq!(take(&out), Ok(Some((length, taken))));
            // The same bytes as the message library writes.
            let mut theirs = Vec::new();
            prost::encode_length_delimiter(length, &mut theirs).unwrap();
            prop_assert_eq!(&out[..taken], theirs);
        }
    }
}
