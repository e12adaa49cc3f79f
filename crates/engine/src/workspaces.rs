//! Pinned workspaces: the folder that each caller's actions are judged against, by its token or for all.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use proctor_facts::path::absolute;

/// Workspaces of the settings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Workspaces {
    all: String,
    by_principal: HashMap<String, String>,
}

/// Error in a pinned workspace.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("workspace `{}`: a path of at most {} bytes of UTF-8 that starts at the root is needed", path.display(), proctor_facts::MAX_PATH)]
pub struct WorkspaceError {
    /// The folder as the settings name it, made absolute.
    path: PathBuf,
}

impl Workspaces {
    /// Pins the workspace of all callers. Links are followed once, here: the agent could turn them round later.
    pub fn pin(&mut self, folder: &Path) -> Result<(), WorkspaceError> {
        self.all = real(folder)?;
        Ok(())
    }

    /// Pins the workspace of one principal, in place of that of all callers.
    pub fn pin_for(&mut self, principal: String, folder: &Path) -> Result<(), WorkspaceError> {
        self.by_principal.insert(principal, real(folder)?);
        Ok(())
    }

    /// The workspace of a principal; empty if none is pinned.
    pub fn of(&self, principal: &str) -> &str {
        self.by_principal.get(principal).unwrap_or(&self.all)
    }
}

/// The folder without links; as it is written if it is not on this machine.
fn real(folder: &Path) -> Result<String, WorkspaceError> {
    let path = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let text = path.to_str().map(|text| absolute(text, "")).unwrap_or_default();
    let is_usable = text.starts_with('/') && text.len() <= proctor_facts::MAX_PATH;
    is_usable.then_some(text).ok_or(WorkspaceError { path })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_has_its_own_workspace_and_links_are_followed_once() {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().canonicalize().unwrap();
        std::fs::create_dir(real.join("work")).unwrap();
        std::os::unix::fs::symlink(real.join("work"), real.join("link")).unwrap();
        let mut workspaces = Workspaces::default();
        assert_eq!(workspaces.of("uid:1"), "");
        workspaces.pin(&real.join("link")).unwrap();
        workspaces.pin_for("agent:ci".to_owned(), Path::new("/nowhere/./x/../builds")).unwrap();
        assert_eq!(workspaces.of("uid:1"), real.join("work").to_str().unwrap());
        assert_eq!(workspaces.of("agent:ci"), "/nowhere/builds");
        for unusable in ["", "relative", &"/x".repeat(3000)] {
            assert!(workspaces.pin(Path::new(unusable)).is_err(), "{unusable:.20}");
        }
    }
}
