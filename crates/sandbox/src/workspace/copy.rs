//! Copying of folder trees, without following links.

use super::{WorkspaceError, failed};
use std::io;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Component, Path, PathBuf};

/// Bounds on a copied tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyLimits {
    /// Files, folders and links.
    pub files: u64,
    /// Bytes of all files together.
    pub bytes: u64,
}

impl Default for CopyLimits {
    fn default() -> Self {
        Self { files: 100_000, bytes: 4 * 1024 * 1024 * 1024 }
    }
}

/// Nesting of folders. Deeper trees exist only to exhaust whoever walks them.
const DEPTH: usize = 128;

/// Entry of a workspace that a snapshot does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeftOut {
    /// Symbolic link that leads out of the workspace.
    Link {
        /// Link, relative to the workspace.
        path: PathBuf,
        /// Where it leads.
        target: PathBuf,
    },
    /// Socket, pipe or device.
    Special {
        /// File, relative to the workspace.
        path: PathBuf,
    },
}

impl std::fmt::Display for LeftOut {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            LeftOut::Link { path, target } => {
                write!(out, "`{}`, a link that leads out, to `{}`", path.display(), target.display())
            }
            LeftOut::Special { path } => write!(out, "`{}`, a socket, pipe or device", path.display()),
        }
    }
}

/// Copy of a tree in progress.
pub(super) struct Copy {
    limits: CopyLimits,
    /// Whether entries that cannot be copied are an error; otherwise they are left out.
    is_strict: bool,
    files: u64,
    bytes: u64,
    left_out: Vec<LeftOut>,
}

impl Copy {
    pub(super) fn strict(limits: CopyLimits) -> Self {
        Self { limits, is_strict: true, files: 0, bytes: 0, left_out: Vec::new() }
    }

    pub(super) fn lenient(limits: CopyLimits) -> Self {
        Self { is_strict: false, ..Self::strict(limits) }
    }

    /// Copies the content of a folder into another one, which exists.
    pub(super) fn run(mut self, source: &Path, target: &Path) -> Result<Vec<LeftOut>, WorkspaceError> {
        self.folder(source, target, source, 0)?;
        Ok(self.left_out)
    }

    fn folder(
        &mut self,
        source: &Path,
        target: &Path,
        root: &Path,
        depth: usize,
    ) -> Result<(), WorkspaceError> {
        if depth > DEPTH {
            return Err(too_large(root, DEPTH as u64, "folders inside each other"));
        }
        let mut entries = match std::fs::read_dir(source) {
            // A run may have closed its own folders.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied && !self.is_strict => {
                set_mode(source, 0o700)?;
                std::fs::read_dir(source)
            }
            other => other,
        }
        .map_err(failed("reading folder", source))?
        .collect::<Result<Vec<_>, _>>()
        .map_err(failed("reading folder", source))?;
        entries.sort_unstable_by_key(std::fs::DirEntry::file_name);
        for entry in entries {
            self.files += 1;
            if self.files > self.limits.files {
                return Err(too_large(root, self.limits.files, "entries"));
            }
            let from = entry.path();
            let to = target.join(entry.file_name());
            let kind = entry.file_type().map_err(failed("reading", &from))?;
            let relative = || from.strip_prefix(root).unwrap_or(&from).to_owned();
            if kind.is_dir() {
                super::private_folder(&to)?;
                self.folder(&from, &to, root, depth + 1)?;
            } else if kind.is_file() {
                let length = entry.metadata().map_err(failed("reading", &from))?.len();
                self.bytes = self.bytes.saturating_add(length);
                if self.bytes > self.limits.bytes {
                    return Err(too_large(root, self.limits.bytes, "bytes"));
                }
                self.file(&from, &to)?;
            } else if kind.is_symlink() {
                let link = std::fs::read_link(&from).map_err(failed("reading link", &from))?;
                if link_stays(&relative(), &link) {
                    std::os::unix::fs::symlink(&link, &to).map_err(failed("creating link", &to))?;
                } else if self.is_strict {
                    return Err(WorkspaceError::LinkLeaves { path: relative(), target: link });
                } else {
                    self.left_out.push(LeftOut::Link { path: relative(), target: link });
                }
            } else if self.is_strict {
                return Err(WorkspaceError::SpecialFile { path: relative() });
            } else {
                self.left_out.push(LeftOut::Special { path: relative() });
            }
        }
        Ok(())
    }

    fn file(&self, from: &Path, to: &Path) -> Result<(), WorkspaceError> {
        match copy_file(from, to) {
            Err(WorkspaceError::Io { source, .. })
                if source.kind() == io::ErrorKind::PermissionDenied && !self.is_strict =>
            {
                set_mode(from, 0o600)?;
                copy_file(from, to)
            }
            other => other,
        }
    }
}

