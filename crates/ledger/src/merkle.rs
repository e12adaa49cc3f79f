//! The Merkle tree of RFC 6962 over the ledger's records: hashing, the growing right edge, proofs.
//!
//! The tree is never held as a whole. Appending needs only the [`RightEdge`]; proofs are made from stored
//! hashes of complete subtrees, reached through [`HashReader`]; checking a proof needs nothing but the proof.

mod proof;
#[cfg(test)]
mod tests;
mod verify;

use sha2::{Digest, Sha256};

pub use proof::{HashReader, ProofError, consistency_proof, inclusion_proof, root_at};
pub use verify::{ProofRefusal, verify_consistency, verify_inclusion};

/// A SHA-256 hash: of a record, of an inner node, or of a whole tree.
pub type Hash = [u8; 32];

/// The most records a tree may hold: far beyond reach, and low enough that no sum of positions overflows.
pub const MAX_TREE_SIZE: u64 = 1 << 62;

/// The root of the tree without records: SHA-256 of nothing.
pub const EMPTY_ROOT: Hash = [
    0xe3, 0xb0, 0xc4, 0x42, 0x98, 0xfc, 0x1c, 0x14, 0x9a, 0xfb, 0xf4, 0xc8, 0x99, 0x6f, 0xb9, 0x24, 0x27,
    0xae, 0x41, 0xe4, 0x64, 0x9b, 0x93, 0x4c, 0xa4, 0x95, 0x99, 0x1b, 0x78, 0x52, 0xb8, 0x55,
];

/// Levels of a tree of at most [`MAX_TREE_SIZE`] records: sizes up to 2^62 have 63 binary digits.
const LEVELS: usize = 63;

/// The hash of a leaf: SHA-256 of a zero byte and the leaf.
pub fn leaf_hash(leaf: &[u8]) -> Hash {
    let mut hasher = Sha256::new();
    hasher.update([0x00]);
    hasher.update(leaf);
    hasher.finalize().into()
}

/// The hash of an inner node: SHA-256 of a one byte, the left child and the right child.
pub fn node_hash(left: &Hash, right: &Hash) -> Hash {
    // Two blocks are compressed directly: the general hasher's buffering costs as much as the hashing itself.
    let [right_head @ .., right_last] = right;
    let mut first = [0; 64];
    let [tag, children @ ..] = &mut first;
    let (left_slot, right_slot) = children.split_at_mut(left.len());
    *tag = 0x01;
    left_slot.copy_from_slice(left);
    right_slot.copy_from_slice(right_head);
    let mut second = NODE_PADDING;
    let [slot, ..] = &mut second;
    *slot = *right_last;

    let mut state = INITIAL_STATE;
    sha2::block_api::compress256(&mut state, &[first, second]);
    let mut hash = [0; 32];
    for (bytes, word) in hash.chunks_exact_mut(4).zip(state) {
        bytes.copy_from_slice(&word.to_be_bytes());
    }
    hash
}

/// The right edge of a growing tree: the roots of its complete subtrees, largest to the left.
///
/// The edge suffices to append a record and to compute the root, and never allocates.
#[derive(Clone)]
pub struct RightEdge {
    size: u64,
    /// The complete subtree of 2^level records, in use exactly when that binary digit of `size` is one.
    by_level: [Hash; LEVELS],
}

/// Error of loading a stored right edge.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RightEdgeError {
    /// The size is beyond what any tree may have.
    #[error("a tree of `{size}` records is larger than any ledger may be (2^62)")]
    TooLarge {
        /// The size given.
        size: u64,
    },
    /// The number of subtree hashes does not fit the size.
    #[error(
        "a tree of {size} records has {expected} complete subtrees at its right edge, but {given} were given"
    )]
    WrongCount {
        /// The size given.
        size: u64,
        /// Number of hashes that this size needs.
        expected: u32,
        /// Number of hashes that were given.
        given: usize,
    },
}

impl RightEdge {
    /// The edge of the tree without records.
    pub const fn new() -> Self {
        Self { size: 0, by_level: [[0; 32]; LEVELS] }
    }

