//! Files and folders that only their owner can use: keys, secrets, sockets.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Error of a private file or folder.
#[derive(Debug, thiserror::Error)]
pub enum PrivateError {
    /// The operating system refused.
    #[error("{}: {}", path.display(), crate::describe(source))]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// A secret that other users can read or write.
    #[error("{}: other users can read or write this file: run `chmod 600 {}`", .0.display(), .0.display())]
    SharedFile(PathBuf),
    /// A folder that other users can write to.
    #[error("{}: other users can write to this folder, so no socket is made in it", .0.display())]
    SharedFolder(PathBuf),
}

impl PrivateError {
    fn io(path: &Path) -> impl Fn(std::io::Error) -> PrivateError + '_ {
        move |source| PrivateError::Io { path: path.to_owned(), source }
    }
}

/// Reads a secret, and refuses one that other users can read or write.
pub fn read(file: &Path) -> Result<String, PrivateError> {
    let found = fs::metadata(file).map_err(PrivateError::io(file))?;
    if found.mode() & 0o077 != 0 {
        return Err(PrivateError::SharedFile(file.to_owned()));
    }
    fs::read_to_string(file).map_err(PrivateError::io(file))
}

/// Writes a file of mode 0600, whole or not at all; an existing file is left as it is.
pub fn write(file: &Path, text: &str) -> Result<(), PrivateError> {
    let describe = PrivateError::io(file);
    let mut draft = file.as_os_str().to_owned();
    draft.push(format!(".{}", std::process::id()));
    let draft = PathBuf::from(draft);
    let _ = fs::remove_file(&draft);
    let mut open = fs::OpenOptions::new();
    let mut handle = open.write(true).create_new(true).mode(0o600).open(&draft).map_err(&describe)?;
    handle.write_all(text.as_bytes()).and_then(|()| handle.sync_all()).map_err(&describe)?;
    // A hard link fails if the name is taken: then another process was faster, and its file counts.
    let linked = fs::hard_link(&draft, file);
    let _ = fs::remove_file(&draft);
    match linked {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(describe(error)),
        _ => Ok(()),
    }
}

/// Opens a file for writing, empty and of mode 0600, also if it was there with a wider mode. What is no file (a pipe, a terminal) keeps its mode.
pub fn create(file: &Path) -> std::io::Result<fs::File> {
    let mut open = fs::OpenOptions::new();
    let handle = open.write(true).create(true).truncate(true).mode(0o600).open(file)?;
    let found = handle.metadata()?;
    if found.is_file() && found.mode() & 0o077 != 0 {
        handle.set_permissions(fs::Permissions::from_mode(0o600))?;
    }
    Ok(handle)
}

/// Makes a folder of mode 0700 with its parents; one that other users own or can write to is refused.
pub fn create_folder(folder: &Path) -> Result<(), PrivateError> {
    let describe = PrivateError::io(folder);
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(&describe)?;
    let found = fs::symlink_metadata(folder).map_err(&describe)?;
    if !found.is_dir() || found.uid() != rustix::process::getuid().as_raw() || found.mode() & 0o022 != 0 {
        return Err(PrivateError::SharedFolder(folder.to_owned()));
    }
    Ok(())
}
