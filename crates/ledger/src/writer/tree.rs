//! The writer's Merkle tree: its right edge, and the tiles that are not full yet.

use crate::merkle::{Hash, RightEdge, leaf_hash, root_of};
use crate::store::{StoreReader, TileRow};
use crate::tiles::{HASH_BYTES, TILE_HEIGHT, TILE_WIDTH, TileId};

use crate::error::StoreError;

/// The right edge of the tree, and for each tile level the hashes of the tile that is still growing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Tree {
    edge: RightEdge,
    growing: Vec<GrowingTile>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct GrowingTile {
    hashes: Vec<u8>,
    changed: bool,
}

impl Tree {
    /// The tree of `size` records as its tiles and last leaves are stored.
    pub(crate) fn load(reader: &dyn StoreReader, size: u64) -> Result<Tree, StoreError> {
        let mut growing = Vec::new();
        let mut edge_parts: Vec<Vec<Hash>> = Vec::new();
        let mut level = 0;
        while let Some(hashes) = size.checked_shr(u32::from(level) * TILE_HEIGHT).filter(|hashes| *hashes > 0)
        {
            let index = hashes / u64::from(TILE_WIDTH);
            let bytes = match TileId::in_tree(level, index, size) {
                Some(tile) => tile_bytes(reader, tile)?,
                None => Vec::new(),
            };
            edge_parts.push(subtrees(&bytes));
            growing.push(GrowingTile { hashes: bytes, changed: false });
            level += 1;
        }
        // The largest subtrees are in the highest tiles.
        let parts: Vec<Hash> = edge_parts.into_iter().rev().flatten().collect();
        let edge = RightEdge::from_parts(size, &parts)
            .map_err(|error| StoreError::Damaged(format!("the stored tree hashes do not fit: {error}")))?;
        Ok(Tree { edge, growing })
    }

    /// Number of records in the tree.
    pub(crate) fn size(&self) -> u64 {
        self.edge.size()
    }

    /// The root.
    pub(crate) fn root(&self) -> Hash {
        self.edge.root()
    }

    /// The right edge.
    pub(crate) fn edge(&self) -> &RightEdge {
        &self.edge
    }

    /// Adds a leaf hash; tiles that become full go to `tiles`.
    pub(crate) fn append(&mut self, leaf: Hash, tiles: &mut Vec<TileRow>) {
        let mut position = self.edge.size();
        self.edge.append(leaf);
        let mut hash = leaf;
        for level in 0.. {
            let index = usize::from(level);
            if self.growing.len() <= index {
                self.growing.resize_with(index + 1, GrowingTile::default);
            }
            let Some(tile) = self.growing.get_mut(index) else { return };
            tile.hashes.extend_from_slice(&hash);
            tile.changed = true;
            if tile.hashes.len() < usize::from(TILE_WIDTH) * HASH_BYTES {
                return;
            }
            let full = std::mem::take(tile).hashes;
            let (hashes, _) = full.as_chunks::<HASH_BYTES>();
            hash = root_of(hashes.iter().copied());
            position /= u64::from(TILE_WIDTH);
            tiles.push(TileRow { level, index: position, hashes: full });
        }
    }

    /// Adds the partial tiles above level 0 that changed since the last call: few, as they grow by one hash for every 256
    /// records. Level 0 has none: its last hashes are computed from the leaves.
    pub(crate) fn take_partial_tiles(&mut self, tiles: &mut Vec<TileRow>) {
        let size = self.size();
        for (level, tile) in (0u8..).zip(&mut self.growing).skip(1) {
            if std::mem::take(&mut tile.changed) && !tile.hashes.is_empty() {
                let index = size.checked_shr((u32::from(level) + 1) * TILE_HEIGHT).unwrap_or(0);
                tiles.push(TileRow { level, index, hashes: tile.hashes.clone() });
            }
        }
    }
}

/// The hashes of a tile that a tree has: stored, or for the last one of level 0 made from the last leaves.
pub(crate) fn tile_bytes(reader: &dyn StoreReader, tile: TileId) -> Result<Vec<u8>, StoreError> {
    let missing = || StoreError::Damaged(format!("tile `{}` is missing or too short", tile.path()));
    if tile.level() == 0 && !tile.is_full() {
        let first = tile.index() * u64::from(TILE_WIDTH);
        let leaves = reader.leaves(first..first + u64::from(tile.width()))?;
        if leaves.len() != usize::from(tile.width()) {
            return Err(missing());
        }
        return Ok(leaves.iter().flat_map(|leaf| leaf_hash(leaf)).collect());
    }
    let mut bytes = reader.tile(tile.level(), tile.index())?.ok_or_else(missing)?;
    if bytes.len() < tile.byte_length() {
        return Err(missing());
    }
    bytes.truncate(tile.byte_length());
    Ok(bytes)
}

/// The complete subtrees that a row of hashes has, the largest first.
fn subtrees(bytes: &[u8]) -> Vec<Hash> {
    let (mut hashes, _) = bytes.as_chunks::<HASH_BYTES>();
    let mut parts = Vec::new();
    while !hashes.is_empty() {
        let width = 1 << hashes.len().ilog2();
        let (complete, rest) = hashes.split_at_checked(width).unwrap_or((hashes, &[]));
        parts.push(root_of(complete.iter().copied()));
        hashes = rest;
    }
    parts
}
