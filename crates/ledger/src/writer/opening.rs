//! Opening a ledger: creates the database, or checks the one that exists before anything is written to it.

use std::fs::{DirBuilder, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use proctor_core::record::LeafView;

use super::{Options, Tree};
use crate::checkpoint::{Checkpoint, CheckpointError};
use crate::error::{OpenError, StoreError};
use crate::fsck::{Damage, DamageKind, check_file};
use crate::keys::{Algorithm, VerifierKey};
use crate::lock::OwnerLock;
use crate::merkle::{Hash, RightEdge, leaf_hash};
use crate::note::{Note, NoteError};
use crate::store::{
    Access, CheckpointRow, DATABASE_FILE, Durability, FORMAT, Order, StoreReader, open_connection, schema,
};

/// Leaves that are read at once.
const STEP: u64 = 256;

/// The writer's initial state.
pub(super) struct Start {
    pub(super) tree: Tree,
    pub(super) checkpoint: Option<CheckpointRow>,
}

/// Creates the directory and the database if they are missing, acquires the ownership, and checks the file.
pub(super) fn prepare(dir: &Path, options: &Options) -> Result<OwnerLock, OpenError> {
    let key = options.key.verifier_key();
    if key.algorithm() != Algorithm::Ed25519 {
        return Err(OpenError::UnusableKey {
            name: key.name().to_owned(),
            reason: format!(
                "it is of algorithm `{}`, but `{}` is needed",
                key.algorithm(),
                Algorithm::Ed25519
            ),
        });
    }
    let failed = |source| OpenError::Io { path: dir.to_owned(), source };
    match DirBuilder::new().mode(0o700).recursive(true).create(dir) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(failed(error)),
        _ => {}
    }
    let lock = OwnerLock::take(dir)?;
    let path = dir.join(DATABASE_FILE);
    match std::fs::metadata(&path) {
        Ok(_) => damaged(check_file(&path, options.durability))?,
        Err(error) if error.kind() == ErrorKind::NotFound => create(dir, key)?,
        Err(source) => return Err(OpenError::Io { path, source }),
    }
    Ok(lock)
}

/// Creates the database under another name first: a file with the right name is complete or damaged, never partial.
fn create(dir: &Path, key: &VerifierKey) -> Result<(), OpenError> {
    let path = dir.join(DATABASE_FILE);
    let wal = dir.join(format!("{DATABASE_FILE}-wal"));
    if std::fs::metadata(&wal).is_ok_and(|metadata| metadata.len() > 0) {
        let what = format!("its write-ahead log is there, but `{DATABASE_FILE}` itself is not");
        return damaged(vec![Damage::new(DamageKind::Unreadable, DATABASE_FILE, what)]);
    }
    let new = dir.join(format!("{DATABASE_FILE}.new"));
    for suffix in ["", "-wal", "-shm"] {
        let left_over = dir.join(format!("{DATABASE_FILE}.new{suffix}"));
        match std::fs::remove_file(&left_over) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(OpenError::Io { path: left_over, source: error });
            }
            _ => {}
        }
    }
    let failed = |source| OpenError::Io { path: new.clone(), source };
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new).map_err(failed)?;
    let mut connection = open_connection(&new, Access::Write(Durability::Power))?;
    schema::create(&mut connection, key.name(), &key.to_string())?;
    connection.close().map_err(|(_, error)| StoreError::from(error))?;
    std::fs::rename(&new, &path).map_err(failed)?;
    std::fs::File::open(dir).and_then(|dir| dir.sync_all()).map_err(failed)
}

/// Checks what the writer will build on: format, key, last checkpoint, and everything after it.
pub(super) fn check(reader: &dyn StoreReader, key: &VerifierKey) -> Result<Start, OpenError> {
    let found = reader.meta("format").map_err(unreadable)?.unwrap_or_default();
    if found != FORMAT {
        return Err(OpenError::Format { found, expected: FORMAT.to_owned() });
    }
    let ledger = reader.meta("key").map_err(unreadable)?.unwrap_or_default();
    if ledger != key.to_string() {
        return Err(OpenError::WrongKey { ledger, given: key.to_string() });
    }
    let size = reader.size().map_err(unreadable)?;
    let checkpoint =
        reader.checkpoints(0..u64::MAX, Order::Descending, 1).map_err(unreadable)?.into_iter().next();
    let tree = check_tail(reader, key, size, checkpoint.as_ref())?;
    Ok(Start { tree, checkpoint })
}

