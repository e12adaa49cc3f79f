//! Presentation of credentials to a task: environment variables, private files, standard input.
//!
//! Files lie in a folder of their own inside a private folder. The folder's name says when it must go, and a lock on it says that its
//! run still lives, so that [`sweep`] can honour `cleanup` after a process was killed.

mod binding;
mod files;
mod sweep;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use proctor_core::json::Json;
use proctor_core::random::Randomness;
use proctor_proof::secret::Secret;
use proctor_wire::agentcli::error::Code;

pub use binding::Cleanup;
pub use sweep::sweep;

use crate::session::Session;
use binding::{Binding, Target};
use files::RunFolder;

/// Bindings of one task, at most.
pub const MAX_BINDINGS: usize = 64;

/// Presentation that cannot be made. No variant holds a credential.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PresentationError {
    /// The format is unknown.
    #[error("binding {0}: the format is none of `raw`, `json` and `base64`")]
    Format(usize),
    /// The binding is malformed, or its value does not fit the target.
    #[error("binding {index}: {problem}")]
    Binding {
        /// Number of the binding.
        index: usize,
        /// Cause.
        problem: &'static str,
    },
    /// The source is never presented.
    #[error("binding {0}: its source is never presented to a task")]
    SourceForbidden(usize),
    /// A required source has no value.
    #[error("binding {0}: its source has no value: make the binding optional, or check the identity")]
    Missing(usize),
    /// The kind of target is unknown.
    #[error("binding {0}: the target's kind is none of `env`, `file`, `stdin` and `none`")]
    TargetUnsupported(usize),
    /// The target is malformed, or used twice.
    #[error("binding {index}: {problem}")]
    Target {
        /// Number of the binding.
        index: usize,
        /// Cause.
        problem: &'static str,
    },
    /// Two bindings claim standard input.
    #[error("binding {0}: standard input is presented already")]
    StdinConflict(usize),
    /// There are more than [`MAX_BINDINGS`] bindings.
    #[error("a task has at most {MAX_BINDINGS} bindings")]
    TooMany,
    /// The private folder cannot be used.
    #[error("the folder for credentials {}: {problem}", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// Cause.
        problem: String,
    },
}

impl PresentationError {
    /// Detail code of the protocol.
    pub fn code(&self) -> Code {
        match self {
            PresentationError::Format(_) => Code::PresentationFormatUnsupported,
            PresentationError::Binding { .. } | PresentationError::TooMany => {
                Code::PresentationBindingInvalid
            }
            PresentationError::SourceForbidden(_) => Code::PresentationSourceForbidden,
            PresentationError::Missing(_) => Code::PresentationBindingMissing,
            PresentationError::TargetUnsupported(_) => Code::PresentationTargetUnsupported,
            PresentationError::Target { .. } | PresentationError::Folder { .. } => {
                Code::PresentationTargetInvalid
            }
            PresentationError::StdinConflict(_) => Code::PresentationStdinConflict,
        }
    }
}

/// End of a run, for `cleanup`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The run succeeded.
    Success,
    /// The run failed, or never began.
    Failure,
}

/// Credentials ready for a task. Dropping it counts as a failed run.
#[derive(Debug)]
pub struct Presented {
    /// Environment variables to add.
    pub env: Vec<(String, Secret)>,
    /// Files that were written.
    pub files: Vec<PathBuf>,
    /// Standard input.
    pub stdin: Option<Secret>,
    secrets: Vec<Secret>,
    description: Vec<Json>,
    folder: Option<RunFolder>,
}

impl Presented {
    /// Values to mask in everything that the task writes.
    pub fn secrets(&self) -> &[Secret] {
        &self.secrets
    }

    /// Targets without values, for people.
    pub fn describe(&self) -> Json {
        Json::Array(self.description.clone())
    }

    /// Ends the presentation: removes the files as `cleanup` says.
    pub fn cleanup(mut self, outcome: Outcome) -> Result<(), PresentationError> {
        match self.folder.take() {
            Some(folder) => folder.finish(outcome),
            None => Ok(()),
        }
    }
}

/// Presents a session's credentials as the block `presentation` of the identity says. Files go below `private_folder`, which is made if
/// it does not exist, and must belong to this user alone.
pub fn prepare(
    session: &Session,
    presentation: &Json,
    private_folder: &Path,
    randomness: &dyn Randomness,
) -> Result<Presented, PresentationError> {
    let listed = presentation.get("bindings").and_then(Json::as_array).unwrap_or_default();
    if listed.len() > MAX_BINDINGS {
        return Err(PresentationError::TooMany);
    }
    let cleanup = Cleanup::from_json(presentation.get("cleanup"));
    let redacts = presentation.get("default_redaction").and_then(Json::as_bool).unwrap_or(true);
    let mut presented = Presented {
        env: Vec::new(),
        files: Vec::new(),
        stdin: None,
        secrets: Vec::new(),
        description: Vec::new(),
        folder: None,
    };
    for (index, json) in listed.iter().enumerate() {
        let binding = Binding::from_json(index, json)?;
        let Some(value) = binding.value(index, session)? else { continue };
        // Credentials are masked whatever the manifest says; other values as it says.
        if value.is_credential || binding.redact.unwrap_or(redacts) {
            presented.secrets.push(value.raw.clone());
            presented.secrets.push(value.formatted.clone());
        }
        presented.description.push(binding.describe());
        match binding.target {
            Target::None => {}
            Target::Env { name } => presented.add_variable(index, name, value.formatted)?,
            Target::Stdin => {
                if presented.stdin.is_some() {
                    return Err(PresentationError::StdinConflict(index));
                }
                presented.stdin = Some(value.formatted);
            }
            Target::File { name, prefix, expose_as } => {
                if presented.folder.is_none() {
                    presented.folder = Some(RunFolder::create(private_folder, cleanup, randomness)?);
                }
                let Some(folder) = &presented.folder else { continue };
                let name = name.unwrap_or_else(|| files::generated_name(prefix.as_deref(), randomness));
                let path = folder.write(index, &name, &value.formatted)?;
                if let Some(variable) = expose_as {
                    let text = path.to_str().ok_or(PresentationError::Target {
                        index,
                        problem: "the path of the file is not UTF-8 text",
                    })?;
                    presented.add_variable(index, variable, Secret::new(text))?;
                }
                presented.files.push(path);
            }
        }
    }
    Ok(presented)
}

impl Presented {
    fn add_variable(&mut self, index: usize, name: String, value: Secret) -> Result<(), PresentationError> {
        if self.env.iter().any(|(known, _)| *known == name) {
            return Err(PresentationError::Target { index, problem: "its variable is presented already" });
        }
        if value.expose().contains('\0') {
            let problem = "its value holds a null character, which no variable can";
            return Err(PresentationError::Binding { index, problem });
        }
        self.env.push((name, value));
        Ok(())
    }
}
