//! Entry bundles: up to 256 entries, each behind its length as a big-endian u16.

use super::TILE_WIDTH;

/// The largest entry: its length is a u16.
pub const MAX_ENTRY_BYTES: usize = u16::MAX as usize;

/// Error of encoding or decoding an entry bundle.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EntryBundleError {
    /// The entry does not fit its length prefix.
    #[error("an entry of {bytes} bytes is too large for an entry bundle, which takes at most 65535")]
    TooLarge {
        /// The entry's length.
        bytes: usize,
    },
    /// The bundle ends inside an entry or its length.
    #[error("the entry bundle ends inside entry {entry}")]
    Truncated {
        /// The entry's position in the bundle.
        entry: usize,
    },
    /// The bundle has more entries than a tile has hashes.
    #[error("the entry bundle has more than 256 entries")]
    TooMany,
}

/// Appends one entry, behind its length, to a bundle.
pub fn encode_entry(bundle: &mut Vec<u8>, entry: &[u8]) -> Result<(), EntryBundleError> {
    let length = u16::try_from(entry.len()).map_err(|_| EntryBundleError::TooLarge { bytes: entry.len() })?;
    bundle.extend_from_slice(&length.to_be_bytes());
    bundle.extend_from_slice(entry);
    Ok(())
}

/// The entries of a bundle, in order; after an error there are no more.
pub fn decode_entries(bundle: &[u8]) -> EntryBundle<'_> {
    EntryBundle { rest: bundle, taken: 0 }
}

/// Iterator over the entries of a bundle: see [`decode_entries`].
#[derive(Debug, Clone)]
pub struct EntryBundle<'a> {
    rest: &'a [u8],
    taken: usize,
}

impl<'a> Iterator for EntryBundle<'a> {
    type Item = Result<&'a [u8], EntryBundleError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let bytes = std::mem::take(&mut self.rest);
        if self.taken == usize::from(TILE_WIDTH) {
            return Some(Err(EntryBundleError::TooMany));
        }
        let split = bytes
            .split_first_chunk::<2>()
            .and_then(|(length, rest)| rest.split_at_checked(usize::from(u16::from_be_bytes(*length))));
        let Some((entry, rest)) = split else {
            return Some(Err(EntryBundleError::Truncated { entry: self.taken }));
        };
        self.rest = rest;
        self.taken += 1;
        Some(Ok(entry))
    }
}