fn check_tail(
    reader: &dyn StoreReader,
    key: &VerifierKey,
    size: u64,
    checkpoint: Option<&CheckpointRow>,
) -> Result<Tree, OpenError> {
    let Some(row) = checkpoint else {
        if size == 0 {
            return Ok(Tree::default());
        }
        let what = format!("there are {size} records, but no checkpoint");
        return one(DamageKind::Checkpoint, "checkpoints", what);
    };
    let where_ = format!("checkpoint of {} records", row.size);
    let signed = match read_checkpoint(row, key) {
        Ok(signed) => signed,
        Err(error) => return one(DamageKind::Checkpoint, &where_, error.to_string()),
    };
    if row.size > size {
        let what = format!("only {size} records are there");
        return one(DamageKind::Checkpoint, &where_, what);
    }
    let mut edge = Tree::load(reader, row.size).map_err(unreadable)?.edge().clone();
    if edge.root() != signed {
        return one(DamageKind::Checkpoint, &where_, "the stored tree has another root".to_owned());
    }
    append_tail(reader, &mut edge, size)?;
    let tree = Tree::load(reader, size).map_err(unreadable)?;
    if *tree.edge() != edge {
        let what = "the stored tree hashes do not fit the last records".to_owned();
        return one(DamageKind::Tile, "tiles", what);
    }
    Ok(tree)
}

/// Error in a stored checkpoint.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StoredCheckpointError {
    #[error(transparent)]
    Note(#[from] NoteError),
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    #[error("it is kept as one of {row} records, but says {signed}")]
    Size { row: u64, signed: u64 },
}

/// The root of a stored checkpoint, whose signature by the key is checked.
pub(crate) fn read_checkpoint(row: &CheckpointRow, key: &VerifierKey) -> Result<Hash, StoredCheckpointError> {
    let note = Note::parse(row.note.as_bytes())?;
    let checkpoint = Checkpoint::verify(&note, key)?;
    if checkpoint.size != row.size {
        return Err(StoredCheckpointError::Size { row: row.size, signed: checkpoint.size });
    }
    Ok(checkpoint.root)
}

fn append_tail(reader: &dyn StoreReader, edge: &mut RightEdge, size: u64) -> Result<(), OpenError> {
    while edge.size() < size {
        let first = edge.size();
        let leaves = reader.leaves(first..size.min(first + STEP)).map_err(unreadable)?;
        if leaves.is_empty() {
            return one(DamageKind::Sequence, &format!("record {first}"), "it is missing".to_owned());
        }
        for (seq, leaf) in (first..).zip(leaves) {
            if let Err(error) = LeafView::parse(&leaf) {
                return one(DamageKind::Leaf, &format!("record {seq}"), error.to_string());
            }
            edge.append(leaf_hash(&leaf));
        }
    }
    Ok(())
}

fn one<T>(kind: DamageKind, where_: &str, what: String) -> Result<T, OpenError> {
    Err(OpenError::Damaged { damage: vec![Damage::new(kind, where_, what)] })
}

fn damaged(damage: Vec<Damage>) -> Result<(), OpenError> {
    if damage.is_empty() { Ok(()) } else { Err(OpenError::Damaged { damage }) }
}

/// Converts read errors of a damaged file to [`OpenError::Damaged`]; other errors stay the store's.
fn unreadable(error: StoreError) -> OpenError {
    match error {
        StoreError::Damaged(what) => {
            OpenError::Damaged { damage: vec![Damage::new(DamageKind::Database, DATABASE_FILE, what)] }
        }
        other => OpenError::Store(other),
    }
}
