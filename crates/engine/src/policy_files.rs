//! Policy sources from files: a document, or a folder of documents, and the modules that they name.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use proctor_policy::document::{Module, Position, Problem, read_document};
use proctor_policy::policy::{Policy, Source, SourceRole, module_name};
use proctor_system::{describe, trusted};
use rustix::fs::{Mode, OFlags};

/// The most bytes of a source that are read; documents have a lower limit of their own.
const MAX_SOURCE: u64 = 4 << 20;

/// Error of reading a file.
#[derive(Debug, thiserror::Error)]
pub enum ReadFileError {
    /// The operating system refused.
    #[error("{}", describe(.0))]
    Io(#[from] std::io::Error),
    /// The file is over the limit.
    #[error("{0} bytes are over the limit of {MAX_SOURCE}")]
    TooLong(u64),
    /// Not a regular file: opening a pipe waits for a writer, a device may have no end.
    #[error("not a regular file")]
    NotAFile,
    /// The file grew over the limit while it was read, or has no length of its own.
    #[error("more than {MAX_SOURCE} bytes")]
    Growing,
}

/// Reads and compiles the policy at `path`: a file, or a folder whose `*.yaml`, `*.yml` and `*.json` files are its documents.
pub fn load(path: &Path) -> Result<Policy, Vec<Problem>> {
    Policy::compile(read_sources(path)?)
}

/// Reads the sources of the policy at `path`.
pub fn read_sources(path: &Path) -> Result<Vec<Source>, Vec<Problem>> {
    let mut problems = Vec::new();
    let mut sources = Vec::new();
    refuse_untrusted(path)?;
    for file in document_files(path)? {
        let name = file.to_string_lossy().into_owned();
        if let Err(untrusted) = refuse_untrusted(&file) {
            problems.extend(untrusted);
            continue;
        }
        // The policy itself may be a pipe (`--policy <(…)`). What lies in a folder is read again and again, and must not block.
        let read = if file == path { read_bounded(&file) } else { read_regular(&file) };
        match read {
            Ok(bytes) => sources.push(Source { role: SourceRole::Document, name, bytes }),
            Err(problem) => problems.push(problem_in(&name, problem.to_string())),
        }
    }
    let mut modules: Vec<Source> = Vec::new();
    for source in &sources {
        // What is wrong with a document is found, with everything else, when it is compiled.
        let Ok(document) = read_document(&source.name, &source.bytes) else { continue };
        for module in &document.modules {
            let (role, path) = match &module.value {
                Module::Cedar(path) => (SourceRole::Cedar, path),
                Module::Rego(path) => (SourceRole::Rego, path),
            };
            let name = module_name(&source.name, path);
            if modules.iter().any(|known| known.role == role && known.name == name) {
                continue;
            }
            if let Err(untrusted) = refuse_untrusted(Path::new(&name)) {
                problems.extend(untrusted);
                continue;
            }
            match read_regular(Path::new(&name)) {
                Ok(bytes) => modules.push(Source { role, name, bytes }),
                Err(problem) => problems.push(Problem {
                    file: source.name.clone(),
                    at: module.at,
                    message: format!("module `{path}`: {problem}"),
                }),
            }
        }
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    sources.extend(modules);
    Ok(sources)
}

/// Refuses a file that other users could change.
fn refuse_untrusted(path: &Path) -> Result<(), Vec<Problem>> {
    trusted::check(path).map_err(|untrusted| vec![problem_in(&path.to_string_lossy(), untrusted.to_string())])
}

fn document_files(path: &Path) -> Result<Vec<PathBuf>, Vec<Problem>> {
    let name = path.to_string_lossy();
    let metadata = fs::metadata(path).map_err(|error| vec![problem_in(&name, describe(&error))])?;
    if !metadata.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let entries = fs::read_dir(path).map_err(|error| vec![problem_in(&name, describe(&error))])?;
    let mut files = Vec::new();
    for entry in entries {
        let file = entry.map_err(|error| vec![problem_in(&name, describe(&error))])?.path();
        let extension = file.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        // Only folders are left out. A document that cannot be read, such as a link to nothing, is a mistake: leaving it out could
        // take away what forbids.
        if matches!(extension, "yaml" | "yml" | "json") && !file.is_dir() {
            files.push(file);
        }
    }
    files.sort();
    if files.is_empty() {
        return Err(vec![problem_in(
            &name,
            "the folder holds no `*.yaml`, `*.yml` or `*.json` file".to_owned(),
        )]);
    }
    Ok(files)
}

/// Reads a regular file of at most 4 MiB. Anything else is refused without waiting for it.
fn read_regular(path: &Path) -> Result<Vec<u8>, ReadFileError> {
    // Nothing is followed by O_NONBLOCK on a regular file; a pipe without a writer opens at once.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty()).map_err(std::io::Error::from)?);
    if !file.metadata()?.is_file() {
        return Err(ReadFileError::NotAFile);
    }
    read_open(file)
}

/// Reads a file of at most 4 MiB.
pub fn read_bounded(path: &Path) -> Result<Vec<u8>, ReadFileError> {
    read_open(File::open(path)?)
}

fn read_open(file: File) -> Result<Vec<u8>, ReadFileError> {
    let length = file.metadata().map_or(0, |metadata| metadata.len());
    if length > MAX_SOURCE {
        return Err(ReadFileError::TooLong(length));
    }
    let mut bytes = Vec::new();
    file.take(MAX_SOURCE + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_SOURCE {
        return Err(ReadFileError::Growing);
    }
    Ok(bytes)
}

fn problem_in(file: &str, message: String) -> Problem {
    Problem { file: file.to_owned(), at: Position { line: 1, column: 1 }, message }
}

#[cfg(test)]
mod tests;
