//! Access to the workspace of a run.

use std::fmt;

use proctor_core::quoted;

/// Longest path in bytes.
const MAX_PATH_BYTES: usize = 4096;

/// A path inside the workspace: relative, without `..`, normalised. The workspace itself is `.`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WorkspacePath(String);

/// Problems of a path that must lie in the workspace.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// Nothing.
    #[error("the path is empty")]
    Empty,
    /// Too long.
    #[error("the path is longer than {MAX_PATH_BYTES} bytes")]
    TooLong,
    /// A NUL character.
    #[error("the path has a NUL character")]
    Nul,
    /// Not relative.
    #[error("{} is not relative; write a path below the workspace", quoted(.0))]
    Absolute(String),
    /// Leaves the workspace.
    #[error("{} leaves the workspace; write it without `..`", quoted(.0))]
    Outside(String),
}

/// Whether a path is absolute on some system: a suite means the same everywhere.
fn is_absolute(path: &str) -> bool {
    let bytes = path.as_bytes();
    let has_drive = bytes.get(1) == Some(&b':') && bytes.first().is_some_and(u8::is_ascii_alphabetic);
    path.starts_with(['/', '\\', '~']) || has_drive
}

impl WorkspacePath {
    /// Reads a path.
    ///
    /// ```
    /// use proctor_runner::checks::WorkspacePath;
    /// assert_eq!(WorkspacePath::parse("./out//a.txt").unwrap().as_str(), "out/a.txt");
    /// assert!(WorkspacePath::parse("out/../../etc").is_err());
    /// ```
    pub fn parse(written: &str) -> Result<WorkspacePath, PathError> {
        if written.is_empty() {
            return Err(PathError::Empty);
        }
        if written.len() > MAX_PATH_BYTES {
            return Err(PathError::TooLong);
        }
        if written.contains('\0') {
            return Err(PathError::Nul);
        }
        if is_absolute(written) {
            return Err(PathError::Absolute(written.to_owned()));
        }
        if written.split(['/', '\\']).any(|segment| segment == "..") {
            return Err(PathError::Outside(written.to_owned()));
        }
        let segments: Vec<&str> =
            written.split('/').filter(|segment| !segment.is_empty() && *segment != ".").collect();
        let path = if segments.is_empty() { ".".to_owned() } else { segments.join("/") };
        // Without its `./` a path may be absolute for another system.
        if is_absolute(&path) {
            return Err(PathError::Absolute(written.to_owned()));
        }
        Ok(WorkspacePath(path))
    }

    /// The workspace itself.
    #[must_use]
    pub fn root() -> WorkspacePath {
        WorkspacePath(".".to_owned())
    }

    /// The path below this one.
    #[must_use]
    pub fn join(&self, below: &WorkspacePath) -> WorkspacePath {
        match (self.0.as_str(), below.0.as_str()) {
            (".", _) => below.clone(),
            (_, ".") => self.clone(),
            (above, below) => WorkspacePath(format!("{above}/{below}")),
        }
    }

    /// The normalised path.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for WorkspacePath {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// Kinds of directory entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// Anything else: a symbolic link that leaves the workspace, a socket, a device.
    Other,
}

/// An entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileEntry {
    /// Name, without the directory.
    pub name: String,
    /// Kind.
    pub kind: EntryKind,
}

/// Problems of reading the workspace.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FilesError {
    /// A file is larger than the reader allows.
    #[error("`{path}` has more than {limit} bytes")]
    TooLarge {
        /// The file.
        path: String,
        /// The limit.
        limit: usize,
    },
    /// A directory has more entries than the reader allows.
    #[error("`{path}` has more than {limit} entries")]
    TooMany {
        /// The directory.
        path: String,
        /// The limit.
        limit: usize,
    },
    /// The system refused.
    #[error("`{path}` cannot be read: {reason}")]
    Unreadable {
        /// The path.
        path: String,
        /// The system's reason.
        reason: String,
    },
}

/// The snapshot of a workspace. Implementations never follow a link out of it.
pub trait Files: Sync {
    /// The kind of an entry; `None` if nothing is there.
    fn entry(&self, path: &WorkspacePath) -> Result<Option<EntryKind>, FilesError>;
    /// The content of a file of at most `limit` bytes.
    fn read(&self, path: &WorkspacePath, limit: usize) -> Result<Vec<u8>, FilesError>;
    /// The direct entries of a directory, at most `limit`.
    fn list(&self, path: &WorkspacePath, limit: usize) -> Result<Vec<FileEntry>, FilesError>;
    /// A text as messages may repeat it: without the secrets of the run. It is cut before it is shortened, so that no part of one stays.
    fn shown(&self, text: &str) -> String {
        text.to_owned()
    }
}

/// A workspace without files.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoFiles;

impl Files for NoFiles {
    fn entry(&self, path: &WorkspacePath) -> Result<Option<EntryKind>, FilesError> {
        Ok((path.as_str() == ".").then_some(EntryKind::Directory))
    }

    fn read(&self, path: &WorkspacePath, _: usize) -> Result<Vec<u8>, FilesError> {
        Err(FilesError::Unreadable { path: path.to_string(), reason: "no such file".to_owned() })
    }

    fn list(&self, _: &WorkspacePath, _: usize) -> Result<Vec<FileEntry>, FilesError> {
        Ok(Vec::new())
    }
}
