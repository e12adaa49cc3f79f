//! Settings of pytest that an agent left in its workspace. They would run before the tests of a suite and could change their results.

use std::path::Path;

use proctor_sandbox::WorkspaceError;

use super::evaluate::Given;
use crate::folder::{ResolvedFile, ResolvedSource};

/// The program that reads these settings.
pub(super) const PYTEST: &str = "pytest";

/// Files that pytest, or Python at its start, reads without being asked to.
const NAMES: [&str; 10] = [
    "conftest.py",
    "pytest.ini",
    ".pytest.ini",
    "pytest.toml",
    ".pytest.toml",
    "tox.ini",
    "setup.cfg",
    "pyproject.toml",
    "sitecustomize.py",
    "usercustomize.py",
];

/// Nesting of folders that is looked at; a snapshot has no more.
const MAX_DEPTH: usize = 130;

/// Bytes of a file that is compared with the fixture's. Settings are small.
const MAX_COMPARED: u64 = 1 << 20;

/// Settings in a copy of a workspace that neither the suite's `files` nor its fixture has, relative to the copy.
pub(super) fn find(copy: &Path, given: &Given<'_>) -> Vec<String> {
    let mut found = Vec::new();
    walk(copy, "", 0, &mut |relative| {
        if !is_brought(relative, given.files) && !is_unchanged(copy, relative, given.fixture) {
            found.push(relative.to_owned());
        }
    });
    found.sort();
    found
}

/// Removes a file of a copy.
pub(super) fn remove(copy: &Path, relative: &str) -> Result<(), WorkspaceError> {
    let path = copy.join(relative);
    let removed = match path.symlink_metadata() {
        Ok(found) if found.is_dir() => std::fs::remove_dir_all(&path),
        Ok(_) => std::fs::remove_file(&path),
        Err(_) => Ok(()),
    };
    removed.map_err(|source| WorkspaceError::Io { what: "removing", path, source })
}

fn walk(folder: &Path, prefix: &str, depth: usize, see: &mut dyn FnMut(&str)) {
    if depth > MAX_DEPTH {
        return;
    }
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let relative = if prefix.is_empty() { name.clone() } else { format!("{prefix}/{name}") };
        if NAMES.contains(&name.as_str()) {
            see(&relative);
        } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            walk(&entry.path(), &relative, depth + 1, see);
        }
    }
}

/// Whether a file is one of the suite's, or lies in a folder of the suite's.
fn is_brought(relative: &str, files: &[ResolvedFile]) -> bool {
    files.iter().any(|file| {
        let Ok(below) = Path::new(relative).strip_prefix(file.target.as_str()) else { return false };
        let is_itself = below.as_os_str().is_empty();
        is_itself || matches!(&file.source, ResolvedSource::Path(source) if source.join(below).is_file())
    })
}

fn is_unchanged(copy: &Path, relative: &str, fixture: Option<&Path>) -> bool {
    let read = |root: &Path| {
        let path = root.join(relative);
        let found = path.symlink_metadata().ok()?;
        (found.is_file() && found.len() <= MAX_COMPARED).then(|| std::fs::read(path).ok())?
    };
    fixture.and_then(read).is_some_and(|original| read(copy) == Some(original))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::WorkspacePath;

    #[test]
    fn only_settings_that_the_agent_made_are_found() {
        let base = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = base.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        put("fixture/pyproject.toml", "same");
        put("fixture/setup.cfg", "before");
        put("checks/conftest.py", "ours");
        for (path, text) in [
            ("copy/pyproject.toml", "same"),
            ("copy/setup.cfg", "after"),
            ("copy/tests/conftest.py", "ours"),
            ("copy/tests/deep/conftest.py", "theirs"),
            ("copy/conftest.py", "theirs"),
            ("copy/pytest.ini", "inline"),
            ("copy/solution.py", ""),
        ] {
            put(path, text);
        }
        let at = |path: &str| WorkspacePath::parse(path).unwrap();
        let files = [
            ResolvedFile { target: at("tests"), source: ResolvedSource::Path(base.path().join("checks")) },
            ResolvedFile { target: at("pytest.ini"), source: ResolvedSource::Inline("inline".to_owned()) },
        ];
        let fixture = base.path().join("fixture");
        let given = Given { files: &files, fixture: Some(&fixture) };
        let copy = base.path().join("copy");
        assert_eq!(find(&copy, &given), ["conftest.py", "setup.cfg", "tests/deep/conftest.py"]);
        remove(&copy, "conftest.py").unwrap();
        assert!(!copy.join("conftest.py").exists());
    }
}
