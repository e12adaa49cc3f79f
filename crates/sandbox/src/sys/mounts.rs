//! Mounts and namespaces.

use super::{Call, Errno, check, check_int};
use std::ffi::CStr;
use std::os::fd::RawFd;

/// Attributes of a mount, as `mount_setattr` takes them.
#[repr(C)]
struct MountAttributes {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

pub(crate) const READ_ONLY: u64 = 0x1;
pub(crate) const NO_SET_USER_ID: u64 = 0x2;
pub(crate) const NO_DEVICES: u64 = 0x4;

const OPEN_TREE_CLONE: u32 = 1;
const MOVE_MOUNT_FROM_EMPTY_PATH: u32 = 4;
const AT_RECURSIVE: u32 = 0x8000;
const AT_EMPTY_PATH: u32 = 0x1000;

/// Mounts a new file system.
pub(crate) fn mount_new(kind: &CStr, target: &CStr, flags: u64, options: &CStr) -> Call<()> {
    check_int(unsafe {
        libc::mount(kind.as_ptr(), target.as_ptr(), kind.as_ptr(), flags, options.as_ptr().cast())
    })
    .map(drop)
}

/// Mounts a file over another one.
pub(crate) fn bind(source: &CStr, target: &CStr) -> Call<()> {
    check_int(unsafe {
        libc::mount(source.as_ptr(), target.as_ptr(), std::ptr::null(), libc::MS_BIND, std::ptr::null())
    })
    .map(drop)
}

/// Cuts the propagation of mounts between this namespace and others.
pub(crate) fn make_private(target: &CStr) -> Call<()> {
    check_int(unsafe {
        libc::mount(
            std::ptr::null(),
            target.as_ptr(),
            std::ptr::null(),
            libc::MS_REC | libc::MS_PRIVATE,
            std::ptr::null(),
        )
    })
    .map(drop)
}

/// Detached copy of the mounts at and below a path.
pub(crate) fn clone_tree(path: &CStr) -> Call<RawFd> {
    let flags = OPEN_TREE_CLONE | AT_RECURSIVE | libc::O_CLOEXEC.cast_unsigned();
    let fd = check(unsafe { libc::syscall(libc::SYS_open_tree, libc::AT_FDCWD, path.as_ptr(), flags) })?;
    RawFd::try_from(fd).map_err(|_| Errno(libc::EIO))
}

/// Attaches a detached copy at a path.
pub(crate) fn attach_tree(tree: RawFd, target: &CStr) -> Call<()> {
    check(unsafe {
        libc::syscall(
            libc::SYS_move_mount,
            tree,
            c"".as_ptr(),
            libc::AT_FDCWD,
            target.as_ptr(),
            MOVE_MOUNT_FROM_EMPTY_PATH,
        )
    })
    .map(drop)
}

/// Adds attributes to the mount at a path.
pub(crate) fn restrict(target: &CStr, set: u64, recursive: bool) -> Call<()> {
    set_attributes(libc::AT_FDCWD, target, set, if recursive { AT_RECURSIVE } else { 0 })
}

/// Adds attributes to all mounts of a detached copy.
pub(crate) fn restrict_tree(tree: RawFd, set: u64) -> Call<()> {
    set_attributes(tree, c"", set, AT_RECURSIVE | AT_EMPTY_PATH)
}

fn set_attributes(directory: RawFd, path: &CStr, set: u64, flags: u32) -> Call<()> {
    let attributes = MountAttributes { set, clear: 0, propagation: 0, user_namespace: 0 };
    check(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            directory,
            path.as_ptr(),
            flags,
            &raw const attributes,
            size_of::<MountAttributes>(),
        )
    })
    .map(drop)
}

/// Moves the calling process into a namespace.
pub(crate) fn enter_namespace(fd: RawFd, kind: i32) -> Call<()> {
    check_int(unsafe { libc::setns(fd, kind) }).map(drop)
}
