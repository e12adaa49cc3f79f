use crate::atp::check::is_longer;
use crate::atp::limits::MAX_PATH;

/// A path that could leave the workspace, or that no file system has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PathProblem {
    /// Nothing but white space.
    #[error("path is empty")]
    Empty,
    /// More than [`MAX_PATH`] characters.
    #[error("path is longer than {MAX_PATH} characters")]
    TooLong,
    /// A NUL character.
    #[error("path contains a NUL character")]
    Nul,
    /// An absolute path, of any operating system.
    #[error("path is absolute, it must be relative to the workspace")]
    Absolute,
    /// A path in a home folder, which shells expand.
    #[error("path begins with `~`, it must be relative to the workspace")]
    Home,
    /// A `..` segment.
    #[error("path has a `..` segment, it must stay in the workspace")]
    Parent,
}

/// Checks the path of a file artifact by its text alone. Both slash styles count on every system, since a workspace may be
/// evaluated elsewhere than it was made; symbolic links are for the reader of the file.
pub fn check_path(path: &str) -> Result<(), PathProblem> {
    let is_drive =
        path.as_bytes().get(1) == Some(&b':') && path.starts_with(|first: char| first.is_ascii_alphabetic());
    if path.trim().is_empty() {
        Err(PathProblem::Empty)
    } else if is_longer(path, MAX_PATH) {
        Err(PathProblem::TooLong)
    } else if path.contains('\0') {
        Err(PathProblem::Nul)
    } else if path.starts_with(['/', '\\']) || is_drive {
        Err(PathProblem::Absolute)
    } else if path.starts_with('~') {
        Err(PathProblem::Home)
    } else if path.split(['/', '\\']).any(|segment| segment == "..") {
        Err(PathProblem::Parent)
    } else {
        Ok(())
    }
}
