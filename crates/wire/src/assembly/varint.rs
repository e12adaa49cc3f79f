//! Protobuf varints: groups of seven bits, the lowest first, each byte but the last with its high bit set.

/// The most bytes of a 64-bit number.
pub(super) const MAX_BYTES: usize = 10;

/// A number of more than ten bytes, or of more than 64 bits.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct Overlong;

/// Reads a number at the start of `bytes`: the number, and how many bytes it took. `None`: more bytes are needed.
pub(super) fn read(bytes: &[u8]) -> Result<Option<(u64, usize)>, Overlong> {
    let mut value = 0_u64;
    for (at, byte) in bytes.iter().take(MAX_BYTES).enumerate() {
        // The tenth byte has room for the highest bit only.
        if at + 1 == MAX_BYTES && *byte > 1 {
            return Err(Overlong);
        }
        value |= u64::from(byte & 0x7F) << (7 * at);
        if byte & 0x80 == 0 {
            return Ok(Some((value, at + 1)));
        }
    }
    Ok(None)
}
