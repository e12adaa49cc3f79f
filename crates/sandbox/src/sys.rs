//! Raw system calls behind safe functions: the only module with `unsafe`.
//!
//! Everything here is callable between `clone` and `execve`: no function allocates, takes a lock or panics, unless its documentation says
//! that it belongs to the parent. Pointers handed to the kernel always come from a live reference or a `CStr`, and every buffer goes with
//! its own length; that is the safety argument of each block below.

#![expect(
    unsafe_code,
    reason = "namespaces, Landlock and seccomp have no safe interface in the standard library"
)]

pub(crate) mod account;
pub(crate) mod files;
pub(crate) mod landlock;
pub(crate) mod memory;
pub(crate) mod mounts;
pub(crate) mod process;
pub(crate) mod sockets;

use std::io;

/// Error number of a system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Errno(pub(crate) i32);

/// Result of a system call.
pub(crate) type Call<T> = Result<T, Errno>;

impl From<Errno> for io::Error {
    fn from(errno: Errno) -> Self {
        Self::from_raw_os_error(errno.0)
    }
}

/// Error number that the last failed call of this thread left.
fn last_errno() -> Errno {
    // SAFETY: the C library returns a valid pointer to the thread's own variable.
    Errno(unsafe { *libc::__errno_location() })
}

/// Value of a system call's result, which is negative on failure.
fn check(result: libc::c_long) -> Call<libc::c_long> {
    if result < 0 { Err(last_errno()) } else { Ok(result) }
}

/// Value of a C library call's result, which is negative on failure.
fn check_int(result: libc::c_int) -> Call<i32> {
    if result < 0 { Err(last_errno()) } else { Ok(result) }
}