    /// Restores an edge from its size and the hashes that [`RightEdge::parts`] gave, largest subtree first.
    pub fn from_parts(size: u64, hashes: &[Hash]) -> Result<Self, RightEdgeError> {
        if size > MAX_TREE_SIZE {
            return Err(RightEdgeError::TooLarge { size });
        }
        let expected = size.count_ones();
        if u32::try_from(hashes.len()) != Ok(expected) {
            return Err(RightEdgeError::WrongCount { size, expected, given: hashes.len() });
        }
        let mut edge = Self { size, ..Self::new() };
        let mut remaining = hashes.iter().rev();
        for slot in
            edge.by_level.iter_mut().enumerate().filter_map(|(level, slot)| has(size, level).then_some(slot))
        {
            if let Some(hash) = remaining.next() {
                *slot = *hash;
            }
        }
        Ok(edge)
    }

    /// Computes the edge of a tree of `size` records from stored hashes.
    pub fn from_reader<R: HashReader>(size: u64, reader: &R) -> Result<Self, ProofError<R::Error>> {
        if size > MAX_TREE_SIZE {
            return Err(ProofError::TooLarge { size });
        }
        let mut edge = Self { size, ..Self::new() };
        let mut end = size;
        for (level, slot) in (0u32..).zip(edge.by_level.iter_mut()) {
            if size >> level & 1 == 1 {
                end -= 1 << level;
                *slot = reader.hash(level, end >> level).map_err(ProofError::Read)?;
            }
        }
        Ok(edge)
    }

    /// Adds one leaf hash at the right end; one node hash per leaf on average.
    pub fn append(&mut self, leaf: Hash) {
        let mut carry = leaf;
        for (level, slot) in self.by_level.iter_mut().enumerate() {
            if !has(self.size, level) {
                *slot = carry;
                break;
            }
            carry = node_hash(slot, &carry);
        }
        // Cannot wrap: `from_parts` bounds the start and 2^62 appends do not happen.
        self.size = self.size.wrapping_add(1);
    }

    /// The root of the tree so far.
    pub fn root(&self) -> Hash {
        let mut subtrees = self.ascending();
        let Some(smallest) = subtrees.next() else { return EMPTY_ROOT };
        subtrees.fold(*smallest, |right, left| node_hash(left, &right))
    }

    /// Number of records in the tree.
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// The hashes of the complete subtrees, largest first: what [`RightEdge::from_parts`] takes.
    pub fn parts(&self) -> Vec<Hash> {
        let mut parts: Vec<Hash> = self.ascending().copied().collect();
        parts.reverse();
        parts
    }

    fn ascending(&self) -> impl Iterator<Item = &Hash> {
        self.by_level.iter().enumerate().filter_map(|(level, hash)| has(self.size, level).then_some(hash))
    }
}

impl PartialEq for RightEdge {
    fn eq(&self, other: &Self) -> bool {
        // Slots not in use keep old hashes, which say nothing about the tree.
        self.size == other.size && self.ascending().eq(other.ascending())
    }
}

impl Eq for RightEdge {}

impl Default for RightEdge {
    fn default() -> Self {
        Self::new()
    }
}

impl Extend<Hash> for RightEdge {
    fn extend<I: IntoIterator<Item = Hash>>(&mut self, leaves: I) {
        leaves.into_iter().for_each(|leaf| self.append(leaf));
    }
}

impl std::fmt::Debug for RightEdge {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("RightEdge")
            .field("size", &self.size)
            .field("root", &hex::encode(self.root()))
            .finish_non_exhaustive()
    }
}

/// The root of the tree of these leaf hashes, in one pass without allocation.
pub fn root_of(leaves: impl IntoIterator<Item = Hash>) -> Hash {
    let mut edge = RightEdge::new();
    edge.extend(leaves);
    edge.root()
}

/// Whether the binary digit `level` of `size` is one.
const fn has(size: u64, level: usize) -> bool {
    size >> level & 1 == 1
}

/// SHA-256's initial state (FIPS 180-4, 5.3.3).
const INITIAL_STATE: [u32; 8] =
    [0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19];

/// The second block of every node: the last byte goes first; then a one bit, zeros, and the length of 520 bits.
const NODE_PADDING: [u8; 64] = {
    let mut block = [0; 64];
    block[1] = 0x80;
    block[62] = 0x02;
    block[63] = 0x08;
    block
};
