use super::*;
use crate::merkle::{
    EMPTY_ROOT, Hash, HashReader, ProofError, RightEdge, consistency_proof, inclusion_proof, leaf_hash,
    root_at, verify_consistency, verify_inclusion,
};
use proptest::prelude::*;
use std::collections::BTreeMap;

fn leaf(index: u64) -> Hash {
    leaf_hash(&index.to_be_bytes())
}

fn tiles_of(size: u64) -> TileSet {
    let mut tiles = TileSet::new();
    (0..size).for_each(|index| tiles.append(leaf(index)));
    tiles
}

/// Gives every tile as this many zero bytes.
struct Short(usize);

impl TileReader for Short {
    type Error = std::convert::Infallible;

    fn tile(&self, _tile: TileId) -> Result<std::borrow::Cow<'_, [u8]>, Self::Error> {
        Ok(vec![0; self.0].into())
    }
}

#[test]
fn paths_are_spelled_as_the_layout_says() {
    assert_eq!(tile_path(0, 1_234, 256).unwrap(), "tile/0/x001/234");
    assert_eq!(tile_path(0, 1_234_067, 256).unwrap(), "tile/0/x001/x234/067");
    assert_eq!(tile_path(1, 0, 17).unwrap(), "tile/1/000.p/17");
    assert_eq!(tile_path(7, 0, 1).unwrap(), "tile/7/000.p/1");
    assert_eq!(tile_path(0, 999, 255).unwrap(), "tile/0/999.p/255");
    assert_eq!(tile_path(0, 1000, 256).unwrap(), "tile/0/x001/000");
    assert_eq!(entries_path(273, 112).unwrap(), "tile/entries/273.p/112");
    assert_eq!(entries_path(70_000, 256).unwrap(), "tile/entries/x070/000");
    assert_eq!(
        tile_path(0, 5, 0).unwrap_err().to_string(),
        "no tree has a tile at level 0, index 5 of width 0"
    );
    assert!(tile_path(0, 5, 257).is_err());
    assert!(tile_path(8, 0, 1).is_err());
    assert!(tile_path(0, u64::MAX, 1).is_err());
    assert!(tile_path(0, (1 << 54) - 1, 256).is_ok());
    assert!(tile_path(0, 1 << 54, 256).is_err());
}

#[test]
fn only_the_one_proper_spelling_of_a_path_is_read() {
    for path in ["tile/0/000", "tile/1/x001/234.p/3", "tile/entries/x001/x234/067", "tile/entries/001.p/255"]
    {
        assert_eq!(TilePath::parse(path).unwrap().to_string(), path);
    }
    for path in [
        "",
        "tile",
        "tile/",
        "tile/0",
        "tile/0/",
        "tile/00/000",
        "tile/+0/000",
        "tile/0/0",
        "tile/0/0000",
        "tile/0/x000/001",
        "tile/0/001/002",
        "tile/0/x001",
        "tile/0/000.p/256",
        "tile/0/000.p/0",
        "tile/0/000.p/07",
        "tile/0/000.p/",
        "tile/0/000.p/1.p/1",
        "tile/0/000.p/1/",
        "/tile/0/000",
        "tile/8/000",
        "tile/0/../000",
        "tile/Entries/000",
        "tile/0/٣٣٣",
    ] {
        assert!(TilePath::parse(path).is_err(), "{path}");
    }
    let long = format!("tile/0/{}", "x001/".repeat(100_000));
    assert!(TilePath::parse(&long).unwrap_err().to_string().len() < 200);
}

#[test]
fn a_tree_of_70000_has_the_tiles_the_layout_names() {
    let tiles: Vec<TileId> = new_tiles(0, 70_000).collect();
    assert_eq!(tiles.iter().filter(|tile| tile.level() == 0 && tile.is_full()).count(), 273);
    let rest: Vec<String> =
        tiles.iter().filter(|tile| tile.level() > 0 || !tile.is_full()).map(|tile| tile.path()).collect();
    assert_eq!(rest, ["tile/0/273.p/112", "tile/1/000", "tile/1/001.p/17", "tile/2/000.p/1"]);
    let at_256: Vec<String> = new_tiles(0, 256).map(TileId::path).collect();
    assert_eq!(at_256, ["tile/0/000", "tile/1/000.p/1"]);
}

