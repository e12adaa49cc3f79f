//! Project summary made of visible files: name, language, key files, layout.

use std::collections::BTreeMap;
use std::time::Instant;

use proctor_core::json::Json;
use proctor_wire::ahp::ProjectSummary;

use super::folder::Folder;
use super::search::View;

/// Most key files, and most names of folders and of files in the description.
const MAX_KEY_FILES: usize = 12;
const MAX_NAMES: usize = 20;
/// Most files per folder that are checked until one is visible; and of the project, for its language.
const MAX_ASKED: usize = 32;
const MAX_COUNTED: usize = 200;
/// Longest project name, in characters.
const MAX_NAME_CHARS: usize = 100;

/// Manifest files with their languages.
const MANIFESTS: &[(&str, &str)] = &[
    ("Cargo.toml", "Rust"),
    ("package.json", "JavaScript"),
    ("pyproject.toml", "Python"),
    ("go.mod", "Go"),
    ("setup.py", "Python"),
    ("requirements.txt", "Python"),
    ("pom.xml", "Java"),
    ("build.gradle", "Java"),
    ("build.gradle.kts", "Kotlin"),
    ("Gemfile", "Ruby"),
    ("composer.json", "PHP"),
    ("mix.exs", "Elixir"),
    ("Package.swift", "Swift"),
    ("CMakeLists.txt", "C++"),
];

/// Other key files.
const ENTRANCES: &[&str] = &[
    "README.md",
    "README.rst",
    "README.txt",
    "README",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "AGENTS.md",
    "Makefile",
    "justfile",
    "Dockerfile",
    "docker-compose.yml",
    "tsconfig.json",
    "src/main.rs",
    "src/lib.rs",
    "src/index.ts",
    "src/index.js",
    "src/main.py",
    "main.py",
    "main.go",
    "index.js",
    "index.html",
];

/// Languages by file extension.
const ENDINGS: &[(&str, &str)] = &[
    ("rs", "Rust"),
    ("py", "Python"),
    ("js", "JavaScript"),
    ("mjs", "JavaScript"),
    ("jsx", "JavaScript"),
    ("ts", "TypeScript"),
    ("tsx", "TypeScript"),
    ("go", "Go"),
    ("java", "Java"),
    ("kt", "Kotlin"),
    ("rb", "Ruby"),
    ("php", "PHP"),
    ("c", "C"),
    ("h", "C"),
    ("cc", "C++"),
    ("cpp", "C++"),
    ("hpp", "C++"),
    ("cs", "C#"),
    ("swift", "Swift"),
    ("scala", "Scala"),
    ("ex", "Elixir"),
    ("hs", "Haskell"),
    ("lua", "Lua"),
    ("sh", "Shell"),
    ("sql", "SQL"),
    ("tex", "LaTeX"),
];

/// Builds the summary from visible files only.
pub(crate) fn summary(folder: &Folder, files: &[String], view: &View<'_>) -> ProjectSummary {
    let has = |name: &str| files.iter().any(|file| file == name) && seen(name, view);
    let manifests: Vec<(&str, &str)> = MANIFESTS.iter().copied().filter(|(name, _)| has(name)).collect();
    let project_name = manifests
        .iter()
        .find_map(|(manifest, _)| name_in(manifest, &folder.read(manifest)?))
        .unwrap_or_else(|| folder.name());
    let key_files: Vec<String> = manifests
        .iter()
        .map(|(name, _)| *name)
        .chain(ENTRANCES.iter().copied().filter(|name| has(name)))
        .take(MAX_KEY_FILES)
        .map(str::to_owned)
        .collect();
    let by_manifest = manifests.first().map(|(manifest, language)| match *manifest {
        "package.json" if has("tsconfig.json") => "TypeScript",
        _ => language,
    });
    let language = by_manifest.or_else(|| by_endings(files, view));
    ProjectSummary {
        project_name: (view.cut)(&project_name).chars().take(MAX_NAME_CHARS).collect(),
        language: language.map(str::to_owned),
        key_files: (!key_files.is_empty()).then_some(key_files),
        structure_description: layout(files, view),
    }
}

