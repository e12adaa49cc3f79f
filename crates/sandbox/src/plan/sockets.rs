//! Unix sockets of other programs, which no network namespace keeps away.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// Folder of run-time sockets: masked as a whole, because most of what listens by name listens there.
const RUNTIME: &str = "/run";
/// Exception: systems that keep their programs there.
const PROGRAMS_IN_RUNTIME: &str = "/run/current-system";

/// Paths of the Unix sockets that are bound now, and the folder of run-time sockets.
pub(super) fn foreign() -> Vec<PathBuf> {
    let runtime =
        if Path::new(PROGRAMS_IN_RUNTIME).exists() { None } else { Path::new(RUNTIME).canonicalize().ok() };
    let table = std::fs::read("/proc/net/unix").unwrap_or_default();
    let is_masked = |path: &Path| runtime.as_ref().is_some_and(|folder| path.starts_with(folder));
    // Each connection is a line with the path of its listener, and resolving a path costs more than all else here.
    let bound: BTreeSet<&Path> =
        table.split(|byte| *byte == b'\n').filter_map(path_of).filter(|path| !is_masked(path)).collect();
    let mut paths: Vec<PathBuf> = bound.into_iter().filter_map(|path| path.canonicalize().ok()).collect();
    paths.extend(runtime);
    paths.sort_unstable();
    paths.dedup();
    paths
}

/// Path in a line of `/proc/net/unix`; abstract names begin with `@`.
fn path_of(line: &[u8]) -> Option<&Path> {
    let start = line.iter().position(|byte| *byte == b'/')?;
    Some(Path::new(OsStr::from_bytes(line.get(start..)?)))
}

#[cfg(test)]
mod tests {
    use super::{foreign, path_of};
    use std::path::Path;

    #[test]
    fn paths_of_bound_sockets_are_found() {
        let line = b"0000000000000000: 00000002 00000000 00010000 0001 01 23456 /tmp/a b.sock";
        assert_eq!(path_of(line), Some(Path::new("/tmp/a b.sock")));
        assert_eq!(path_of(b"0000000000000000: 00000002 00000000 00010000 0001 01 23456 @name"), None);

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap().join("socket");
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        assert!(foreign().contains(&path));
        drop(listener);
    }
}
