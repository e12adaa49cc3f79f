//! The snapshot of a workspace as [`Files`], and files of a suite that go into it.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use proctor_sandbox::{CopyLimits, Snapshot, WorkspaceError};

use crate::checks::{EntryKind, FileEntry, Files, FilesError, WorkspacePath};
use crate::suite::{FileItem, FileSource};

/// A folder whose links are never followed.
#[derive(Debug, Clone, Copy)]
pub struct Folder<'f> {
    root: &'f Path,
}

impl<'f> Folder<'f> {
    /// The files below a folder that nobody writes to any more.
    pub fn new(root: &'f Path) -> Folder<'f> {
        Folder { root }
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
    pub fn write(&self, folder: &Path) -> std::io::Result<()> {
        let target = folder.join(self.target.as_str());
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent)?;
        }
        match &self.source {
            ResolvedSource::Inline(text) => fs::write(target, text),
            ResolvedSource::Path(source) if source.is_dir() => {
                for entry in fs::read_dir(source)? {
                    let entry = entry?;
                    let name = entry.file_name().to_string_lossy().into_owned();
                    let below = WorkspacePath::parse(&name)
                        .map_err(|error| std::io::Error::other(error.to_string()))?;
                    let file = ResolvedFile {
                        target: self.target.join(&below),
                        source: ResolvedSource::Path(entry.path()),
                    };
                    file.write(folder)?;
                }
                Ok(())
            }
            ResolvedSource::Path(source) => fs::copy(source, target).map(drop),
        }
    }

    /// Brings the file into a snapshot, in place of what the agent may have put there.
    pub fn add_to(&self, snapshot: &Snapshot, scratch: &Path) -> Result<(), WorkspaceError> {
        let target = Path::new(self.target.as_str());
        match &self.source {
            ResolvedSource::Path(source) => snapshot.add(source, target, CopyLimits::default()),
            ResolvedSource::Inline(text) => {
                let file = scratch.join("inline");
                fs::write(&file, text).map_err(|source| WorkspaceError::Io {
                    what: "writing",
                    path: file.clone(),
                    source,
                })?;
                snapshot.add(&file, target, CopyLimits::default())
            }
        }
    }
}
