use super::*;
use ct_merkle::digest as old_digest;
use ct_merkle::mem_backed_tree::MemoryBackedTree;
use proptest::prelude::*;
use std::convert::Infallible;

/// SHA-256 behind the older hashing traits that the reference tree asks for.
#[derive(Default, Clone)]
struct ReferenceSha256(Sha256);

impl old_digest::HashMarker for ReferenceSha256 {}

impl old_digest::OutputSizeUser for ReferenceSha256 {
    type OutputSize = old_digest::consts::U32;
}

impl old_digest::Update for ReferenceSha256 {
    fn update(&mut self, data: &[u8]) {
        Digest::update(&mut self.0, data);
    }
}

impl old_digest::FixedOutput for ReferenceSha256 {
    fn finalize_into(self, out: &mut old_digest::Output<Self>) {
        out.copy_from_slice(&Digest::finalize(self.0));
    }
}

/// Every complete subtree, computed by the definition.
struct SlowTree(Vec<Vec<u8>>);

impl SlowTree {
    fn of(size: usize) -> Self {
        Self((0..size).map(|index| format!("record {index}").into_bytes()).collect())
    }

    fn leaves(&self) -> Vec<Hash> {
        self.0.iter().map(|leaf| leaf_hash(leaf)).collect()
    }

    fn all_levels(&self) -> AllLevels {
        let mut levels = vec![self.leaves()];
        while levels.last().is_some_and(|level| level.len() > 1) {
            let below = levels.last().unwrap();
            levels
                .push(below.as_chunks::<2>().0.iter().map(|[left, right]| node_hash(left, right)).collect());
        }
        AllLevels(levels)
    }
}

struct AllLevels(Vec<Vec<Hash>>);

impl HashReader for AllLevels {
    type Error = Infallible;

    fn hash(&self, level: u32, index: u64) -> Result<Hash, Infallible> {
        Ok(self.0[level as usize][usize::try_from(index).unwrap()])
    }
}

/// RFC 6962, section 2.1, word for word.
fn slow_root(leaves: &[Hash]) -> Hash {
    match leaves {
        [] => Sha256::digest([]).into(),
        [leaf] => *leaf,
        _ => {
            let split = split_point(leaves.len());
            plain_node_hash(&slow_root(&leaves[..split]), &slow_root(&leaves[split..]))
        }
    }
}

/// RFC 6962, section 2.1.1: PATH.
fn slow_inclusion(index: usize, leaves: &[Hash]) -> Vec<Hash> {
    if leaves.len() == 1 {
        return Vec::new();
    }
    let split = split_point(leaves.len());
    let (mut path, sibling) = if index < split {
        (slow_inclusion(index, &leaves[..split]), slow_root(&leaves[split..]))
    } else {
        (slow_inclusion(index - split, &leaves[split..]), slow_root(&leaves[..split]))
    };
    path.push(sibling);
    path
}

/// RFC 6962, section 2.1.2: SUBPROOF.
fn slow_consistency(old: usize, leaves: &[Hash], whole: bool) -> Vec<Hash> {
    if old == leaves.len() {
        return if whole { Vec::new() } else { vec![slow_root(leaves)] };
    }
    let split = split_point(leaves.len());
    let (mut path, sibling) = if old <= split {
        (slow_consistency(old, &leaves[..split], whole), slow_root(&leaves[split..]))
    } else {
        (slow_consistency(old - split, &leaves[split..], false), slow_root(&leaves[..split]))
    };
    path.push(sibling);
    path
}

fn split_point(width: usize) -> usize {
    let mut split = 1;
    while split * 2 < width {
        split *= 2;
    }
    split
}

fn plain_node_hash(left: &Hash, right: &Hash) -> Hash {
    Sha256::new().chain_update([1]).chain_update(left).chain_update(right).finalize().into()
}

fn flat(proof: &[Hash]) -> Vec<u8> {
    proof.concat()
}

fn reference_tree(tree: &SlowTree) -> MemoryBackedTree<ReferenceSha256, Vec<u8>> {
    let mut reference = MemoryBackedTree::new();
    tree.0.iter().for_each(|leaf| reference.push(leaf.clone()));
    reference
}

