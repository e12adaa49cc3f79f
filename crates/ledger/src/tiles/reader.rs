//! Tree hashes read from stored tiles.

use super::{HASH_BYTES, NodeLocation, TileId};
use crate::merkle::{Hash, HashReader, RightEdge};
use std::borrow::Cow;

/// Access to stored tiles.
pub trait TileReader {
    /// The error of reading a tile.
    type Error: std::error::Error + 'static;

    /// The hashes of the tile, one after the other; more than its width when a wider one is stored.
    fn tile(&self, tile: TileId) -> Result<Cow<'_, [u8]>, Self::Error>;
}

impl<R: TileReader + ?Sized> TileReader for &R {
    type Error = R::Error;

    fn tile(&self, tile: TileId) -> Result<Cow<'_, [u8]>, Self::Error> {
        (**self).tile(tile)
    }
}

/// The tree of a given size as its tiles hold it: a [`HashReader`], from which proofs are made.
#[derive(Debug, Clone)]
pub struct TiledTree<R> {
    size: u64,
    tiles: R,
}

/// Error of reading a tree hash from the tiles.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TileReadError<E: std::error::Error + 'static> {
    /// The node is not complete in a tree of this size.
    #[error("a tree of {size} records has no complete node at level {level}, index {index}")]
    OutsideTree {
        /// The node's level in the tree.
        level: u32,
        /// The node's index in its level.
        index: u64,
        /// The size of the tree.
        size: u64,
    },
    /// The stored tile has too few bytes or ends inside a hash.
    #[error(
        "tile `{path}` is damaged: it should have {expected} bytes or whole hashes more, but has {found}"
    )]
    Damaged {
        /// The tile's path.
        path: String,
        /// Expected length in bytes.
        expected: usize,
        /// Actual length in bytes.
        found: usize,
    },
    /// The tile could not be read.
    #[error("tile `{path}` could not be read: {source}")]
    Read {
        /// The tile's path.
        path: String,
        /// Cause.
        source: E,
    },
}

impl<R: TileReader> TiledTree<R> {
    /// The tree of the first `size` records within these tiles.
    pub const fn new(size: u64, tiles: R) -> Self {
        Self { size, tiles }
    }

    /// Number of records in the tree.
    pub const fn size(&self) -> u64 {
        self.size
    }
}

impl<R: TileReader> HashReader for TiledTree<R> {
    type Error = TileReadError<R::Error>;

    fn hash(&self, level: u32, index: u64) -> Result<Hash, Self::Error> {
        let outside = || TileReadError::OutsideTree { level, index, size: self.size };
        let node = NodeLocation::of_node(level, index).ok_or_else(outside)?;
        let tile = TileId::in_tree(node.tile_level, node.tile_index, self.size).ok_or_else(outside)?;
        let (start, count) = (usize::from(node.offset), usize::from(node.count));
        if start + count > usize::from(tile.width()) {
            return Err(outside());
        }
        let bytes =
            self.tiles.tile(tile).map_err(|source| TileReadError::Read { path: tile.path(), source })?;
        let damaged =
            || TileReadError::Damaged { path: tile.path(), expected: tile.byte_length(), found: bytes.len() };
        let (hashes, []) = bytes.as_chunks::<HASH_BYTES>() else { return Err(damaged()) };
        if hashes.len() < usize::from(tile.width()) {
            return Err(damaged());
        }
        match hashes.get(start..start + count) {
            Some([hash]) => Ok(*hash),
            Some(hashes) => {
                let mut edge = RightEdge::new();
                edge.extend(hashes.iter().copied());
                Ok(edge.root())
            }
            None => Err(damaged()),
        }
    }
}
