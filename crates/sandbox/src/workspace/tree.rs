//! Entries of open folders. Nothing is found by a path from the root, so that a folder that was replaced by a link leads nowhere, and nothing
//! but regular files is opened.

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::{File, Permissions};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// Kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Folder,
    Link,
    /// Socket, pipe or device.
    Special,
}

/// Entry as the folder shows it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) kind: Kind,
    pub(super) size: u64,
}

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Opens a folder by its path. The last part of the path must not be a link, unless `follows`.
pub(super) fn open(path: &Path, follows: bool) -> io::Result<OwnedFd> {
    let flags = if follows { FOLDER.difference(OFlags::NOFOLLOW) } else { FOLDER };
    Ok(rustix::fs::open(path, flags, Mode::empty())?)
}

/// Names of a folder's entries, sorted.
pub(super) fn names(folder: &OwnedFd) -> io::Result<Vec<OsString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            names.push(OsString::from_vec(name.to_vec()));
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// Looks at an entry, not at what a link leads to.
pub(super) fn look(folder: &OwnedFd, name: &OsStr) -> io::Result<Found> {
    let status = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
    let kind = match FileType::from_raw_mode(status.st_mode) {
        FileType::RegularFile => Kind::File,
        FileType::Directory => Kind::Folder,
        FileType::Symlink => Kind::Link,
        _ => Kind::Special,
    };
    Ok(Found { kind, size: u64::try_from(status.st_size).unwrap_or(0) })
}

/// Opens a folder inside a folder. One that its owner has closed is opened up first, if that is wanted.
pub(super) fn open_folder(folder: &OwnedFd, name: &OsStr, opens_up: bool) -> io::Result<OwnedFd> {
    match rustix::fs::openat(folder, name, FOLDER, Mode::empty()) {
        Err(Errno::ACCESS) if opens_up => {
            permit(folder, name, 0o700)?;
            Ok(rustix::fs::openat(folder, name, FOLDER, Mode::empty())?)
        }
        other => Ok(other?),
    }
}

/// Opens a regular file for reading. One that its owner has closed is opened up first, if that is wanted.
pub(super) fn open_file(folder: &OwnedFd, name: &OsStr, opens_up: bool) -> io::Result<File> {
    // A pipe that has taken the file's place since it was looked at does not block.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let opened = match rustix::fs::openat(folder, name, flags, Mode::empty()) {
        Err(Errno::ACCESS) if opens_up => {
            permit(folder, name, 0o600)?;
            rustix::fs::openat(folder, name, flags, Mode::empty())
        }
        other => other,
    };
    let file = File::from(opened?);
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is no regular file")) }
}

/// Target of a link.
pub(super) fn read_link(folder: &OwnedFd, name: &OsStr) -> io::Result<PathBuf> {
    let target = rustix::fs::readlinkat(folder, name, Vec::new())?;
    Ok(PathBuf::from(OsStr::from_bytes(target.to_bytes())))
}

/// Lets the owner of an open folder pass through it.
pub(super) fn make_passable(folder: &OwnedFd) -> io::Result<()> {
    let mode = rustix::fs::fstat(folder)?.st_mode;
    if mode & 0o700 != 0o700 {
        rustix::fs::fchmod(folder, Mode::RWXU)?;
    }
    Ok(())
}

/// Sets the mode of an entry that cannot be opened as it is. A link is not followed, and a file that has another name, perhaps outside, is
/// left as it is.
fn permit(folder: &OwnedFd, name: &OsStr, mode: u32) -> io::Result<()> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let entry = rustix::fs::openat(folder, name, flags, Mode::empty())?;
    let status = rustix::fs::fstat(&entry)?;
    let is_own = match FileType::from_raw_mode(status.st_mode) {
        FileType::Directory => true,
        FileType::RegularFile => status.st_nlink == 1,
        _ => false,
    };
    if !is_own {
        return Err(io::Error::from(io::ErrorKind::PermissionDenied));
    }
    // The descriptor gives no rights by itself; its name in /proc leads to the same file, whatever has become of its path.
    std::fs::set_permissions(format!("/proc/self/fd/{}", entry.as_raw_fd()), Permissions::from_mode(mode))
}

/// Removes everything in a folder, however deep: folders are brought up to the first level before they are removed.
pub(super) fn empty(folder: &OwnedFd) -> io::Result<()> {
    let mut moved = 0_u64;
    make_passable(folder)?;
    loop {
        let names = names(folder)?;
        if names.is_empty() {
            return Ok(());
        }
        for name in names {
            if look(folder, &name)?.kind != Kind::Folder {
                rustix::fs::unlinkat(folder, name.as_os_str(), AtFlags::empty())?;
                continue;
            }
            let inner = open_folder(folder, &name, true)?;
            make_passable(&inner)?;
            for below in self::names(&inner)? {
                if look(&inner, &below)?.kind == Kind::Folder {
                    // A folder that moves must be writable itself.
                    make_passable(&open_folder(&inner, &below, true)?)?;
                    raise(&inner, &below, folder, &mut moved)?;
                } else {
                    rustix::fs::unlinkat(&inner, below.as_os_str(), AtFlags::empty())?;
                }
            }
            rustix::fs::unlinkat(folder, name.as_os_str(), AtFlags::REMOVEDIR)?;
        }
    }
}

/// Moves a folder up, under a name that is free there.
fn raise(inner: &OwnedFd, name: &OsStr, folder: &OwnedFd, moved: &mut u64) -> io::Result<()> {
    loop {
        *moved += 1;
        let free = format!(".removed-{moved}");
        match rustix::fs::renameat_with(inner, name, folder, free, rustix::fs::RenameFlags::NOREPLACE) {
            Err(Errno::EXIST) => {}
            other => return Ok(other?),
        }
    }
}
