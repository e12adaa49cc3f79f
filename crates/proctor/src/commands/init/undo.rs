//! Files and folders that a command has made, which it removes if it fails.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// Removes what was made when it is dropped, unless everything succeeded.
#[derive(Debug, Default)]
pub struct Undo {
    files: Vec<PathBuf>,
    /// Folders with the names that were in them before.
    contents: Vec<(PathBuf, BTreeSet<OsString>)>,
    /// Folders that were not there, the deepest first.
    folders: Vec<PathBuf>,
}

impl Undo {
    /// Notes a file before it is made.
    pub fn file(&mut self, file: &Path) {
        if file.symlink_metadata().is_err() {
            self.files.push(file.to_owned());
            self.above(file);
        }
    }

    /// Notes a folder before it is made or filled.
    pub fn folder(&mut self, folder: &Path) {
        let entries = fs::read_dir(folder).into_iter().flatten();
        let before = entries.filter_map(|entry| Some(entry.ok()?.file_name())).collect();
        self.contents.push((folder.to_owned(), before));
        if folder.symlink_metadata().is_err() {
            self.folders.push(folder.to_owned());
            self.above(folder);
        }
    }

    /// Everything succeeded, and stays.
    pub fn keep(mut self) {
        (self.files, self.contents, self.folders) = Default::default();
    }

    fn above(&mut self, path: &Path) {
        let missing = path.ancestors().skip(1).take_while(|folder| folder.symlink_metadata().is_err());
        self.folders.extend(missing.map(Path::to_owned));
    }
}

impl Drop for Undo {
    fn drop(&mut self) {
        for file in &self.files {
            let _ = fs::remove_file(file);
        }
        for (folder, before) in &self.contents {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                if before.contains(&entry.file_name()) {
                    continue;
                }
                let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
                let _ =
                    if is_folder { fs::remove_dir_all(entry.path()) } else { fs::remove_file(entry.path()) };
            }
        }
        // Only empty ones: what somebody else has put there stays.
        for folder in &self.folders {
            let _ = fs::remove_dir(folder);
        }
    }
}
