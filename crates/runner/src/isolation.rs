//! Files of a suite that no agent may read.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::suite::{FileSource, TestCase};

/// Files of one folder above which the whole folder is hidden: each hidden path costs every start of a program some microseconds.
const CROWD: usize = 64;

/// Entries of a folder that are hidden one by one because the agent's own files are among them.
const MAX_ENTRIES: usize = 4096;

/// Files of `files` and `reference` on disk, which would tell an agent what it is checked against. Files that the agent itself needs
/// (`kept`) stay readable; a folder with very many files is given as a whole.
pub fn check_files<'t>(
    tests: impl IntoIterator<Item = &'t TestCase>,
    locate: &dyn Fn(&str) -> PathBuf,
    kept: &[PathBuf],
) -> Vec<PathBuf> {
    let mut written: BTreeSet<&str> = BTreeSet::new();
    for test in tests {
        for item in test.settings.files.iter().chain(&test.settings.reference) {
            if let FileSource::Path(path) = &item.source {
                written.insert(path);
            }
        }
    }
    let mut paths = BTreeSet::new();
    for path in written {
        add_around(&locate(path), kept, &mut paths);
    }
    let mut folders: BTreeMap<PathBuf, Vec<PathBuf>> = BTreeMap::new();
    for path in paths {
        let folder = path.parent().map_or_else(PathBuf::new, Path::to_owned);
        folders.entry(folder).or_default().push(path);
    }
    let mut hidden = Vec::new();
    for (folder, files) in folders {
        if files.len() > CROWD && !leads_to(&folder, kept) {
            hidden.push(folder);
        } else {
            hidden.extend(files);
        }
    }
    hidden
}

/// Whether a folder is, or contains, one of the paths.
fn leads_to(folder: &Path, kept: &[PathBuf]) -> bool {
    kept.iter().any(|path| path.starts_with(folder))
}

/// Adds a path, or the entries of a folder that contains a kept path.
fn add_around(path: &Path, kept: &[PathBuf], hidden: &mut BTreeSet<PathBuf>) {
    if !leads_to(path, kept) {
        hidden.insert(path.to_owned());
        return;
    }
    let Ok(entries) = std::fs::read_dir(path) else { return };
    for entry in entries.flatten().take(MAX_ENTRIES) {
        // A link's target has a path of its own.
        if entry.file_type().is_ok_and(|kind| !kind.is_symlink()) {
            add_around(&entry.path(), kept, hidden);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{CROWD, check_files};
    use crate::suite::{LoadOptions, Suite, load};
    use std::path::{Path, PathBuf};

    fn suite(tests: &str) -> Suite {
        let source = format!("test_suite: demo\ntests:\n{tests}");
        load(source.as_bytes(), &LoadOptions::new(&|_| None, &|_| None)).unwrap().suite
    }

    fn test(id: &str, rest: &str) -> String {
        format!(
            "  - {{id: {id}, name: A, task: {{description: x}}, assertions: [{{type: no_errors}}]{rest}}}\n"
        )
    }

    #[test]
    fn check_files_are_hidden_around_the_agents_own_files() {
        let item = |path: &str| format!(", files: [{{path: x, source: {path}}}]");
        let mut tests: String =
            (0..=CROWD).map(|at| test(&format!("c{at}"), &item(&format!("many/{at}")))).collect();
        tests += &test("own", ", reference: [{path: y, source: solution.txt}, {path: z, content: inline}]");
        let suite = suite(&tests);
        let locate = |written: &str| Path::new("/suite").join(written);
        let hidden = check_files(&suite.tests, &locate, &[]);
        assert_eq!(hidden, [PathBuf::from("/suite/solution.txt"), PathBuf::from("/suite/many")]);
        // The folder of the agent itself stays readable; its files are hidden one by one.
        let kept = [PathBuf::from("/suite/many/agent.py")];
        assert_eq!(check_files(&suite.tests, &locate, &kept).len(), CROWD + 2);
    }
}
