//! Context for an agent: what is in its workspace, as far as policy lets it see.
//!
//! Only the configured workspace is looked at. A file is shown if advice has it in scope and a read of it would be plainly allowed now;
//! everything that is told is without secrets.

mod answer;
mod folder;
mod question;
mod search;
mod snippet;
mod summary;
pub(super) mod words;

use std::cell::RefCell;
use std::collections::HashMap;
use std::time::{Duration, Instant};

use proctor_core::action::{Action, ActionKind};
use proctor_core::decision::Effect;
use proctor_core::json::Json;
use proctor_core::session::Caller;
use proctor_net::ahp::{ContextPerceptionDecision, ContextPerceptionEvent};
use proctor_policy::advice::{ContextAdvice, ContextScope};
use proctor_policy::prepare::redact_text;

use super::AhpDoor;
use super::action::DOOR;
use crate::engine::Proposal;

use answer::Context;
use folder::{Folder, Walk};
use question::{Question, place_and_line};
use search::{Found, Limits, View};

/// How long walking, then searching, then everything may take.
const WALK: Duration = Duration::from_millis(600);
const SEARCH: Duration = Duration::from_millis(1500);
const ALL: Duration = Duration::from_millis(2000);
/// The most files and bytes of one answer, whatever policy allows.
const MAX_RESULTS: usize = 200;
const MAX_BYTES: usize = 512 * 1024;

impl AhpDoor {
    /// Looks around in the workspace.
    pub(super) fn perceive(
        &self,
        caller: &Caller,
        agent: &str,
        session: &str,
        asked: &ContextPerceptionEvent,
    ) -> ContextPerceptionDecision {
        let start = Instant::now();
        let advice = self.advice(caller);
        let scope = match advice.context() {
            ContextAdvice::Allow(scope) => scope,
            ContextAdvice::Block { reason } => return answer::block(reason),
        };
        let Some(folder) = Folder::open(&self.shared.settings.workspace, &asked.context.workspace) else {
            return answer::block(
                "context is given of the configured workspace only: leave `workspace` empty, or name a folder below it",
            );
        };
        let policy = self.engine().policy();
        let seen: RefCell<HashMap<String, bool>> = RefCell::default();
        let in_scope = |file: &str| scope.matches(&folder.path_from_workspace(file));
        let sees = |file: &str| {
            if let Some(known) = seen.borrow().get(file) {
                return *known;
            }
            let sees = in_scope(file) && self.may_read(caller, agent, session, &folder, file);
            seen.borrow_mut().insert(file.to_owned(), sees);
            sees
        };
        let cut = |text: &str| redact_text(&policy, text);
        let view = View {
            in_scope: &in_scope,
            sees: &sees,
            cut: &cut,
            search_until: start + SEARCH,
            until: start + ALL,
        };
        let walk = folder.walk(start + WALK);
        look(&folder, &walk, asked, limits(asked, &scope), &view)
    }

    /// Whether a read of this file would be plainly allowed. One that marks the session or rests on an approval is not: showing the
    /// file in passing would leave no mark, and use no approval up.
    fn may_read(&self, caller: &Caller, agent: &str, session: &str, folder: &Folder, file: &str) -> bool {
        let path = folder.path_of(file);
        let action = Action {
            kind: ActionKind::FileOperation,
            name: "file_read".to_owned(),
            operation: "read".to_owned(),
            args: Json::object().with("path", path.as_str()),
            path,
            cwd: folder.path(),
            door: DOOR.to_owned(),
            ..Action::default()
        };
        let proposal =
            Proposal { action, caller: caller.clone(), agent: agent.to_owned(), session: session.to_owned() };
        self.engine().consider(&proposal).is_ok_and(|decision| {
            matches!(decision.effect, Effect::Allow | Effect::Redact)
                && decision.taints.is_empty()
                && decision.approval.is_none()
        })
    }
}

/// How much the agent wants and may have.
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

/// Looks for what is asked, and answers.
fn look(
    folder: &Folder,
    walk: &Walk,
    asked: &ContextPerceptionEvent,
    limits: Limits,
    view: &View<'_>,
) -> ContextPerceptionDecision {
    let mut question = Question::read(asked);
    let place = question.place.as_deref().and_then(|named| place(folder, walk, named, view));
    if place.is_none() {
        // A place that is not there and one that may not be seen are answered alike.
        question.forget_place();
    }
    let vague = question.is_vague();
    let all: Vec<&str> = walk.files.iter().map(String::as_str).collect();
    let mut listed = Vec::new();
    let mut found = match &place {
        _ if vague => Found::default(),
        Some(Place::File { path, line }) => {
            search::show_file(folder, path, *line, &question.words, limits, view)
        }
        Some(Place::Folder { files, .. }) if question.words.is_empty() && question.pattern.is_none() => {
            listed =
                files.iter().copied().filter(|file| (view.sees)(file)).take(answer::MAX_LISTED).collect();
            Found::default()
        }
        Some(Place::Folder { files, .. }) => search::search(folder, files, &question, limits, view),
        None => search::search(folder, &all, &question, limits, view),
    };
    found.cut_short |= walk.cut_short;
    let place = place.map(|place| match place {
        Place::File { path, .. } | Place::Folder { path, .. } => path,
    });
    Context { folder, walk, asked, question: &question, place, listed, found, view, vague }.answer()
}

/// A place in the workspace that may be seen.
enum Place<'a> {
    File { path: String, line: Option<usize> },
    Folder { path: String, files: Vec<&'a str> },
}

fn place<'a>(folder: &Folder, walk: &'a Walk, named: &str, view: &View<'_>) -> Option<Place<'a>> {
    let (path, line) = match folder.locate(named) {
        Some(path) => (path, None),
        None => {
            let (path, line) = place_and_line(named)?;
            (folder.locate(path)?, Some(line))
        }
    };
    if path.is_empty() {
        return Some(Place::Folder { path, files: walk.files.iter().map(String::as_str).collect() });
    }
    // Only what was walked to: what the walk leaves out is no place either.
    if walk.files.contains(&path) {
        return (view.sees)(&path).then_some(Place::File { path, line });
    }
    let inside = format!("{path}/");
    let files: Vec<&str> =
        walk.files.iter().map(String::as_str).filter(|file| file.starts_with(&inside)).collect();
    let any = files.iter().any(|file| Instant::now() < view.search_until && (view.sees)(file));
    any.then_some(Place::Folder { path, files })
}

#[cfg(test)]
pub(super) mod fixture;
#[cfg(test)]
mod tests;
