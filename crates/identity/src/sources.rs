//! Value sources of manifests: `env`, `file`, `command` and `literal`.
//!
//! A command runs only if the caller allows commands, and after its gate permitted it. A list of texts is run without a shell; a single
//! text is run as `sh -c TEXT`, because manifests write whole command lines. The command gets no credentials of this process's
//! environment, no input, and ten seconds; every process that it started ends with it.

mod command;

use std::time::Duration;

use proctor_core::json::Json;
use proctor_proof::secret::Secret;
use proctor_proof::sources::{BoxFuture, SourceError, ValueSources};

pub use command::{CommandLine, MAX_COMMAND_TIME};

use crate::environment::{Environment, shown_variable};

/// Decision about a command before it runs: the policy of the caller.
pub trait CommandGate: Send + Sync {
    /// Permits the command, or refuses it.
    fn permit<'a>(&'a self, command: &'a CommandLine) -> BoxFuture<'a, Result<(), CommandRefusal>>;
}

/// Refusal of a command by the caller's policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct CommandRefusal {
    /// Reason for people.
    pub reason: String,
}

/// Commands as value sources.
#[derive(Clone, Copy, Default)]
pub enum Commands<'a> {
    /// No command runs.
    #[default]
    Forbidden,
    /// A command runs once the gate permitted it.
    Gated(&'a dyn CommandGate),
}

impl std::fmt::Debug for Commands<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            Commands::Forbidden => "Forbidden",
            Commands::Gated(_) => "Gated",
        })
    }
}

/// Resolver of value sources in an environment.
#[derive(Debug, Clone, Copy)]
pub struct Sources<'a> {
    environment: &'a Environment,
    commands: Commands<'a>,
    command_time: Duration,
}

impl<'a> Sources<'a> {
    /// Value sources in this environment.
    pub fn new(environment: &'a Environment, commands: Commands<'a>) -> Sources<'a> {
        Sources { environment, commands, command_time: MAX_COMMAND_TIME }
    }

    /// Shortens the time limit of commands.
    #[must_use]
    pub fn with_command_time(self, limit: Duration) -> Sources<'a> {
        Sources { command_time: limit.min(MAX_COMMAND_TIME), ..self }
    }

    /// Value of an environment variable.
    pub fn variable(&self, name: &str) -> Result<Secret, SourceError> {
        let value = self.environment.variable(name);
        value.map(Secret::trimmed).ok_or_else(|| SourceError::VariableUnset(shown_variable(name)))
    }

    /// Content of a text file, without white space at its ends.
    pub fn file(&self, path: &str) -> Result<Secret, SourceError> {
        self.environment.read_text(path)
    }

    /// Output of a command, without white space at its ends.
    pub async fn command(
        &self,
        command: &CommandLine,
        variables: &[(&str, &str)],
    ) -> Result<Secret, SourceError> {
        let Commands::Gated(gate) = self.commands else { return Err(SourceError::CommandsNotAllowed) };
        gate.permit(command).await.map_err(|refusal| SourceError::CommandRefused(refusal.reason))?;
        let output = command::run(command, self.environment, variables, self.command_time).await?.trimmed();
        if output.is_empty() { Err(SourceError::Empty) } else { Ok(output) }
    }

    async fn value(&self, source: &Json, variables: &[(&str, &str)]) -> Result<Secret, SourceError> {
        let members = source.as_object().ok_or(SourceError::Malformed)?;
        let mut given = members.iter().filter(|(_, value)| !value.is_null());
        let (Some((kind, value)), None) = (given.next(), given.next()) else {
            return Err(SourceError::Malformed);
        };
        if kind == "command" {
            let command = CommandLine::from_json(value).ok_or(SourceError::Malformed)?;
            return self.command(&command, variables).await;
        }
        let text = value.as_str().filter(|text| !text.trim().is_empty()).ok_or(SourceError::Malformed)?;
        match kind.as_str() {
            "env" => self.variable(text),
            "file" => self.file(text),
            "literal" => Ok(Secret::new(text)),
            _ => Err(SourceError::Malformed),
        }
    }
}

impl ValueSources for Sources<'_> {
    fn resolve<'a>(
        &'a self,
        source: &'a Json,
        variables: &'a [(&'a str, &'a str)],
    ) -> BoxFuture<'a, Result<Secret, SourceError>> {
        Box::pin(self.value(source, variables))
    }
}

#[cfg(test)]
mod tests;