#[test]
fn the_published_test_tree_has_the_published_roots() {
    let leaves: [&[u8]; 8] = [
        &[],
        &[0x00],
        &[0x10],
        &[0x20, 0x21],
        &[0x30, 0x31],
        &[0x40, 0x41, 0x42, 0x43],
        &[0x50, 0x51, 0x52, 0x53, 0x54, 0x55, 0x56, 0x57],
        &[0x60, 0x61, 0x62, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68, 0x69, 0x6a, 0x6b, 0x6c, 0x6d, 0x6e, 0x6f],
    ];
    let roots = [
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
        "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
        "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
        "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
        "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
        "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
        "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
    ];
    let mut edge = RightEdge::new();
    assert_eq!(edge.root(), EMPTY_ROOT);
    assert_eq!(hex::encode(edge.root()), roots[0]);
    for (leaf, root) in leaves.iter().zip(&roots[1..]) {
        edge.append(leaf_hash(leaf));
        assert_eq!(hex::encode(edge.root()), *root, "{} leaves", edge.size());
    }
}

#[test]
fn the_direct_node_hash_equals_the_general_hasher() {
    let mut left = EMPTY_ROOT;
    let mut right = leaf_hash(b"x");
    for _ in 0..200 {
        let node = node_hash(&left, &right);
        assert_eq!(node, plain_node_hash(&left, &right));
        left = right;
        right = node;
    }
}

#[test]
fn every_size_up_to_300_agrees_with_the_definition_and_the_reference() {
    let whole = SlowTree::of(300);
    let leaves = whole.leaves();
    let reader = whole.all_levels();
    let mut edge = RightEdge::new();
    for size in 0..=300u64 {
        let part = &leaves[..usize::try_from(size).unwrap()];
        let root = slow_root(part);
        assert_eq!(edge.root(), root);
        assert_eq!(root_at(size, &reader).unwrap(), root);
        assert_eq!(root_of(part.iter().copied()), root);
        assert_eq!(RightEdge::from_parts(size, &edge.parts()).unwrap(), edge);
        assert_eq!(RightEdge::from_reader(size, &reader).unwrap().parts(), edge.parts());
        if let Some(leaf) = leaves.get(usize::try_from(size).unwrap()) {
            edge.append(*leaf);
        }
    }
    for size in (0..300).step_by(7) {
        let reference = reference_tree(&SlowTree::of(size));
        assert_eq!(reference.root().as_bytes().as_slice(), slow_root(&leaves[..size]));
    }
}

#[test]
fn every_inclusion_proof_up_to_130_is_the_defined_one_and_verifies_only_where_it_belongs() {
    let whole = SlowTree::of(130);
    let leaves = whole.leaves();
    let reader = whole.all_levels();
    for size in 1..=130u64 {
        let part = &leaves[..usize::try_from(size).unwrap()];
        let root = slow_root(part);
        for index in 0..size {
            let leaf = &part[usize::try_from(index).unwrap()];
            let proof = inclusion_proof(index, size, &reader).unwrap();
            assert_eq!(proof, slow_inclusion(usize::try_from(index).unwrap(), part));
            assert_eq!(verify_inclusion(leaf, index, size, &proof, &root), Ok(()));
            assert!(verify_inclusion(leaf, index + 1, size, &proof, &root).is_err());
            assert!(verify_inclusion(&EMPTY_ROOT, index, size, &proof, &root).is_err());
            let longer = [proof.clone(), vec![root]].concat();
            assert_eq!(
                verify_inclusion(leaf, index, size, &longer, &root),
                Err(ProofRefusal::WrongLength),
                "{index} of {size}"
            );
            if let Some((_, shorter)) = proof.split_last() {
                assert_eq!(
                    verify_inclusion(leaf, index, size, shorter, &root),
                    Err(ProofRefusal::WrongLength)
                );
            }
        }
    }
}

#[test]
fn every_consistency_proof_up_to_130_is_the_defined_one_and_verifies_only_its_own_trees() {
    let whole = SlowTree::of(130);
    let leaves = whole.leaves();
    let reader = whole.all_levels();
    let root = |size: u64| slow_root(&leaves[..usize::try_from(size).unwrap()]);
    for new in 0..=130u64 {
        let new_root = root(new);
        for old in 0..=new {
            let old_root = root(old);
            let proof = consistency_proof(old, new, &reader).unwrap();
            if old > 0 {
                let part = &leaves[..usize::try_from(new).unwrap()];
                assert_eq!(proof, slow_consistency(usize::try_from(old).unwrap(), part, true));
            }
            assert_eq!(verify_consistency(old, &old_root, new, &new_root, &proof), Ok(()), "{old} to {new}");
            let other = leaf_hash(b"other");
            assert!(verify_consistency(old, &other, new, &new_root, &proof).is_err());
            if old > 0 {
                assert!(verify_consistency(old, &old_root, new, &other, &proof).is_err());
            }
            let longer = [proof.clone(), vec![other]].concat();
            assert_eq!(
                verify_consistency(old, &old_root, new, &new_root, &longer),
                Err(ProofRefusal::WrongLength)
            );
            if let Some((_, shorter)) = proof.split_last() {
                assert_eq!(
                    verify_consistency(old, &old_root, new, &new_root, shorter),
                    Err(ProofRefusal::WrongLength)
                );
            }
            for changed in 0..proof.len() {
                let mut proof = proof.clone();
                proof[changed][31] ^= 1;
                assert!(verify_consistency(old, &old_root, new, &new_root, &proof).is_err());
            }
        }
    }
}

