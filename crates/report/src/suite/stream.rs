//! JSON lines of a suite, written while it runs.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

use proctor_core::json::Json;
use proctor_runner::results::TestResult;

use super::{SuiteKind, SuiteReport};
use crate::destination::{Destination, WriteError};

/// Writer of JSON lines: one for each test as it ends, and one at the end of the suite.
#[derive(Debug, Default)]
pub struct SuiteStream {
    files: Vec<(PathBuf, File)>,
    failures: Vec<WriteError>,
}

impl SuiteStream {
    /// Empties the files of all streamed reports. Returns all failures.
    pub fn open(destinations: &[Destination<SuiteKind>]) -> Result<SuiteStream, Vec<WriteError>> {
        let mut stream = SuiteStream::default();
        for destination in destinations.iter().filter(|destination| destination.kind == SuiteKind::JsonLines)
        {
            let path = destination.path.clone();
            match File::create(&path) {
                Ok(file) => stream.files.push((path, file)),
                Err(source) => stream.failures.push(WriteError::Io { path, source }),
            }
        }
        if stream.failures.is_empty() { Ok(stream) } else { Err(stream.failures) }
    }

    /// Writes the line of a test that has ended.
    pub fn test(&mut self, agent: &str, test: &TestResult) {
        if !self.files.is_empty() {
            let json = Json::object().with("kind", "test").with("agent", agent).with("test", test.to_json());
            self.write(&json);
        }
    }

    /// Writes the last line: a file without it is of a suite that did not end. Returns all failures.
    pub fn end(mut self, report: &SuiteReport<'_>) -> Vec<WriteError> {
        if !self.files.is_empty() {
            let mut json = Json::object().with("kind", "end");
            for (name, value) in super::json::header(report).as_object().unwrap_or_default() {
                json.push(name, value.clone());
            }
            self.write(&json);
        }
        self.failures
    }

    /// Writes a line with one call, so that readers never see a part of it unless the disk is full. A file that failed is left alone.
    fn write(&mut self, json: &Json) {
        let line = format!("{json}\n");
        let mut kept = Vec::new();
        for (path, mut file) in std::mem::take(&mut self.files) {
            match file.write_all(line.as_bytes()).and_then(|()| file.flush()) {
                Ok(()) => kept.push((path, file)),
                Err(source) => self.failures.push(WriteError::Io { path, source }),
            }
        }
        self.files = kept;
    }
}
