mod artifacts;
mod behaviors;
mod commands;
mod composites;
mod defects;
mod filesystem;
mod judgements;
mod laws;

use std::collections::BTreeMap;

use super::*;

/// A workspace in memory.
#[derive(Default)]
pub(super) struct Memory {
    files: BTreeMap<String, String>,
    broken: bool,
}

impl Memory {
    pub(super) fn of(files: &[(&str, &str)]) -> Memory {
        let files = files.iter().map(|(path, content)| ((*path).to_owned(), (*content).to_owned()));
        Memory { files: files.collect(), broken: false }
    }

    pub(super) fn broken() -> Memory {
        Memory { files: BTreeMap::new(), broken: true }
    }

    fn check(&self, path: &WorkspacePath) -> Result<(), FilesError> {
        if !self.broken {
            return Ok(());
        }
        Err(FilesError::Unreadable { path: path.to_string(), reason: "input/output error".to_owned() })
    }
}

impl Files for Memory {
    fn entry(&self, path: &WorkspacePath) -> Result<Option<EntryKind>, FilesError> {
        self.check(path)?;
        let path = path.as_str();
        if self.files.contains_key(path) {
            return Ok(Some(EntryKind::File));
        }
        let prefix = format!("{path}/");
        let is_directory = path == "." || self.files.keys().any(|file| file.starts_with(&prefix));
        Ok(is_directory.then_some(EntryKind::Directory))
    }

    fn read(&self, path: &WorkspacePath, limit: usize) -> Result<Vec<u8>, FilesError> {
        self.check(path)?;
        let content = self.files.get(path.as_str()).cloned().unwrap_or_default().into_bytes();
        if content.len() > limit {
            return Err(FilesError::TooLarge { path: path.to_string(), limit });
        }
        Ok(content)
    }

    fn list(&self, path: &WorkspacePath, _: usize) -> Result<Vec<FileEntry>, FilesError> {
        self.check(path)?;
        let prefix = if path.as_str() == "." { String::new() } else { format!("{path}/") };
        let mut entries: BTreeMap<String, EntryKind> = BTreeMap::new();
        for below in self.files.keys().filter_map(|file| file.strip_prefix(&prefix)) {
            match below.split_once('/') {
                Some((directory, _)) => entries.insert(directory.to_owned(), EntryKind::Directory),
                None => entries.insert(below.to_owned(), EntryKind::File),
            };
        }
        Ok(entries.into_iter().map(|(name, kind)| FileEntry { name, kind }).collect())
    }
}

pub(super) fn json(text: &str) -> Json {
    Json::parse(text.as_bytes()).unwrap()
}

pub(super) fn assertion(check: Check) -> Assertion {
    Assertion { name: "checked", check, critical: false, optional: false }
}

/// The status of a check and its first message.
pub(super) fn judged(check: &Check, response: &str, files: &Memory) -> (Status, String) {
    with_answers(check, response, files, &[])
}

pub(super) fn with_answers(
    check: &Check,
    response: &str,
    files: &Memory,
    answers: &[Answer],
) -> (Status, String) {
    let response = json(response);
    let evidence = Evidence { response: &response, events: &[], files, has_tools: false };
    let result = evaluate(&assertion(check.clone()), &evidence, answers);
    (result.status, result.checks[0].message.clone())
}

/// The check that a suite's assertion loads as.
pub(super) fn loaded(kind: &str, config: &str) -> Check {
    let source = format!(
        "test_suite: s\ntests: [{{id: a, name: A, task: {{description: d}}, assertions: [{{type: {kind}, config: {config}}}]}}]\n"
    );
    let options = crate::suite::LoadOptions::new(&|_| None, &|_| None);
    let loaded = crate::suite::load(source.as_bytes(), &options).unwrap();
    loaded.suite.tests[0].assertions[0].check.clone()
}

pub(super) fn exited(code: i32, stdout: &str) -> Vec<Answer> {
    let outcome = CommandOutcome::Exited { code, stdout: stdout.to_owned(), stderr: String::new() };
    vec![Answer { leaf: 0, reply: Reply::Command(outcome) }]
}