#[test]
fn impossible_questions_are_refused() {
    let reader = SlowTree::of(3).all_levels();
    assert_eq!(inclusion_proof(3, 3, &reader), Err(ProofError::IndexOutside { index: 3, size: 3 }));
    assert_eq!(inclusion_proof(0, 0, &reader), Err(ProofError::IndexOutside { index: 0, size: 0 }));
    assert_eq!(consistency_proof(3, 2, &reader), Err(ProofError::SizesReversed { old: 3, new: 2 }));
    assert_eq!(root_at(u64::MAX, &reader), Err(ProofError::TooLarge { size: u64::MAX }));
    assert_eq!(
        verify_consistency(3, &EMPTY_ROOT, 2, &EMPTY_ROOT, &[]),
        Err(ProofRefusal::Shrunk { old: 3, new: 2 })
    );
    assert_eq!(
        verify_inclusion(&EMPTY_ROOT, 5, 5, &[], &EMPTY_ROOT),
        Err(ProofRefusal::IndexOutside { index: 5, size: 5 })
    );
    assert_eq!(
        RightEdge::from_parts(3, &[EMPTY_ROOT]).unwrap_err().to_string(),
        "a tree of 3 records has 2 complete subtrees at its right edge, but 1 were given"
    );
    assert!(RightEdge::from_parts(u64::MAX, &[EMPTY_ROOT; 64]).is_err());
}

#[test]
fn the_largest_sizes_and_longest_proofs_do_not_overflow() {
    let sizes = [1, 2, (1 << 62) - 1, 1 << 62, (1 << 63) - 1, 1 << 63, (1 << 63) + 1, u64::MAX - 1, u64::MAX];
    for old in sizes {
        for new in sizes {
            for length in [0, 1, 2, 61, 62, 63, 64, 65, 200] {
                let proof = vec![EMPTY_ROOT; length];
                let leaf = leaf_hash(b"");
                if old != new || length != 0 {
                    assert!(verify_consistency(old, &leaf, new, &EMPTY_ROOT, &proof).is_err());
                }
                assert!(verify_inclusion(&leaf, old, new, &proof, &EMPTY_ROOT).is_err());
                assert!(verify_inclusion(&leaf, old - 1, new, &proof, &EMPTY_ROOT).is_err());
            }
        }
    }
    let mut edge = RightEdge::from_parts(MAX_TREE_SIZE, &[EMPTY_ROOT]).unwrap();
    edge.append(leaf_hash(b"one more"));
    assert_eq!(edge.root(), node_hash(&EMPTY_ROOT, &leaf_hash(b"one more")));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn random_larger_trees_agree_with_the_reference(size in 2usize..5_000, at in any::<prop::sample::Index>()) {
        let tree = SlowTree::of(size);
        let leaves = tree.leaves();
        let reader = tree.all_levels();
        let reference = reference_tree(&tree);
        let root = root_of(leaves.iter().copied());
        let reference_root = reference.root();
        prop_assert_eq!(reference_root.as_bytes().as_slice(), root);

        let index = at.index(size);
        let proof = inclusion_proof(index as u64, size as u64, &reader).unwrap();
        let expected = reference.prove_inclusion(index);
        prop_assert_eq!(flat(&proof), expected.as_bytes());
        prop_assert_eq!(verify_inclusion(&leaves[index], index as u64, size as u64, &proof, &root), Ok(()));

        let old = 1 + at.index(size - 1);
        let proof = consistency_proof(old as u64, size as u64, &reader).unwrap();
        let expected = reference.prove_consistency(size - old);
        prop_assert_eq!(flat(&proof), expected.as_bytes());
        let old_root = root_of(leaves[..old].iter().copied());
        prop_assert_eq!(verify_consistency(old as u64, &old_root, size as u64, &root, &proof), Ok(()));
    }

    #[test]
    fn a_random_proof_is_never_accepted(
        old in 1u64..1_000, grown in 1u64..1_000, proof in prop::collection::vec(any::<Hash>(), 0..14)
    ) {
        let new = old + grown;
        prop_assert!(verify_consistency(old, &EMPTY_ROOT, new, &EMPTY_ROOT, &proof).is_err());
        prop_assert!(verify_inclusion(&leaf_hash(b"leaf"), old, new, &proof, &EMPTY_ROOT).is_err());
    }
}
