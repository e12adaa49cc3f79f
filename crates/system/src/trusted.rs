//! Files that decide what is permitted: nobody but this user and root may be able to change them.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;

/// The most symbolic links on the way to a file.
const MAX_LINKS: usize = 40;

/// The most bytes of `/etc/passwd` and `/etc/group` that are read.
const MAX_DATABASE: u64 = 4 << 20;

/// A file that others could change, directly or by way of a folder above it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UntrustedPath {
    /// It belongs to another user.
    #[error(
        "{} belongs to user {owner}, who could change what is permitted: run `chown {user} {}`, or work on a copy of your own",
        path.display(), path.display()
    )]
    Owner {
        /// The file, the folder or the link.
        path: PathBuf,
        /// Its owner.
        owner: u32,
        /// This user.
        user: u32,
    },
    /// Other users can write to it.
    #[error(
        "other users can write to {}, and so change what is permitted: run `chmod go-w {}`",
        path.display(), path.display()
    )]
    Writable {
        /// The file or the folder.
        path: PathBuf,
    },
    /// The path has too many links.
    #[error("{} leads through more than {MAX_LINKS} links", path.display())]
    Links {
        /// The path.
        path: PathBuf,
    },
}

/// Checks that only this user and root can change the file or folder at `path`: owners and permissions of the file itself, of each folder
/// on the way to it, and of the links that lead there. What is not there passes: reading it fails.
///
/// A folder above that others can write to is in order if it is sticky, like `/tmp`: they cannot rename what is not theirs.
pub fn check(path: &Path) -> Result<(), UntrustedPath> {
    let Ok(absolute) = std::path::absolute(path) else { return Ok(()) };
    let mut rest: VecDeque<OsString> = parts(&absolute);
    let mut here = PathBuf::from("/");
    let mut links = 0;
    while let Some(part) = rest.pop_front() {
        if part == OsStr::new("..") {
            here.pop();
            continue;
        }
        here.push(&part);
        let Ok(found) = fs::symlink_metadata(&here) else { return Ok(()) };
        let user = rustix::process::geteuid().as_raw();
        if found.uid() != user && found.uid() != 0 {
            return Err(UntrustedPath::Owner { path: here, owner: found.uid(), user });
        }
        if found.is_symlink() {
            links += 1;
            if links > MAX_LINKS {
                return Err(UntrustedPath::Links { path: path.to_owned() });
            }
            let Ok(target) = fs::read_link(&here) else { return Ok(()) };
            here.pop();
            if target.is_absolute() {
                here = PathBuf::from("/");
            }
            let mut ahead = parts(&target);
            ahead.append(&mut rest);
            rest = ahead;
            continue;
        }
        let is_way = !rest.is_empty() && found.is_dir();
        let is_sticky = found.mode() & 0o1000 != 0;
        let by_group = found.mode() & 0o020 != 0 && !is_own_group(found.gid());
        let by_others = found.mode() & 0o002 != 0;
        // Devices such as /dev/null are for everybody, and hold nothing that stays.
        if (by_group || by_others) && !(is_way && is_sticky) && (found.is_dir() || found.is_file()) {
            return Err(UntrustedPath::Writable { path: here });
        }
    }
    Ok(())
}

fn parts(path: &Path) -> VecDeque<OsString> {
    let parts = path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsString::from("..")),
        Component::Prefix(_) | Component::RootDir | Component::CurDir => None,
    });
    parts.collect()
}

/// Whether a group is this user's alone. Many systems give every user one, and make new files writable for it.
fn is_own_group(group: u32) -> bool {
    static OWN: OnceLock<Option<u32>> = OnceLock::new();
    let own = OWN.get_or_init(|| {
        let user = rustix::process::geteuid().as_raw();
        own_group(&database("/etc/passwd"), &database("/etc/group"), user)
    });
    *own == Some(group)
}

fn database(path: &str) -> String {
    let mut text = String::new();
    let read = fs::File::open(path).and_then(|file| file.take(MAX_DATABASE).read_to_string(&mut text));
    if read.is_ok() { text } else { String::new() }
}

/// The primary group of a user, if nobody else is in it.
fn own_group(users: &str, groups: &str, user: u32) -> Option<u32> {
    let of_user = |line: &str| {
        let mut fields = line.split(':');
        let name = fields.next()?.to_owned();
        let (uid, gid) = (fields.nth(1)?.parse::<u32>().ok()?, fields.next()?.parse::<u32>().ok()?);
        Some((name, uid, gid))
    };
    let users: Vec<(String, u32, u32)> = users.lines().filter_map(of_user).collect();
    let (name, _, group) = users.iter().find(|(_, uid, _)| *uid == user)?;
    let shared = users.iter().any(|(_, uid, gid)| gid == group && *uid != user);
    let mut found = false;
    for line in groups.lines() {
        let fields: Vec<&str> = line.split(':').collect();
        let [_, _, gid, members, ..] = fields.as_slice() else { continue };
        if gid.parse() != Ok(*group) {
            continue;
        }
        found = true;
        if members.split(',').any(|member| !member.is_empty() && member != name) {
            return None;
        }
    }
    (found && !shared).then_some(*group)
}

#[cfg(test)]
mod tests;
