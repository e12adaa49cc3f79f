//! The words of `docs/glossary.md` are used: what its last column lists stands in no doc comment and on no page.

use std::path::{Path, PathBuf};

/// Phrases that contain a listed word and mean something else.
const EXCEPTIONS: &[&str] = &[
    // Names of other people's things.
    "slack bot token",
    "alert's context",
    // Unicode.
    "byte order mark",
    "combining mark",
];

/// Files that are not searched: the table itself, and the page that is made from `--help`.
const SKIPPED: &[&str] = &["docs/glossary.md", "docs/cli.md"];

#[test]
fn words_that_the_glossary_replaces_are_not_used() {
    let replaced = replaced_words();
    assert!(replaced.len() > 40, "the table was not read: {replaced:?}");
    let mut problems = Vec::new();
    for file in files() {
        let name = file.strip_prefix(root()).unwrap().display().to_string();
        if SKIPPED.contains(&name.as_str()) {
            continue;
        }
        let text = std::fs::read_to_string(&file).unwrap();
        let is_source = file.extension().is_some_and(|extension| extension == "rs");
        let lines = if is_source { doc_comments(&text) } else { numbered(&text) };
        for (number, prose) in prose(&lines) {
            for (word, instead) in &replaced {
                if stands_in(&prose, word) {
                    problems.push(format!("{name}:{number}: say `{instead}`, not `{word}`"));
                }
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn every_word_has_a_meaning_and_stands_once() {
    let mut words: Vec<String> = rows()
        .into_iter()
        .map(|[word, meaning, _, _]| {
            assert!(!meaning.is_empty(), "`{word}` has no meaning");
            word
        })
        .collect();
    let all = words.len();
    words.sort();
    words.dedup();
    assert_eq!(words.len(), all, "a word stands twice");
    for (replaced, instead) in replaced_words() {
        assert!(
            !words.contains(&replaced),
            "`{replaced}` is a word of ours, and listed as one for `{instead}`"
        );
    }
}

#[test]
fn crates_of_the_glossary_exist() {
    let manifests: Vec<String> = walk(&root().join("crates"), "toml")
        .into_iter()
        .map(|file| std::fs::read_to_string(file).unwrap())
        .collect();
    for [word, _, crates, _] in rows() {
        for name in
            crates.split(',').map(|name| name.trim().trim_matches('`')).filter(|name| !name.is_empty())
        {
            let line = format!("name = \"{name}\"");
            assert!(
                manifests.iter().any(|manifest| manifest.contains(&line)),
                "`{word}`: there is no `{name}`"
            );
        }
    }
}

#[test]
fn words_are_found_whole_and_outside_of_code() {
    assert!(
        stands_in("a mark is set", "mark") && stands_in("Mark it", "mark") && stands_in("(mark)", "mark")
    );
    assert!(!stands_in("marks and remark", "mark") && !stands_in("a byte order mark", "mark"));
    assert!(stands_in("a byte order mark and a mark", "mark"));
    let lines = numbered("a `mark` here\n```\nmark\n```\nand `two\nlines of mark` there");
    let found: String = prose(&lines).into_iter().map(|(_, text)| text).collect();
    assert!(!found.contains("mark"), "{found}");
    assert_eq!(doc_comments("/// one\nfn two() {} // three\n    //! four\n").len(), 2);
}

// The table.

/// The rows of all tables: word, meaning, crates, words that are not used for it.
fn rows() -> Vec<[String; 4]> {
    let page = std::fs::read_to_string(root().join("docs/glossary.md")).unwrap();
    let cells = |line: &str| -> Option<[String; 4]> {
        let line = line.strip_prefix('|')?.strip_suffix('|')?;
        let cells: Vec<String> = line.split('|').map(|cell| cell.trim().to_owned()).collect();
        cells.try_into().ok()
    };
    let rows = page.lines().filter_map(cells);
    rows.filter(|[word, ..]| word != "Word" && !word.starts_with("---")).collect()
}

/// The words that are not used, each with the one to say instead.
fn replaced_words() -> Vec<(String, String)> {
    let pairs = rows().into_iter().flat_map(|[word, _, _, replaced]| {
        let replaced: Vec<String> = replaced.split(',').map(|word| word.trim().to_owned()).collect();
        replaced.into_iter().map(move |other| (other, word.clone()))
    });
    pairs.filter(|(replaced, _)| !replaced.is_empty()).collect()
}

// Files.

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The sources of all crates, and the pages.
fn files() -> Vec<PathBuf> {
    let sources = walk(&root().join("crates"), "rs");
    let mut files: Vec<PathBuf> =
        sources.into_iter().filter(|file| file.components().any(|part| part.as_os_str() == "src")).collect();
    files.extend(walk(&root().join("docs"), "md"));
    files.extend([root().join("README.md"), root().join("ARCHITECTURE.md")]);
    assert!(files.len() > 300, "{} files", files.len());
    files
}

fn walk(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(walk(&path, extension));
        } else if path.extension().is_some_and(|is| is == extension) {
            found.push(path);
        }
    }
    found.sort();
    found
}

// Prose.

fn numbered(text: &str) -> Vec<(usize, String)> {
    (1..).zip(text.lines().map(str::to_owned)).collect()
}

/// The lines of doc comments, without their slashes.
fn doc_comments(source: &str) -> Vec<(usize, String)> {
    let lines = numbered(source).into_iter().filter_map(|(number, line)| {
        let line = line.trim_start();
        let comment = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"))?;
        Some((number, comment.trim_start().to_owned()))
    });
    lines.collect()
}

/// The lines without code blocks and without what stands between backticks, which may go on over a line's end.
fn prose(lines: &[(usize, String)]) -> Vec<(usize, String)> {
    let mut prose = Vec::new();
    let (mut block, mut code) = (false, false);
    let mut before = 0;
    for (number, line) in lines {
        // A comment that does not go on: an odd backtick in it is its own.
        if *number != before + 1 || line.is_empty() {
            code = false;
        }
        before = *number;
        if line.starts_with("```") {
            block = !block;
            continue;
        }
        if block {
            continue;
        }
        let mut kept = String::new();
        for (index, part) in line.split('`').enumerate() {
            code ^= index > 0;
            if !code {
                kept.push_str(part);
                // What stood between the backticks keeps its neighbours apart.
                kept.push(' ');
            }
        }
        prose.push((*number, kept));
    }
    prose
}

/// Whether a word or phrase stands in a text, whole, in any case, and not as part of an exception.
fn stands_in(text: &str, word: &str) -> bool {
    let mut text = text.to_lowercase();
    for exception in EXCEPTIONS {
        text = text.replace(exception, "");
    }
    let inside = |character: char| character.is_alphanumeric() || matches!(character, '_' | '-');
    let word = word.to_lowercase();
    text.match_indices(&word).any(|(at, found)| {
        let (before, after) = (text.get(..at).unwrap_or(""), text.get(at + found.len()..).unwrap_or(""));
        !before.ends_with(inside) && !after.starts_with(inside)
    })
}
