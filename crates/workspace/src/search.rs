//! Looking through the files of a workspace for what answers a question.

use std::time::Instant;

use super::folder::Folder;
use super::question::Question;
use super::snippet::{Span, snippet};
use super::words::Words;

/// How much of files is read for one question, in bytes.
const MAX_READ_BYTES: usize = 32 * 1024 * 1024;
/// The most bytes of one snippet among several.
const MAX_SNIPPET_BYTES: usize = 4096;
/// What a word in a file's text and in its path counts; together at most 1.
const IN_TEXT: f32 = 0.7;
const IN_PATH: f32 = 0.5;
/// What scores less than this share of the best is left out.
const LEAST_SHARE: f32 = 0.25;

/// What may be seen, and how.
pub struct View<'a> {
    /// Whether advice has a file in scope, by its path from the folder: a cheap question.
    pub in_scope: &'a dyn Fn(&str) -> bool,
    /// Whether the agent may see a file: in scope, and a read of it would be allowed.
    pub sees: &'a dyn Fn(&str) -> bool,
    /// A text without its secrets.
    pub cut: &'a dyn Fn(&str) -> String,
    /// When looking for files ends.
    pub search_until: Instant,
    /// When everything ends.
    pub until: Instant,
}

/// How much may be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The most files.
    pub results: usize,
    /// The most bytes of them, together.
    pub bytes: usize,
}

/// What was found.
#[derive(Debug, Default)]
pub struct Found {
    /// How many files answer, those that are not shown included.
    pub matched: usize,
    /// The best of them.
    pub hits: Vec<Hit>,
    /// Whether not everything was looked at.
    pub cut_short: bool,
}

/// A file that answers, without secrets.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// Its path from the folder.
    pub path: String,
    /// The line that answers best, counted from 1.
    pub line: usize,
    /// Whether something that was looked for is in that line.
    pub found: bool,
    /// Whether that line defines what was looked for.
    pub defines: bool,
    /// The part of the file.
    pub text: String,
    /// From 0 to 1.
    pub relevance: f32,
}

struct Candidate<'a> {
    path: &'a str,
    strengths: Vec<f32>,
}

/// The files that answer best. Whatever is told is told of texts without their secrets: else asking often enough would reveal them.
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
    let mut looked_at = 0_usize;
    let mut read_bytes = 0_usize;
    for (path, in_path) in promising_first(files, question, view) {
        if Instant::now() >= view.search_until || read_bytes >= MAX_READ_BYTES {
            found.cut_short = true;
            break;
        }
        if !(view.in_scope)(path) {
            continue;
        }
        looked_at += 1;
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
    let ranked = rank(words, candidates, looked_at);
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

/// One file that was asked for by name: around a line, or around what answers best, or from its beginning.
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

/// The part of a file that answers, within this many bytes for path and text together.
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
    let (line, found, defines) = (part.line, part.found, part.defines);
    Some(Hit { path, line, found, defines, text: part.text, relevance })
}

/// The files that the pattern lets through, those with the best paths first, with how strong the words are in the path.
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

/// Whether there is none of the words.
fn is_none(strengths: &[f32]) -> bool {
    !strengths.iter().any(|strength| *strength > 0.0)
}

fn in_both(in_text: &[f32], in_path: &[f32]) -> Vec<f32> {
    in_text.iter().zip(in_path).map(|(text, path)| (IN_TEXT * text + IN_PATH * path).min(1.0)).collect()
}

/// The candidates with their scores, the best first.
fn rank<'a>(words: &Words, candidates: Vec<Candidate<'a>>, looked_at: usize) -> Vec<(&'a str, f32)> {
    if words.is_empty() {
        return candidates.into_iter().map(|candidate| (candidate.path, 1.0)).collect();
    }
    let (paths, strengths): (Vec<&str>, Vec<Vec<f32>>) =
        candidates.into_iter().map(|candidate| (candidate.path, candidate.strengths)).unzip();
    let mut ranked: Vec<(&str, f32)> = paths.into_iter().zip(words.scores(&strengths, looked_at)).collect();
    ranked.sort_by(|(path, score), (other_path, other)| {
        other.total_cmp(score).then_with(|| path.cmp(other_path))
    });
    let best = ranked.first().map_or(0.0, |(_, score)| *score);
    ranked.retain(|(_, score)| *score >= best * LEAST_SHARE);
    ranked
}
