//! Landlock rules.

use super::{Call, Errno, check, files};
use std::ffi::CStr;
use std::os::fd::{OwnedFd, RawFd};

#[repr(C)]
struct RulesetAttributes {
    filesystem: u64,
    network: u64,
    scoped: u64,
}

#[repr(C, packed)]
struct PathBeneath {
    allowed: u64,
    parent: RawFd,
}

#[repr(C)]
struct NetPort {
    allowed: u64,
    port: u64,
}

const RULE_PATH_BENEATH: i32 = 1;
const RULE_NET_PORT: i32 = 2;
const CREATE_RULESET_VERSION: u32 = 1;

/// Version of the kernel's Landlock interface.
pub(crate) fn version() -> Call<u32> {
    let version = check(unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<RulesetAttributes>(),
            0_usize,
            CREATE_RULESET_VERSION,
        )
    })?;
    u32::try_from(version).map_err(|_| Errno(libc::EIO))
}

/// Creates an empty set of rules that handles the given accesses.
pub(crate) fn create(filesystem: u64, network: u64, scoped: u64) -> Call<OwnedFd> {
    let attributes = RulesetAttributes { filesystem, network, scoped };
    let fd = check(unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            &raw const attributes,
            size_of::<RulesetAttributes>(),
            0_u32,
        )
    })?;
    RawFd::try_from(fd).map(files::own).map_err(|_| Errno(libc::EIO))
}

/// Allows accesses beneath a path. A path that does not exist allows nothing.
pub(crate) fn allow_path(ruleset: RawFd, path: &CStr, allowed: u64) -> Call<()> {
    let parent = match files::open(path, libc::O_PATH, 0) {
        Ok(fd) => fd,
        Err(Errno(libc::ENOENT | libc::ENOTDIR | libc::EACCES)) => return Ok(()),
        Err(errno) => return Err(errno),
    };
    let rule = PathBeneath { allowed, parent };
    let added = check(unsafe {
        libc::syscall(libc::SYS_landlock_add_rule, ruleset, RULE_PATH_BENEATH, &raw const rule, 0_u32)
    });
    files::close(parent);
    added.map(drop)
}

/// Allows an access to a TCP port.
pub(crate) fn allow_port(ruleset: RawFd, port: u16, allowed: u64) -> Call<()> {
    let rule = NetPort { allowed, port: u64::from(port) };
    check(unsafe {
        libc::syscall(libc::SYS_landlock_add_rule, ruleset, RULE_NET_PORT, &raw const rule, 0_u32)
    })
    .map(drop)
}

/// Restricts the calling process by a set of rules, for good.
pub(crate) fn restrict_self(ruleset: RawFd) -> Call<()> {
    check(unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset, 0_u32) }).map(drop)
}
