//! Guard of the Python interpreters that checks start: files that an agent left cannot take the place of modules that checks import.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use proctor_core::json::Json;

use super::evaluate::Given;
use crate::folder::{ResolvedFile, ResolvedSource};

/// Settings that Python runs at its start, if it finds them on its search path.
const SETTINGS: &str = "sitecustomize.py";

/// Files of a suite that are looked at. Further ones are guarded like files that the suite does not know.
const MAX_FILES: usize = 10_000;

/// Nesting of folders that is looked at.
const MAX_DEPTH: usize = 130;

/// Files of a suite that stay read-only one by one. Each costs every start of a check some microseconds.
const MAX_READ_ONLY: usize = 256;

/// Modules that the suite expects in the workspace, each with its files there: of the fixture, of `files`, of the reference solution, and
/// among the expected artifacts.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Expected {
    modules: BTreeMap<String, BTreeSet<String>>,
    files: usize,
}

impl Expected {
    pub(super) fn new(given: &Given<'_>) -> Expected {
        let mut expected = Expected::default();
        for file in given.files.iter().chain(given.reference) {
            match &file.source {
                ResolvedSource::Path(source) if source.is_dir() => {
                    expected.add_tree(source, file.target.as_str(), 0);
                }
                _ => expected.add(file.target.as_str()),
            }
        }
        for artifact in given.expected_artifacts {
            let named =
                artifact.as_str().or_else(|| artifact.get("path").or_else(|| artifact.get("name"))?.as_str());
            expected.add(named.unwrap_or_default());
        }
        if let Some(fixture) = given.fixture {
            expected.add_tree(fixture, "", 0);
        }
        expected
    }

    /// Adds a file, if Python can import it.
    fn add(&mut self, path: &str) {
        let path = path.trim_start_matches("./");
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let Some((stem, ending)) = name.split_once('.') else { return };
        if !(ending == "py" || ending.ends_with("so")) || self.files >= MAX_FILES {
            return;
        }
        let module = if stem == "__init__" { folder.rsplit('/').next().unwrap_or_default() } else { stem };
        self.files += 1;
        self.modules.entry(module.to_owned()).or_default().insert(path.to_owned());
    }

    fn add_tree(&mut self, folder: &Path, prefix: &str, depth: usize) {
        if depth > MAX_DEPTH || self.files >= MAX_FILES {
            return;
        }
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let Ok(name) = entry.file_name().into_string() else { continue };
            let path = if prefix.is_empty() { name } else { format!("{prefix}/{name}") };
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                self.add_tree(&entry.path(), &path, depth + 1);
            } else {
                self.add(&path);
            }
        }
    }

    /// The same as a value of Python: strings of JSON mean the same there.
    fn as_python(&self) -> String {
        let modules = self.modules.iter().map(|(module, files)| {
            let files: Vec<Json> = files.iter().map(|file| Json::from(file.as_str())).collect();
            format!("{}: {}", Json::from(module.as_str()), Json::from(files))
        });
        format!("{{{}}}", modules.collect::<Vec<String>>().join(", "))
    }
}

/// Makes a folder with the guard of the Pythons that run in a copy of the workspace, for `PYTHONPATH`.
pub(super) fn make(folder: &Path, copy: &Path, expected: &Expected) -> io::Result<()> {
    fs::DirBuilder::new().mode(0o700).create(folder)?;
    let mut file =
        fs::File::options().write(true).create_new(true).mode(0o600).open(folder.join(SETTINGS))?;
    let root = Json::from(copy.to_string_lossy().into_owned());
    writeln!(file, "{}_install({root}, {})", include_str!("guard.py"), expected.as_python())
}

/// Files of the suite in a copy, which the programs of a check must not change.
pub(super) fn read_only(copy: &Path, files: &[ResolvedFile]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for file in files {
        add_files(&copy.join(file.target.as_str()), 0, &mut found);
    }
    found.truncate(MAX_READ_ONLY);
    found
}

fn add_files(path: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    let Ok(kind) = path.symlink_metadata().map(|metadata| metadata.file_type()) else { return };
    if found.len() >= MAX_READ_ONLY || depth > MAX_DEPTH {
        return;
    }
    if kind.is_file() {
        found.push(path.to_owned());
    } else if kind.is_dir() {
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            add_files(&entry.path(), depth + 1, found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::WorkspacePath;
    use std::process::Command;

    fn file(path: &str) -> ResolvedFile {
        let source = ResolvedSource::Inline(String::new());
        ResolvedFile { target: WorkspacePath::parse(path).unwrap(), source }
    }

    #[test]
    fn modules_of_the_suite_are_expected_where_it_has_them() {
        let base = tempfile::tempdir().unwrap();
        fs::create_dir_all(base.path().join("pkg/inner")).unwrap();
        fs::write(base.path().join("pkg/__init__.py"), "").unwrap();
        fs::write(base.path().join("pkg/inner/queue.py"), "").unwrap();
        fs::write(base.path().join("data.json"), "").unwrap();
        let (files, reference) = ([file("tests/test_a.py")], [file("calendar.py")]);
        let artifacts = [Json::from("./out/random.py"), Json::object().with("name", "x-y.json")];
        let given = Given {
            files: &files,
            fixture: Some(base.path()),
            reference: &reference,
            expected_artifacts: &artifacts,
        };
        let expected = r#"{"calendar": ["calendar.py"], "pkg": ["pkg/__init__.py"], "queue": ["pkg/inner/queue.py"], "random": ["out/random.py"], "test_a": ["tests/test_a.py"]}"#;
        assert_eq!(Expected::new(&given).as_python(), expected);
    }

    #[test]
    fn installed_modules_come_before_files_of_the_workspace() {
        let base = tempfile::tempdir().unwrap();
        let root = base.path().canonicalize().unwrap();
        let put = |name: &str, text: &str| fs::write(root.join(name), text).unwrap();
        put("json.py", "raise SystemExit('planted')");
        put("queue.py", "own = 1");
        put("solution.py", "own = 2");
        put("check.py", "import json, queue, solution; print(json.dumps([queue.own, solution.own]))");
        let mut expected = Expected::default();
        expected.add("queue.py");
        // Expected elsewhere, and so not at the root.
        expected.add("data/json.py");
        let guard = root.join("guard");
        make(&guard, &root, &expected).unwrap();
        let run = |words: &[&str]| {
            let mut python = Command::new("python3");
            let output = python.args(words).current_dir(&root).env("PYTHONPATH", &guard).output().unwrap();
            String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap()
        };
        assert_eq!(run(&["check.py"]), "[1, 2]\n");
        assert_eq!(run(&["-m", "check"]), "[1, 2]\n");
        assert!(run(&["-m", "json.tool", "--help"]).contains("usage:"));
        // Without it, the file of the workspace wins: the guard is what this test is about.
        let plain = Command::new("python3").arg("check.py").current_dir(&root).output().unwrap();
        assert!(String::from_utf8_lossy(&plain.stderr).contains("planted"));
    }
}
