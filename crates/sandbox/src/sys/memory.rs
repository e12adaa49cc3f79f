//! Stacks of child processes, and giving back the memory that a child inherited.

use super::{Call, Errno, files, last_errno};
use std::ptr::NonNull;

/// Size of a stack: the deepest frames hold a directory buffer and a few records.
const STACK: usize = 256 * 1024;
/// Inaccessible border on both sides of a stack. It catches overflows, and keeps the kernel from merging the stack with other memory,
/// which [`discard_inherited`] relies on.
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

/// Drops the pages that a forked child shares with its parent, except those that it runs on.
///
/// Without this the child keeps a copy of everything the parent ever writes to, and of the secrets in its heap. Only private anonymous
/// memory goes; the caller must not touch anything on the heap afterwards.
pub(crate) fn discard_inherited() -> Call<()> {
    let marker = 0_u8;
    let kept = [(&raw const marker).addr(), unsafe { libc::__errno_location() }.addr()];
    let maps = files::open(c"/proc/self/maps", libc::O_RDONLY, 0)?;
    let mut buffer = [0_u8; 8192];
    let mut filled = 0;
    while let Some(space) = buffer.get_mut(filled..).filter(|space| !space.is_empty()) {
        let count = match files::read(maps, space) {
            Ok(0) | Err(_) => break,
            Ok(count) => count,
        };
        filled += count;
        let mut start = 0;
        while let Some(line) =
            buffer.get(start..filled).and_then(|rest| rest.split(|byte| *byte == b'\n').next())
        {
            if start + line.len() >= filled {
                break;
            }
            if let Some((from, to)) =
                discardable(line).filter(|(from, to)| !kept.iter().any(|k| (from..to).contains(&k)))
            {
                // SAFETY: the pages belong to data that this process, which only runs the supervisor's loop, never reads again.
                unsafe {
                    libc::madvise(std::ptr::without_provenance_mut(from), to - from, libc::MADV_DONTNEED)
                };
            }
            start += line.len() + 1;
        }
        buffer.copy_within(start..filled, 0);
        filled -= start;
    }
    files::close(maps);
    Ok(())
}

/// Range of a line of `/proc/self/maps`, if it is private, writable and backed by no file.
fn discardable(line: &[u8]) -> Option<(usize, usize)> {
    let mut fields = line.split(|byte| *byte == b' ').filter(|field| !field.is_empty());
    let range = fields.next()?;
    let permissions = fields.next()?;
    let inode = fields.nth(2)?;
    let is_private_data = matches!(permissions, [b'r', b'w', _, b'p']);
    if !is_private_data || inode != b"0" {
        return None;
    }
    let mut ends = range.split(|byte| *byte == b'-').map(hexadecimal);
    Some((ends.next()??, ends.next()??))
}

fn hexadecimal(digits: &[u8]) -> Option<usize> {
    digits.iter().try_fold(0_usize, |value, digit| {
        let digit = char::from(*digit).to_digit(16)?;
        value.checked_mul(16)?.checked_add(usize::try_from(digit).ok()?)
    })
}

#[cfg(test)]
mod tests {
    use super::{discardable, hexadecimal};

    #[test]
    fn only_private_anonymous_data_is_discarded() {
        assert_eq!(discardable(b"7f00-7fff rw-p 00000000 00:00 0 "), Some((0x7f00, 0x7fff)));
        assert_eq!(discardable(b"7f00-7fff rw-p 00000000 00:00 0   [heap]"), Some((0x7f00, 0x7fff)));
        assert_eq!(discardable(b"7f00-7fff rw-p 00001000 fe:00 4711  /bin/true"), None);
        assert_eq!(discardable(b"7f00-7fff r--p 00000000 00:00 0 "), None);
        assert_eq!(discardable(b"7f00-7fff rw-s 00000000 00:00 0 "), None);
        assert_eq!(hexadecimal(b"xyz"), None);
    }
}
