//! Commands of setup, teardown and checks, each in the sandbox.

use std::ffi::OsString;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use proctor_sandbox::{Exit, Limit, Limits, Network, Snapshot, Spec, Status, Stream, Workspace};
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;

use super::evaluate::Given;
use super::{Surroundings, guard, pytest};
use crate::checks::{CommandNeed, CommandOutcome};
use crate::secrets::Secrets;
use crate::suite::Command;

/// Bytes of each output that are kept.
const MAX_OUTPUT: u64 = 4 << 20;

/// Time between TERM and KILL.
const GRACE: Duration = Duration::from_secs(2);

/// Failure of a command of `setup` or `teardown`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HookError {
    /// The command ended with another status than 0.
    #[error("status {code}: {line}")]
    Status {
        /// The status.
        code: i32,
        /// Last line of its standard error.
        line: String,
    },
    /// A signal ended the command.
    #[error("killed by signal {0}")]
    Signal(i32),
    /// The time limit was reached.
    #[error("took longer than {0} s")]
    TimedOut(u32),
    /// The program does not exist.
    #[error("the program `{0}` was not found")]
    NotFound(String),
    /// The command could not be started.
    #[error("{0}")]
    NotStarted(String),
}

/// Runs a command of `setup` or `teardown` in the workspace.
pub(super) async fn run_hook(
    around: &Surroundings,
    workspace: &Workspace,
    command: &Command,
    secrets: &Secrets,
) -> Result<(), HookError> {
    let spec = specification(around, &command.words, workspace.workspace(), command.timeout_seconds)
        .folders(workspace);
    match finish(around, spec, GRACE).await {
        CommandOutcome::Exited { code: 0, .. } => Ok(()),
        CommandOutcome::Exited { code, stderr, .. } => {
            // Cut before it is shortened: no part of a secret stays.
            Err(HookError::Status { code, line: last_line(&secrets.cut(&stderr).0) })
        }
        CommandOutcome::Signalled { signal, .. } => Err(HookError::Signal(signal)),
        CommandOutcome::TimedOut => Err(HookError::TimedOut(command.timeout_seconds)),
        CommandOutcome::NotFound { program } => Err(HookError::NotFound(program)),
        CommandOutcome::NotStarted { reason } => Err(HookError::NotStarted(reason)),
    }
}

/// Runs the command of a check in a copy of the workspace that no process has run in.
pub(super) async fn run_check(
    around: &Surroundings,
    copy: &Snapshot,
    need: &CommandNeed,
    given: &Given<'_>,
) -> CommandOutcome {
    let directory = match &need.working_dir {
        Some(below) => copy.path().join(below.as_str()),
        None => copy.path().to_owned(),
    };
    let Some((program, rest)) = need.words.split_first() else {
        return CommandOutcome::NotStarted { reason: "the command is empty".to_owned() };
    };
    let found = if program.contains('/') { Some(program.clone()) } else { search(around, program) };
    let Some(found) = found else { return CommandOutcome::NotFound { program: program.clone() } };
    let places = match Places::make(copy, given) {
        Ok(places) => places,
        Err(error) => return CommandOutcome::NotStarted { reason: error.to_string() },
    };
    let mut words: Vec<String> = std::iter::once(found).chain(rest.iter().cloned()).collect();
    let report = pytest::option_place(&need.words).map(|at| {
        // No name that code under test knows without looking for it.
        let report = places.report.join(format!("{}.xml", uuid::Uuid::new_v4().simple()));
        words.insert(at, pytest::option(&report));
        report
    });
    let spec = specification(around, &words, &directory, need.timeout_seconds)
        .environment("HOME", &places.home)
        .environment("TMPDIR", &places.tmp)
        .environment("PATH", std::env::join_paths(folders(around)).unwrap_or_default())
        .environment("PYTHONPATH", &places.guard)
        .writable(copy.path())
        .writable(&places.home)
        .writable(&places.tmp)
        .writable(&places.report)
        .readable(&places.guard)
        .read_only(guard::read_only(copy.path(), given.files));
    // What the program leaves behind gets no time: it could still write the report, or to the output.
    let outcome = finish(around, spec, Duration::ZERO).await;
    match report {
        Some(report) => pytest::corrected(outcome, &report),
        None => outcome,
    }
}

/// Folders of a check. Home and temporary folder are not those of the agent, nor of another check: interpreters run files of their home at
/// their start.
struct Places {
    home: PathBuf,
    tmp: PathBuf,
    report: PathBuf,
    guard: PathBuf,
}

