//! Files that the command line writes: below the working directory, never through a link, for their owner only.

use std::ffi::CString;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{self, Mode, OFlags};

/// Error of writing a file.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The path leaves the working directory.
    #[error("`{0}` is not below the working directory: files are written there only")]
    Outside(String),
    /// The operating system refused, or a part of the path is a link.
    #[error("{}: {}", path.display(), proctor_system::describe(source))]
    Io {
        /// The path.
        path: PathBuf,
        /// The operating system's error.
        source: std::io::Error,
    },
}

/// Writes a file of mode 0600 below `folder`. Folders on the way must exist; no part of the path may be a link.
pub fn below(folder: &Path, written: &str, text: &str) -> Result<PathBuf, WriteError> {
    let outside = || WriteError::Outside(written.to_owned());
    let relative = Path::new(written);
    let relative = relative.strip_prefix(folder).unwrap_or(relative);
    let mut parts = Vec::new();
    for component in relative.components() {
        match component {
            Component::Normal(part) => parts.push(part),
            Component::CurDir => {}
            _ => return Err(outside()),
        }
    }
    let Some((name, folders)) = parts.split_last() else { return Err(outside()) };
    let path = folder.join(relative);
    let describe = |source: std::io::Error| WriteError::Io { path: path.clone(), source };
    let directory = OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut at: OwnedFd =
        fs::open(folder, directory, Mode::empty()).map_err(|error| describe(error.into()))?;
    for part in folders {
        // Opened part by part, without following links: a link that is put there meanwhile is refused, too.
        at = fs::openat(&at, *part, directory | OFlags::NOFOLLOW, Mode::empty())
            .map_err(|error| describe(error.into()))?;
    }
    let name = CString::new(name.as_encoded_bytes()).map_err(|_| outside())?;
    let draft = CString::new([name.as_bytes(), format!(".{}", std::process::id()).as_bytes()].concat())
        .map_err(|_| outside())?;
    if let Ok(found) = fs::statat(&at, &name, fs::AtFlags::SYMLINK_NOFOLLOW)
        && fs::FileType::from_raw_mode(found.st_mode) != fs::FileType::RegularFile
    {
        return Err(describe(std::io::Error::other("this is not a regular file, so it is not replaced")));
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let created =
        fs::openat(&at, &draft, flags, Mode::RUSR | Mode::WUSR).map_err(|error| describe(error.into()))?;
    let mut file = std::fs::File::from(created);
    let stored = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    let stored = stored.and_then(|()| fs::renameat(&at, &draft, &at, &name).map_err(Into::into));
    if let Err(error) = stored {
        let _ = fs::unlinkat(&at, &draft, fs::AtFlags::empty());
        return Err(describe(error));
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::{WriteError, below};

    #[test]
    fn files_are_written_below_the_folder_and_nowhere_else() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().join("base");
        std::fs::create_dir_all(base.join("sub")).unwrap();
        std::fs::create_dir_all(folder.path().join("other")).unwrap();
        std::os::unix::fs::symlink(folder.path().join("other"), base.join("link")).unwrap();
        std::os::unix::fs::symlink(folder.path().join("other/file"), base.join("name")).unwrap();

        let made = below(&base, "sub/a.json", "one").unwrap();
        below(&base, "sub/a.json", "two").unwrap();
        assert_eq!(std::fs::read_to_string(&made).unwrap(), "two");
        assert_eq!(std::fs::metadata(&made).unwrap().permissions().mode() & 0o777, 0o600);
        below(&base, base.join("b.json").to_str().unwrap(), "x").unwrap();

        for path in ["../x", "/tmp/x", "sub/../../x", "", "."] {
            assert!(matches!(below(&base, path, "x"), Err(WriteError::Outside(_))), "{path}");
        }
        assert!(matches!(below(&base, "link/x", "x"), Err(WriteError::Io { .. })));
        assert!(matches!(below(&base, "name", "x"), Err(WriteError::Io { .. })));
        assert!(std::fs::read_dir(folder.path().join("other")).unwrap().next().is_none());
    }
}
