//! Report destinations, `junit=PATH,sarif=PATH`, each replaced atomically; streamed ones are written line by line.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use proctor_core::random::Randomness;

use super::{Findings, html, json, junit, sarif};
use proctor_system::SystemRandomness;

/// Kinds of reports of assertions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// JUnit XML.
    Junit,
    /// SARIF 2.1.0.
    Sarif,
    /// JSON.
    Json,
    /// One HTML page.
    Html,
}

const KINDS: [(&str, Kind); 4] =
    [("junit", Kind::Junit), ("sarif", Kind::Sarif), ("json", Kind::Json), ("html", Kind::Html)];

/// Format and path of one report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination<K = Kind> {
    pub(crate) kind: K,
    pub(crate) path: PathBuf,
}

impl<K> Destination<K> {
    /// Path of the file.
    pub fn path(&self) -> &std::path::Path {
        &self.path
    }
}

/// Mistake in a list of report destinations.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DestinationError {
    /// Two reports have the same path.
    #[error("`{}` is named for two reports", .0.display())]
    Duplicate(PathBuf),
    /// An item of the list cannot be used.
    #[error("`--report`: {0}")]
    Item(#[from] ItemError),
}

/// Reason why one `KIND=PATH` cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ItemError {
    /// The `=` is missing.
    #[error("`{0}` is not a report: write it like junit=report.xml")]
    NotAReport(String),
    /// The kind is unknown, and a known one is similar.
    #[error("`{word}` is not a kind of report; did you mean `{near}`?")]
    Misspelt {
        /// The kind as given.
        word: String,
        /// The most similar kind.
        near: String,
    },
    /// The kind is unknown.
    #[error("`{word}` is not a kind of report; known are {known}")]
    UnknownKind {
        /// The kind as given.
        word: String,
        /// The kinds that there are.
        known: String,
    },
    /// The path is empty or `-`.
    #[error("`{0}` names no file; stdout has the results already")]
    NoFile(String),
    /// The path's folder does not exist.
    #[error("there is no folder `{}` for `{}`", folder.display(), path.display())]
    NoFolder {
        /// The folder.
        folder: PathBuf,
        /// The path.
        path: PathBuf,
    },
    /// The path is not a regular file.
    #[error("`{}` is not a file", .0.display())]
    NotAFile(PathBuf),
}

/// Failure to write one report.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The JUnit report could not be serialised.
    #[error("the JUnit report is not written: {0}")]
    Junit(#[source] quick_junit::SerializeError),
    /// The operating system refused.
    #[error("{}: the report is not written: {source}", path.display())]
    Io {
        /// The report's path.
        path: PathBuf,
        /// The operating system's error.
        source: std::io::Error,
    },
}

/// Parses lists of `KIND=PATH`, and checks that the files can be created. Returns all mistakes at once.
pub fn destinations(lists: &[String]) -> Result<Vec<Destination>, Vec<DestinationError>> {
    parse(lists, &KINDS)
}

