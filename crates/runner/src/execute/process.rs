//! Agents that are programs: started for a run, spoken to over their pipes, ended with everything they started.

use std::ffi::OsString;
use std::time::Duration;

use proctor_clients::atp::client::stdio::{self, Pipes};
use proctor_core::json::Json;
use proctor_sandbox::{Limits, Network, Process, Spec, Status as ProcessStatus};
use proctor_wire::atp::artifact::FileArtifact;
use proctor_wire::atp::{Artifact, Response, Status};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::pipe;

use super::{Run, RunContext, StartError};
use crate::agent::ProcessSpec;

/// Time between TERM and KILL.
const GRACE: Duration = Duration::from_secs(2);

/// Time beyond the test's limit after which the sandbox ends a run by itself, should its supervisor have failed to.
const MARGIN: Duration = Duration::from_secs(30);

/// Bytes of standard output that a plain agent may write.
const MAX_PLAIN_OUTPUT: u64 = 10_000_000;

pub(super) async fn execute(
    context: &RunContext<'_>,
    program: &ProcessSpec,
    request: &str,
    run: &mut Run<'_>,
) -> Result<(), StartError> {
    let mut process = context.sandbox.spawn(specification(context, program, run.limit))?;
    let pipes = take_pipes(&mut process)?;
    let outcome = if program.is_plain {
        plain(context, pipes, run).await
    } else {
        let pipes = Pipes { stdin: Box::new(pipes.0), stdout: Box::new(pipes.1), stderr: Box::new(pipes.2) };
        let mut exchange = stdio::execute(pipes, request.to_owned().into());
        let ended = ended(&process)?;
        run.converse(&mut exchange, ended).await;
        Ok(())
    };
    // A program that has closed its output is about to end; one that was stopped is not waited for.
    let patience = if run.crossing.is_some() || run.is_interrupted { Duration::ZERO } else { GRACE };
    if let Ok((has_ended, exit)) = super::wait::finish(process, patience, GRACE).await {
        // A program that was stopped by us did not crash.
        let status = if has_ended { exit.status } else { ProcessStatus::Exited(0) };
        run.exit = Some(proctor_sandbox::Exit { status, ..exit });
    }
    outcome
}

/// The reason why a program that ended by itself counts as crashed.
pub(super) fn crash(status: ProcessStatus) -> Option<String> {
    match status {
        ProcessStatus::Exited(0) => None,
        ProcessStatus::Exited(code) => Some(format!("the agent exited with status {code}")),
        ProcessStatus::Signaled(signal) => Some(format!("the agent was killed by signal {signal}")),
        ProcessStatus::Lost => Some("the end of the agent is unknown: its supervisor was killed".to_owned()),
    }
}

fn specification(context: &RunContext<'_>, program: &ProcessSpec, limit: Duration) -> Spec {
    let (workspace, test) = (context.workspace, context.test);
    let directory = program.working_dir.clone().unwrap_or_else(|| workspace.workspace().to_owned());
    let (first, rest) = match program.words.split_first() {
        Some((first, rest)) => (first.clone(), rest.to_vec()),
        None => (String::new(), Vec::new()),
    };
    let limits = Limits { wall_time: limit.saturating_add(MARGIN), ..Limits::default() };
    let mut spec = Spec::new(first, directory)
        .arguments(rest)
        .environment("HOME", workspace.home())
        .environment("TMPDIR", workspace.tmp())
        .writable(workspace.root())
        .hidden(context.hidden.iter().cloned())
        .network(if test.network { Network::Host } else { Network::None })
        .limits(limits);
    for (name, value) in test.environment.iter().chain(&program.environment) {
        spec = spec.environment(name, value.expose());
    }
    for name in &program.inherited {
        let value = context.variables.iter().find(|(known, _)| *known == OsString::from(name));
        if let Some((_, value)) = value {
            spec = spec.environment(name, value);
        }
    }
    spec.inherit(context.variables.iter().cloned())
}

fn take_pipes(process: &mut Process) -> std::io::Result<(pipe::Sender, pipe::Receiver, pipe::Receiver)> {
    let missing = || std::io::Error::other("a pipe is missing");
    Ok((
        pipe::Sender::from_owned_fd(process.stdin.take().ok_or_else(missing)?)?,
        pipe::Receiver::from_owned_fd(process.stdout.take().ok_or_else(missing)?)?,
        pipe::Receiver::from_owned_fd(process.stderr.take().ok_or_else(missing)?)?,
    ))
}

/// Becomes ready when the program has ended; processes that it started may still hold its output open.
fn ended(process: &Process) -> std::io::Result<impl Future<Output = ()> + use<>> {
    let events = super::wait::events(process)?;
    Ok(async move {
        let _ = events.readable().await;
    })
}

/// A program that knows no protocol: the description on standard input, the artifact on standard output.
async fn plain(
    context: &RunContext<'_>,
    (mut stdin, stdout, stderr): (pipe::Sender, pipe::Receiver, pipe::Receiver),
    run: &mut Run<'_>,
) -> Result<(), StartError> {
    let description = context.test.task.description.clone();
    let writing = async move {
        // A program that does not read its input may still be right.
        let _ = stdin.write_all(description.as_bytes()).await;
        drop(stdin);
    };
    let (mut output, mut errors) = (Vec::new(), Vec::new());
    // One byte more than allowed shows that there is more.
    let mut stdout = stdout.take(MAX_PLAIN_OUTPUT + 1);
    let mut stderr = stderr.take(MAX_PLAIN_OUTPUT);
    let talk =
        async { tokio::join!(writing, stdout.read_to_end(&mut output), stderr.read_to_end(&mut errors)) };
    let mut interrupted = context.interrupted.clone();
    tokio::select! {
        ((), read, _) = talk => { read?; }
        () = tokio::time::sleep_until(run.deadline) => {
            run.crossing = Some(crate::supervision::Crossing::Time { seconds: run.limit.as_secs_f64() });
        }
        _ = interrupted.wait_for(|is_interrupted| *is_interrupted) => run.is_interrupted = true,
    }
    let lines = String::from_utf8_lossy(&errors);
    let lines: Vec<&str> = lines.lines().collect();
    run.last_lines = lines.iter().rev().take(20).rev().map(|line| (*line).to_owned()).collect();
    if run.crossing.is_some() || run.is_interrupted {
        return Ok(());
    }
    if output.len() as u64 > MAX_PLAIN_OUTPUT {
        run.error = Some(format!("the agent wrote more than {MAX_PLAIN_OUTPUT} bytes"));
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output);
    let path = expected_name(context.test.task.expected_artifacts.as_deref().unwrap_or_default());
    let file = FileArtifact { path, content: Some(&text), ..FileArtifact::default() };
    let response =
        Response::new(&context.identity.task_id, Status::Completed).with_artifact(&Artifact::File(file));
    run.answer(&response);
    Ok(())
}

/// Name for the output of a plain agent: that of the first artifact that the test expects.
fn expected_name(expected: &[Json]) -> &str {
    let name = expected.iter().find_map(|artifact| match artifact {
        Json::String(path) => Some(path.as_str()),
        other => other.get("name").and_then(Json::as_str),
    });
    name.unwrap_or("output.txt")
}
