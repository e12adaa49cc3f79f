//! Advisory lock `owner.lock`: one writing process for each state directory, named by its pid.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};

use crate::error::OpenError;

/// The file that the owner of a state directory holds locked.
pub const LOCK_FILE: &str = "owner.lock";

const TRIES: u32 = 5;

/// The ownership of a state directory. It ends when this is dropped, or with the process, however that ends.
#[derive(Debug)]
pub struct OwnerLock {
    _file: File,
}

impl OwnerLock {
    /// Acquires the ownership of an existing directory, or returns the owner; never waits.
    pub fn take(dir: &Path) -> Result<OwnerLock, OpenError> {
        let path = dir.join(LOCK_FILE);
        let failed = |source| OpenError::Io { path: path.clone(), source };
        // Not truncated before it is ours: the present owner's process id is in it.
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            // A symbolic link could redirect the write to another user's file.
            .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
            .open(&path)
            .map_err(failed)?;
        // A process that only queries the owner holds the lock for a moment: that is worth a second try.
        let mut tries = 0;
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => break,
                Err(rustix::io::Errno::WOULDBLOCK) if tries == TRIES => {
                    return Err(OpenError::Owned { pid: read_pid(&mut file) });
                }
                Err(rustix::io::Errno::WOULDBLOCK) => std::thread::sleep(Duration::from_millis(1)),
                Err(errno) => return Err(failed(errno.into())),
            }
            tries += 1;
        }
        // The process id is for people; the lock holds without it, so a full disk does not matter here.
        let _ = write_pid(&mut file);
        Ok(OwnerLock { _file: file })
    }

    /// The process that owns the directory at this moment, if one does and says so.
    ///
    /// A directory that cannot be read has no owner that anybody could name.
    pub fn owner(dir: &Path) -> Option<u32> {
        let mut file = File::open(dir.join(LOCK_FILE)).ok()?;
        match flock(&file, FlockOperation::NonBlockingLockShared) {
            Ok(()) => None,
            Err(_) => read_pid(&mut file),
        }
    }
}

fn write_pid(file: &mut File) -> std::io::Result<()> {
    file.set_len(0)?;
    file.seek(SeekFrom::Start(0))?;
    writeln!(file, "{}", std::process::id())
}

fn read_pid(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.take(32).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_owner_is_told_who_the_first_is() {
        let dir = tempfile::tempdir().unwrap();
        let first = OwnerLock::take(dir.path()).unwrap();
        assert_eq!(OwnerLock::owner(dir.path()), Some(std::process::id()));
        match OwnerLock::take(dir.path()) {
            Err(OpenError::Owned { pid }) => assert_eq!(pid, Some(std::process::id())),
            other => panic!("{other:?}"),
        }
        drop(first);
        assert_eq!(OwnerLock::owner(dir.path()), None);
        OwnerLock::take(dir.path()).unwrap();
    }
}
