//! Account of the calling user. These functions belong to the parent.

use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// Bound on the texts of an account.
const MOST: usize = 1 << 20;

/// Home directory of the calling user's account, if the user database has one.
pub(crate) fn home() -> Option<PathBuf> {
    let mut texts = vec![0 as libc::c_char; 4096];
    loop {
        let mut entry = std::mem::MaybeUninit::<libc::passwd>::uninit();
        let mut found: *mut libc::passwd = std::ptr::null_mut();
        let error = unsafe {
            libc::getpwuid_r(
                libc::getuid(),
                entry.as_mut_ptr(),
                texts.as_mut_ptr(),
                texts.len(),
                &raw mut found,
            )
        };
        if error == libc::ERANGE && texts.len() < MOST {
            texts.resize(texts.len() * 2, 0);
            continue;
        }
        if error != 0 || found.is_null() {
            return None;
        }
        // SAFETY: the call has succeeded, so the entry is filled in, and its texts lie in the buffer, which still lives.
        let home = unsafe { CStr::from_ptr((*found).pw_dir) };
        let home = Path::new(OsStr::from_bytes(home.to_bytes()));
        return home.is_absolute().then(|| home.to_owned());
    }
}
