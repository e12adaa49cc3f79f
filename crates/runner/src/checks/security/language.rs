//! Programming languages of scanned code.

/// A language that code patterns are written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Language {
    /// Python.
    Python,
    /// JavaScript.
    Javascript,
    /// Shell.
    Bash,
}

impl Language {
    /// The words in suites.
    pub const WORDS: [&'static str; 3] = ["python", "javascript", "bash"];

    /// The language of this word.
    pub fn named(word: &str) -> Option<Language> {
        Some(match word {
            "python" => Language::Python,
            "javascript" => Language::Javascript,
            "bash" => Language::Bash,
            _ => return None,
        })
    }
}

const ALL: &[Language] = &[Language::Python, Language::Javascript, Language::Bash];

/// Fragments that are frequent in one language and rare in the others.
const INDICATORS: &[(&[Language], &[&str])] = &[
    (
        &[Language::Python],
        &["\ndef ", "\nimport ", "\nfrom ", "    return ", "elif ", "self.", "print(", "__name__"],
    ),
    (
        &[Language::Javascript],
        &["const ", "let ", "=> {", "function ", "require(", "console.", "===", "module.exports"],
    ),
    (&[Language::Bash], &["#!/bin/", "\nfi\n", "\ndone", "echo ", " then\n", "$(", "sudo ", " | grep"]),
];

/// The language with clearly the most indicators; all of them if there is none, so that a mixed text hides nothing.
pub(super) fn guess(text: &str) -> &'static [Language] {
    let text = format!("\n{text}\n");
    let mut scores: Vec<(usize, &'static [Language])> = INDICATORS
        .iter()
        .map(|(languages, fragments)| {
            (fragments.iter().filter(|fragment| text.contains(**fragment)).count(), *languages)
        })
        .collect();
    scores.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    match scores.as_slice() {
        [(best, languages), (second, _), ..] if *best >= 2 && *second == 0 => languages,
        _ => ALL,
    }
}
