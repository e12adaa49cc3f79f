//! Settings of a client, and the engine's command line and environment.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;

use super::client::AttestClient;
use super::error::ClientError;

/// Limits of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineOptions {
    /// The engine's log level.
    pub log_level: LogLevel,
    /// Required capabilities; an engine that lacks one is refused.
    pub required_capabilities: Vec<String>,
    /// Time limit of starting and initializing the engine.
    pub handshake_timeout: Duration,
    /// Time limit of a call: queueing, writing and waiting for the answer together.
    pub request_timeout: Duration,
    /// Time for the engine to answer `shutdown` and to exit, before `SIGTERM`.
    pub shutdown_timeout: Duration,
    /// Time between `SIGTERM` and `SIGKILL`.
    pub terminate_timeout: Duration,
    /// The longest answer in bytes.
    pub max_answer_bytes: usize,
    /// The longest request in bytes. The reference engine accepts 10,485,759, and exits on a longer line.
    pub max_request_bytes: usize,
    /// The maximum number of calls in flight; further calls are queued. The engine's own limit holds if it is smaller.
    pub max_in_flight: usize,
    /// The maximum number of queued notifications; older ones are dropped.
    pub max_notifications: usize,
    /// Bytes of the engine's standard error that are kept for error texts.
    pub max_stderr_bytes: usize,
}

impl Default for EngineOptions {
    fn default() -> EngineOptions {
        EngineOptions {
            log_level: LogLevel::Warn,
            required_capabilities: vec!["layers_1_4".to_owned()],
            handshake_timeout: Duration::from_secs(30),
            request_timeout: Duration::from_secs(30),
            shutdown_timeout: Duration::from_secs(5),
            terminate_timeout: Duration::from_secs(5),
            max_answer_bytes: 64 * 1024 * 1024,
            max_request_bytes: 10 * 1024 * 1024 - 1,
            max_in_flight: 1024,
            max_notifications: 64,
            max_stderr_bytes: 64 * 1024,
        }
    }
}

/// An engine's log level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogLevel {
    /// Details for debugging.
    Debug,
    /// Regular events.
    Info,
    /// Possible problems.
    #[default]
    Warn,
    /// Errors.
    Error,
}

impl fmt::Display for LogLevel {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            LogLevel::Debug => "debug",
            LogLevel::Info => "info",
            LogLevel::Warn => "warn",
            LogLevel::Error => "error",
        })
    }
}

/// The command line, environment and limits of an engine.
#[derive(Clone)]
pub struct EngineBuilder {
    program: OsString,
    args: Vec<OsString>,
    variables: Vec<(OsString, OsString)>,
    current_dir: Option<PathBuf>,
    pub(super) options: EngineOptions,
}

impl EngineBuilder {
    /// A builder for this program.
    pub fn new(program: impl AsRef<OsStr>) -> EngineBuilder {
        EngineBuilder {
            program: program.as_ref().to_owned(),
            args: Vec::new(),
            variables: Vec::new(),
            current_dir: None,
            options: EngineOptions::default(),
        }
    }

    /// Adds an argument. The last one is always `--log-level=…`.
    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> EngineBuilder {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    /// Sets an environment variable of the engine, such as a provider's key, besides those of this process.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> EngineBuilder {
        self.variables.push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Sets the engine's working directory.
    #[must_use]
    pub fn current_dir(mut self, folder: impl Into<PathBuf>) -> EngineBuilder {
        self.current_dir = Some(folder.into());
        self
    }

    /// Sets limits and times.
    #[must_use]
    pub fn options(mut self, options: EngineOptions) -> EngineBuilder {
        self.options = options;
        self
    }

    /// Starts the engine and initializes a session. If that fails no process remains.
    pub async fn start(self) -> Result<AttestClient, ClientError> {
        AttestClient::start(self).await
    }

    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(&self.args)
            .arg(format!("--log-level={}", self.options.log_level))
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        if let Some(folder) = &self.current_dir {
            command.current_dir(folder);
        }
        command
    }

    pub(super) fn program(&self) -> String {
        self.program.display().to_string()
    }
}

impl fmt::Debug for EngineBuilder {
    /// Prints only the names of variables: their values may be secrets.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("EngineBuilder")
            .field("program", &self.program)
            .field("args", &self.args)
            .field("variables", &self.variables.iter().map(|(name, _)| name).collect::<Vec<_>>())
            .field("current_dir", &self.current_dir)
            .field("options", &self.options)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_values_of_variables_are_not_shown() {
        let builder = EngineBuilder::new("engine").env("ATTEST_OPENAI_API_KEY", "hush");
        let text = format!("{builder:?}");
        assert!(text.contains("ATTEST_OPENAI_API_KEY") && !text.contains("hush"), "{text}");
    }
}
