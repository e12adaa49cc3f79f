//! Folder tree of a run.

mod copy;
mod lock;
mod tree;

use crate::workspace::copy::Copy;
use lock::Lock;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

pub use copy::{CopyLimits, LeftOut};
pub use lock::sweep;

/// Failure of preparing, copying or removing a folder tree.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// A file operation failed.
    #[error("{what} `{path}` failed: {source}")]
    Io {
        /// Operation.
        what: &'static str,
        /// File or folder.
        path: PathBuf,
        /// Reason of the operating system.
        source: io::Error,
    },
    /// A symbolic link of a fixture leads out of it.
    #[error("link `{path}` leads out of the copied folder, to `{target}`; copy the file itself instead")]
    LinkLeaves {
        /// Link, relative to the folder that is copied.
        path: PathBuf,
        /// Where it leads.
        target: PathBuf,
    },
    /// A file of a fixture is neither file, folder nor link.
    #[error("`{path}` is neither a file, a folder nor a link")]
    SpecialFile {
        /// File, relative to the folder that is copied.
        path: PathBuf,
    },
    /// The tree exceeds a bound.
    #[error("`{path}` has more than {limit} {what}; raise the limit or leave something out")]
    TooLarge {
        /// Folder that is copied.
        path: PathBuf,
        /// Bound.
        limit: u64,
        /// What is counted.
        what: &'static str,
    },
    /// A relative path leaves the folder that it should stay in.
    #[error("path `{path}` leaves the folder that it belongs to; use a path without `..` and leading `/`")]
    PathLeaves {
        /// Path as given.
        path: PathBuf,
    },
}

/// Private folder tree of a run: `workspace`, `tmp` and `home`, accessible to its owner only.
///
/// Processes of the run may write to these three, not to the folder that they are in: otherwise they could put a link in the place of one.
/// What they left is read through a descriptor that was opened before they started, never by a path.
///
/// It is removed on drop. After a crash, [`sweep`] finds it by its lock file, which no living process holds any more.
#[derive(Debug)]
pub struct Workspace {
    root: PathBuf,
    directory: PathBuf,
    tmp: PathBuf,
    home: PathBuf,
    /// The workspace as it was made, whatever is at its path now.
    handle: OwnedFd,
    /// Released after the tree is gone.
    _lock: Lock,
}

impl Workspace {
    /// Creates an empty tree below `base`, which is created if it does not exist.
    pub fn create(base: &Path) -> Result<Self, WorkspaceError> {
        let (root, lock) = new_tree(base, "run")?;
        let [directory, tmp, home] = ["workspace", "tmp", "home"].map(|name| root.join(name));
        for folder in [&directory, &tmp, &home] {
            private_folder(folder)?;
        }
        let handle = tree::open(&directory, false).map_err(failed("opening folder", &directory))?;
        Ok(Self { root, directory, tmp, home, handle, _lock: lock })
    }

    /// Folder of the whole tree.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Working directory of the run.
    pub fn workspace(&self) -> &Path {
        &self.directory
    }

    /// Temporary folder of the run.
    pub fn tmp(&self) -> &Path {
        &self.tmp
    }

    /// Home directory of the run.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// Folders that processes of the run may write to.
    pub fn writable(&self) -> [&Path; 3] {
        [&self.directory, &self.tmp, &self.home]
    }

    /// Copies a folder into the workspace: files, folders, executable bits, and links that stay inside.
    pub fn copy_fixture(&self, fixture: &Path, limits: CopyLimits) -> Result<(), WorkspaceError> {
        copy_folder(fixture, &self.directory, limits)
    }

    /// Copies the workspace, for checks that must not see later changes. Call it when the last process has ended.
    pub fn snapshot(&self) -> Result<Snapshot, WorkspaceError> {
        self.snapshot_within(CopyLimits::default())
    }

    /// Copies the workspace within the given bounds.
    pub fn snapshot_within(&self, limits: CopyLimits) -> Result<Snapshot, WorkspaceError> {
        let base = self.root.parent().unwrap_or(&self.root);
        let (root, lock) = new_tree(base, "snapshot")?;
        let path = root.join("workspace");
        // From here on the folder is removed if something fails.
        let mut snapshot = Snapshot { root, path, left_out: Vec::new(), _lock: lock };
        private_folder(&snapshot.path)?;
        snapshot.left_out = Copy::lenient(limits).run(&self.handle, &self.directory, &snapshot.path)?;
        Ok(snapshot)
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        remove_tree(&self.root);
    }
}

/// Copy of a workspace, removed on drop.
#[derive(Debug)]
pub struct Snapshot {
    root: PathBuf,
    path: PathBuf,
    left_out: Vec<LeftOut>,
    _lock: Lock,
}

impl Snapshot {
    /// Folder of the copy.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Entries that were not copied: links that lead out, sockets, pipes and devices.
    pub fn left_out(&self) -> &[LeftOut] {
        &self.left_out
    }

