//! Answer to a workspace question: facts, snippets and a summary, or hints for refining the question.

use proctor_core::json::Json;
use proctor_wire::ahp::{
    ContextPerceptionDecision, ContextPerceptionEvent, Fact, FileContentSnippet, InjectedContext,
    PerceptionIntent, PerceptionTarget,
};

use super::folder::{Folder, Walk};
use super::question::Question;
use super::search::{Found, Hit, View};
use super::summary;

/// Most files of a folder in a listing.
pub(crate) const MAX_LISTED: usize = 20;
/// Most facts about locations of hits.
const MAX_LOCATIONS: usize = 5;

/// Inputs of an answer.
pub(crate) struct Context<'a> {
    pub folder: &'a Folder,
    /// Files of the folder.
    pub walk: &'a Walk,
    /// Perception event as received.
    pub asked: &'a ContextPerceptionEvent,
    /// Parsed question.
    pub question: &'a Question,
    /// Path that the question names: empty for the folder itself.
    pub path: Option<String>,
    /// Files under that path, if only a listing is asked for.
    pub listed: Vec<&'a str>,
    /// Search results.
    pub found: Found,
    /// Visibility checks and redaction.
    pub view: &'a View<'a>,
    /// Whether the question has no words, no pattern and no path.
    pub vague: bool,
}

/// Refuses context, with a reason.
pub fn block(reason: &str) -> ContextPerceptionDecision {
    ContextPerceptionDecision::Block { reason: reason.to_owned(), metadata: None }
}

impl Context<'_> {
    /// Builds the answer: context if there are results; else a summary for exploring intents, and hints for all others.
    pub(crate) fn answer(self) -> ContextPerceptionDecision {
        let looks_around =
            matches!(self.asked.intent, PerceptionIntent::Explore | PerceptionIntent::Understand);
        // A question for the workspace itself gets the summary even if there is nothing to list.
        let question = self.question;
        let whole =
            self.path.as_deref() == Some("") && question.words.is_empty() && question.pattern.is_none();
        let nothing = self.found.matched == 0 && self.listed.is_empty() && !whole;
        if nothing && !looks_around {
            return self.refine();
        }
        let metadata = self.metadata();
        let project_summary = Some(summary::summary(self.folder, &self.walk.files, self.view));
        let facts = self.facts();
        let snippets: Vec<FileContentSnippet> = self
            .found
            .hits
            .into_iter()
            .map(|hit| FileContentSnippet {
                path: hit.path,
                snippet: hit.text,
                relevance_score: hit.relevance,
            })
            .collect();
        let injected_context = InjectedContext {
            facts,
            file_contents: (!snippets.is_empty()).then_some(snippets),
            project_summary,
            knowledge: None,
            suggestions: None,
        };
        ContextPerceptionDecision::Allow { injected_context, metadata }
    }

    fn metadata(&self) -> Option<Json> {
        self.found.cut_short.then(|| Json::object().with("incomplete", true))
    }

    fn facts(&self) -> Vec<Fact> {
        let mut facts = Vec::new();
        let label = self.label();
        if !self.listed.is_empty() {
            let names: Vec<String> = self.listed.iter().map(|file| (self.view.cut)(file)).collect();
            let more = if names.len() >= MAX_LISTED { " and maybe more" } else { "" };
            let shown = match self.path.as_deref() {
                None | Some("") => "the workspace".to_owned(),
                Some(path) => format!("`{}`", (self.view.cut)(path)),
            };
            facts.push(fact(format!("{shown} has {}{more}", names.join(", ")), "workspace".to_owned(), 1.0));
        } else if self.vague {
            return facts;
        } else {
            let least = if self.found.cut_short { "at least " } else { "" };
            let content = match self.found.matched {
                0 => format!("no file that may be seen answers to {label}"),
                1 => format!("{least}1 file answers to {label}"),
                several => format!("{least}{several} files answer to {label}"),
            };
            let confidence = if self.found.cut_short { 0.5 } else { 1.0 };
            facts.push(fact(content, "workspace".to_owned(), confidence));
        }
        let named = self.asked.constraints.include_sources;
        for hit in self.found.hits.iter().filter(|hit| hit.found && named).take(MAX_LOCATIONS) {
            facts.push(location_fact(hit, &label));
        }
        facts
    }

    /// Redacted label of the question for facts.
    fn label(&self) -> String {
        let label = (self.view.cut)(&self.question.label);
        let label = label.replace(|sign: char| sign.is_control() || sign == '`', " ");
        if label.trim().is_empty() { "the question".to_owned() } else { format!("`{}`", label.trim()) }
    }

    /// Builds a `refine` decision with hints for a better question.
    fn refine(self) -> ContextPerceptionDecision {
        let mut scope_hints = Vec::new();
        let reason = if self.vague {
            scope_hints.push(
                "say what to look for: a name, a path, a pattern, or words in `context.query`".to_owned(),
            );
            "the question names nothing to look for".to_owned()
        } else {
            format!("nothing that may be seen answers to {}", self.label())
        };
        let (folders, files) = summary::top(&self.walk.files, self.view);
        if !folders.is_empty() {
            scope_hints.push(format!("folders: {}", folders.join(", ")));
        }
        if !files.is_empty() {
            scope_hints.push(format!("files: {}", files.join(", ")));
        }
        scope_hints.push("fewer and rarer words find more; intent `explore` gives an overview".to_owned());
        let everything =
            PerceptionTarget::Location { path: ".".to_owned(), location_type: "folder".to_owned() };
        ContextPerceptionDecision::Refine {
            refined_intent: Some(PerceptionIntent::Explore),
            refined_target: Some(everything),
            scope_hints,
            reason: Some(reason),
            metadata: self.metadata(),
        }
    }
}

/// Location of a hit. Only a snippet that contains the label literally is stated as a match; any other "may answer".
fn location_fact(hit: &Hit, label: &str) -> Fact {
    let (path, line) = (&hit.path, hit.line);
    let as_asked = hit.text.to_lowercase().contains(label.trim_matches('`').to_lowercase().as_str());
    let content = if as_asked {
        format!("{label} is found in `{path}`, line {line}")
    } else {
        format!("`{path}`, line {line}, may answer to {label}")
    };
    fact(content, format!("{path}:{line}"), hit.relevance)
}

fn fact(content: String, source: String, confidence: f32) -> Fact {
    Fact { content, source, confidence }
}
