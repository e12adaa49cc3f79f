//! Stacks and tables of child processes.

use super::{Call, Errno, last_errno};
use std::ptr::NonNull;

/// Size of a stack: the deepest frames hold a directory buffer and a few records.
const STACK: usize = 256 * 1024;
/// Inaccessible border on both sides of a stack, which catches overflows.
const BORDER: usize = 64 * 1024;

/// Memory for the stack of a child process, mapped by the parent.
#[derive(Debug)]
pub(crate) struct Stack {
    base: NonNull<libc::c_void>,
}

// SAFETY: the mapping belongs to this value alone.
unsafe impl Send for Stack {}

impl Stack {
    pub(crate) fn new() -> Call<Self> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let base =
            unsafe { libc::mmap(std::ptr::null_mut(), STACK + 2 * BORDER, libc::PROT_NONE, flags, -1, 0) };
        if base == libc::MAP_FAILED {
            return Err(last_errno());
        }
        let base = NonNull::new(base).ok_or(Errno(libc::ENOMEM))?;
        let stack = Self { base };
        let inner = unsafe { base.as_ptr().byte_add(BORDER) };
        if unsafe { libc::mprotect(inner, STACK, libc::PROT_READ | libc::PROT_WRITE) } < 0 {
            return Err(last_errno());
        }
        Ok(stack)
    }

    /// First address above the stack; stacks grow down.
    pub(super) fn top(&mut self) -> *mut libc::c_void {
        // SAFETY: inside the mapping, which has a border above the stack.
        unsafe { self.base.as_ptr().byte_add(BORDER + STACK) }
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        unsafe { libc::munmap(self.base.as_ptr(), STACK + 2 * BORDER) };
    }
}

/// Zeroed memory of a child process, mapped on demand and never given back: the child ends with its run.
pub(crate) fn map_zeroed<T: Copy>(count: usize) -> Call<&'static mut [T]> {
    let Some(length) = count.checked_mul(size_of::<T>()) else {
        return Err(Errno(libc::ENOMEM));
    };
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let base = unsafe { libc::mmap(std::ptr::null_mut(), length, protection, flags, -1, 0) };
    if base == libc::MAP_FAILED {
        return Err(last_errno());
    }
    // SAFETY: fresh, aligned to a page, long enough, and zero is a valid value of the plain records that callers ask for.
    Ok(unsafe { std::slice::from_raw_parts_mut(base.cast(), count) })
}

/// Whether memory can be held by a descriptor alone, which no count of a process's memory shows.
pub(crate) fn can_hold_unmapped() -> bool {
    match super::check_int(unsafe { libc::memfd_create(c"trial".as_ptr(), libc::MFD_CLOEXEC) }) {
        Ok(fd) => {
            super::files::close(fd);
            true
        }
        Err(_) => false,
    }
}

/// Whether a private mapping of this size is granted; it is taken back at once.
pub(crate) fn can_map(length: usize) -> bool {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let base = unsafe { libc::mmap(std::ptr::null_mut(), length, protection, flags, -1, 0) };
    if base == libc::MAP_FAILED {
        return false;
    }
    unsafe { libc::munmap(base, length) };
    true
}
