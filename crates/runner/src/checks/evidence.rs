//! The evidence of one run: response, events, workspace.

use proctor_core::json::Json;

use super::files::{EntryKind, Files, WorkspacePath};
use super::result::CheckError;
use super::value::spaced;

/// Bytes of a workspace file that are read for one artifact.
pub(super) const MAX_FILE_BYTES: usize = 16 << 20;

/// Characters of a text that a message shows.
const MAX_EXCERPT: usize = 200;

/// Response, events and workspace of a run.
#[derive(Clone, Copy)]
pub struct Evidence<'a> {
    /// The response; null if none came.
    pub response: &'a Json,
    /// The events, in order of arrival. Calls that were observed at the tools endpoint are among them, each once.
    pub events: &'a [EventView<'a>],
    /// The workspace after the last process ended.
    pub files: &'a dyn Files,
    /// Whether the run's endpoint has tools: then calls are counted there, and not as the agent says.
    pub has_tools: bool,
}

/// An event of a run.
#[derive(Debug, Clone, Copy)]
pub struct EventView<'a> {
    /// The sequence that the agent gave it.
    pub sequence: Option<u64>,
    /// `tool_call`, `error`, …
    pub event_type: &'a str,
    /// The payload.
    pub payload: &'a Json,
    /// Whether it is a call that the tools endpoint, which has the tool, did not see, or that reached no tool. Such a call fulfils no rule.
    pub is_doubtful: bool,
}

/// An artifact of the response.
#[derive(Clone, Copy)]
pub(super) struct Artifact<'a>(&'a Json);

impl<'a> Evidence<'a> {
    /// The artifacts of the response: all, or those of one path or name.
    pub(super) fn artifacts(&self, identity: Option<&str>) -> Vec<Artifact<'a>> {
        let all = self.response.get("artifacts").and_then(Json::as_array).unwrap_or_default();
        let named = |artifact: &Artifact<'_>| identity.is_none_or(|name| artifact.identity() == Some(name));
        all.iter().map(Artifact).filter(named).collect()
    }

    /// The start of a text that an assertion did not find what it wanted in, as part of a sentence.
    pub(super) fn excerpt(&self, text: &str) -> String {
        let text = self.files.shown(text);
        match text.trim() {
            "" => "is empty".to_owned(),
            text => format!("begins `{}`", proctor_core::printable::shown(text, MAX_EXCERPT)),
        }
    }

    /// The error text of the response; `None` if it is absent, null or blank.
    pub(super) fn error(&self) -> Option<String> {
        match self.response.get("error") {
            None | Some(Json::Null) => None,
            Some(Json::String(text)) => (!text.trim().is_empty()).then(|| text.clone()),
            Some(other) => Some(other.to_string()),
        }
    }

    /// A whole number among the metrics.
    pub(super) fn metric(&self, name: &str) -> Option<u64> {
        self.response.get("metrics").and_then(|metrics| metrics.get(name)).and_then(Json::as_u64)
    }

    pub(super) fn events_of(&self, event_type: &str) -> impl Iterator<Item = (usize, &'a EventView<'a>)> {
        self.events.iter().enumerate().filter(move |(_, event)| event.event_type == event_type)
    }

    /// The text of the first artifact that has one. Workspace files stand in: for artifacts without content, and for a path that no
    /// artifact has.
    pub(super) fn text(&self, identity: Option<&str>) -> Result<Option<String>, CheckError> {
        for artifact in self.artifacts(identity) {
            if let Some(text) = artifact.text(self.files)? {
                return Ok(Some(text));
            }
        }
        match identity.and_then(|path| WorkspacePath::parse(path).ok()) {
            Some(path) => workspace_text(&path, self.files),
            None => Ok(None),
        }
    }
}

impl<'a> Artifact<'a> {
    /// Path, else name.
    pub(super) fn identity(self) -> Option<&'a str> {
        self.0.get("path").or_else(|| self.0.get("name")).and_then(Json::as_str)
    }

    /// Whether the response itself brings the artifact. One of type `file` without content is a claim about the workspace.
    pub(super) fn is_delivered(self) -> bool {
        let is_file = self.0.get("type").and_then(Json::as_str) == Some("file");
        !is_file || self.0.get("content").is_some_and(|content| content.as_str().is_some())
    }

    pub(super) fn data(self) -> Option<&'a Json> {
        self.0.get("data").filter(|data| !data.is_null())
    }

    /// Content, else data, else the file of the workspace that the artifact names.
    pub(super) fn text(self, files: &dyn Files) -> Result<Option<String>, CheckError> {
        if let Some(content) = self.0.get("content").and_then(Json::as_str).filter(|text| !text.is_empty()) {
            return Ok(Some(content.to_owned()));
        }
        if let Some(data) = self.data() {
            return Ok(Some(spaced(data)));
        }
        let path = self.0.get("path").and_then(Json::as_str).and_then(|path| WorkspacePath::parse(path).ok());
        match path {
            Some(path) => workspace_text(&path, files),
            None => Ok(None),
        }
    }
}

fn workspace_text(path: &WorkspacePath, files: &dyn Files) -> Result<Option<String>, CheckError> {
    if files.entry(path)? != Some(EntryKind::File) {
        return Ok(None);
    }
    let bytes = files.read(path, MAX_FILE_BYTES)?;
    Ok((!bytes.is_empty()).then(|| String::from_utf8_lossy(&bytes).into_owned()))
}
