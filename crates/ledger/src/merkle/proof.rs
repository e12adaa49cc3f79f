//! Roots, inclusion proofs and consistency proofs from the stored hashes of complete subtrees.

use super::{EMPTY_ROOT, Hash, MAX_TREE_SIZE, node_hash};

/// Access to the stored hash of a complete subtree.
pub trait HashReader {
    /// The error of reading a hash.
    type Error: std::error::Error + 'static;

    /// The hash of the complete subtree of 2^`level` leaves that starts at leaf `index` · 2^`level`.
    fn hash(&self, level: u32, index: u64) -> Result<Hash, Self::Error>;
}

impl<R: HashReader + ?Sized> HashReader for &R {
    type Error = R::Error;

    fn hash(&self, level: u32, index: u64) -> Result<Hash, Self::Error> {
        (**self).hash(level, index)
    }
}

/// Error of making a root or a proof.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProofError<E: std::error::Error + 'static> {
    /// The record is not in the tree.
    #[error("record `{index}` is not in a ledger of {size} records; ask for an index below the size")]
    IndexOutside {
        /// The index asked for.
        index: u64,
        /// The size of the tree.
        size: u64,
    },
    /// The older tree is larger than the newer one.
    #[error("no proof leads from {old} records back to {new}; the old size must not be above the new size")]
    SizesReversed {
        /// The size given as old.
        old: u64,
        /// The size given as new.
        new: u64,
    },
    /// The size is beyond what any tree may have.
    #[error("a tree of `{size}` records is larger than any ledger may be (2^62)")]
    TooLarge {
        /// The size given.
        size: u64,
    },
    /// A stored hash could not be read.
    #[error("a stored tree hash could not be read: {0}")]
    Read(#[source] E),
}

/// The root of the tree of the first `size` records.
pub fn root_at<R: HashReader>(size: u64, reader: &R) -> Result<Hash, ProofError<R::Error>> {
    check_size(size)?;
    range_hash(0, size, reader)
}

/// The proof that the record at `index` is in the tree of the first `size` records: sibling hashes, leaf first.
pub fn inclusion_proof<R: HashReader>(
    index: u64,
    size: u64,
    reader: &R,
) -> Result<Vec<Hash>, ProofError<R::Error>> {
    check_size(size)?;
    if index >= size {
        return Err(ProofError::IndexOutside { index, size });
    }
    let mut proof = Vec::new();
    let (mut start, mut end) = (0, size);
    while end - start > 1 {
        let middle = start + left_width(end - start);
        if index < middle {
            proof.push(range_hash(middle, end, reader)?);
            end = middle;
        } else {
            proof.push(range_hash(start, middle, reader)?);
            start = middle;
        }
    }
    proof.reverse();
    Ok(proof)
}

/// The proof that the tree of the first `new` records begins with the tree of the first `old` records.
///
/// The proof is empty when the sizes are equal or `old` is zero.
pub fn consistency_proof<R: HashReader>(
    old: u64,
    new: u64,
    reader: &R,
) -> Result<Vec<Hash>, ProofError<R::Error>> {
    check_size(new)?;
    if old > new {
        return Err(ProofError::SizesReversed { old, new });
    }
    let mut proof = Vec::new();
    if old == 0 {
        return Ok(proof);
    }
    let (mut start, mut end) = (0, new);
    // Walk to the node where the old tree ends; what stands beside the path is the proof.
    while old != end {
        let middle = start + left_width(end - start);
        if old <= middle {
            proof.push(range_hash(middle, end, reader)?);
            end = middle;
        } else {
            proof.push(range_hash(start, middle, reader)?);
            start = middle;
        }
    }
    // When the old tree is itself that node, whoever checks the proof has its hash already.
    if start != 0 {
        proof.push(range_hash(start, end, reader)?);
    }
    proof.reverse();
    Ok(proof)
}

/// The hash of the subtree over the leaves `start..end`.
///
/// Every caller splits as RFC 6962 does, so `start` is a multiple of every complete subtree's width within.
fn range_hash<R: HashReader>(start: u64, end: u64, reader: &R) -> Result<Hash, ProofError<R::Error>> {
    let mut right: Option<Hash> = None;
    let mut remaining = end - start;
    let mut position = end;
    while remaining != 0 {
        let level = remaining.trailing_zeros();
        remaining &= remaining - 1;
        position -= 1 << level;
        let left = reader.hash(level, position >> level).map_err(ProofError::Read)?;
        right = Some(right.map_or(left, |right| node_hash(&left, &right)));
    }
    Ok(right.unwrap_or(EMPTY_ROOT))
}

/// The largest power of two below `width`, which is at least two.
const fn left_width(width: u64) -> u64 {
    1 << (width - 1).ilog2()
}

fn check_size<E: std::error::Error + 'static>(size: u64) -> Result<(), ProofError<E>> {
    if size > MAX_TREE_SIZE { Err(ProofError::TooLarge { size }) } else { Ok(()) }
}
