//! Files and descriptors.

use super::{Call, Errno, check, check_int};
use std::ffi::CStr;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

/// Opens a path, close-on-exec. The descriptor is a plain number: children own none of the parent's values.
pub(crate) fn open(path: &CStr, flags: i32, mode: u32) -> Call<RawFd> {
    check_int(unsafe { libc::open(path.as_ptr(), flags | libc::O_CLOEXEC, mode) })
}

pub(crate) fn close(fd: RawFd) {
    unsafe { libc::close(fd) };
}

/// Closes every descriptor from `first` to `last`.
pub(crate) fn close_range(first: u32, last: u32) -> Call<()> {
    check(unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) }).map(drop)
}

/// Marks every descriptor from `first` on as close-on-exec.
pub(crate) fn close_on_exec_from(first: u32) -> Call<()> {
    const CLOSE_RANGE_CLOEXEC: u32 = 4;
    check(unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, CLOSE_RANGE_CLOEXEC) }).map(drop)
}

/// Duplicates a descriptor onto another number, which stays open over `execve`.
pub(crate) fn duplicate_onto(fd: RawFd, target: RawFd) -> Call<()> {
    check_int(unsafe { libc::dup2(fd, target) }).map(drop)
}

/// Duplicates a descriptor to the lowest free number from `lowest` on, close-on-exec.
pub(crate) fn duplicate_from(fd: RawFd, lowest: RawFd) -> Call<RawFd> {
    check_int(unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, lowest) })
}

/// Takes ownership of a descriptor that a call of this module has just made.
pub(crate) fn own(fd: RawFd) -> OwnedFd {
    // SAFETY: callers pass a descriptor that they opened and that has no other owner.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

/// Creates a pipe: reading end, writing end.
pub(crate) fn pipe() -> Call<(OwnedFd, OwnedFd)> {
    let mut ends: [RawFd; 2] = [-1; 2];
    check_int(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) })?;
    let [read, write] = ends;
    Ok((own(read), own(write)))
}

/// Number of bytes read into the buffer.
pub(crate) fn read(fd: RawFd, buffer: &mut [u8]) -> Call<usize> {
    let count = unsafe { libc::read(fd, buffer.as_mut_ptr().cast(), buffer.len()) };
    usize::try_from(count).map_err(|_| super::last_errno())
}

pub(crate) fn write(fd: RawFd, bytes: &[u8]) -> Call<usize> {
    let count = unsafe { libc::write(fd, bytes.as_ptr().cast(), bytes.len()) };
    usize::try_from(count).map_err(|_| super::last_errno())
}

/// Writes a short text into an existing file with one call, as files of `/proc` want it.
pub(crate) fn put(path: &CStr, text: &[u8]) -> Call<()> {
    let fd = open(path, libc::O_WRONLY, 0)?;
    let written = write(fd, text);
    close(fd);
    if written? == text.len() { Ok(()) } else { Err(Errno(libc::EIO)) }
}

pub(crate) fn seek(fd: RawFd, offset: i64) -> Call<()> {
    if unsafe { libc::lseek(fd, offset, libc::SEEK_SET) } < 0 { Err(super::last_errno()) } else { Ok(()) }
}

pub(crate) fn change_directory(path: &CStr) -> Call<()> {
    check_int(unsafe { libc::chdir(path.as_ptr()) }).map(drop)
}

pub(crate) fn make_directory(path: &CStr, mode: u32) -> Call<()> {
    check_int(unsafe { libc::mkdir(path.as_ptr(), mode) }).map(drop)
}

pub(crate) fn make_symlink(target: &CStr, path: &CStr) -> Call<()> {
    check_int(unsafe { libc::symlink(target.as_ptr(), path.as_ptr()) }).map(drop)
}

pub(crate) fn make_link(existing: &CStr, path: &CStr) -> Call<()> {
    check_int(unsafe { libc::link(existing.as_ptr(), path.as_ptr()) }).map(drop)
}

pub(crate) fn remove_file(path: &CStr) -> Call<()> {
    check_int(unsafe { libc::unlink(path.as_ptr()) }).map(drop)
}

pub(crate) fn truncate(path: &CStr) -> Call<()> {
    check_int(unsafe { libc::truncate(path.as_ptr(), 0) }).map(drop)
}

pub(crate) fn change_mode(path: &CStr, mode: u32) -> Call<()> {
    check_int(unsafe { libc::chmod(path.as_ptr(), mode) }).map(drop)
}

/// Sets owner and group to those of the caller, which only the owner may do.
pub(crate) fn change_owner_to_self(path: &CStr) -> Call<()> {
    check_int(unsafe { libc::chown(path.as_ptr(), libc::geteuid(), libc::getegid()) }).map(drop)
}

pub(crate) fn change_times(path: &CStr) -> Call<()> {
    check_int(unsafe { libc::utimensat(libc::AT_FDCWD, path.as_ptr(), std::ptr::null(), 0) }).map(drop)
}

pub(crate) fn set_attribute(path: &CStr, name: &CStr) -> Call<()> {
    check_int(unsafe { libc::setxattr(path.as_ptr(), name.as_ptr(), name.as_ptr().cast(), 1, 0) }).map(drop)
}

/// Target of a symbolic link, as number of bytes in the buffer.
pub(crate) fn read_link(path: &CStr, buffer: &mut [u8]) -> Call<usize> {
    let count = unsafe { libc::readlink(path.as_ptr(), buffer.as_mut_ptr().cast(), buffer.len()) };
    usize::try_from(count).map_err(|_| super::last_errno())
}

/// Whether a path leads to a socket.
pub(crate) fn is_socket(path: &CStr) -> bool {
    let mut status = std::mem::MaybeUninit::<libc::stat>::uninit();
    if unsafe { libc::stat(path.as_ptr(), status.as_mut_ptr()) } != 0 {
        return false;
    }
    // SAFETY: the call has succeeded, and filled the whole value in.
    let mode = unsafe { status.assume_init() }.st_mode;
    mode & libc::S_IFMT == libc::S_IFSOCK
}

/// Raw entries of an open directory, as the kernel lays them out; zero at the end.
pub(crate) fn directory_entries(fd: RawFd, buffer: &mut [u8]) -> Call<usize> {
    let count = check(unsafe { libc::syscall(libc::SYS_getdents64, fd, buffer.as_mut_ptr(), buffer.len()) })?;
    usize::try_from(count).map_err(|_| Errno(libc::EIO))
}

/// Exclusive lock on an open file, without waiting: whether it was taken.
pub(crate) fn try_lock(fd: RawFd) -> Call<bool> {
    match check_int(unsafe { libc::flock(fd, libc::LOCK_EX | libc::LOCK_NB) }) {
        Ok(_) => Ok(true),
        Err(Errno(libc::EWOULDBLOCK)) => Ok(false),
        Err(errno) => Err(errno),
    }
}

/// Size of a memory page.
pub(crate) fn page_size() -> u64 {
    u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}
