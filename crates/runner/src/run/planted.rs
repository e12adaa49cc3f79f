//! Settings that an agent left in its workspace for the programs of checks. They would run before the tests of a suite, or in their place,
//! and could change their results.

use std::path::Path;

use proctor_sandbox::WorkspaceError;

use super::evaluate::Given;
use crate::folder::{ResolvedFile, ResolvedSource};

/// Program that reads settings without being asked to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tool {
    Pytest,
    Node,
    Make,
}

impl Tool {
    /// Programs by their names, as words of commands and in lines for a shell.
    const PROGRAMS: [(&'static str, Tool); 10] = [
        ("pytest", Tool::Pytest),
        ("py.test", Tool::Pytest),
        ("npm", Tool::Node),
        ("npx", Tool::Node),
        ("yarn", Tool::Node),
        ("pnpm", Tool::Node),
        ("bun", Tool::Node),
        ("make", Tool::Make),
        ("gmake", Tool::Make),
        ("bmake", Tool::Make),
    ];

    /// Files that it, or its interpreter at its start, reads.
    fn names(self) -> &'static [&'static str] {
        match self {
            Tool::Pytest => &[
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
            ],
            Tool::Node => &[".npmrc", ".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs", ".pnp.cjs", "bunfig.toml"],
            // These come before a `Makefile` of the suite.
            Tool::Make => &["GNUmakefile", "BSDmakefile", "makefile"],
        }
    }

    fn word(self) -> &'static str {
        match self {
            Tool::Pytest => "pytest",
            Tool::Node => "npm",
            Tool::Make => "make",
        }
    }
}

/// Folder of compiled modules, which Python may use in place of the sources.
const COMPILED: &str = "__pycache__";

/// Folder whose programs npm puts before all others.
const PROGRAMS: &str = "node_modules/.bin";

/// Nesting of folders that is looked at; a snapshot has no more.
const MAX_DEPTH: usize = 130;

/// Bytes of a file that is compared with the fixture's. Settings are small.
const MAX_COMPARED: u64 = 1 << 20;

/// Programs with settings among the words of a command, also in lines for a shell.
pub(super) fn tools(words: &[String]) -> Vec<Tool> {
    let is_border = |letter: char| letter.is_whitespace() || "();&|<>'\"`$=".contains(letter);
    let parts = words.iter().flat_map(|word| word.split(is_border));
    let names = parts.filter_map(|part| part.rsplit('/').next());
    let mut found = Vec::new();
    for (_, tool) in names.filter_map(|name| Tool::PROGRAMS.iter().find(|(known, _)| *known == name)) {
        if !found.contains(tool) {
            found.push(*tool);
        }
    }
    found
}

/// Removes from a copy of a workspace what neither the suite's `files` nor its fixture has and what the tools would read. Gives a warning
/// for each.
pub(super) fn clear(
    copy: &Path,
    given: &Given<'_>,
    tools: &[Tool],
    is_program: &dyn Fn(&str) -> bool,
) -> Result<Vec<String>, WorkspaceError> {
    let mut warnings = Vec::new();
    for (path, tool) in find(copy, given, tools, is_program) {
        remove(copy, &path)?;
        // Compiled modules come with every run of Python; nobody misses them.
        if let Some(tool) = tool {
            warnings.push(format!("not used by {}, because the agent wrote it: `{path}`", tool.word()));
        }
    }
    Ok(warnings)
}

fn find(
    copy: &Path,
    given: &Given<'_>,
    tools: &[Tool],
    is_program: &dyn Fn(&str) -> bool,
) -> Vec<(String, Option<Tool>)> {
    let mut found = Vec::new();
    walk(copy, "", 0, &mut |folder, name, relative| {
        let is_shadow = || folder.ends_with(PROGRAMS) && is_program(name);
        let reader = if name == COMPILED {
            None
        } else if let Some(tool) = tools.iter().find(|tool| tool.names().contains(&name)) {
            Some(*tool)
        } else if tools.contains(&Tool::Node) && is_shadow() {
            Some(Tool::Node)
        } else {
            return false;
        };
        let is_given = is_brought(relative, given.files) || is_unchanged(copy, relative, given.fixture);
        if reader.is_none() || !is_given {
            found.push((relative.to_owned(), reader));
        }
        true
    });
    found.sort_by(|one, other| one.0.cmp(&other.0));
    found
}

/// Removes an entry of a copy.
fn remove(copy: &Path, relative: &str) -> Result<(), WorkspaceError> {
    let path = copy.join(relative);
    let removed = match path.symlink_metadata() {
        Ok(found) if found.is_dir() => std::fs::remove_dir_all(&path),
        Ok(_) => std::fs::remove_file(&path),
        Err(_) => Ok(()),
    };
    removed.map_err(|source| WorkspaceError::Io { what: "removing", path, source })
}

/// Shows every entry with its folder, name and path, until one is taken; folders that were taken are not looked into.
fn walk(folder: &Path, prefix: &str, depth: usize, take: &mut dyn FnMut(&str, &str, &str) -> bool) {
    if depth > MAX_DEPTH {
        return;
    }
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        // A name that is no text is none of those that are looked for, and a folder of that name is not reached by them.
        let Ok(name) = entry.file_name().into_string() else { continue };
        let relative = if prefix.is_empty() { name.clone() } else { format!("{prefix}/{name}") };
        if !take(prefix, &name, &relative) && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            walk(&entry.path(), &relative, depth + 1, take);
        }
    }
}

/// Whether a file is one of the suite's, or lies in a folder of the suite's.
pub(super) fn is_brought(relative: &str, files: &[ResolvedFile]) -> bool {
    files.iter().any(|file| {
        let Ok(below) = Path::new(relative).strip_prefix(file.target.as_str()) else { return false };
        let is_itself = below.as_os_str().is_empty();
        is_itself || matches!(&file.source, ResolvedSource::Path(source) if source.join(below).is_file())
    })
}

/// Whether a file is as the fixture has it.
pub(super) fn is_unchanged(copy: &Path, relative: &str, fixture: Option<&Path>) -> bool {
    let read = |root: &Path| {
        let path = root.join(relative);
        let found = path.symlink_metadata().ok()?;
        if found.is_symlink() {
            let target = std::fs::read_link(path).ok()?;
            return Some((true, target.into_os_string().into_encoded_bytes()));
        }
        let content = (found.is_file() && found.len() <= MAX_COMPARED).then(|| std::fs::read(path).ok())?;
        content.map(|content| (false, content))
    };
    fixture.and_then(read).is_some_and(|original| read(copy) == Some(original))
}

#[cfg(test)]
mod tests;
