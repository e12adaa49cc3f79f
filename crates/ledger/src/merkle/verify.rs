//! Verification of inclusion and consistency proofs. It needs only the proof, the sizes and the roots.

use super::{EMPTY_ROOT, Hash, node_hash};

/// Error of verifying a proof.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ProofRefusal {
    /// The record would not be in the tree.
    #[error("record {index} cannot be in a ledger of {size} records")]
    IndexOutside {
        /// The index claimed.
        index: u64,
        /// The size claimed.
        size: u64,
    },
    /// The older tree is larger than the newer one: records were removed.
    #[error("the ledger shrank from {old} to {new} records")]
    Shrunk {
        /// The older size.
        old: u64,
        /// The newer size.
        new: u64,
    },
    /// The proof has too few or too many hashes for these sizes.
    #[error("the proof has the wrong number of hashes for these sizes")]
    WrongLength,
    /// The proof does not lead to the root of the (newer) tree.
    #[error("the proof does not lead to the root; the record or the root was changed")]
    RootMismatch,
    /// The proof does not lead to the root of the older tree.
    #[error("the proof does not lead to the older root; the ledger's past was changed")]
    OldRootMismatch,
}

/// Checks that `leaf` is the record at `index` of the tree with `size` records and this root.
pub fn verify_inclusion(
    leaf: &Hash,
    index: u64,
    size: u64,
    proof: &[Hash],
    root: &Hash,
) -> Result<(), ProofRefusal> {
    if index >= size {
        return Err(ProofRefusal::IndexOutside { index, size });
    }
    // The path from the leaf up, and the right edge beside it (RFC 9162, 2.1.3.2).
    let mut path = Path { node: index, last: size - 1 };
    let mut hash = *leaf;
    for sibling in proof {
        if path.last == 0 {
            return Err(ProofRefusal::WrongLength);
        }
        if path.has_left_sibling() {
            hash = node_hash(sibling, &hash);
        } else {
            hash = node_hash(&hash, sibling);
        }
        path.climb();
    }
    if path.last != 0 {
        return Err(ProofRefusal::WrongLength);
    }
    if hash == *root { Ok(()) } else { Err(ProofRefusal::RootMismatch) }
}

/// Checks that the tree of `new_size` records with `new_root` begins with that of `old_size` and `old_root`.
pub fn verify_consistency(
    old_size: u64,
    old_root: &Hash,
    new_size: u64,
    new_root: &Hash,
    proof: &[Hash],
) -> Result<(), ProofRefusal> {
    if old_size > new_size {
        return Err(ProofRefusal::Shrunk { old: old_size, new: new_size });
    }
    if old_size == 0 && *old_root != EMPTY_ROOT {
        return Err(ProofRefusal::OldRootMismatch);
    }
    if old_size == 0 || old_size == new_size {
        if !proof.is_empty() {
            return Err(ProofRefusal::WrongLength);
        }
        let same = old_size != new_size || old_root == new_root;
        return if same { Ok(()) } else { Err(ProofRefusal::RootMismatch) };
    }

    // A complete old tree is its own starting node; otherwise the proof brings that node (RFC 9162, 2.1.4.2).
    let (start, rest) = if old_size.is_power_of_two() {
        (old_root, proof)
    } else {
        proof.split_first().ok_or(ProofRefusal::WrongLength)?
    };
    let mut path = Path { node: old_size - 1, last: new_size - 1 };
    path.skip(path.node.trailing_ones());
    let (mut old_hash, mut new_hash) = (*start, *start);
    for sibling in rest {
        if path.last == 0 {
            return Err(ProofRefusal::WrongLength);
        }
        if path.has_left_sibling() {
            old_hash = node_hash(sibling, &old_hash);
            new_hash = node_hash(sibling, &new_hash);
        } else {
            new_hash = node_hash(&new_hash, sibling);
        }
        path.climb();
    }
    if path.last != 0 {
        return Err(ProofRefusal::WrongLength);
    }
    if old_hash != *old_root {
        return Err(ProofRefusal::OldRootMismatch);
    }
    if new_hash == *new_root { Ok(()) } else { Err(ProofRefusal::RootMismatch) }
}

/// A position on the way up: the node's index in its level and the index of the last node of that level.
struct Path {
    node: u64,
    last: u64,
}

impl Path {
    /// Whether the next hash of the proof stands to the left of the node.
    ///
    /// The last node of a level either is a right child or is lifted until it is one.
    const fn has_left_sibling(&self) -> bool {
        self.node & 1 == 1 || self.node == self.last
    }

    /// Climbs one level, and past the levels where the last node has no sibling.
    const fn climb(&mut self) {
        if self.has_left_sibling() && self.node & 1 == 0 {
            let lone = self.node.trailing_zeros();
            self.skip(if lone < u64::BITS { lone } else { 0 });
        }
        self.skip(1);
    }

    const fn skip(&mut self, levels: u32) {
        // A shift by all 64 digits leaves nothing; plain `>>` would refuse it.
        self.node = match self.node.checked_shr(levels) {
            Some(node) => node,
            None => 0,
        };
        self.last = match self.last.checked_shr(levels) {
            Some(last) => last,
            None => 0,
        };
    }
}
