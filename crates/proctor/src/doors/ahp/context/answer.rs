//! The answer to a question about the workspace: facts, snippets, a summary, or how to ask better.

use proctor_core::json::Json;
use proctor_clients::ahp::{
    ContextPerceptionDecision, ContextPerceptionEvent, Fact, FileContentSnippet, InjectedContext,
    PerceptionIntent, PerceptionTarget,
};

use super::folder::{Folder, Walk};
use super::question::Question;
use super::search::{Found, Hit, View};
use super::summary;

/// Files of a folder that are listed.
pub const MAX_LISTED: usize = 20;
/// Facts about where something was found.
const MAX_PLACES: usize = 5;
/// Names among which one that was misspelt is looked for.
const MAX_COMPARED: usize = 2000;

/// Everything that an answer is made of.
pub struct Context<'a> {
    /// The folder.
    pub folder: &'a Folder,
    /// Its files.
    pub walk: &'a Walk,
    /// The question as asked.
    pub asked: &'a ContextPerceptionEvent,
    /// The question as read.
    pub question: &'a Question,
    /// The place that it is about: empty for the folder itself.
    pub place: Option<String>,
    /// The files of that place, if they are all that is asked for.
    pub listed: Vec<&'a str>,
    /// What was found.
    pub found: Found,
    /// What may be seen.
    pub view: &'a View<'a>,
    /// Whether nothing was asked for.
    pub vague: bool,
}

/// No context, and why.
pub fn block(reason: &str) -> ContextPerceptionDecision {
    ContextPerceptionDecision::Block { reason: reason.to_owned(), metadata: None }
}

impl Context<'_> {
    /// Context if there is any; else a summary for those who look around, and hints for those who look for something.
    pub fn answer(self) -> ContextPerceptionDecision {
        let looks_around =
            matches!(self.asked.intent, PerceptionIntent::Explore | PerceptionIntent::Understand);
        // Who asks for the workspace itself, and nothing in it, gets the summary even if there is nothing to list.
        let question = self.question;
        let whole =
            self.place.as_deref() == Some("") && question.words.is_empty() && question.pattern.is_none();
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
            let place = match self.place.as_deref() {
                None | Some("") => "the workspace".to_owned(),
                Some(place) => format!("`{}`", (self.view.cut)(place)),
            };
            facts.push(fact(format!("{place} has {}{more}", names.join(", ")), "workspace".to_owned(), 1.0));
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
        for hit in self.found.hits.iter().filter(|hit| hit.found && named).take(MAX_PLACES) {
            facts.push(place_fact(hit, &label));
        }
        facts
    }

    /// What is asked for, as facts call it.
    fn label(&self) -> String {
        let label = (self.view.cut)(&self.question.label);
        let label = label.replace(|sign: char| sign.is_control() || sign == '`', " ");
        if label.trim().is_empty() { "the question".to_owned() } else { format!("`{}`", label.trim()) }
    }

    /// How to ask so that something is found.
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
        if let Some((word, name)) = self.misspelt() {
            scope_hints.push(format!("did you mean `{name}` instead of `{word}`?"));
        }
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

    /// A word of the question that is nearly the name of a file that may be seen.
    fn misspelt(&self) -> Option<(String, String)> {
        let names: Vec<(&str, &str)> = self
            .walk
            .files
            .iter()
            .take(MAX_COMPARED)
            .filter_map(|file| {
                let name = file.rsplit('/').next()?;
                let stem = name.split_once('.').map_or(name, |(stem, _)| stem);
                (stem.len() > 2).then_some((stem, file.as_str()))
            })
            .collect();
        let stems: Vec<&str> = names.iter().map(|(stem, _)| *stem).collect();
        self.question.words.texts().filter(|word| word.len() > 3).find_map(|word| {
            let near = proctor_core::nearest(word, &stems)?;
            let (_, file) = names.iter().find(|(stem, file)| *stem == near && (self.view.sees)(file))?;
            Some(((self.view.cut)(word), (self.view.cut)(file)))
        })
    }
}

/// Where something is. Only what the snippet holds as it was asked for is said to be there; all else may answer.
fn place_fact(hit: &Hit, label: &str) -> Fact {
    let (path, line) = (&hit.path, hit.line);
    let as_asked = hit.text.to_lowercase().contains(label.trim_matches('`').to_lowercase().as_str());
    let content = match (as_asked, hit.defines) {
        (true, true) => format!("{label} seems to be defined in `{path}`, line {line}"),
        (true, false) => format!("{label} is found in `{path}`, line {line}"),
        (false, _) => format!("`{path}`, line {line}, may answer to {label}"),
    };
    fact(content, format!("{path}:{line}"), hit.relevance)
}

fn fact(content: String, source: String, confidence: f32) -> Fact {
    Fact { content, source, confidence }
}