/// Parses lists of `KIND=PATH` of these kinds.
pub(crate) fn parse<K: Copy>(
    lists: &[String],
    kinds: &[(&'static str, K)],
) -> Result<Vec<Destination<K>>, Vec<DestinationError>> {
    let mut found: Vec<Destination<K>> = Vec::new();
    let mut mistakes = Vec::new();
    for item in lists.iter().flat_map(|list| list.split(',')) {
        match destination(item, kinds) {
            Ok(next) if found.iter().any(|known| known.path == next.path) => {
                mistakes.push(DestinationError::Duplicate(next.path));
            }
            Ok(next) => found.push(next),
            Err(mistake) => mistakes.push(mistake.into()),
        }
    }
    if mistakes.is_empty() { Ok(found) } else { Err(mistakes) }
}

fn destination<K: Copy>(item: &str, kinds: &[(&'static str, K)]) -> Result<Destination<K>, ItemError> {
    let names: Vec<&str> = kinds.iter().map(|(name, _)| *name).collect();
    let Some((word, path)) = item.split_once('=') else {
        return Err(ItemError::NotAReport(item.to_owned()));
    };
    let kind = kinds.iter().find(|(name, _)| *name == word.trim()).map(|(_, kind)| *kind);
    let kind = kind.ok_or_else(|| match proctor_core::nearest(word.trim(), &names) {
        Some(near) => ItemError::Misspelt { word: word.to_owned(), near: near.to_owned() },
        None => ItemError::UnknownKind { word: word.to_owned(), known: names.join(", ") },
    })?;
    if path.is_empty() || path == "-" {
        return Err(ItemError::NoFile(item.to_owned()));
    }
    let path = PathBuf::from(path);
    let folder = folder(&path);
    if !folder.is_dir() {
        return Err(ItemError::NoFolder { folder: folder.to_owned(), path });
    }
    match fs::metadata(&path) {
        Ok(there) if !there.is_file() => Err(ItemError::NotAFile(path)),
        _ => Ok(Destination { kind, path }),
    }
}

fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Writes all reports. A failure does not stop the others; all failures are returned.
pub fn write(findings: &Findings, destinations: &[Destination]) -> Vec<WriteError> {
    let written = destinations.iter().map(|destination| {
        let text = match destination.kind {
            Kind::Junit => junit::write(findings).map_err(WriteError::Junit)?,
            Kind::Sarif => sarif::to_json(findings).to_string() + "\n",
            Kind::Json => json::to_json(findings).to_string() + "\n",
            Kind::Html => html::page(findings),
        };
        replace(&destination.path, text.as_bytes())
            .map_err(|source| WriteError::Io { path: destination.path.clone(), source })
    });
    written.filter_map(Result::err).collect()
}

/// Replaces a file atomically by a rename, so that no reader sees a partial report.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut random = [0; 8];
    SystemRandomness.fill(&mut random);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // Shortened, so that the temporary name stays within the file system's limit.
    let start: String = name.chars().take(32).collect();
    let beside = folder(path).join(format!(".{start}.{:016x}.part", u64::from_le_bytes(random)));
    let mut file = File::create_new(&beside)?;
    let placed =
        file.write_all(bytes).and_then(|()| file.sync_all()).and_then(|()| fs::rename(&beside, path));
    if placed.is_err() {
        let _ = fs::remove_file(&beside);
    }
    placed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_and_all_mistakes_are_said() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name).display().to_string();
        let read = destinations(&[
            format!("junit={},sarif={}", file("a.xml"), file("b.sarif")),
            format!("html={}", file("c")),
        ]);
        assert_eq!(read.unwrap().len(), 3);
        let wrong = destinations(&[
            format!("junt={},json", file("a")),
            format!("pdf={}", file("a")),
            "json=-".to_owned(),
            format!("json={}/x/y.json", file("")),
            format!("json={}", folder.path().display()),
            format!("json={0},html={0}", file("same")),
        ]);
        let wrong = wrong.unwrap_err();
        for (mistake, says) in wrong.iter().zip([
            "did you mean `junit`?",
            "`json` is not a report",
            "known are junit, sarif, json, html",
            "names no file",
            "there is no folder",
            "is not a file",
            "two reports",
        ]) {
            assert!(mistake.to_string().contains(says), "{mistake}: {says}");
        }
        assert_eq!(wrong.len(), 7);
    }

    #[test]
    fn a_file_is_replaced_whole_and_nothing_is_left_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.json");
        fs::write(&path, "old").unwrap();
        let mut old = File::open(&path).unwrap();
        replace(&path, b"new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        // Who had it open still has the old one: it was not written over.
        let mut text = String::new();
        std::io::Read::read_to_string(&mut old, &mut text).unwrap();
        assert_eq!(text, "old");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        let blocked = folder.path().join("folder");
        fs::create_dir(&blocked).unwrap();
        assert!(replace(&blocked, b"new").is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}
