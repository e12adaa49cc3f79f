//! All tiles of a tree in memory: for small ledgers, for bundles and for making tiles while appending.

use super::{HASH_BYTES, TILE_WIDTH, TileId, TileReader};
use crate::merkle::{Hash, root_of};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Tiles in memory, of a tree that grows leaf by leaf.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TileSet {
    size: u64,
    tiles: BTreeMap<(u8, u64), Vec<u8>>,
}

/// Error of reading or adding a tile of a set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TileSetError {
    /// The tile is missing, or narrower than needed.
    #[error("tile `{path}` is missing")]
    Missing {
        /// The tile's path.
        path: String,
    },
    /// The bytes are not those of a tile of this width.
    #[error("tile `{path}` should have {expected} bytes, but has {found}")]
    WrongLength {
        /// The tile's path.
        path: String,
        /// Expected length in bytes.
        expected: usize,
        /// Given length in bytes.
        found: usize,
    },
}

impl TileSet {
    /// The tiles of the tree without records.
    pub fn new() -> Self {
        Self::default()
    }

    /// Number of appended leaves.
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// Adds a leaf hash to the last tile of level 0, and the root of each tile that becomes full one level up.
    pub fn append(&mut self, leaf: Hash) {
        let mut hash = leaf;
        let mut position = self.size;
        let mut level = 0;
        loop {
            let tile = self.tiles.entry((level, position / u64::from(TILE_WIDTH))).or_default();
            tile.extend_from_slice(&hash);
            let (hashes, _) = tile.as_chunks::<HASH_BYTES>();
            if hashes.len() != usize::from(TILE_WIDTH) {
                break;
            }
            hash = root_of(hashes.iter().copied());
            position /= u64::from(TILE_WIDTH);
            level += 1;
        }
        self.size += 1;
    }

    /// Puts a stored tile into the set as it is; nothing is checked but its length.
    ///
    /// Meant for reading a published ledger: what proofs say about its root decides whether it is true.
    pub fn insert(&mut self, tile: TileId, bytes: Vec<u8>) -> Result<(), TileSetError> {
        if bytes.len() != tile.byte_length() {
            return Err(TileSetError::WrongLength {
                path: tile.path(),
                expected: tile.byte_length(),
                found: bytes.len(),
            });
        }
        self.tiles.insert((tile.level(), tile.index()), bytes);
        Ok(())
    }
}

impl TileReader for TileSet {
    type Error = TileSetError;

    fn tile(&self, tile: TileId) -> Result<Cow<'_, [u8]>, TileSetError> {
        self.tiles
            .get(&(tile.level(), tile.index()))
            .and_then(|bytes| bytes.get(..tile.byte_length()))
            .map(Cow::Borrowed)
            .ok_or_else(|| TileSetError::Missing { path: tile.path() })
    }
}
