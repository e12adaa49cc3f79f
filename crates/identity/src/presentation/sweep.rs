//! Removal of credentials that a killed process left behind.

use std::fs;
use std::path::Path;

use rustix::fs::FlockOperation;

use super::files::{DOOMED, failed, guard, lock, make_private, remove};
use super::{Cleanup, Outcome, PresentationError};

/// Folders that one sweep looks at, at most.
const MAX_FOLDERS: usize = 100_000;

/// Removes the folders of dead runs whose `cleanup` says so: a killed run counts as failed. Returns the number of removed folders.
///
/// Folders of runs that still live are recognised by their lock. To be called once at every start.
pub fn sweep(private_folder: &Path) -> Result<usize, PresentationError> {
    if !private_folder.exists() {
        return Ok(0);
    }
    make_private(private_folder)?;
    let _guard = guard(private_folder, FlockOperation::LockExclusive)?;
    let mut removed = 0;
    for entry in fs::read_dir(private_folder).map_err(failed(private_folder))?.take(MAX_FOLDERS) {
        let entry = entry.map_err(failed(private_folder))?;
        let path = entry.path();
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if !is_folder || !must_go(&entry.file_name().to_string_lossy()) {
            continue;
        }
        // The lock is held until the folder is gone.
        match lock(&path) {
            Ok(Some(_lock)) => {
                remove(&path)?;
                removed += 1;
            }
            Ok(None) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(&path)(error)),
        }
    }
    Ok(removed)
}

/// Whether the folder of a dead run goes. Names that are not ours stay.
fn must_go(name: &str) -> bool {
    name.starts_with(DOOMED)
        || Cleanup::ALL.into_iter().any(|cleanup| {
            let rest = name.strip_prefix(cleanup.word()).and_then(|rest| rest.strip_prefix('-'));
            // `on-failure` also begins with no other word, so the rest is the random part.
            rest.is_some_and(|rest| rest.len() == 32) && cleanup.applies(Outcome::Failure)
        })
}
