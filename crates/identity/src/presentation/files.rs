//! Files with credentials: a folder for each run, named after its `cleanup`, and locked while the run lives.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use proctor_core::hex;
use proctor_core::random::Randomness;
use proctor_proof::secret::Secret;
use rustix::fs::{FlockOperation, OFlags, flock};

use super::{Cleanup, Outcome, PresentationError};
use crate::environment::describe;

/// Beginning of the name of a folder that must go, whatever its run was.
pub(super) const DOOMED: &str = "remove-";

/// Lock file of the private folder: shared while a folder is made, exclusive while [`super::sweep`] looks for dead ones.
const GUARD: &str = ".lock";

/// Folder of one run. Dropping it counts as a failed run.
#[derive(Debug)]
pub(super) struct RunFolder {
    path: PathBuf,
    cleanup: Cleanup,
    /// Open folder with the lock that says that the run lives.
    _lock: File,
    is_finished: bool,
}

impl RunFolder {
    pub(super) fn create(
        private_folder: &Path,
        cleanup: Cleanup,
        randomness: &dyn Randomness,
    ) -> Result<RunFolder, PresentationError> {
        make_private(private_folder)?;
        // Without the guard, a sweep could remove the folder before its lock is taken.
        let _guard = guard(private_folder, FlockOperation::LockShared)?;
        let path = private_folder.join(format!("{}-{}", cleanup.word(), random_name(randomness)));
        fs::DirBuilder::new().mode(0o700).create(&path).map_err(failed(&path))?;
        let lock = lock(&path).map_err(failed(&path))?.ok_or_else(|| PresentationError::Folder {
            folder: path.clone(),
            problem: "another process holds its lock".to_owned(),
        })?;
        Ok(RunFolder { path, cleanup, _lock: lock, is_finished: false })
    }

    /// Writes a file that only this user can read. A name that exists already is refused.
    pub(super) fn write(
        &self,
        index: usize,
        name: &str,
        value: &Secret,
    ) -> Result<PathBuf, PresentationError> {
        let path = self.path.join(name);
        let opened = fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
            .open(&path);
        let mut file = match opened {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                return Err(PresentationError::Target { index, problem: "its file is presented already" });
            }
            Err(error) => return Err(failed(&path)(error)),
        };
        file.write_all(value.expose().as_bytes()).map_err(failed(&path))?;
        Ok(path)
    }

    pub(super) fn finish(mut self, outcome: Outcome) -> Result<(), PresentationError> {
        self.end(outcome)
    }

    fn end(&mut self, outcome: Outcome) -> Result<(), PresentationError> {
        if self.is_finished {
            return Ok(());
        }
        self.is_finished = true;
        if self.cleanup.applies(outcome) { remove(&self.path) } else { Ok(()) }
    }
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        // What cannot be removed now is removed by the next sweep.
        let _ = self.end(Outcome::Failure);
    }
}

/// Removes a folder. It is renamed first: if this process dies half-way, the next sweep goes on, whatever `cleanup` was.
pub(super) fn remove(path: &Path) -> Result<(), PresentationError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let doomed = if name.starts_with(DOOMED) {
        path.to_owned()
    } else {
        path.with_file_name(format!("{DOOMED}{name}"))
    };
    if doomed != path {
        fs::rename(path, &doomed).map_err(failed(path))?;
    }
    fs::remove_dir_all(&doomed).map_err(failed(&doomed))
}

/// Makes the private folder, and refuses one that others can use.
pub(super) fn make_private(folder: &Path) -> Result<(), PresentationError> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed(folder))?;
    let found = fs::symlink_metadata(folder).map_err(failed(folder))?;
    let is_own = found.uid() == rustix::process::geteuid().as_raw();
    if !found.is_dir() || !is_own || found.mode() & 0o077 != 0 {
        return Err(PresentationError::Folder {
            folder: folder.to_owned(),
            problem: "other users can use it: run `chmod 700` on it, or name another one".to_owned(),
        });
    }
    Ok(())
}

/// Waits for the private folder's lock.
pub(super) fn guard(folder: &Path, operation: FlockOperation) -> Result<File, PresentationError> {
    let path = folder.join(GUARD);
    let file = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
        .open(&path)
        .map_err(failed(&path))?;
    flock(&file, operation).map_err(|error| failed(&path)(error.into()))?;
    Ok(file)
}

/// Locks a folder; none if another process holds its lock.
pub(super) fn lock(folder: &Path) -> std::io::Result<Option<File>> {
    let flags = (OFlags::DIRECTORY | OFlags::NOFOLLOW).bits().cast_signed();
    let file = fs::OpenOptions::new().read(true).custom_flags(flags).open(folder)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Name of a file that the manifest does not name.
pub(super) fn generated_name(prefix: Option<&str>, randomness: &dyn Randomness) -> String {
    format!("{}-{}", prefix.unwrap_or("credential"), random_name(randomness))
}

fn random_name(randomness: &dyn Randomness) -> String {
    let mut bytes = [0; 16];
    randomness.fill(&mut bytes);
    hex::encode(bytes)
}

pub(super) fn failed(folder: &Path) -> impl Fn(std::io::Error) -> PresentationError + use<> {
    let folder = folder.to_owned();
    move |error| PresentationError::Folder { folder: folder.clone(), problem: describe(&error) }
}