/// Visible folders and files of the top level.
pub(crate) fn top(files: &[String], view: &View<'_>) -> (Vec<String>, Vec<String>) {
    let mut folders: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut beside = Vec::new();
    for file in files {
        match file.split_once('/') {
            Some((folder, _)) => {
                let inner = folders.entry(folder).or_default();
                if inner.len() < MAX_ASKED {
                    inner.push(file);
                }
            }
            None if beside.len() <= MAX_NAMES && seen(file, view) => beside.push((view.cut)(file)),
            None => {}
        }
    }
    let folders = folders
        .iter()
        .filter(|(_, inner)| inner.iter().any(|file| seen(file, view)))
        .map(|(folder, _)| (view.cut)(folder))
        .take(MAX_NAMES + 1)
        .collect();
    (folders, beside)
}

fn layout(files: &[String], view: &View<'_>) -> String {
    let (folders, beside) = top(files, view);
    let named = |kind: &str, mut names: Vec<String>| {
        let more = if names.len() > MAX_NAMES { ", …" } else { "" };
        names.truncate(MAX_NAMES);
        (!names.is_empty()).then(|| format!("{kind} {}{more}", names.join(", ")))
    };
    let parts: Vec<String> =
        [named("folders", folders), named("files", beside)].into_iter().flatten().collect();
    if parts.is_empty() { "no files that may be seen".to_owned() } else { parts.join("; ") }
}

fn seen(file: &str, view: &View<'_>) -> bool {
    Instant::now() < view.until && (view.sees)(file)
}

/// Project name in a manifest.
fn name_in(manifest: &str, text: &str) -> Option<String> {
    let name = match manifest {
        "Cargo.toml" | "pyproject.toml" => {
            let table: toml::Table = toml::from_str(text).ok()?;
            let section = |names: &[&str]| {
                let mut inner = &table;
                for name in names {
                    inner = inner.get(*name)?.as_table()?;
                }
                inner.get("name")?.as_str().map(str::to_owned)
            };
            section(&["package"]).or_else(|| section(&["project"])).or_else(|| section(&["tool", "poetry"]))
        }
        "package.json" | "composer.json" => {
            Json::parse(text.as_bytes()).ok()?.get("name")?.as_str().map(str::to_owned)
        }
        "go.mod" => {
            let module = text.lines().find_map(|line| line.trim().strip_prefix("module "))?;
            Some(module.trim().to_owned())
        }
        _ => None,
    };
    name.filter(|name| !name.trim().is_empty())
}

/// Most frequent language of the visible files; ties go to the first by name.
fn by_endings(files: &[String], view: &View<'_>) -> Option<&'static str> {
    let mut counts: BTreeMap<&'static str, usize> = BTreeMap::new();
    let languages = files.iter().filter_map(|file| Some((file, language_of(file)?)));
    for (_, language) in languages.filter(|(file, _)| seen(file, view)).take(MAX_COUNTED) {
        *counts.entry(language).or_default() += 1;
    }
    let most = counts.values().max().copied()?;
    counts.into_iter().find(|(_, count)| *count == most).map(|(language, _)| language)
}

fn language_of(file: &str) -> Option<&'static str> {
    let (_, ending) = file.rsplit('/').next()?.rsplit_once('.')?;
    ENDINGS.iter().find(|(known, _)| known.eq_ignore_ascii_case(ending)).map(|(_, language)| *language)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manifests_name_their_project() {
        for (manifest, text, expected) in [
            ("Cargo.toml", "[package]\nname = \"loom\"\n", Some("loom")),
            ("Cargo.toml", "[workspace]\nmembers = []\n", None),
            ("Cargo.toml", "not [ toml", None),
            ("pyproject.toml", "[project]\nname = \"spin\"\n", Some("spin")),
            ("pyproject.toml", "[tool.poetry]\nname = \"poem\"\n", Some("poem")),
            ("package.json", "{\"name\": \"web\"}", Some("web")),
            ("package.json", "[]", None),
            ("go.mod", "// x\nmodule example.com/a/b\n\ngo 1.22\n", Some("example.com/a/b")),
            ("setup.py", "setup()", None),
        ] {
            assert_eq!(name_in(manifest, text).as_deref(), expected, "{manifest} {text}");
        }
    }

    #[test]
    fn languages_are_known_by_the_endings_of_names() {
        assert_eq!(language_of("src/a.RS"), Some("Rust"));
        assert_eq!(language_of("src.rs/a"), None);
        assert_eq!(language_of("Makefile"), None);
    }
}
