//! Unix sockets of other programs, which no network namespace keeps away.

mod diagnosis;

use diagnosis::Bound;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Component, Path, PathBuf};

/// Folder of run-time sockets: masked as a whole, because most of what listens by name listens there.
const RUNTIME: &str = "/run";
/// Exception: systems that keep their programs there.
const PROGRAMS_IN_RUNTIME: &str = "/run/current-system";

/// Unix sockets of other programs.
#[derive(Debug, Default)]
pub(super) struct Foreign {
    /// Places of sockets, and the folder of run-time sockets.
    pub(super) paths: Vec<PathBuf>,
    /// Whether the place of every bound socket is known. A name says nothing about the place if it is relative, leads through `/proc`, or if
    /// the socket was renamed since it was bound; a socket with several hard links has places that no name tells.
    pub(super) is_complete: bool,
}

/// Unix sockets that are bound now. `exposed` are the folders that stay reachable inside masks.
pub(super) fn foreign(exposed: &[&[PathBuf]]) -> Foreign {
    let runtime =
        if Path::new(PROGRAMS_IN_RUNTIME).exists() { None } else { Path::new(RUNTIME).canonicalize().ok() };
    // A socket of the masked folder may have been renamed into one of its folders that stays reachable.
    let is_inside = |folder: &PathBuf| runtime.as_ref().is_some_and(|runtime| folder.starts_with(runtime));
    let reaches_runtime = exposed.iter().copied().flatten().any(is_inside);
    let bound = diagnosis::bound();
    let mut is_complete = bound.is_ok();
    // Each connection has the name of its listener, and looking a path up costs more than all else here.
    let bound: BTreeSet<Bound> = bound.into_iter().flatten().collect();
    let mut paths = Vec::new();
    for Bound { name, inode } in bound {
        match place(&name, inode) {
            Some((path, is_only)) => {
                paths.push(path);
                is_complete &= is_only;
            }
            // Services leave such names behind when they start again.
            None if runtime.is_some() && is_below_runtime(&name) && !reaches_runtime => {}
            None => is_complete = false,
        }
    }
    paths.extend(runtime);
    paths.sort_unstable();
    paths.dedup();
    Foreign { paths, is_complete }
}

/// Whether a name is one of the folder of run-time sockets, as it is written.
fn is_below_runtime(name: &[u8]) -> bool {
    let path = Path::new(OsStr::from_bytes(name));
    let is_plain = !path.components().any(|part| part == Component::ParentDir);
    is_plain && [RUNTIME, "/var/run"].iter().any(|folder| path.starts_with(folder))
}

/// Place of a socket, if its name leads to it, and whether it is the only one.
fn place(name: &[u8], inode: u32) -> Option<(PathBuf, bool)> {
    let path = Path::new(OsStr::from_bytes(name));
    if !path.is_absolute() {
        return None;
    }
    let path = path.canonicalize().ok()?;
    let found = path.symlink_metadata().ok()?;
    // The kernel gives the lower half of the number.
    let is_same = found.ino() & u64::from(u32::MAX) == u64::from(inode);
    (found.file_type().is_socket() && is_same).then_some((path, found.nlink() == 1))
}

#[cfg(test)]
mod tests {
    use super::{foreign, is_below_runtime};
    use std::os::fd::AsRawFd as _;
    use std::os::unix::net::UnixListener;

    #[test]
    fn sockets_are_found_at_their_place_or_known_to_be_elsewhere() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        let path = base.join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        assert!(foreign(&[]).paths.contains(&path));
        std::fs::hard_link(&path, base.join("linked")).unwrap();
        let found = foreign(&[]);
        assert!(found.paths.contains(&path) && !found.is_complete, "the other link is not known");
        std::fs::remove_file(base.join("linked")).unwrap();
        // The name leads to another socket now.
        std::fs::rename(&path, base.join("moved")).unwrap();
        let second = UnixListener::bind(&path).unwrap();
        let found = foreign(&[]);
        assert!(found.paths.contains(&path) && !found.is_complete);
        drop((listener, second));
        // The name leads nowhere.
        let open = std::fs::File::open(&base).unwrap();
        let by_descriptor = UnixListener::bind(format!("/proc/self/fd/{}/other", open.as_raw_fd())).unwrap();
        drop(open);
        assert!(!foreign(&[]).is_complete);
        drop(by_descriptor);
    }

    #[test]
    fn names_of_services_are_told_by_their_text() {
        for name in ["/run/dbus/socket", "/var/run/x"] {
            assert!(is_below_runtime(name.as_bytes()), "{name}");
        }
        for name in ["run/x", "/runner/x", "/run/../tmp/x", "/tmp/run/x"] {
            assert!(!is_below_runtime(name.as_bytes()), "{name}");
        }
    }
}
