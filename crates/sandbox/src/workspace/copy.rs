//! Copying of folder trees, without following links.

use super::tree::{self, Kind};
use super::{WorkspaceError, failed};
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
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

    /// Copies the content of an open folder into another one, which exists and which no process of a run reaches. `place` is for messages.
    pub(super) fn run(
        mut self,
        source: &OwnedFd,
        place: &Path,
        target: &Path,
    ) -> Result<Vec<LeftOut>, WorkspaceError> {
        self.folder(source, &Place { root: place, relative: PathBuf::new() }, target, 0)?;
        Ok(self.left_out)
    }

    fn folder(
        &mut self,
        source: &OwnedFd,
        place: &Place<'_>,
        target: &Path,
        depth: usize,
    ) -> Result<(), WorkspaceError> {
        let root = place.root;
        if depth > DEPTH {
            return Err(too_large(root, DEPTH as u64, "folders inside each other"));
        }
        if !self.is_strict {
            // A run may have closed its own folders.
            tree::make_passable(source).map_err(failed("setting the mode of", &place.path()))?;
        }
        for name in tree::names(source).map_err(failed("reading folder", &place.path()))? {
            self.files += 1;
            if self.files > self.limits.files {
                return Err(too_large(root, self.limits.files, "entries"));
            }
            let below = place.below(&name);
            let to = target.join(&name);
            let found = tree::look(source, &name).map_err(failed("reading", &below.path()))?;
            match found.kind {
                Kind::Folder => {
                    let inner = tree::open_folder(source, &name, !self.is_strict)
                        .map_err(failed("reading folder", &below.path()))?;
                    super::private_folder(&to)?;
                    self.folder(&inner, &below, &to, depth + 1)?;
                }
                Kind::File => {
                    self.bytes = self.bytes.saturating_add(found.size);
                    if self.bytes > self.limits.bytes {
                        return Err(too_large(root, self.limits.bytes, "bytes"));
                    }
                    let file = tree::open_file(source, &name, !self.is_strict)
                        .map_err(failed("opening", &below.path()))?;
                    copy_file(file, &below.path(), &to)?;
                }
                Kind::Link => {
                    let link =
                        tree::read_link(source, &name).map_err(failed("reading link", &below.path()))?;
                    if link_stays(&below.relative, &link) {
                        std::os::unix::fs::symlink(&link, &to).map_err(failed("creating link", &to))?;
                    } else if self.is_strict {
                        return Err(WorkspaceError::LinkLeaves { path: below.relative, target: link });
                    } else {
                        self.left_out.push(LeftOut::Link { path: below.relative, target: link });
                    }
                }
                Kind::Special if self.is_strict => {
                    return Err(WorkspaceError::SpecialFile { path: below.relative });
                }
                Kind::Special => self.left_out.push(LeftOut::Special { path: below.relative }),
            }
        }
        Ok(())
    }
}

/// Place of an entry: the copied folder, and the path below it. Both are names only; nothing is opened by them.
struct Place<'a> {
    root: &'a Path,
    relative: PathBuf,
}

impl<'a> Place<'a> {
    fn path(&self) -> PathBuf {
        self.root.join(&self.relative)
    }

    fn below(&self, name: &OsStr) -> Place<'a> {
        Place { root: self.root, relative: self.relative.join(name) }
    }
}

/// Copies an open file with its executable bit. The copy is readable and writable for its owner.
pub(super) fn copy_file(mut source: File, from: &Path, to: &Path) -> Result<(), WorkspaceError> {
    let mode = source.metadata().map_err(failed("reading", from))?.permissions().mode();
    let mut target = new_file(to, if mode & 0o111 == 0 { 0o600 } else { 0o700 })?;
    io::copy(&mut source, &mut target).map_err(failed("copying", from)).map(drop)
}

/// Creates a file where there is nothing, not even a link.
pub(super) fn new_file(path: &Path, mode: u32) -> Result<File, WorkspaceError> {
    let flags = libc::O_NOFOLLOW;
    File::options()
        .write(true)
        .create_new(true)
        .custom_flags(flags)
        .mode(mode)
        .open(path)
        .map_err(failed("creating", path))
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
