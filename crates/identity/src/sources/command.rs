//! Commands as value sources: started without the credentials of this process, bounded in time and output, and ended with every process
//! that they started.

use std::path::Path;
use std::pin::pin;
use std::time::Duration;

use proctor_core::json::Json;
use proctor_proof::secret::Secret;
use proctor_proof::sources::SourceError;
use proctor_sandbox::{
    Error, Exit, Features, Limit, Limits, Mode, Network, Process, Sandbox, Spec, Status, Stream, wait,
};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;

use crate::environment::{Environment, MAX_VALUE_BYTES, describe, text};

/// Time limit of a command.
pub const MAX_COMMAND_TIME: Duration = Duration::from_secs(10);

/// Time after the limit in which the supervisor ends a command and reports; a command that is stuck in the kernel is given up then.
const SETTLE: Duration = Duration::from_secs(5);

/// Command of a value source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandLine {
    /// A command line for `sh -c`.
    Shell(String),
    /// A program and its arguments, started without a shell.
    Program {
        /// Name or path of the program.
        program: String,
        /// Its arguments.
        arguments: Vec<String>,
    },
}

impl CommandLine {
    /// Reads a text, or a list of texts that is not empty.
    pub fn from_json(value: &Json) -> Option<CommandLine> {
        if let Some(line) = value.as_str() {
            return (!line.trim().is_empty()).then(|| CommandLine::Shell(line.to_owned()));
        }
        let words: Option<Vec<String>> =
            value.as_array()?.iter().map(|word| word.as_str().map(str::to_owned)).collect();
        let mut words = words?.into_iter();
        let program = words.next().filter(|program| !program.trim().is_empty())?;
        Some(CommandLine::Program { program, arguments: words.collect() })
    }

    /// Program and arguments as they are started.
    pub fn words(&self) -> Vec<&str> {
        match self {
            CommandLine::Shell(line) => vec!["sh", "-c", line],
            CommandLine::Program { program, arguments } => {
                std::iter::once(program).chain(arguments).map(String::as_str).collect()
            }
        }
    }
}

/// Runs a command and returns its output. The task's contract does not apply: a source may need the network to get a credential for a task
/// that has none. Policy decides on the command instead.
pub(super) async fn run(
    line: &CommandLine,
    environment: &Environment,
    variables: &[(&str, &str)],
    limit: Duration,
) -> Result<Secret, SourceError> {
    let process = start(line, environment, variables, limit).map_err(|error| failed(&error))?;
    // Dropping the future, on time-out or because the caller gives up, kills the command with everything that it started.
    let finished = tokio::time::timeout(limit.saturating_add(SETTLE), finish(process)).await;
    let (bytes, exit) = finished.map_err(|_| SourceError::CommandTimeout(limit))??;
    match exit {
        Exit { limit: Some(Limit::WallTime), .. } => Err(SourceError::CommandTimeout(limit)),
        Exit { status: Status::Exited(0), .. } => text(bytes),
        Exit { status: Status::Exited(code), .. } => {
            Err(SourceError::CommandFailed(format!("exit code {code}")))
        }
        Exit { status: Status::Signaled(_) | Status::Lost, .. } => {
            Err(SourceError::CommandFailed("ended by a signal".to_owned()))
        }
    }
}

fn start(
    line: &CommandLine,
    environment: &Environment,
    variables: &[(&str, &str)],
    limit: Duration,
) -> Result<Process, Error> {
    let mut words = line.words().into_iter();
    let mut spec = Spec::new(words.next().unwrap_or_default(), environment.folder())
        .arguments(words)
        .stdin(Stream::Null)
        // Error output may repeat the secret; nobody needs it here.
        .stderr(Stream::Null)
        .network(Network::Host)
        .limits(Limits { wall_time: limit, ..Limits::default() })
        .grace(Duration::ZERO);
    for (name, value) in environment.inherited().chain(variables.iter().copied()) {
        spec = spec.environment(name, value);
    }
    // Confines nothing, and still ends every process of the command, also those that left its session.
    let sandbox = Sandbox::deferred(Mode::Off, Features::none(), Path::new("/"));
    sandbox.spawn(spec)
}

/// Output and end of a command. What it left behind is ended with it, so that nothing but the command itself holds the output open.
async fn finish(mut process: Process) -> Result<(Vec<u8>, Exit), SourceError> {
    let missing = || SourceError::CommandFailed("its output is missing".to_owned());
    let stdout = process.stdout.take().ok_or_else(missing)?;
    let stdout = pipe::Receiver::from_owned_fd(stdout).map_err(|error| unread(&error))?;
    let mut reading = pin!(read(stdout));
    let early = tokio::select! {
        bytes = &mut reading => Some(bytes?),
        ended = wait::program_end(&mut process) => { ended.map_err(|error| failed(&error))?; None }
    };
    if early.is_some() {
        wait::program_end(&mut process).await.map_err(|error| failed(&error))?;
    }
    let exit = wait::terminate(process, Duration::ZERO).await.map_err(|error| failed(&error))?;
    let bytes = match early {
        Some(bytes) => bytes,
        None => reading.await?,
    };
    Ok((bytes, exit))
}

async fn read(stdout: pipe::Receiver) -> Result<Vec<u8>, SourceError> {
    let mut bytes = Vec::new();
    let limit = MAX_VALUE_BYTES as u64 + 1;
    stdout.take(limit).read_to_end(&mut bytes).await.map_err(|error| unread(&error))?;
    if bytes.len() > MAX_VALUE_BYTES { Err(SourceError::TooLong(MAX_VALUE_BYTES)) } else { Ok(bytes) }
}

/// Failure of a command without its words, which may be secrets in the wrong member.
fn failed(error: &Error) -> SourceError {
    SourceError::CommandFailed(match error {
        Error::ProgramNotFound { problem, .. } => format!("the program {problem}"),
        Error::Path { what, source, .. } => format!("the {what}: {}", describe(source)),
        other => other.to_string(),
    })
}

fn unread(error: &std::io::Error) -> SourceError {
    SourceError::CommandFailed(describe(error))
}
