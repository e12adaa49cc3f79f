//! SHA-256 digests.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest as _, Sha256};

/// A SHA-256 digest, printed as 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of these bytes.
    pub fn of(bytes: &[u8]) -> Digest {
        Digest(Sha256::digest(bytes).into())
    }

    /// The digest of the parts, one after the other. The caller sees to it that the parts cannot be cut elsewhere.
    pub fn of_parts(parts: &[&[u8]]) -> Digest {
        let mut hasher = Sha256::new();
        for part in parts {
            hasher.update(part);
        }
        Digest(hasher.finalize().into())
    }

    /// The size and the digest of everything that a reader gives, without holding it. `read` fills a buffer and says how much of it; zero
    /// at the end.
    pub fn of_reads<E>(mut read: impl FnMut(&mut [u8]) -> Result<usize, E>) -> Result<(u64, Digest), E> {
        let mut hasher = Sha256::new();
        let mut buffer = vec![0u8; 64 * 1024];
        let mut size = 0u64;
        loop {
            let count = read(&mut buffer)?;
            if count == 0 {
                return Ok((size, Digest(hasher.finalize().into())));
            }
            hasher.update(buffer.get(..count).unwrap_or_default());
            size += count as u64;
        }
    }

    /// Restores a digest from its raw bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> Digest {
        Digest(bytes)
    }

    /// The 32 bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = [0u8; 64];
        // INVARIANT: 64 bytes hold 32 encoded ones, so this cannot fail.
        let _ = hex::encode_to_slice(self.0, &mut text);
        out.write_str(std::str::from_utf8(&text).unwrap_or_default())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Digest({self})")
    }
}

/// A text that is not a digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected 64 lower-case hexadecimal digits")]
pub struct InvalidDigest;

impl FromStr for Digest {
    type Err = InvalidDigest;

    fn from_str(text: &str) -> Result<Digest, InvalidDigest> {
        let mut bytes = [0u8; 32];
        if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return Err(InvalidDigest);
        }
        hex::decode_to_slice(text, &mut bytes).map_err(|_| InvalidDigest)?;
        Ok(Digest(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_digest_round_trips() {
        let empty = Digest::of(b"");
        assert_eq!(empty.to_string(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        assert_eq!(empty.to_string().parse(), Ok(empty));
        assert_eq!(Digest::of_parts(&[b"a", b"b"]), Digest::of(b"ab"));
        let long = vec![7u8; 200_000];
        let mut rest = &long[..];
        let read = |buffer: &mut [u8]| {
            let (now, later) = rest.split_at(rest.len().min(buffer.len()).min(1000));
            buffer[..now.len()].copy_from_slice(now);
            rest = later;
            Ok::<usize, ()>(now.len())
        };
        assert_eq!(Digest::of_reads(read), Ok((200_000, Digest::of(&long))));
        assert!(empty.to_string().to_uppercase().parse::<Digest>().is_err());
    }
}