#[test]
fn new_tiles_are_exactly_those_that_differ() {
    let widths = |size: u64| -> BTreeMap<(u8, u64), u16> {
        (0..TILE_LEVELS)
            .flat_map(|level| (0..4).map(move |index| (level, index)))
            .filter_map(|(level, index)| Some(((level, index), TileId::in_tree(level, index, size)?.width())))
            .collect()
    };
    let sizes = [0, 1, 2, 255, 256, 257, 300, 511, 512, 513, 700, 767, 768, 1000];
    for old in sizes {
        for new in sizes {
            let before = widths(old);
            let differing: Vec<(u8, u64, u16)> = widths(new)
                .into_iter()
                .filter(|(place, width)| old <= new && before.get(place) != Some(width))
                .map(|((level, index), width)| (level, index, width))
                .collect();
            let found: Vec<(u8, u64, u16)> =
                new_tiles(old, new).map(|tile| (tile.level(), tile.index(), tile.width())).collect();
            assert_eq!(found, differing, "{old} to {new}");
        }
    }
    let last = new_tiles(MAX_TREE_SIZE - 1, u64::MAX).collect::<Vec<_>>();
    assert_eq!(last.len(), 8);
    assert!(last.iter().all(|tile| TileId::new(tile.level(), tile.index(), tile.width()) == Some(*tile)));
    assert_eq!(new_tiles(u64::MAX, 5).count(), 0);
}

#[test]
fn nodes_are_found_where_the_layout_puts_them() {
    let place = |level, index| {
        let place = NodeLocation::of_node(level, index).unwrap();
        (place.tile_level, place.tile_index, place.offset, place.count)
    };
    assert_eq!(place(0, 0), (0, 0, 0, 1));
    assert_eq!(place(0, 257), (0, 1, 1, 1));
    assert_eq!(place(3, 33), (0, 1, 8, 8));
    assert_eq!(place(7, 1), (0, 0, 128, 128));
    assert_eq!(place(8, 1), (1, 0, 1, 1));
    assert_eq!(place(16, 256), (2, 1, 0, 1));
    assert_eq!(place(62, 0), (7, 0, 0, 64));
    assert_eq!(NodeLocation::of_node(63, 0), None);
    assert_eq!(NodeLocation::of_node(62, 1), None);
    assert_eq!(NodeLocation::of_node(u32::MAX, u64::MAX), None);
}

#[test]
fn proofs_from_tiles_verify() {
    let newest = 66_200;
    let tiles = tiles_of(newest);
    let mut edge = RightEdge::new();
    let mut roots = vec![edge.root()];
    for index in 0..newest {
        edge.append(leaf(index));
        roots.push(edge.root());
    }
    let sizes = [1, 2, 255, 256, 257, 1000, 65_535, 65_536, 65_537, newest];
    for size in sizes {
        let tree = TiledTree::new(size, &tiles);
        let root = roots[usize::try_from(size).unwrap()];
        assert_eq!(root_at(size, &tree).unwrap(), root);
        assert_eq!(RightEdge::from_reader(size, &tree).unwrap().root(), root);
        for index in [0, 1, 127, 254, 255, 256, 999, 65_535, 65_536, size - 1] {
            if index < size {
                let proof = inclusion_proof(index, size, &tree).unwrap();
                assert_eq!(verify_inclusion(&leaf(index), index, size, &proof, &root), Ok(()));
            }
        }
        for old in sizes.into_iter().filter(|old| *old <= size) {
            let proof = consistency_proof(old, size, &tree).unwrap();
            let old_root = roots[usize::try_from(old).unwrap()];
            assert_eq!(verify_consistency(old, &old_root, size, &root, &proof), Ok(()));
        }
    }
}

