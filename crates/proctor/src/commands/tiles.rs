//! `proctor audit export --tiles`: the ledger in the tlog-tiles layout, as files that any web server can serve and that other
//! people's tools for transparency logs read: `checkpoint`, `tile/…`, `tile/entries/…`.

use std::fs;
use std::io::Write;
use std::path::Path;

use proctor_core::json::Json;
use proctor_ledger::Reader;
use proctor_ledger::tiles::{TileId, TileReader, encode_entry, new_tiles};
use proctor_system::private;

use super::Context;
use crate::failure::{Failure, OK, Outcome};
use crate::output;

/// Bytes of a hash.
const HASH: usize = 32;

pub(super) fn run(context: &Context, reader: &Reader, folder: &Path) -> Outcome {
    let fail = |error: proctor_ledger::ReadError| Failure::from(error.to_string());
    let newest =
        reader.latest_checkpoint().map_err(fail)?.ok_or_else(|| Failure::from("the ledger is empty"))?;
    let bar = output::progress(newest.size, "writing tiles");
    let mut files = 0u64;
    for tile in new_tiles(0, newest.size) {
        write(folder, &tile.path(), &hashes(reader, tile)?)?;
        files += 1;
        if tile.level() == 0 {
            write(folder, &tile.entries_path(), &entries(reader, tile)?)?;
            files += 1;
            bar.inc(u64::from(tile.width()));
        }
    }
    // Last, so that whoever sees the checkpoint finds everything that it speaks of.
    write(folder, "checkpoint", newest.note.as_bytes())?;
    bar.finish_and_clear();
    if context.json {
        output::data(
            Json::object()
                .with("folder", folder.display().to_string())
                .with("records", newest.size)
                .with("files", files + 1),
        )?;
    } else {
        output::data(format!("{}: {} records in {} files", folder.display(), newest.size, files + 1))?;
    }
    Ok(OK)
}

fn hashes(reader: &Reader, tile: TileId) -> Result<Vec<u8>, Failure> {
    let stored = reader.tile(tile).map_err(|error| Failure::from(error.to_string()))?;
    let wanted = stored.get(..usize::from(tile.width()) * HASH);
    wanted
        .map(<[u8]>::to_vec)
        .ok_or_else(|| Failure::from(format!("tile {} is damaged: see `proctor audit fsck`", tile.path())))
}

fn entries(reader: &Reader, tile: TileId) -> Result<Vec<u8>, Failure> {
    let first = tile.index() * 256;
    let mut bundle = Vec::new();
    for sequence in first..first + u64::from(tile.width()) {
        let leaf = reader.leaf(sequence).map_err(|error| Failure::from(error.to_string()))?;
        encode_entry(&mut bundle, &leaf).map_err(|error| Failure::from(error.to_string()))?;
    }
    Ok(bundle)
}

fn write(folder: &Path, name: &str, bytes: &[u8]) -> Result<(), Failure> {
    let file = folder.join(name);
    let describe = |error: std::io::Error| Failure::io(&file, &error);
    if let Some(parent) = file.parent() {
        fs::create_dir_all(parent).map_err(describe)?;
    }
    private::create(&file).and_then(|mut file| file.write_all(bytes)).map_err(describe)
}
