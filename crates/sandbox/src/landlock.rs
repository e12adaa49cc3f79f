//! Landlock rights and rules of a process.

use crate::sys::landlock as calls;
use crate::sys::{Call, Errno};
use std::ffi::CString;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

const WRITE_FILE: u64 = 1 << 1;
const READ_FILE: u64 = 1 << 2;
const READ_FOLDER: u64 = 1 << 3;
/// REMOVE_DIR to MAKE_SYM.
const CHANGE_FOLDER: u64 = 0x1ff0;
const REFER: u64 = 1 << 13;
const TRUNCATE: u64 = 1 << 14;

const CONNECT_TCP: u64 = 1 << 1;
const BIND_TCP: u64 = 1;

const SCOPE_ABSTRACT_SOCKETS: u64 = 1;
const SCOPE_SIGNALS: u64 = 1 << 1;

/// First versions of the interface with a right.
const SINCE_REFER: u32 = 2;
const SINCE_TRUNCATE: u32 = 3;
const SINCE_NETWORK: u32 = 4;
pub(crate) const SINCE_SCOPES: u32 = 6;

/// Devices that programs use.
const DEVICES: [&str; 7] =
    ["/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/ptmx", "/dev/random", "/dev/urandom"];
/// Folders of terminals and shared memory. They are writable only where a mount namespace gives the run its own: elsewhere they hold the
/// terminals and the memory of everybody.
const PRIVATE_FOLDERS: [&str; 2] = ["/dev/pts", "/dev/shm"];
/// Folder of devices. Without a mount namespace only [`DEVICES`] are readable in it: user 0 would read hidden files from the disk itself.
const ALL_DEVICES: &str = "/dev";

/// Bound on the entries of one folder that are named one by one, because a sibling is hidden.
const SIBLINGS: usize = 4096;

/// Path with the rights beneath it.
#[derive(Debug)]
pub(crate) struct Rule {
    pub(crate) path: CString,
    pub(crate) allowed: u64,
}

/// Landlock rules: an empty set, and the rules that the child adds once its mounts are in place.
#[derive(Debug)]
pub(crate) struct Ruleset {
    pub(crate) descriptor: OwnedFd,
    pub(crate) rules: Vec<Rule>,
}

/// Rights of the process in question.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'a> {
    pub(crate) version: u32,
    pub(crate) writable: &'a [PathBuf],
    /// Folders that may be read although they lie in hidden ones.
    pub(crate) readable: &'a [PathBuf],
    /// Paths that reading must not reach; `None` where a mount namespace masks them.
    pub(crate) hidden: Option<&'a [PathBuf]>,
    /// Whether abstract Unix sockets of others are out of reach.
    pub(crate) closes_sockets: bool,
    /// TCP port that may be connected to, if TCP is restricted here.
    pub(crate) only_port: Option<u16>,
}

impl Ruleset {
    /// Creates the set and works its rules out.
    pub(crate) fn new(wanted: &Wanted<'_>) -> Call<Self> {
        let version = wanted.version;
        let mut writing = WRITE_FILE | CHANGE_FOLDER;
        if version >= SINCE_REFER {
            writing |= REFER;
        }
        if version >= SINCE_TRUNCATE {
            writing |= TRUNCATE;
        }
        let reading = if wanted.hidden.is_some() { READ_FILE | READ_FOLDER } else { 0 };
        let restricts_ports = wanted.only_port.is_some() && version >= SINCE_NETWORK;
        let network = if restricts_ports { CONNECT_TCP | BIND_TCP } else { 0 };
        let mut scoped = 0;
        if version >= SINCE_SCOPES {
            scoped |= SCOPE_SIGNALS;
            if wanted.closes_sockets {
                scoped |= SCOPE_ABSTRACT_SOCKETS;
            }
        }
        let descriptor = calls::create(writing | reading, network, scoped)?;
        if let Some(port) = wanted.only_port.filter(|_| restricts_ports) {
            use std::os::fd::AsRawFd as _;
            calls::allow_port(descriptor.as_raw_fd(), port, CONNECT_TCP)?;
        }
        let mut rules = Vec::new();
        for folder in wanted.writable {
            rules.push(rule(folder, writing | reading)?);
        }
        let file_rights = (writing | reading) & (WRITE_FILE | READ_FILE | TRUNCATE);
        for device in DEVICES {
            rules.push(rule(Path::new(device), file_rights)?);
        }
        match wanted.hidden {
            None => {
                for folder in PRIVATE_FOLDERS {
                    rules.push(rule(Path::new(folder), writing)?);
                }
            }
            Some(hidden) => {
                for folder in wanted.readable {
                    rules.push(rule(folder, reading)?);
                }
                let mut closed = hidden.to_vec();
                closed.push(PathBuf::from(ALL_DEVICES));
                allow_reading_around(Path::new("/"), &closed, &mut rules)?;
            }
        }
        Ok(Self { descriptor, rules })
    }
}

fn rule(path: &Path, allowed: u64) -> Call<Rule> {
    use std::os::unix::ffi::OsStrExt as _;
    let path = CString::new(path.as_os_str().as_bytes()).map_err(|_| Errno(libc::EINVAL))?;
    Ok(Rule { path, allowed })
}

/// Allows reading everything below a folder but the hidden paths. A rule always covers a whole tree, so folders that contain a hidden
/// path are opened up entry by entry.
fn allow_reading_around(folder: &Path, hidden: &[PathBuf], rules: &mut Vec<Rule>) -> Call<()> {
    if hidden.iter().any(|path| folder.starts_with(path)) {
        return Ok(());
    }
    if !hidden.iter().any(|path| path.starts_with(folder)) {
        let is_folder = folder.is_dir();
        rules.push(rule(folder, if is_folder { READ_FILE | READ_FOLDER } else { READ_FILE })?);
        return Ok(());
    }
    let Ok(entries) = std::fs::read_dir(folder) else { return Ok(()) };
    for entry in entries.flatten().take(SIBLINGS) {
        // Links are resolved by the kernel, and their targets have rules of their own.
        if entry.file_type().is_ok_and(|kind| !kind.is_symlink()) {
            allow_reading_around(&entry.path(), hidden, rules)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{READ_FILE, allow_reading_around};

    #[test]
    fn reading_is_allowed_around_hidden_paths_only() {
        let base = tempfile::tempdir().unwrap();
        let root = base.path().canonicalize().unwrap();
        for name in ["open", "part/secret", "part/beside"] {
            std::fs::create_dir_all(root.join(name)).unwrap();
        }
        std::fs::write(root.join("part/file"), "x").unwrap();
        let hidden = [root.join("part/secret")];
        let mut rules = Vec::new();
        allow_reading_around(&root, &hidden, &mut rules).unwrap();
        let mut found: Vec<String> = rules
            .iter()
            .map(|rule| rule.path.to_str().unwrap().replace(root.to_str().unwrap(), ""))
            .collect();
        found.sort();
        assert_eq!(found, ["/open", "/part/beside", "/part/file"]);
        let file = rules.iter().find(|rule| rule.path.to_bytes().ends_with(b"file")).unwrap();
        assert_eq!(file.allowed, READ_FILE);
    }
}