impl Places {
    /// Makes the folders. One that exists means that a process has run here, and is an error.
    fn make(copy: &Snapshot, given: &Given<'_>) -> std::io::Result<Places> {
        let [home, tmp, report, guard] =
            ["home", "tmp", "report", "guard"].map(|name| copy.root().join(name));
        for folder in [&home, &tmp, &report] {
            std::fs::DirBuilder::new().mode(0o700).create(folder)?;
        }
        guard::make(&guard, copy.path(), &guard::Expected::new(given))?;
        Ok(Places { home, tmp, report, guard })
    }
}

/// The search path of Proctor's own environment. Relative folders are left out: they would lie in the agent's workspace.
fn folders(around: &Surroundings) -> Vec<PathBuf> {
    let path = around.variables.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.clone());
    let path = path.unwrap_or_else(|| OsString::from("/usr/bin:/bin"));
    std::env::split_paths(&path).filter(|folder| folder.is_absolute()).collect()
}

/// The file of a program on the search path.
pub(super) fn search(around: &Surroundings, program: &str) -> Option<String> {
    let mut files = folders(around).into_iter().map(|folder| folder.join(program));
    files.find(|file| file.is_file()).and_then(|file| file.into_os_string().into_string().ok())
}

fn specification(around: &Surroundings, words: &[String], directory: &Path, seconds: u32) -> Spec {
    let (program, rest) = match words.split_first() {
        Some((program, rest)) => (program.clone(), rest.to_vec()),
        None => (String::new(), Vec::new()),
    };
    let limits = Limits { wall_time: Duration::from_secs(seconds.into()), ..Limits::default() };
    Spec::new(program, directory)
        .arguments(rest)
        .stdin(Stream::Null)
        .hidden(around.hidden.iter().chain([&around.scratch]).cloned())
        .network(Network::None)
        .limits(limits)
        .grace(GRACE)
        .inherit(around.variables.iter().filter(|(name, _)| name != "HOME").cloned())
}

/// Runs a command to its end. `grace` is the time between TERM and KILL for what it leaves behind.
async fn finish(around: &Surroundings, spec: Spec, grace: Duration) -> CommandOutcome {
    let mut process = match around.sandbox.spawn(spec) {
        Ok(process) => process,
        Err(error) => return CommandOutcome::NotStarted { reason: error.to_string() },
    };
    let outputs = process.stdout.take().zip(process.stderr.take());
    let Some((stdout, stderr)) = outputs.and_then(|(stdout, stderr)| {
        Some((pipe::Receiver::from_owned_fd(stdout).ok()?, pipe::Receiver::from_owned_fd(stderr).ok()?))
    }) else {
        return CommandOutcome::NotStarted { reason: "its pipes cannot be used".to_owned() };
    };
    let reading = tokio::spawn(async move { tokio::join!(read(stdout), read(stderr)) });
    // The sandbox ends it at its wall time, so this wait is bounded.
    let exit = tokio::task::spawn_blocking(move || {
        let _ = process.wait(Duration::MAX);
        process.terminate(grace)
    })
    .await;
    let (stdout, stderr) = reading.await.unwrap_or_default();
    match exit {
        Ok(Ok(exit)) => outcome(exit, stdout, stderr),
        Ok(Err(error)) => CommandOutcome::NotStarted { reason: error.to_string() },
        Err(_) => CommandOutcome::NotStarted { reason: "its end is unknown".to_owned() },
    }
}

fn outcome(exit: Exit, stdout: String, stderr: String) -> CommandOutcome {
    match (exit.limit, exit.status) {
        (Some(Limit::WallTime), _) => CommandOutcome::TimedOut,
        (_, Status::Exited(code)) => CommandOutcome::Exited { code, stdout, stderr },
        (_, Status::Signaled(signal)) => CommandOutcome::Signalled { signal, stderr },
        (_, Status::Lost) => CommandOutcome::NotStarted { reason: "its end is unknown".to_owned() },
    }
}

/// Reads to the end and keeps the start: a command never blocks on a full pipe.
async fn read(mut input: pipe::Receiver) -> String {
    let mut kept = Vec::new();
    let _ = (&mut input).take(MAX_OUTPUT).read_to_end(&mut kept).await;
    let _ = tokio::io::copy(&mut input, &mut tokio::io::sink()).await;
    String::from_utf8_lossy(&kept).into_owned()
}

fn last_line(text: &str) -> String {
    proctor_core::printable::shown(text.lines().last().unwrap_or_default(), 200)
}