/// Copies a regular file with its executable bit. The copy is readable and writable for its owner.
pub(super) fn copy_file(from: &Path, to: &Path) -> Result<(), WorkspaceError> {
    let mut source = std::fs::File::options()
        .read(true)
        // A link that has taken the file's place since it was looked at is refused, and a pipe does not block.
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(from)
        .map_err(failed("opening", from))?;
    let mode = source.metadata().map_err(failed("reading", from))?.permissions().mode();
    let mode = if mode & 0o111 == 0 { 0o600 } else { 0o700 };
    let mut target = std::fs::File::options()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(to)
        .map_err(failed("creating", to))?;
    io::copy(&mut source, &mut target).map_err(failed("copying", from)).map(drop)
}

/// Whether a relative path names something below the folder that it starts from.
pub(super) fn stays_inside(path: &Path) -> bool {
    path.components().next().is_some() && path.components().all(|part| matches!(part, Component::Normal(_)))
}

/// Whether a link, at a path relative to the copied folder, leads to a place inside that folder. Only the text counts: `..` after the
/// name of another link is refused, because it may lead anywhere.
fn link_stays(at: &Path, link: &Path) -> bool {
    let mut depth = at.components().count().saturating_sub(1);
    let mut has_descended = false;
    for part in link.components() {
        match part {
            Component::Normal(_) => {
                has_descended = true;
                depth += 1;
            }
            Component::CurDir => {}
            Component::ParentDir if !has_descended && depth > 0 => depth -= 1,
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return false,
        }
    }
    true
}

/// Gives the owner all permissions on the folders of a tree, so that it can be removed.
pub(super) fn open_up(root: &Path) {
    open_up_below(root, 0);
}

fn open_up_below(folder: &Path, depth: usize) {
    if depth > DEPTH * 32 || set_mode(folder, 0o700).is_err() {
        return;
    }
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            open_up_below(&entry.path(), depth + 1);
        }
    }
}

fn set_mode(path: &Path, mode: u32) -> Result<(), WorkspaceError> {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
        .map_err(failed("setting the mode of", path))
}

fn too_large(path: &Path, limit: u64, what: &'static str) -> WorkspaceError {
    WorkspaceError::TooLarge { path: path.to_owned(), limit, what }
}

#[cfg(test)]
mod tests {
    use super::{link_stays, stays_inside};
    use std::path::Path;

    #[test]
    fn links_are_judged_by_their_text() {
        let stays = |at: &str, link: &str| link_stays(Path::new(at), Path::new(link));
        assert!(stays("a", "b"));
        assert!(stays("x/y/a", "../../b/c"));
        assert!(stays("x/a", "./b"));
        for (at, link) in [("a", "/etc"), ("a", ".."), ("a", "../b"), ("x/a", "../../b"), ("a", "b/../../c")]
        {
            assert!(!stays(at, link), "{at} -> {link}");
        }
        // `b` may be a link to another folder, so that what follows is not known.
        assert!(!stays("x/a", "b/../c"));
    }

    #[test]
    fn paths_of_checks_stay_inside() {
        assert!(stays_inside(Path::new("a/b")));
        for path in ["", "/a", "..", "a/../b", "./a/.."] {
            assert!(!stays_inside(Path::new(path)), "{path}");
        }
    }
}
