//! Context answers about a workspace folder: bounded walk, search, snippets and a project summary.
//!
//! Only the configured workspace is read. A file is shown if the policy's advice has it in scope and the caller's [`Permissions`] let it be
//! read; every text is redacted by the caller before it is returned.

mod answer;
mod folder;
mod question;
mod search;
mod snippet;
mod summary;
pub mod words;

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

use proctor_policy::advice::ContextScope;
use proctor_wire::ahp::{ContextPerceptionDecision, ContextPerceptionEvent};

use answer::Context;
use folder::Walk;
use question::path_and_line;
use search::Found;

pub use answer::block;
pub use folder::Folder;
pub use question::Question;
pub use search::{Limits, View, search};

/// Deadlines since the start: of the walk, of the search, and of the whole answer.
const WALK: Duration = Duration::from_millis(600);
const SEARCH: Duration = Duration::from_millis(1500);
const ALL: Duration = Duration::from_millis(2000);
/// Most files and bytes of one answer, whatever policy allows.
const MAX_RESULTS: usize = 200;
const MAX_BYTES: usize = 512 * 1024;

/// Access checks and redaction, supplied by the caller.
pub struct Permissions<'a> {
    /// Whether a read of the file at this path, in the opened folder, would be plainly allowed.
    pub may_read: &'a dyn Fn(&Folder, &str) -> bool,
    /// Redacts secrets from a text.
    pub cut: &'a dyn Fn(&str) -> String,
}

/// Answers a question about the workspace at `root`.
pub fn perceive(
    root: &Path,
    scope: &ContextScope<'_>,
    permissions: &Permissions<'_>,
    asked: &ContextPerceptionEvent,
) -> ContextPerceptionDecision {
    let start = Instant::now();
    let Some(folder) = Folder::open(root, &asked.context.workspace) else {
        return block(
            "context is given of the configured workspace only: leave `workspace` empty, or name a folder below it",
        );
    };
    // Cached: evaluating the policy costs more than a lookup, and the search asks for the same files again.
    let seen: RefCell<HashMap<String, bool>> = RefCell::default();
    let in_scope = |file: &str| scope.matches(&folder.path_from_workspace(file));
    let sees = |file: &str| {
        if let Some(known) = seen.borrow().get(file) {
            return *known;
        }
        let sees = in_scope(file) && (permissions.may_read)(&folder, file);
        seen.borrow_mut().insert(file.to_owned(), sees);
        sees
    };
    let view = View {
        in_scope: &in_scope,
        sees: &sees,
        cut: permissions.cut,
        search_until: start + SEARCH,
        until: start + ALL,
    };
    let walk = folder.walk(start + WALK);
    answer_question(&folder, &walk, asked, limits(asked, scope), &view)
}

/// Limits of an answer: the smallest of the request's, the policy's and the built-in ones.
fn limits(asked: &ContextPerceptionEvent, scope: &ContextScope<'_>) -> Limits {
    let least = |wanted: Option<u64>, allowed: u32, most: usize| {
        let wanted = wanted.and_then(|wanted| usize::try_from(wanted).ok()).unwrap_or(usize::MAX);
        wanted.min(usize::try_from(allowed).unwrap_or(usize::MAX)).min(most)
    };
    Limits {
        results: least(asked.constraints.max_results, scope.max_results, MAX_RESULTS),
        bytes: least(asked.constraints.max_context_length, scope.max_bytes, MAX_BYTES),
    }
}

/// Searches the walked files for the question, and builds the answer.
fn answer_question(
    folder: &Folder,
    walk: &Walk,
    asked: &ContextPerceptionEvent,
    limits: Limits,
    view: &View<'_>,
) -> ContextPerceptionDecision {
    let mut question = Question::read(asked);
    let location = question.path.as_deref().and_then(|named| locate(folder, walk, named, view));
    if location.is_none() {
        // A missing path and a forbidden one get the same answer, so that it does not reveal which files exist.
        question.path_to_words();
    }
    let vague = question.is_vague();
    let all: Vec<&str> = walk.files.iter().map(String::as_str).collect();
    let mut listed = Vec::new();
    let mut found = match &location {
        _ if vague => Found::default(),
        Some(Location::File { path, line }) => {
            search::show_file(folder, path, *line, &question.words, limits, view)
        }
        Some(Location::Folder { files, .. }) if question.words.is_empty() && question.pattern.is_none() => {
            listed =
                files.iter().copied().filter(|file| (view.sees)(file)).take(answer::MAX_LISTED).collect();
            Found::default()
        }
        Some(Location::Folder { files, .. }) => search::search(folder, files, &question, limits, view),
        None => search::search(folder, &all, &question, limits, view),
    };
    found.cut_short |= walk.cut_short;
    let path = location.map(|location| match location {
        Location::File { path, .. } | Location::Folder { path, .. } => path,
    });
    Context { folder, walk, asked, question: &question, path, listed, found, view, vague }.answer()
}

/// File or folder that a question names and the agent may see.
enum Location<'a> {
    File { path: String, line: Option<usize> },
    Folder { path: String, files: Vec<&'a str> },
}

fn locate<'a>(folder: &Folder, walk: &'a Walk, named: &str, view: &View<'_>) -> Option<Location<'a>> {
    let (path, line) = match folder.locate(named) {
        Some(path) => (path, None),
        None => {
            let (path, line) = path_and_line(named)?;
            (folder.locate(path)?, Some(line))
        }
    };
    if path.is_empty() {
        return Some(Location::Folder { path, files: walk.files.iter().map(String::as_str).collect() });
    }
    // Only walked paths: a file that the walk skips cannot be named either.
    if walk.files.contains(&path) {
        return (view.sees)(&path).then_some(Location::File { path, line });
    }
    let inside = format!("{path}/");
    let files: Vec<&str> =
        walk.files.iter().map(String::as_str).filter(|file| file.starts_with(&inside)).collect();
    let any = files.iter().any(|file| Instant::now() < view.search_until && (view.sees)(file));
    any.then_some(Location::Folder { path, files })
}
