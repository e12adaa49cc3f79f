//! The pinned workspace of a caller, and containment of an action's paths in it.

use super::path::absolute;
use super::{Facts, PathResolver};

/// Folder that a caller's relative paths start from, and access to the file system that it is in. The default is no workspace and no file system.
#[derive(Clone, Copy, Default)]
pub struct Workspace<'a> {
    /// The workspace, absolute and cleaned; empty if none is pinned.
    pub folder: &'a str,
    /// Resolver of real paths; only for callers on this host.
    pub resolver: Option<&'a dyn PathResolver>,
}

/// Device that holds nothing: reading and writing it reaches no file.
const NULL_DEVICE: &str = "/dev/null";

impl Facts {
    /// Whether the action stays in a folder of the workspace: there is a workspace, nothing is unknown, and every path lies below the
    /// folder. Commands run below the workspace; those that name no path have to run below the folder. An action without paths and
    /// commands is nowhere, and so within nothing.
    ///
    /// `folder` is relative to the workspace; empty or `.` is the workspace itself.
    pub fn is_within(&self, folder: &str) -> bool {
        let Some(folder) = self.folder_of(folder) else { return false };
        if self.paths.is_empty() {
            return !self.commands.is_empty() && contains(&folder, &self.cwd);
        }
        self.are_below(&folder, &self.paths)
    }

    /// Whether all that the action writes lies in a folder of the workspace, by the conditions of [`Facts::is_within`]. An action that
    /// writes nothing is within every folder.
    pub fn writes_within(&self, folder: &str) -> bool {
        self.folder_of(folder).is_some_and(|folder| self.are_below(&folder, &self.writes))
    }

    /// The absolute folder; none if there is no workspace, or if a part of the action is not known.
    fn folder_of(&self, folder: &str) -> Option<String> {
        let is_known = self.unknown.is_empty() && self.expansions.is_empty();
        (is_known && !self.workspace.is_empty()).then(|| absolute(folder, &self.workspace))
    }

    fn are_below(&self, folder: &str, paths: &[String]) -> bool {
        (self.commands.is_empty() || contains(&self.workspace, &self.cwd))
            && paths.iter().all(|path| path == NULL_DEVICE || contains(folder, path))
    }
}

/// Whether a cleaned absolute path is the folder or lies below it.
pub fn contains(folder: &str, path: &str) -> bool {
    // A cleaned path has no `..`, except relative and home paths, which no absolute folder contains.
    path.strip_prefix(folder.strip_suffix('/').unwrap_or(folder))
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        && !folder.is_empty()
}

/// Whether a folder of a condition is relative, and stays in the workspace whatever that is.
pub fn is_inner_folder(folder: &str) -> bool {
    let cleaned = absolute(folder, "/w");
    let is_relative = !folder.starts_with(['/', '~', '\\']) && !folder.contains(':');
    is_relative && folder.split('/').all(|part| part != "..") && contains("/w", &cleaned)
}

#[cfg(test)]
mod tests;
