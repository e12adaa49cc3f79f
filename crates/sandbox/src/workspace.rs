//! Folder tree of a run.

mod copy;
mod lock;

use crate::workspace::copy::Copy;
use lock::Lock;
use std::io;
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
/// It is removed on drop. After a crash, [`sweep`] finds it by its lock file, which no living process holds any more.
#[derive(Debug)]
pub struct Workspace {
    root: PathBuf,
    directory: PathBuf,
    tmp: PathBuf,
    home: PathBuf,
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
        Ok(Self { root, directory, tmp, home, _lock: lock })
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

    /// Copies a folder into the workspace: files, folders, executable bits, and links that stay inside.
    pub fn copy_fixture(&self, fixture: &Path, limits: CopyLimits) -> Result<(), WorkspaceError> {
        Copy::strict(limits).run(fixture, &self.directory).map(drop)
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
        snapshot.left_out = Copy::lenient(limits).run(&self.directory, &snapshot.path)?;
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

    /// Copies a file or folder into the snapshot, in place of what a run may have put there.
    pub fn add(&self, source: &Path, target: &Path, limits: CopyLimits) -> Result<(), WorkspaceError> {
        if !copy::stays_inside(target) {
            return Err(WorkspaceError::PathLeaves { path: target.to_owned() });
        }
        let place = self.path.join(target);
        self.make_parents(target)?;
        // A folder is replaced as a whole: what a run has added to it must not take part in a check.
        remove_any(&place)?;
        if source.is_dir() {
            private_folder(&place)?;
            Copy::strict(limits).run(source, &place).map(drop)
        } else {
            copy::copy_file(source, &place)
        }
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

/// Removes a tree, also if a run took permissions away from its folders.
fn remove_tree(root: &Path) {
    if std::fs::remove_dir_all(root).is_ok() {
        return;
    }
    copy::open_up(root);
    // What remains is found by the next sweep.
    let _ = std::fs::remove_dir_all(root);
}

pub(crate) fn failed(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> WorkspaceError + use<> {
    let path = path.to_owned();
    move |source| WorkspaceError::Io { what, path, source }
}

#[cfg(test)]
mod tests;