    /// Folder of the whole tree, which no process reaches unless it is given a folder in it.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Copies a file or folder into the snapshot, in place of what a run may have put there. No process may have run in it yet.
    pub fn add(&self, source: &Path, target: &Path, limits: CopyLimits) -> Result<(), WorkspaceError> {
        let place = self.cleared(target)?;
        if source.is_dir() {
            private_folder(&place)?;
            copy_folder(source, &place, limits)
        } else {
            let file = std::fs::File::open(source).map_err(failed("opening", source))?;
            copy::copy_file(file, source, &place)
        }
    }

    /// Writes a file into the snapshot, in place of what a run may have put there. No process may have run in it yet.
    pub fn write(&self, target: &Path, content: &[u8]) -> Result<(), WorkspaceError> {
        let place = self.cleared(target)?;
        copy::new_file(&place, 0o600)?.write_all(content).map_err(failed("writing", &place))
    }

    /// Place of a path in the snapshot, with nothing there. A folder is replaced as a whole: what a run has added to it must not take part
    /// in a check.
    fn cleared(&self, target: &Path) -> Result<PathBuf, WorkspaceError> {
        if !copy::stays_inside(target) {
            return Err(WorkspaceError::PathLeaves { path: target.to_owned() });
        }
        self.make_parents(target)?;
        let place = self.path.join(target);
        remove_any(&place)?;
        Ok(place)
    }

    /// Makes the folders above a path. A link or file in the way is removed: a run must not redirect what checks bring.
    fn make_parents(&self, target: &Path) -> Result<(), WorkspaceError> {
        let mut place = self.path.clone();
        for part in target.parent().into_iter().flat_map(Path::components) {
            place.push(part);
            clear_way(&place)?;
            private_folder(&place)?;
        }
        Ok(())
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        remove_tree(&self.root);
    }
}

fn new_tree(base: &Path, kind: &str) -> Result<(PathBuf, Lock), WorkspaceError> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(base)
        .map_err(failed("creating folder", base))?;
    let base = base.canonicalize().map_err(failed("resolving folder", base))?;
    let lock = Lock::acquire(&base, kind)?;
    let root = lock.folder();
    std::fs::DirBuilder::new().mode(0o700).create(&root).map_err(failed("creating folder", &root))?;
    Ok((root, lock))
}

/// Content of a regular file that a process may have put there. Links are refused, pipes and devices are not opened, and a file of more than
/// `limit` bytes is an error.
pub fn read_left_file(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    use std::io::Read as _;
    let missing = || io::Error::from(io::ErrorKind::NotFound);
    let folder = tree::open(path.parent().ok_or_else(missing)?, false)?;
    let file = tree::open_file(&folder, path.file_name().ok_or_else(missing)?, false)?;
    let mut content = Vec::new();
    file.take(limit.saturating_add(1)).read_to_end(&mut content)?;
    if content.len() as u64 > limit {
        return Err(io::Error::from(io::ErrorKind::FileTooLarge));
    }
    Ok(content)
}

/// Creates a folder of mode 0700, whatever the umask, unless there is one.
fn private_folder(path: &Path) -> Result<(), WorkspaceError> {
    match std::fs::DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(failed("creating folder", path)(error))
        }
        _ => std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700))
            .map_err(failed("setting the mode of", path)),
    }
}

/// Removes what is at a path unless it is a folder.
fn clear_way(path: &Path) -> Result<(), WorkspaceError> {
    match path.symlink_metadata() {
        Ok(found) if !found.is_dir() => std::fs::remove_file(path).map_err(failed("removing", path)),
        _ => Ok(()),
    }
}

fn remove_any(path: &Path) -> Result<(), WorkspaceError> {
    match path.symlink_metadata() {
        Ok(found) if found.is_dir() => {
            remove_tree(path);
            Ok(())
        }
        Ok(_) => std::fs::remove_file(path).map_err(failed("removing", path)),
        Err(_) => Ok(()),
    }
}

/// Copies a folder of the suite into another one, which exists.
fn copy_folder(source: &Path, target: &Path, limits: CopyLimits) -> Result<(), WorkspaceError> {
    let folder = tree::open(source, true).map_err(failed("reading folder", source))?;
    Copy::strict(limits).run(&folder, source, target).map(drop)
}

/// Removes a tree, also if a run took permissions away from its folders, or made it deeper than paths can be.
fn remove_tree(root: &Path) {
    if std::fs::remove_dir_all(root).is_ok() {
        return;
    }
    // What remains is found by the next sweep.
    let _ = tree::open(root, false).and_then(|folder| tree::empty(&folder));
    let _ = std::fs::remove_dir(root);
}

pub(crate) fn failed(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> WorkspaceError + use<> {
    let path = path.to_owned();
    move |source| WorkspaceError::Io { what, path, source }
}

#[cfg(test)]
mod tests;
