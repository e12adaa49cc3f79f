//! Settings of a client, and how its engine is started.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;

use super::client::AttestClient;
use super::error::ClientError;

/// The limits and times of a client. The default is right for most.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineOptions {
    /// How much the engine logs.
    pub log_level: LogLevel,
    /// What the engine must be able to do; one that lacks any of it is refused.
    pub required_capabilities: Vec<String>,
    /// How long starting may take, until the engine has introduced itself.
    pub handshake_timeout: Duration,
    /// How long a call may take, all in all: waiting for a free place, writing, waiting for the answer.
    pub request_timeout: Duration,
    /// How long a shutdown waits for the engine to answer and to end, before it is asked to by a signal.
    pub shutdown_timeout: Duration,
    /// How long the engine has after that signal, before it is killed.
    pub terminate_timeout: Duration,
    /// The longest answer.
    pub max_answer_bytes: usize,
    /// The longest request. The reference engine takes 10,485,759 bytes, and dies of a longer line.
    pub max_request_bytes: usize,
    /// How many calls may wait for answers at once; more wait for one of them to end. The engine's own limit holds if it is
    /// smaller.
    pub max_in_flight: usize,
    /// How many notifications are kept for who asks for them; older ones are dropped.
    pub max_notifications: usize,
    /// How much of the engine's standard error is kept for error texts.
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

/// How much an engine logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogLevel {
    /// Everything.
    Debug,
    /// What it does.
    Info,
    /// What may be wrong.
    #[default]
    Warn,
    /// What is wrong.
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

/// How an engine is started.
#[derive(Clone)]
pub struct EngineBuilder {
    program: OsString,
    args: Vec<OsString>,
    variables: Vec<(OsString, OsString)>,
    current_dir: Option<PathBuf>,
    pub(super) options: EngineOptions,
}

impl EngineBuilder {
    /// Starts this program.
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

    /// Sets an environment variable of the engine, such as a provider's key. It has those of this process besides.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> EngineBuilder {
        self.variables.push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Starts it in this folder.
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

    /// Starts the engine and introduces this client to it. If that fails no process remains.
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
    /// The values of variables may be secrets, so only their names are told.
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
