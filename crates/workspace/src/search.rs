//! Full-text search over the files of a workspace.

use std::time::Instant;

use super::folder::Folder;
use super::question::Question;
use super::snippet::{Span, snippet};
use super::words::Words;

/// Most bytes of files that are read for one question.
const MAX_READ_BYTES: usize = 32 * 1024 * 1024;
/// Most bytes of one snippet among several.
const MAX_SNIPPET_BYTES: usize = 4096;
/// Weights of a word in a file's text and in its path; their sum is at most 1.
const IN_TEXT: f32 = 0.7;
const IN_PATH: f32 = 0.5;
/// Cutoff: files that score less than this share of the best are left out.
const LEAST_SHARE: f32 = 0.25;

/// Visibility checks, redaction and deadlines of one question.
pub struct View<'a> {
    /// Whether the policy's advice has a file in scope, by its path from the folder: a cheap check.
    pub in_scope: &'a dyn Fn(&str) -> bool,
    /// Whether the agent may see a file: in scope, and a read of it would be allowed.
    pub sees: &'a dyn Fn(&str) -> bool,
    /// Redacts secrets from a text.
    pub cut: &'a dyn Fn(&str) -> String,
    /// Deadline of the search.
    pub search_until: Instant,
    /// Deadline of the whole answer.
    pub until: Instant,
}

/// Limits of an answer's size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Most files.
    pub results: usize,
    /// Most bytes of all snippets together.
    pub bytes: usize,
}

/// Search results.
#[derive(Debug, Default)]
pub struct Found {
    /// Number of matching files, including those that are not shown.
    pub matched: usize,
    /// Best matches.
    pub hits: Vec<Hit>,
    /// Whether a limit or the deadline ended the search early.
    pub cut_short: bool,
}

/// Matching file, redacted.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// Path relative to the folder.
    pub path: String,
    /// Best matching line, counted from 1.
    pub line: usize,
    /// Whether that line contains a search word.
    pub found: bool,
    /// Snippet.
    pub text: String,
    /// Relevance from 0 to 1.
    pub relevance: f32,
}

struct Candidate<'a> {
    path: &'a str,
    strengths: Vec<f32>,
}

/// Finds the best matching files. Only redacted texts are searched: else repeated questions would reveal secrets.
pub fn search(
    folder: &Folder,
    files: &[&str],
    question: &Question,
    limits: Limits,
    view: &View<'_>,
) -> Found {
    let words = &question.words;
    let mut found = Found::default();
    let mut candidates: Vec<Candidate<'_>> = Vec::new();
    let mut read_bytes = 0_usize;
    for (path, in_path) in promising_first(files, question, view) {
        if Instant::now() >= view.search_until || read_bytes >= MAX_READ_BYTES {
            found.cut_short = true;
            break;
        }
        if !(view.in_scope)(path) {
            continue;
        }
        if words.is_empty() {
            if (view.sees)(path) {
                candidates.push(Candidate { path, strengths: Vec::new() });
            }
            continue;
        }
        let Some(text) = folder.read(path) else { continue };
        read_bytes = read_bytes.saturating_add(text.len());
        let lower = text.to_lowercase();
        // Most files have none of the words. To ask the rules about them and to cut them would take longer than to read them.
        if is_none(&words.strengths(&lower)) && is_none(&in_path) || !(view.sees)(path) {
            continue;
        }
        let strengths = in_both(&words.strengths(&(view.cut)(&text).to_lowercase()), &in_path);
        if !is_none(&strengths) {
            candidates.push(Candidate { path, strengths });
        }
    }
    let ranked = rank(words, candidates);
    found.matched = ranked.len();
    let mut left = limits.bytes;
    for (path, relevance) in ranked.into_iter().take(limits.results) {
        if left == 0 || Instant::now() >= view.until {
            found.cut_short |= left != 0;
            break;
        }
        let span = Span { before: 3, after: 8 };
        let room = left.min(MAX_SNIPPET_BYTES);
        if let Some(hit) = show(folder, path, words, None, span, room, relevance, view) {
            left = left.saturating_sub(hit.text.len() + hit.path.len());
            found.hits.push(hit);
        }
    }
    found
}

/// Shows a file that was asked for by path: around a line, around the best match, or from the start.
pub(crate) fn show_file(
    folder: &Folder,
    path: &str,
    line: Option<usize>,
    words: &Words,
    limits: Limits,
    view: &View<'_>,
) -> Found {
    let span = Span { before: 40, after: 10_000 };
    let hit = (limits.results > 0)
        .then(|| show(folder, path, words, line, span, limits.bytes, 1.0, view))
        .flatten();
    Found { matched: 1, hits: hit.into_iter().collect(), cut_short: false }
}

/// Snippet of a file, with a limit for path and text together.
#[expect(clippy::too_many_arguments, reason = "one step of the two functions above")]
fn show(
    folder: &Folder,
    path: &str,
    words: &Words,
    line: Option<usize>,
    span: Span,
    max_bytes: usize,
    relevance: f32,
    view: &View<'_>,
) -> Option<Hit> {
    // The whole file is cut, not the snippet: a secret may begin above it.
    let text = (view.cut)(&folder.read(path)?);
    let path = (view.cut)(path);
    let part = snippet(&text, words, line, span, max_bytes.checked_sub(path.len())?)?;
    Some(Hit { path, line: part.line, found: part.found, text: part.text, relevance })
}

/// Files that match the pattern, sorted by the strength of the words in their paths, with those strengths.
fn promising_first<'a>(files: &[&'a str], question: &Question, view: &View<'_>) -> Vec<(&'a str, Vec<f32>)> {
    let mut ordered: Vec<(&str, Vec<f32>)> = files
        .iter()
        .filter(|path| question.pattern.as_ref().is_none_or(|pattern| pattern.matches(path)))
        .map(|path| {
            let mut strengths = question.words.strengths(&path.to_lowercase());
            if !is_none(&strengths) {
                strengths = question.words.strengths(&(view.cut)(path).to_lowercase());
            }
            (*path, strengths)
        })
        .collect();
    let weight = |strengths: &[f32]| question.words.weigh(strengths);
    // A stable sort: of equal weight, the shallow stay first.
    ordered.sort_by(|(_, one), (_, other)| weight(other).total_cmp(&weight(one)));
    ordered
}

/// Whether all strengths are zero.
fn is_none(strengths: &[f32]) -> bool {
    !strengths.iter().any(|strength| *strength > 0.0)
}

fn in_both(in_text: &[f32], in_path: &[f32]) -> Vec<f32> {
    in_text.iter().zip(in_path).map(|(text, path)| (IN_TEXT * text + IN_PATH * path).min(1.0)).collect()
}

/// Candidates with their scores, best first.
fn rank<'a>(words: &Words, candidates: Vec<Candidate<'a>>) -> Vec<(&'a str, f32)> {
    if words.is_empty() {
        return candidates.into_iter().map(|candidate| (candidate.path, 1.0)).collect();
    }
    let mut ranked: Vec<(&str, f32)> =
        candidates.iter().map(|candidate| (candidate.path, words.score(&candidate.strengths))).collect();
    ranked.sort_by(|(path, score), (other_path, other)| {
        other.total_cmp(score).then_with(|| path.cmp(other_path))
    });
    let best = ranked.first().map_or(0.0, |(_, score)| *score);
    ranked.retain(|(_, score)| *score >= best * LEAST_SHARE);
    ranked
}
