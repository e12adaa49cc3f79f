//! Agents that are programs: started for a run, spoken to over their pipes, ended with everything they started.

mod plain;

use std::time::Duration;

use proctor_clients::atp::client::stdio;
use proctor_sandbox::wait::{self, Pipes};
use proctor_sandbox::{Limits, Spec, Status as ProcessStatus};
use tokio::time::Instant;

use super::{Run, RunContext, StartError, Talk};
use crate::agent::{ProcessSpec, is_secret_name};

/// Time between TERM and KILL.
const GRACE: Duration = Duration::from_secs(2);

/// Time beyond the test's limit after which the sandbox ends a run by itself, should its supervisor have failed to.
const MARGIN: Duration = Duration::from_secs(30);

pub(super) async fn execute(
    context: &RunContext<'_>,
    program: &ProcessSpec,
    request: &str,
    run: &mut Run<'_>,
) -> Result<(), StartError> {
    let mut process = context.sandbox.spawn(specification(context, program, run.limit))?;
    let pipes = Pipes::take(&mut process)?;
    let ended = wait::notice(&process)?;
    let outcome = if program.is_plain {
        plain::talk(context, pipes, run, &mut process, ended).await
    } else {
        let stdio::Pipes { stdin, stdout, stderr } = protocol_pipes(pipes);
        let cut = |pipe: stdio::ReadPipe| Box::new(context.secrets.reader(pipe, &run.emitted));
        let pipes = stdio::Pipes { stdin, stdout: cut(stdout), stderr: cut(stderr) };
        let mut exchange = stdio::execute(pipes, request.to_owned().into());
        if run.converse(&mut exchange, ended).await == Talk::HeldOpen {
            // Its output ends with the last process that holds it, and only then is the response known to be all of it.
            process.request_end(Duration::ZERO);
            run.drain(&mut exchange).await;
        }
        Ok(())
    };
    // A program that has closed its output is about to end; one that was stopped is not waited for.
    let is_stopped = run.crossing.is_some() || run.is_interrupted || run.is_over_limit();
    // Nor does one that has answered work on after its time limit, which would count.
    let left = run.deadline.saturating_duration_since(Instant::now());
    let (patience, grace) = if is_stopped {
        (Duration::ZERO, GRACE)
    } else {
        let patience = GRACE.min(left);
        (patience, GRACE.min(left.saturating_sub(patience)))
    };
    if let Ok((has_ended, exit)) = wait::finish(process, patience, grace).await {
        // A program that was stopped by us did not crash.
        let status = if has_ended { exit.status } else { ProcessStatus::Exited(0) };
        run.exit = Some(proctor_sandbox::Exit { status, ..exit });
    }
    outcome
}

/// Pipes as the client of the protocol takes them; a program without a pipe for its input gets none of the request.
pub fn protocol_pipes(pipes: Pipes) -> stdio::Pipes {
    let stdin: stdio::WritePipe = match pipes.stdin {
        Some(stdin) => Box::new(stdin),
        None => Box::new(tokio::io::sink()),
    };
    stdio::Pipes { stdin, stdout: Box::new(pipes.stdout), stderr: Box::new(pipes.stderr) }
}

/// The reason why a program that ended by itself counts as crashed.
pub(crate) fn crash(status: ProcessStatus) -> Option<String> {
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
        .folders(workspace)
        .hidden(context.hidden.iter().cloned())
        .network(context.network.clone())
        .limits(limits);
    for (name, value) in test.settings.environment.iter().chain(&program.environment) {
        spec = spec.environment(name, value.expose());
    }
    let named = |name: &str| program.inherited.iter().any(|known| known == name);
    let set = |name: &str| {
        let mut all = test.settings.environment.iter().chain(&program.environment);
        all.any(|(known, _)| known == name) || matches!(name, "HOME" | "TMPDIR")
    };
    for (name, value) in context.variables {
        let Some(text) = name.to_str() else { continue };
        let is_passed = named(text) || (program.inherits_others && !is_secret_name(text));
        if is_passed && !set(text) {
            spec = spec.environment(name, value);
        }
    }
    spec.inherit(context.variables.iter().cloned())
}
