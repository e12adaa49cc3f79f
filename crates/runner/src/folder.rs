//! The snapshot of a workspace as [`Files`], and files of a suite that go into it.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use proctor_core::digest::Digest;
use proctor_sandbox::{CopyLimits, Snapshot, WorkspaceError};

use crate::checks::{EntryKind, FileEntry, Files, FilesError, WorkspacePath};
use crate::secrets::{Emitted, Secrets};
use crate::suite::{FileItem, FileSource};

/// A folder whose links are never followed.
#[derive(Debug, Clone, Copy)]
pub struct Folder<'f> {
    root: &'f Path,
    secrets: Option<&'f Secrets>,
    hits: Option<&'f Hits>,
}

/// Secrets in files that were looked at: paths, and names of the secrets.
#[derive(Debug, Default)]
pub struct Hits(Mutex<BTreeMap<String, Vec<String>>>);

impl Hits {
    fn add(&self, path: &WorkspacePath, names: Vec<String>) {
        if !names.is_empty() {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(path.to_string(), names);
        }
    }

    /// The paths, and the names of the secrets in each.
    pub fn into_names(self) -> BTreeMap<String, Vec<String>> {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<'f> Folder<'f> {
    /// The files below a folder that nobody writes to any more.
    pub fn new(root: &'f Path) -> Folder<'f> {
        Folder { root, secrets: None, hits: None }
    }

    /// The same files, without these secrets where messages repeat a part of them.
    #[must_use]
    pub fn without_secrets(self, secrets: &'f Secrets) -> Folder<'f> {
        Folder { secrets: Some(secrets), ..self }
    }

    /// The same files; those that hold secrets are noted as they are read.
    #[must_use]
    pub fn noting(self, hits: &'f Hits) -> Folder<'f> {
        Folder { hits: Some(hits), ..self }
    }

    /// Looks for secrets in the first `limit` bytes of a file, if there is one.
    pub fn look_for_secrets(&self, path: &WorkspacePath, limit: u64) {
        let (Some(secrets), Some(hits)) = (self.secrets, self.hits) else { return };
        let Ok(Some((place, found))) = self.metadata(path) else { return };
        if found.is_file()
            && let Ok(file) = fs::File::open(place)
        {
            let emitted = Emitted::default();
            secrets.look_in(file, limit, &emitted);
            hits.add(path, emitted.names());
        }
    }

    /// The entry at a path, if no part of the path is a link.
    fn metadata(&self, path: &WorkspacePath) -> Result<Option<(PathBuf, fs::Metadata)>, FilesError> {
        let mut place = self.root.to_owned();
        let mut found = fs::symlink_metadata(&place).map_err(|error| unreadable(path, &error))?;
        for part in Path::new(path.as_str()).components() {
            if matches!(part, std::path::Component::CurDir) {
                continue;
            }
            if !found.is_dir() {
                return Ok(None);
            }
            place.push(part);
            found = match fs::symlink_metadata(&place) {
                Ok(found) => found,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(unreadable(path, &error)),
            };
        }
        Ok(Some((place, found)))
    }
}

impl Folder<'_> {
    /// Size of a file; none if there is no file.
    pub fn size(&self, path: &WorkspacePath) -> Result<Option<u64>, FilesError> {
        let found = self.metadata(path)?;
        Ok(found.filter(|(_, found)| found.is_file()).map(|(_, found)| found.len()))
    }

    /// Digest of a file, however large it is.
    pub fn digest(&self, path: &WorkspacePath) -> Result<Digest, FilesError> {
        let missing = || FilesError::Unreadable { path: path.to_string(), reason: "no such file".to_owned() };
        let (place, _) = self.metadata(path)?.filter(|(_, found)| found.is_file()).ok_or_else(missing)?;
        let mut file = fs::File::open(place).map_err(|error| unreadable(path, &error))?;
        let read = |buffer: &mut [u8]| loop {
            match file.read(buffer) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                read => return read,
            }
        };
        let (_, digest) = Digest::of_reads(read).map_err(|error| unreadable(path, &error))?;
        Ok(digest)
    }
}

fn unreadable(path: &WorkspacePath, error: &std::io::Error) -> FilesError {
    FilesError::Unreadable { path: path.to_string(), reason: error.to_string() }
}

fn kind(found: &fs::Metadata) -> EntryKind {
    if found.is_file() {
        EntryKind::File
    } else if found.is_dir() {
        EntryKind::Directory
    } else {
        EntryKind::Other
    }
}

impl Files for Folder<'_> {
    fn shown(&self, text: &str) -> String {
        self.secrets.map_or_else(|| text.to_owned(), |secrets| secrets.cut(text).0.into_owned())
    }

    fn entry(&self, path: &WorkspacePath) -> Result<Option<EntryKind>, FilesError> {
        Ok(self.metadata(path)?.map(|(_, found)| kind(&found)))
    }

    fn read(&self, path: &WorkspacePath, limit: usize) -> Result<Vec<u8>, FilesError> {
        let missing = || FilesError::Unreadable { path: path.to_string(), reason: "no such file".to_owned() };
        let (place, found) = self.metadata(path)?.ok_or_else(missing)?;
        if !found.is_file() {
            return Err(missing());
        }
        let file = fs::File::open(place).map_err(|error| unreadable(path, &error))?;
        let mut content = Vec::new();
        let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
        file.take(most).read_to_end(&mut content).map_err(|error| unreadable(path, &error))?;
        if content.len() > limit {
            return Err(FilesError::TooLarge { path: path.to_string(), limit });
        }
        if let (Some(secrets), Some(hits)) = (self.secrets, self.hits) {
            let emitted = Emitted::default();
            secrets.look_in(content.as_slice(), u64::MAX, &emitted);
            hits.add(path, emitted.names());
        }
        Ok(content)
    }

    fn list(&self, path: &WorkspacePath, limit: usize) -> Result<Vec<FileEntry>, FilesError> {
        let Some((place, found)) = self.metadata(path)? else { return Ok(Vec::new()) };
        if !found.is_dir() {
            return Ok(Vec::new());
        }
        let mut entries = Vec::new();
        for entry in fs::read_dir(place).map_err(|error| unreadable(path, &error))? {
            let entry = entry.map_err(|error| unreadable(path, &error))?;
            let found = fs::symlink_metadata(entry.path()).map_err(|error| unreadable(path, &error))?;
            if entries.len() == limit {
                return Err(FilesError::TooMany { path: path.to_string(), limit });
            }
            let name = entry.file_name().to_string_lossy().into_owned();
            entries.push(FileEntry { name, kind: kind(&found) });
        }
        entries.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(entries)
    }
}

/// A file of `files` or `reference`, with its place on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedFile {
    /// Path in the workspace.
    pub target: WorkspacePath,
    /// The content.
    pub source: ResolvedSource,
}

/// Content of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResolvedSource {
    /// Text in the suite.
    Inline(String),
    /// A file or folder.
    Path(PathBuf),
}

