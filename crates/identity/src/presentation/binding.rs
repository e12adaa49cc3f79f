//! Bindings of a manifest: where a value comes from, how it is written, and where it goes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proctor_core::json::Json;
use proctor_proof::secret::Secret;

use super::PresentationError;
use crate::session::{LookupError, Session};

/// Longest name of a file, and of its prefix.
const MAX_NAME: usize = 80;

/// Moment at which files of a run are removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cleanup {
    /// After every run.
    Always,
    /// After runs that succeeded.
    OnSuccess,
    /// After runs that failed.
    OnFailure,
    /// Never.
    Never,
}

impl Cleanup {
    pub(super) const ALL: [Cleanup; 4] =
        [Cleanup::Always, Cleanup::OnSuccess, Cleanup::OnFailure, Cleanup::Never];

    /// Reads `presentation.cleanup`; anything unknown counts as `always`.
    pub(super) fn from_json(value: Option<&Json>) -> Cleanup {
        let word = value.and_then(Json::as_str).unwrap_or_default();
        Cleanup::ALL.into_iter().find(|cleanup| cleanup.word() == word).unwrap_or(Cleanup::Always)
    }

    /// The word of the manifest.
    pub const fn word(self) -> &'static str {
        match self {
            Cleanup::Always => "always",
            Cleanup::OnSuccess => "on-success",
            Cleanup::OnFailure => "on-failure",
            Cleanup::Never => "never",
        }
    }

    /// Whether files go after a run that ended so.
    pub(super) fn applies(self, outcome: super::Outcome) -> bool {
        match self {
            Cleanup::Always => true,
            Cleanup::OnSuccess => outcome == super::Outcome::Success,
            Cleanup::OnFailure => outcome == super::Outcome::Failure,
            Cleanup::Never => false,
        }
    }
}

/// Destination of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Target {
    None,
    Env { name: String },
    File { name: Option<String>, prefix: Option<String>, expose_as: Option<String> },
    Stdin,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Raw,
    Json,
    Base64,
}

/// Binding of a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Binding {
    source: String,
    pub(super) target: Target,
    required: Option<bool>,
    pub(super) redact: Option<bool>,
    format: Format,
}

/// Value of a binding.
pub(super) struct Value {
    /// As the session has it.
    pub(super) raw: Secret,
    /// As the task gets it.
    pub(super) formatted: Secret,
    pub(super) is_credential: bool,
}

impl Binding {
    pub(super) fn from_json(index: usize, json: &Json) -> Result<Binding, PresentationError> {
        let source = text(json, "source")
            .ok_or(PresentationError::Binding { index, problem: "it has no `source`" })?;
        let format = match json.get("format").filter(|format| !format.is_null()).map(Json::as_str) {
            None | Some(Some("raw")) => Format::Raw,
            Some(Some("json")) => Format::Json,
            Some(Some("base64")) => Format::Base64,
            Some(_) => return Err(PresentationError::Format(index)),
        };
        let target = json
            .get("target")
            .filter(|target| target.as_object().is_some())
            .ok_or(PresentationError::Binding { index, problem: "it has no `target`" })?;
        Ok(Binding {
            source,
            target: read_target(index, target)?,
            required: json.get("required").and_then(Json::as_bool),
            redact: json.get("redact").and_then(Json::as_bool),
            format,
        })
    }

    /// The value, if the session has one; a required value must be there. Bindings are required unless they or `auth.required` say no.
    pub(super) fn value(&self, index: usize, session: &Session) -> Result<Option<Value>, PresentationError> {
        let found = match session.lookup(&self.source) {
            Ok(found) => found,
            Err(LookupError::Forbidden) => return Err(PresentationError::SourceForbidden(index)),
            Err(LookupError::Missing) if self.required.unwrap_or(!session.is_optional) => {
                return Err(PresentationError::Missing(index));
            }
            Err(LookupError::Missing) => return Ok(None),
        };
        let raw = match self.format {
            Format::Json => found.json(),
            Format::Raw | Format::Base64 => found.text().ok_or(PresentationError::Binding {
                index,
                problem: "its source has several parts: name one of them, or use the format `json`",
            })?,
        };
        // A program may run its input, and policy sees only what the manifest says: free text of the manifest does not go there.
        if self.target == Target::Stdin && !found.is_credential() {
            return Err(PresentationError::SourceForbidden(index));
        }
        let formatted = match self.format {
            Format::Raw | Format::Json => raw.clone(),
            Format::Base64 => Secret::new(STANDARD.encode(raw.expose())),
        };
        Ok(Some(Value { raw: found.text().unwrap_or(raw), formatted, is_credential: found.is_credential() }))
    }

    /// The binding without its value.
    pub(super) fn describe(&self) -> Json {
        let (kind, name) = match &self.target {
            Target::None => ("none", None),
            Target::Env { name } => ("env", Some(name.as_str())),
            Target::File { name, expose_as, .. } => ("file", name.as_deref().or(expose_as.as_deref())),
            Target::Stdin => ("stdin", None),
        };
        Json::object().with("source", self.source.as_str()).with("kind", kind).with("name", name)
    }
}

fn read_target(index: usize, target: &Json) -> Result<Target, PresentationError> {
    let invalid = |problem| PresentationError::Target { index, problem };
    let variable = |name: &'static str| match text(target, name) {
        None => Ok(None),
        Some(text) if is_code_variable(&text) => {
            Err(invalid("its variable changes which code runs: choose another name"))
        }
        Some(text) if is_variable(&text) => Ok(Some(text)),
        Some(_) => Err(invalid("the name of its variable is malformed")),
    };
    let safe = |name: &'static str| match text(target, name) {
        None => Ok(None),
        Some(text) if is_file_name(&text) => Ok(Some(text)),
        Some(_) => Err(invalid("the name of its file is not a plain name of at most 80 characters")),
    };
    match target.get("kind").and_then(Json::as_str) {
        Some("none") => Ok(Target::None),
        Some("env") => {
            let name = variable("name")?.ok_or_else(|| invalid("it names no variable"))?;
            Ok(Target::Env { name })
        }
        Some("file") => Ok(Target::File {
            name: safe("name")?,
            prefix: safe("prefix")?,
            expose_as: variable("expose_as")?,
        }),
        Some("stdin") => Ok(Target::Stdin),
        _ => Err(PresentationError::TargetUnsupported(index)),
    }
}

fn text(json: &Json, name: &str) -> Option<String> {
    json.get(name).and_then(Json::as_str).map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned)
}

fn is_variable(name: &str) -> bool {
    let is_start = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
    name.bytes().next().is_some_and(is_start)
        && name.bytes().all(|byte| is_start(byte) || byte.is_ascii_digit())
}

/// Whether loaders, shells, interpreters or Proctor take code or settings from the variable.
fn is_code_variable(name: &str) -> bool {
    const NAMES: [&str; 13] = [
        "PATH",
        "BASH_ENV",
        "ENV",
        "IFS",
        "SHELLOPTS",
        "BASHOPTS",
        "PS4",
        "PROMPT_COMMAND",
        "PYTHONSTARTUP",
        "PYTHONPATH",
        "NODE_OPTIONS",
        "PERL5OPT",
        "RUBYOPT",
    ];
    ["LD_", "DYLD_", "PROCTOR_", "AGENTCLI_", "GIT_"].iter().any(|start| name.starts_with(start))
        || NAMES.contains(&name)
}

/// A plain name: no separators, no leading dot, so that it can neither leave the folder nor hide in it.
fn is_file_name(name: &str) -> bool {
    name.len() <= MAX_NAME
        && !name.starts_with('.')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}