#[test]
fn incomplete_missing_and_damaged_tiles_are_refused() {
    let tiles = tiles_of(300);
    let tree = TiledTree::new(300, &tiles);
    assert!(tree.hash(8, 0).is_ok());
    assert!(tree.hash(8, 1).is_err(), "the second tile is not full");
    assert!(tree.hash(5, 9).is_err(), "records 288 to 319 are not all there");
    assert!(tree.hash(0, 300).is_err());
    let grown = tiles_of(600);
    let tree = TiledTree::new(300, &grown);
    let outside = tree.hash(5, 9).unwrap_err();
    assert!(matches!(outside, TileReadError::OutsideTree { .. }), "a wider tile does not widen the tree");
    let tree = TiledTree::new(301, &tiles);
    assert_eq!(
        tree.hash(0, 300).unwrap_err().to_string(),
        "tile `tile/0/001.p/45` could not be read: tile `tile/0/001.p/45` is missing"
    );
    assert!(matches!(root_at(301, &tree), Err(ProofError::Read(TileReadError::Read { .. }))));

    for length in [0, 31, 33, 44 * 32 - 1, 43 * 32, 44 * 32 + 1] {
        let tree = TiledTree::new(300, Short(length));
        assert!(matches!(tree.hash(0, 256), Err(TileReadError::Damaged { .. })), "{length}");
    }
    assert_eq!(TiledTree::new(300, Short(256 * 32)).hash(0, 256), Ok([0; 32]), "a wider tile serves as well");
}

#[test]
fn a_set_of_tiles_can_be_copied_tile_by_tile() {
    let tiles = tiles_of(70_000);
    let mut copy = TileSet::new();
    for tile in new_tiles(0, 70_000) {
        copy.insert(tile, tiles.tile(tile).unwrap().into_owned()).unwrap();
    }
    assert_eq!(
        root_at(70_000, &TiledTree::new(70_000, &copy)),
        root_at(70_000, &TiledTree::new(70_000, &tiles))
    );
    let tile = TileId::new(0, 0, 2).unwrap();
    assert!(copy.insert(tile, EMPTY_ROOT.to_vec()).is_err());
}

#[test]
fn bundles_refuse_what_they_cannot_hold() {
    let mut bundle = Vec::new();
    encode_entry(&mut bundle, &vec![7; MAX_ENTRY_BYTES]).unwrap();
    assert_eq!(
        encode_entry(&mut bundle, &vec![7; MAX_ENTRY_BYTES + 1]),
        Err(EntryBundleError::TooLarge { bytes: 65_536 })
    );
    assert_eq!(bundle.len(), MAX_ENTRY_BYTES + 2, "a refused entry leaves nothing behind");

    assert_eq!(decode_entries(&[0]).collect::<Vec<_>>(), [Err(EntryBundleError::Truncated { entry: 0 })]);
    assert_eq!(
        decode_entries(&[0, 0, 0, 2, 9]).collect::<Vec<_>>(),
        [Ok([].as_slice()), Err(EntryBundleError::Truncated { entry: 1 })]
    );
    let too_many = [0; 2 * 257];
    assert_eq!(decode_entries(&too_many).flatten().count(), 256);
    assert_eq!(decode_entries(&too_many).last(), Some(Err(EntryBundleError::TooMany)));
}

proptest! {
    #[test]
    fn entries_come_back_as_they_were(
        entries in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..=256),
    ) {
        let mut bundle = Vec::new();
        for entry in &entries {
            encode_entry(&mut bundle, entry).unwrap();
        }
        let decoded: Result<Vec<&[u8]>, _> = decode_entries(&bundle).collect();
        prop_assert_eq!(decoded.unwrap(), entries);
    }

    #[test]
    fn any_bytes_decode_without_panic_and_encode_back(bytes in prop::collection::vec(any::<u8>(), 0..2_000)) {
        let decoded: Result<Vec<&[u8]>, _> = decode_entries(&bytes).collect();
        if let Ok(entries) = decoded {
            let mut bundle = Vec::new();
            for entry in entries {
                encode_entry(&mut bundle, entry).unwrap();
            }
            prop_assert_eq!(bundle, bytes);
        }
    }

    #[test]
    fn every_tile_path_is_read_back(level in 0u8..8, index in any::<u64>(), width in 1u16..=256) {
        let index = index >> (10 + 8 * u32::from(level)).min(63);
        if let Some(tile) = TileId::new(level, index, width) {
            prop_assert_eq!(TilePath::parse(&tile.path()), Ok(TilePath::Hashes(tile)));
        }
        if let Some(tile) = TileId::new(0, index, width) {
            prop_assert_eq!(TilePath::parse(&tile.entries_path()), Ok(TilePath::Entries(tile)));
        }
    }
}
