//! The ledger as files in the tlog-tiles layout.

use crate::support::Folder;

#[test]
fn the_ledger_can_be_written_as_tiles_that_prove_what_it_holds() {
    use proctor_ledger::merkle::{RightEdge, leaf_hash};
    use proctor_ledger::tiles::{TileId, decode_entries};
    let folder = Folder::with_policy("version: \"1\"\ndefault: allow\n");
    let lines: String =
        (0..600).map(|index| format!("{{\"tool\":\"x\",\"args\":{{\"n\":{index}}}}}\n")).collect();
    assert!(folder.run_with(&["gate"], &lines).status.success());
    let written = folder.json(&["audit", "export", "--tiles", "tiles", "--json"]);
    let size = written[0].get("records").unwrap().as_u64().unwrap();
    assert!(size > 600);
    let read = |path: &str| {
        std::fs::read(folder.path("tiles").join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    };
    let mut edge = RightEdge::new();
    for index in 0..size.div_ceil(256) {
        let width = (size - index * 256).min(256);
        let tile = TileId::new(0, index, u16::try_from(width).unwrap()).unwrap();
        let (hashes, bundle) = (read(&tile.path()), read(&tile.entries_path()));
        let entries: Vec<Vec<u8>> = decode_entries(&bundle).map(|entry| entry.unwrap().to_vec()).collect();
        assert_eq!((entries.len() as u64, hashes.len() as u64), (width, width * 32));
        for (entry, hash) in entries.iter().zip(hashes.chunks(32)) {
            assert_eq!(leaf_hash(entry), hash);
            edge.append(leaf_hash(entry));
        }
    }
    // The checkpoint's own root, as it is signed.
    let checkpoint = String::from_utf8(read("checkpoint")).unwrap();
    let note = proctor_ledger::note::Note::parse(checkpoint.as_bytes()).unwrap();
    let signed: proctor_ledger::checkpoint::Checkpoint = note.text().parse().unwrap();
    assert_eq!((signed.size, signed.root), (size, edge.root()));
    // The one tile above holds the roots of the full tiles below it.
    let above = TileId::new(1, 0, u16::try_from(size / 256).unwrap()).unwrap();
    assert_eq!(read(&above.path()).len() as u64, size / 256 * 32);
}
