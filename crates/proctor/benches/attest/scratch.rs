//! A folder for one run.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::failure::Failure;

/// A folder that is removed at the end, with everything in it.
pub struct Scratch {
    folder: PathBuf,
    made: AtomicU32,
}

impl Scratch {
    /// Makes the folder.
    pub fn new() -> Result<Scratch, Failure> {
        let folder = std::env::temp_dir().join(format!("attest-bench-{}", std::process::id()));
        std::fs::create_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        Ok(Scratch { folder, made: AtomicU32::new(0) })
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// A path in it that was not given before; nothing is there.
    pub fn fresh(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}-{}", self.made.fetch_add(1, Ordering::Relaxed)))
    }

    /// A path that cannot be a folder, whoever tries: below a file.
    pub fn unusable(&self) -> Result<PathBuf, Failure> {
        let file = self.folder.join("file");
        std::fs::write(&file, "").map_err(|error| format!("{}: {error}", file.display()))?;
        Ok(file.join("cache"))
    }

    /// Another name for a program.
    pub fn link(&self, name: &str, program: &str) -> Result<PathBuf, Failure> {
        let link = self.folder.join(name);
        #[cfg(unix)]
        std::os::unix::fs::symlink(program, &link).map_err(|error| format!("{}: {error}", link.display()))?;
        #[cfg(not(unix))]
        std::fs::copy(program, &link).map_err(|error| format!("{}: {error}", link.display()))?;
        Ok(link)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
