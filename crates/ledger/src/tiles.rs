//! The tree as files: tiles of 256 hashes and bundles of 256 entries, laid out as C2SP tlog-tiles says.
//!
//! A tile at level 0 holds leaf hashes; each hash of a tile at level L is the root of a full tile of level L - 1.
//! Full tiles never change, so any file server or copy command can publish a ledger.

mod entries;
mod path;
mod reader;
mod set;
#[cfg(test)]
mod tests;

use crate::merkle::MAX_TREE_SIZE;

pub use entries::{EntryBundle, EntryBundleError, MAX_ENTRY_BYTES, decode_entries, encode_entry};
pub use path::{TilePath, TilePathError, entries_path, tile_path};
pub use reader::{TileReadError, TileReader, TiledTree};
pub use set::{TileSet, TileSetError};

/// Levels of the tree within one tile.
pub const TILE_HEIGHT: u32 = 8;

/// Hashes of a full tile, and entries of a full bundle.
pub const TILE_WIDTH: u16 = 256;

/// Bytes of one hash in a tile.
pub const HASH_BYTES: usize = 32;

/// Tile levels that a tree of the largest size has.
pub const TILE_LEVELS: u8 = 8;

/// A tile: its position, and its number of hashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TileId {
    level: u8,
    index: u64,
    width: u16,
}

impl TileId {
    /// The tile at this level and index with `width` hashes; none when no tree has such a tile.
    pub const fn new(level: u8, index: u64, width: u16) -> Option<Self> {
        if level >= TILE_LEVELS || width == 0 || width > TILE_WIDTH || index > max_index(level) {
            return None;
        }
        Some(Self { level, index, width })
    }

    /// The tile at this level and index as a tree of `size` records has it; none when it has no hashes yet.
    pub const fn in_tree(level: u8, index: u64, size: u64) -> Option<Self> {
        if level >= TILE_LEVELS || index > max_index(level) || size > MAX_TREE_SIZE {
            return None;
        }
        let hashes = hashes_at(level, size);
        let before = index * TILE_WIDTH as u64;
        if hashes <= before {
            return None;
        }
        let remaining = hashes - before;
        #[expect(clippy::cast_possible_truncation, reason = "below the tile width, which is a u16")]
        let width = if remaining < TILE_WIDTH as u64 { remaining as u16 } else { TILE_WIDTH };
        Some(Self { level, index, width })
    }

    /// The tile level, 0 for leaf hashes.
    pub const fn level(self) -> u8 {
        self.level
    }

    /// The position among the tiles of its level.
    pub const fn index(self) -> u64 {
        self.index
    }

    /// Number of hashes, 1 to 256.
    pub const fn width(self) -> u16 {
        self.width
    }

    /// Whether it has all 256 hashes and will never change again.
    pub const fn is_full(self) -> bool {
        self.width == TILE_WIDTH
    }

    /// Length in bytes.
    pub const fn byte_length(self) -> usize {
        self.width as usize * HASH_BYTES
    }

    /// The path below the ledger's address.
    pub fn path(self) -> String {
        path::hashes_path(self)
    }

    /// The path of the entry bundle at the same position; meant for tiles of level 0.
    pub fn entries_path(self) -> String {
        path::bundle_path(self)
    }
}

/// Position of a tree node within the tiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeLocation {
    /// The level of the tile.
    pub tile_level: u8,
    /// The index of the tile within its level.
    pub tile_index: u64,
    /// The first hash of the tile below the node.
    pub offset: u16,
    /// Number of hashes of the tile below the node; 1 when the tile holds the node's own hash.
    pub count: u16,
}

impl NodeLocation {
    /// The location of the complete subtree of 2^`level` leaves with this index; none beyond the largest tree.
    pub const fn of_node(level: u32, index: u64) -> Option<Self> {
        if level > MAX_TREE_SIZE.ilog2() || index >= MAX_TREE_SIZE >> level {
            return None;
        }
        let inner_level = level % TILE_HEIGHT;
        // Cannot overflow: the index has at most 62 - level digits and inner_level is at most level.
        let first_hash = index << inner_level;
        #[expect(clippy::cast_possible_truncation, reason = "level is at most 62; the mask leaves 8 digits")]
        Some(Self {
            tile_level: (level / TILE_HEIGHT) as u8,
            tile_index: first_hash >> TILE_HEIGHT,
            offset: (first_hash & (TILE_WIDTH as u64 - 1)) as u16,
            count: 1 << inner_level,
        })
    }
}

/// The tiles that are new or wider in the tree of `new_size` than in that of `old_size`, lowest level first.
///
/// Those of level 0 name the entry bundles that change as well. There are none when the tree did not grow.
pub fn new_tiles(old_size: u64, new_size: u64) -> NewTiles {
    let within = new_size <= MAX_TREE_SIZE;
    NewTiles {
        old_size,
        new_size: if within { new_size } else { MAX_TREE_SIZE },
        level: 0,
        index: old_size >> TILE_HEIGHT,
    }
}

/// Iterator over the tiles that a growing tree adds or widens: see [`new_tiles`].
#[derive(Debug, Clone)]
pub struct NewTiles {
    old_size: u64,
    new_size: u64,
    level: u8,
    index: u64,
}

impl Iterator for NewTiles {
    type Item = TileId;

    fn next(&mut self) -> Option<TileId> {
        while self.level < TILE_LEVELS {
            if hashes_at(self.level, self.new_size) > hashes_at(self.level, self.old_size)
                && let Some(tile) = TileId::in_tree(self.level, self.index, self.new_size)
            {
                self.index += 1;
                return Some(tile);
            }
            self.level += 1;
            self.index = hashes_at(self.level, self.old_size) >> TILE_HEIGHT;
        }
        None
    }
}

/// Number of hashes at a tile level of a tree of `size` records.
const fn hashes_at(level: u8, size: u64) -> u64 {
    match size.checked_shr(level as u32 * TILE_HEIGHT) {
        Some(hashes) => hashes,
        None => 0,
    }
}

/// The index of the last tile at a level of the largest tree.
const fn max_index(level: u8) -> u64 {
    let hashes = hashes_at(level, MAX_TREE_SIZE);
    if hashes == 0 { 0 } else { (hashes - 1) >> TILE_HEIGHT }
}
