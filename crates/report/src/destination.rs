//! Where reports go: `junit=PATH,sarif=PATH`, each written whole or not at all.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use proctor_core::random::Randomness;

use super::{Findings, html, json, junit, sarif};
use proctor_system::SystemRandomness;

/// The kinds of reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Junit,
    Sarif,
    Json,
    Html,
}

const KINDS: [(&str, Kind); 4] =
    [("junit", Kind::Junit), ("sarif", Kind::Sarif), ("json", Kind::Json), ("html", Kind::Html)];

/// A report that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    kind: Kind,
    path: PathBuf,
}

/// Reads lists of `KIND=PATH`, and looks whether the files can be made. All mistakes at once.
pub fn destinations(lists: &[String]) -> Result<Vec<Destination>, Vec<String>> {
    let mut found: Vec<Destination> = Vec::new();
    let mut mistakes = Vec::new();
    for item in lists.iter().flat_map(|list| list.split(',')) {
        match destination(item) {
            Ok(next) if found.iter().any(|known| known.path == next.path) => {
                mistakes.push(format!("`{}` is named for two reports", next.path.display()));
            }
            Ok(next) => found.push(next),
            Err(mistake) => mistakes.push(format!("`--report`: {mistake}")),
        }
    }
    if mistakes.is_empty() { Ok(found) } else { Err(mistakes) }
}

fn destination(item: &str) -> Result<Destination, String> {
    let names = KINDS.map(|(name, _)| name);
    let Some((word, path)) = item.split_once('=') else {
        return Err(format!("`{item}` is not a report: write it like junit=report.xml"));
    };
    let kind = KINDS.iter().find(|(name, _)| *name == word.trim()).map(|(_, kind)| *kind);
    let kind = kind.ok_or_else(|| match proctor_core::nearest(word.trim(), &names) {
        Some(near) => format!("`{word}` is not a kind of report; did you mean `{near}`?"),
        None => format!("`{word}` is not a kind of report; known are {}", names.join(", ")),
    })?;
    if path.is_empty() || path == "-" {
        return Err(format!("`{item}` names no file; stdout has the results already"));
    }
    let path = PathBuf::from(path);
    let folder = folder(&path);
    if !folder.is_dir() {
        return Err(format!("there is no folder `{}` for `{}`", folder.display(), path.display()));
    }
    match fs::metadata(&path) {
        Ok(there) if !there.is_file() => Err(format!("`{}` is not a file", path.display())),
        _ => Ok(Destination { kind, path }),
    }
}

fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Writes reports. Those that cannot be written are said; the others are.
pub fn write(findings: &Findings, destinations: &[Destination]) -> Vec<String> {
    let written = destinations.iter().map(|destination| {
        let text = match destination.kind {
            Kind::Junit => junit::write(findings)?,
            Kind::Sarif => sarif::to_json(findings).to_string() + "\n",
            Kind::Json => json::to_json(findings).to_string() + "\n",
            Kind::Html => html::page(findings),
        };
        replace(&destination.path, text.as_bytes())
            .map_err(|error| format!("{}: the report is not written: {error}", destination.path.display()))
    });
    written.filter_map(Result::err).collect()
}

/// Puts a file in its place in one step: whoever reads it sees the old one or the new one, never half of one.
fn replace(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut random = [0; 8];
    SystemRandomness.fill(&mut random);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // Short enough to be a name wherever the file's own is one.
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
            assert!(mistake.contains(says), "{mistake}: {says}");
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
