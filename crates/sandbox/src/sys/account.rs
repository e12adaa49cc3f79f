//! Account of the calling user. These functions belong to the parent.

use std::ffi::{CStr, OsString};
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

/// Bound on the texts of an account.
const MOST: usize = 1 << 20;

/// Home directory of the calling user's account, if the user database has one.
pub(crate) fn home() -> Option<PathBuf> {
    let home = PathBuf::from(text(|entry| entry.pw_dir)?);
    home.is_absolute().then_some(home)
}

/// Name of the calling user's account, if the user database has one.
pub fn account_name() -> Option<String> {
    text(|entry| entry.pw_name)?.into_string().ok().filter(|name| !name.is_empty())
}

/// One text of the calling user's entry in the user database.
fn text(member: fn(&libc::passwd) -> *mut libc::c_char) -> Option<OsString> {
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
        let text = unsafe { CStr::from_ptr(member(&*found)) };
        return Some(OsString::from_vec(text.to_bytes().to_vec()));
    }
}