/// Error of laying down a file.
#[derive(Debug, thiserror::Error)]
pub enum WriteFileError {
    /// The file on disk cannot be read.
    #[error("`{}` cannot be read: {error}", path.display())]
    Read {
        /// The file on disk.
        path: PathBuf,
        /// Reason of the operating system.
        error: std::io::Error,
    },
    /// The file in the workspace cannot be written.
    #[error("`{path}` cannot be written into the workspace: {error}")]
    Write {
        /// Path in the workspace.
        path: String,
        /// Reason of the operating system.
        error: std::io::Error,
    },
}

impl ResolvedFile {
    /// Finds the places of a suite's files.
    pub fn resolve(items: &[FileItem], locate: &dyn Fn(&str) -> PathBuf) -> Vec<ResolvedFile> {
        let source = |item: &FileItem| match &item.source {
            FileSource::Inline(text) => ResolvedSource::Inline(text.clone()),
            FileSource::Path(written) => ResolvedSource::Path(locate(written)),
        };
        items.iter().map(|item| ResolvedFile { target: item.path.clone(), source: source(item) }).collect()
    }

    /// Writes the file into a folder that no other process uses.
    pub fn write(&self, folder: &Path) -> Result<(), WriteFileError> {
        let target = folder.join(self.target.as_str());
        let unwritten =
            |error: std::io::Error| WriteFileError::Write { path: self.target.to_string(), error };
        let unread = |path: &Path, error| WriteFileError::Read { path: path.to_owned(), error };
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent).map_err(unwritten)?;
        }
        match &self.source {
            ResolvedSource::Inline(text) => fs::write(target, text).map_err(unwritten),
            ResolvedSource::Path(source) if source.is_dir() => {
                for entry in fs::read_dir(source).map_err(|error| unread(source, error))? {
                    let entry = entry.map_err(|error| unread(source, error))?;
                    let name = entry.file_name().to_string_lossy().into_owned();
                    let below = WorkspacePath::parse(&name)
                        .map_err(|error| unread(&entry.path(), std::io::Error::other(error.to_string())))?;
                    let file = ResolvedFile {
                        target: self.target.join(&below),
                        source: ResolvedSource::Path(entry.path()),
                    };
                    file.write(folder)?;
                }
                Ok(())
            }
            ResolvedSource::Path(source) => {
                let mut from = fs::File::open(source).map_err(|error| unread(source, error))?;
                let mode = from.metadata().map_err(|error| unread(source, error))?.permissions();
                let mut to = fs::File::create(&target).map_err(unwritten)?;
                std::io::copy(&mut from, &mut to).map_err(unwritten)?;
                fs::set_permissions(&target, mode).map_err(unwritten)
            }
        }
    }

    /// Brings the file into a snapshot, in place of what the agent may have put there.
    pub fn add_to(&self, snapshot: &Snapshot) -> Result<(), WorkspaceError> {
        let target = Path::new(self.target.as_str());
        match &self.source {
            ResolvedSource::Path(source) => snapshot.add(source, target, CopyLimits::default()),
            ResolvedSource::Inline(text) => snapshot.write(target, text.as_bytes()),
        }
    }
}
