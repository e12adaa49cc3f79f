//! The directory of the database: creation, size, and removal of its files.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Time that a program waits for another that is just opening or emptying the directory.
const LOCK_WAIT: Duration = Duration::from_secs(5);

/// The report of `cache stats`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheStats {
    /// The directory asked about.
    pub dir: PathBuf,
    /// Whether the name exists.
    pub exists: bool,
    /// Whether it is a directory.
    pub is_dir: bool,
    /// Regular files directly in it.
    pub files: u64,
    /// Total size of the files.
    pub size_bytes: u64,
}

/// Counts the regular files directly in the directory. One that is not there has none.
pub fn stats(dir: &Path) -> io::Result<CacheStats> {
    let mut stats = CacheStats { dir: dir.to_owned(), exists: true, is_dir: false, files: 0, size_bytes: 0 };
    match fs::metadata(dir) {
        Ok(metadata) => stats.is_dir = metadata.is_dir(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => stats.exists = false,
        Err(error) => return Err(error),
    }
    if stats.is_dir {
        for entry in regular_files(dir)? {
            stats.files += 1;
            stats.size_bytes =
                stats.size_bytes.saturating_add(entry.metadata().map_or(0, |about| about.len()));
        }
    }
    Ok(stats)
}

/// Deletes the regular files directly in the directory and says how many there were.
///
/// An engine that has the database open keeps working: it goes on in a new file with its next write.
pub fn clear(dir: &Path) -> io::Result<u64> {
    match fs::metadata(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        _ => {}
    }
    let _lock = lock(dir);
    let mut deleted = 0;
    for entry in regular_files(dir)? {
        match fs::remove_file(entry.path()) {
            Ok(()) => deleted += 1,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(deleted)
}

/// Creates the directory and its parents, readable by all users: what is private in it is private by itself.
pub(super) fn make(dir: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o755).create(dir)
}

/// Makes the database's file for its owner alone, and takes the rights of others from one that an earlier version made. SQLite gives its
/// log and its index the rights of the database.
pub(super) fn make_private(file: &Path) -> io::Result<()> {
    // INVARIANT: a database that is there is never opened here: closing it would release SQLite's locks on it.
    match fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(file) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        Ok(_) | Err(_) => {}
    }
    for suffix in ["", "-wal", "-shm"] {
        let mut name = file.as_os_str().to_owned();
        name.push(suffix);
        let name = PathBuf::from(name);
        // Only what this user owns can be changed; a database of somebody else stays as it is.
        let is_open = fs::metadata(&name).is_ok_and(|found| found.is_file() && found.mode() & 0o077 != 0);
        if is_open {
            let _ = fs::set_permissions(&name, fs::Permissions::from_mode(0o600));
        }
    }
    Ok(())
}

/// Keeps others from opening or emptying the directory at the same moment, until the returned value is dropped.
///
/// A write-ahead log is bound to its database by name only. Were the database deleted between another program's
/// opening of the one and of the other, two databases would share one log. Where a directory cannot be locked, or
/// another process holds the lock for long, the deletion goes on without it: the window is small.
pub(super) fn lock(dir: &Path) -> Option<File> {
    let directory = File::open(dir).ok()?;
    let give_up = Instant::now() + LOCK_WAIT;
    loop {
        match directory.try_lock() {
            Ok(()) => return Some(directory),
            Err(TryLockError::WouldBlock) if Instant::now() < give_up => {
                std::thread::sleep(Duration::from_millis(2));
            }
            Err(_) => return None,
        }
    }
}

/// Identity of the file that a name means at the moment; none if there is no such file.
pub(super) fn identity(path: &Path) -> Option<(u64, u64)> {
    // INVARIANT: the database is never opened here, only looked at: closing it would release SQLite's locks on it.
    fs::metadata(path).ok().map(|about| (about.dev(), about.ino()))
}

fn regular_files(dir: &Path) -> io::Result<Vec<fs::DirEntry>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type().is_ok_and(|kind| kind.is_file()) {
            files.push(entry);
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_directly_in_the_directory_count() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("attest.db"), "12345").unwrap();
        fs::write(dir.path().join("other"), "123").unwrap();
        fs::create_dir(dir.path().join("below")).unwrap();
        fs::write(dir.path().join("below/kept"), "1").unwrap();
        std::os::unix::fs::symlink("other", dir.path().join("link")).unwrap();
        let found = stats(dir.path()).unwrap();
        assert_eq!((found.exists, found.is_dir, found.files, found.size_bytes), (true, true, 2, 8));
        assert_eq!(clear(dir.path()).unwrap(), 2);
        assert_eq!(stats(dir.path()).unwrap().files, 0);
        assert!(dir.path().join("below/kept").exists());
    }

    #[test]
    fn a_directory_that_is_not_there_is_empty() {
        let dir = tempfile::tempdir().unwrap();
        let absent = dir.path().join("absent");
        assert!(!stats(&absent).unwrap().exists);
        assert_eq!(clear(&absent).unwrap(), 0);
    }

    #[test]
    fn a_file_is_no_directory() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs::write(&file, "kept").unwrap();
        let found = stats(&file).unwrap();
        assert_eq!((found.exists, found.is_dir, found.files), (true, false, 0));
        assert!(clear(&file).is_err());
        assert!(file.exists());
    }
}
