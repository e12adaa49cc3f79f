//! Lock files, by which folders of crashed processes are found.

use super::{WorkspaceError, failed, remove_tree};
use crate::sys::files;
use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Ending of lock files.
const ENDING: &str = "lock";
/// Beginnings of the names that this crate gives, so that a sweep touches nothing else.
const KINDS: [&str; 2] = ["run-", "snapshot-"];
/// Attempts to find a free name; a name is taken only by a process that had the same number before.
const ATTEMPTS: u32 = 10_000;

/// Held lock file beside a folder of the same name. The kernel releases the lock with the process, however that ends.
#[derive(Debug)]
pub(crate) struct Lock {
    path: PathBuf,
    _file: File,
}

impl Lock {
    /// Takes a new name for a folder below `base`.
    pub(crate) fn acquire(base: &Path, kind: &str) -> Result<Self, WorkspaceError> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        for _ in 0..ATTEMPTS {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = base.join(format!("{kind}-{}-{number}.{ENDING}", std::process::id()));
            // The lock comes before the folder and goes after it, so that a sweep never sees a folder without one.
            let opened = File::options().write(true).create_new(true).mode(0o600).open(&path);
            let file = match opened {
                Ok(file) => file,
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(failed("creating lock file", &path)(error)),
            };
            // A sweep may have been faster: then the file is gone, and another name is needed.
            if try_lock(&file, &path)? {
                return Ok(Self { path, _file: file });
            }
        }
        let source = std::io::Error::from(std::io::ErrorKind::AlreadyExists);
        Err(failed("finding a free name in", base)(source))
    }

    /// Folder that the lock stands for.
    pub(crate) fn folder(&self) -> PathBuf {
        self.path.with_extension("")
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // A folder that could not be removed keeps its lock file, so that a sweep finds it.
        if !self.folder().exists() {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Locks a file that still stands at its path: whether it could.
fn try_lock(file: &File, path: &Path) -> Result<bool, WorkspaceError> {
    let taken = files::try_lock(file.as_raw_fd()).map_err(|errno| failed("locking", path)(errno.into()))?;
    let is_same = match (file.metadata(), path.symlink_metadata()) {
        (Ok(open), Ok(named)) => open.ino() == named.ino() && open.dev() == named.dev(),
        _ => false,
    };
    Ok(taken && is_same)
}

/// Removes the folders that crashed processes left below `base`. Returns their number.
pub fn sweep(base: &Path) -> Result<usize, WorkspaceError> {
    let entries = match std::fs::read_dir(base) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(failed("reading folder", base)(error)),
    };
    let mut removed = 0;
    for entry in entries.flatten() {
        let path = entry.path();
        let is_ours =
            KINDS.iter().any(|kind| entry.file_name().as_encoded_bytes().starts_with(kind.as_bytes()));
        let is_lock = path.extension().is_some_and(|ending| ending == ENDING);
        if !is_ours || !is_lock || !entry.file_type().is_ok_and(|kind| kind.is_file()) {
            continue;
        }
        let Ok(file) = File::options().write(true).open(&path) else { continue };
        if try_lock(&file, &path)? {
            let lock = Lock { path, _file: file };
            let folder = lock.folder();
            if folder.exists() {
                remove_tree(&folder);
                removed += 1;
            }
        }
    }
    Ok(removed)
}
