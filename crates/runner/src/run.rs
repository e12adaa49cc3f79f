//! One run of a test from start to end: workspace, setup, agent, snapshot, checks, score.

mod attest;
mod command;
mod evaluate;
mod planted;
mod pytest;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use proctor_core::json::Json;
use proctor_sandbox::{CopyLimits, Network, Sandbox, Workspace};
use tokio::sync::mpsc;

use crate::agent::{Agent, AgentSpec};
use crate::checks::AssertionResult;
use crate::execute::{Endpoint, Execution, ReceivedJson, RunContext, RunIdentity, execute};
use crate::folder::ResolvedFile;
use crate::judging::Judges;
use crate::recording::{EndedRun, Recorder, RecordingError, StartedRun};
use crate::scoring::{Ending, Measures, Score, Verdict, run_verdict};
use crate::secrets::Secrets;
use crate::suite::TestCase;
use crate::tools::{EndpointError, EndpointRun, MAX_CALLS, ToolEndpoints};

pub use command::HookError;

/// Surroundings that all runs of a suite share.
pub struct Surroundings {
    /// The sandbox.
    pub sandbox: Sandbox,
    /// Folder that the runs' folders are made in.
    pub scratch: PathBuf,
    /// Paths that no agent may reach.
    pub hidden: Vec<PathBuf>,
    /// Variables of Proctor's own environment.
    pub variables: Vec<(std::ffi::OsString, std::ffi::OsString)>,
    /// Folder of the suite.
    pub suite_directory: PathBuf,
    /// Folder where Proctor was started.
    pub working_directory: PathBuf,
    /// Becomes true when the user interrupts.
    pub interrupted: tokio::sync::watch::Receiver<bool>,
    /// Endpoints for tool calls; without them, agents are given none.
    pub endpoints: Option<Arc<dyn ToolEndpoints>>,
    /// Judges; without them, assertions that need a model are errors.
    pub judges: Option<Arc<dyn Judges>>,
    /// Store of runs; without it, nothing is recorded.
    pub recorder: Option<Arc<dyn Recorder>>,
}

/// Events of a run that its report shows. All of them are kept in the record.
pub const MAX_SHOWN_EVENTS: usize = 500;

/// Result of one run.
#[derive(Debug, Clone)]
pub struct RunResult {
    /// Number of the run, from 1.
    pub number: u32,
    /// Task id.
    pub task_id: String,
    /// The verdict.
    pub verdict: Verdict,
    /// The way in which the agent ended.
    pub ending: Ending,
    /// Reason of a verdict that is not a pass, if it is not in the assertions.
    pub error: Option<String>,
    /// Last lines of the agent's standard error.
    pub last_lines: Vec<String>,
    /// The score; none if nothing could be evaluated.
    pub score: Option<Score>,
    /// Results of the assertions.
    pub assertions: Vec<AssertionResult>,
    /// The response of the agent; null if there is none.
    pub response: Json,
    /// Number of events.
    pub events: usize,
    /// Number of events that violate the protocol.
    pub flawed_events: usize,
    /// The first events of a run that did not pass, for its report; at most [`MAX_SHOWN_EVENTS`].
    pub shown_events: Vec<ReceivedJson>,
    /// Amounts that the agent used.
    pub measures: Measures,
    /// Deviations from the protocol.
    pub warnings: Vec<String>,
    /// Time that the agent took.
    pub took: Duration,
    /// Attempts that ended in an error before this one.
    pub earlier_attempts: Vec<Attempt>,
}

/// An attempt at a run that ended in an error, and was followed by another.
#[derive(Debug, Clone, PartialEq)]
pub struct Attempt {
    /// Task id.
    pub task_id: String,
    /// Reason.
    pub error: String,
    /// Time that the agent took.
    pub took: Duration,
}

/// Errors before an agent is started. The run is an error, and says why.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    /// The folders of the run cannot be made.
    #[error(transparent)]
    Workspace(#[from] proctor_sandbox::WorkspaceError),
    /// A command of `setup` failed.
    #[error("setup `{command}` failed: {reason}")]
    Setup {
        /// The command.
        command: String,
        /// The reason.
        reason: HookError,
    },
    /// The beginning of the run is not on record.
    #[error(transparent)]
    Recording(#[from] RecordingError),
    /// The listener of the tools endpoint cannot be made.
    #[error(transparent)]
    Listener(#[from] proctor_sandbox::Error),
    /// The tools endpoint cannot be listened on.
    #[error("the tools endpoint cannot be listened on: {0}")]
    Listen(#[from] std::io::Error),
    /// The tools endpoint cannot be opened.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
}

/// Runs a test once.
pub async fn run(around: &Surroundings, agent: &Agent, test: &TestCase, identity: RunIdentity) -> RunResult {
    match Workspace::create(&around.scratch) {
        Ok(workspace) => in_workspace(around, agent, test, identity, &workspace).await,
        Err(error) => not_run(&identity, &error.into()),
    }
}

fn not_run(identity: &RunIdentity, error: &PrepareError) -> RunResult {
    RunResult {
        number: identity.number,
        task_id: identity.task_id.clone(),
        verdict: Verdict::Error,
        ending: Ending::Error,
        error: Some(error.to_string()),
        last_lines: Vec::new(),
        score: None,
        assertions: Vec::new(),
        response: Json::Null,
        events: 0,
        flawed_events: 0,
        shown_events: Vec::new(),
        measures: Measures::default(),
        warnings: Vec::new(),
        took: Duration::ZERO,
        earlier_attempts: Vec::new(),
    }
}

async fn in_workspace(
    around: &Surroundings,
    agent: &Agent,
    test: &TestCase,
    identity: RunIdentity,
    workspace: &Workspace,
) -> RunResult {
    let exists = |path: &std::path::Path| path.exists();
    let locate = |written: &str| {
        crate::suite::locate(written, &around.suite_directory, &around.working_directory, &exists)
    };
    let is_public = |name: &str| test.public.iter().any(|public| public == name);
    let values = test.environment.iter().filter(|(name, _)| !is_public(name));
    let secrets = Arc::new(Secrets::new(values.map(|(name, value)| (name.as_str(), value.expose()))));
    let prepared = async {
        prepare(around, test, workspace, &locate).await?;
        if let Some(recorder) = &around.recorder {
            recorder.run_started(StartedRun { agent, test, identity: &identity }).await?;
        }
        endpoint(around, agent, test, &identity, &secrets).await
    };
    let (network, endpoint) = match prepared.await {
        Ok(prepared) => prepared,
        Err(error) => return not_run(&identity, &error),
    };
    let reference = ResolvedFile::resolve(&test.reference, &locate);
    let files = ResolvedFile::resolve(&test.files, &locate);
    let context = RunContext {
        agent,
        test,
        identity: &identity,
        sandbox: &around.sandbox,
        workspace,
        hidden: &around.hidden,
        variables: &around.variables,
        secrets: &secrets,
        network,
        interrupted: around.interrupted.clone(),
    };
    let execution = execute(&context, &reference, endpoint).await;
    let fixture = test.task.workspace_fixture.as_deref().map(&locate);
    let given = evaluate::Given { files: &files, fixture: fixture.as_deref() };
    let (evaluated, mut warnings) =
        evaluate::evaluate(around, test, workspace, &execution, &given, &secrets).await;
    warnings.splice(0..0, execution.warnings.iter().cloned());
    for command in test.teardown.iter() {
        if let Err(reason) = command::run_hook(around, workspace, command).await {
            warnings.push(format!("teardown `{}` failed: {reason}", command.words.join(" ")));
        }
    }
    let mut result = conclude(test, &identity, &execution, evaluated, warnings);
    if let Some(recorder) = &around.recorder {
        let ended = EndedRun { agent, test, execution: &execution, result: &result };
        if let Err(error) = recorder.run_ended(ended).await {
            result.verdict = Verdict::Error;
            result.error.get_or_insert(error.to_string());
        }
    }
    result
}

/// Opens the tools endpoint of a run, in the network that its process reaches.
async fn endpoint(
    around: &Surroundings,
    agent: &Agent,
    test: &TestCase,
    identity: &RunIdentity,
    secrets: &Arc<Secrets>,
) -> Result<(Network, Option<Endpoint>), PrepareError> {
    let closed = if test.network { Network::Host } else { Network::None };
    let endpoints = match &agent.spec {
        // These call no tools.
        AgentSpec::Nop | AgentSpec::Reference => None,
        AgentSpec::Process(_) | AgentSpec::Remote(_) => around.endpoints.as_ref(),
    };
    let Some(endpoints) = endpoints else { return Ok((closed, None)) };
    // An agent with the host's network, or outside of the sandbox, reaches the host's loopback address.
    let is_inside = matches!(&agent.spec, AgentSpec::Process(_)) && !test.network;
    let (network, listener) = if is_inside {
        let loopback = around.sandbox.loopback()?;
        let listener = loopback.listener()?;
        (Network::Only(loopback), listener)
    } else {
        (closed, std::net::TcpListener::bind(("127.0.0.1", 0))?)
    };
    let (sender, calls) = mpsc::channel(MAX_CALLS);
    let run = EndpointRun {
        task_id: &identity.task_id,
        agent: &agent.name,
        test,
        call_timeout: Duration::from_secs(test.constraints.timeout_seconds.into()),
        secrets,
        calls: sender,
    };
    let open = endpoints.open(listener, run).await?;
    Ok((network, Some(Endpoint { open, calls })))
}

async fn prepare(
    around: &Surroundings,
    test: &TestCase,
    workspace: &Workspace,
    locate: &(dyn Fn(&str) -> PathBuf + Sync),
) -> Result<(), PrepareError> {
    if let Some(fixture) = &test.task.workspace_fixture {
        workspace.copy_fixture(&locate(fixture), CopyLimits::default())?;
    }
    for command in test.setup.iter() {
        command::run_hook(around, workspace, command)
            .await
            .map_err(|reason| PrepareError::Setup { command: command.words.join(" "), reason })?;
    }
    Ok(())
}

fn conclude(
    test: &TestCase,
    identity: &RunIdentity,
    execution: &Execution,
    evaluated: Option<evaluate::Evaluated>,
    warnings: Vec<String>,
) -> RunResult {
    let (assertions, score, problem) = match evaluated {
        Some(evaluated) => (evaluated.assertions, Some(evaluated.score), evaluated.problem),
        None => (Vec::new(), None, None),
    };
    let mut verdict = run_verdict(execution.ending, test.allow_partial, score.as_ref());
    if problem.is_some() && verdict == Verdict::Passed {
        verdict = Verdict::Failed;
    }
    RunResult {
        number: identity.number,
        task_id: identity.task_id.clone(),
        verdict,
        ending: execution.ending,
        error: execution.error.clone().or(problem),
        last_lines: execution.last_lines.clone(),
        score,
        assertions,
        response: execution.response.clone(),
        events: execution.events.len(),
        flawed_events: execution.events.iter().filter(|event| event.is_flawed).count(),
        shown_events: match verdict {
            Verdict::Passed => Vec::new(),
            _ => execution.events.iter().take(MAX_SHOWN_EVENTS).cloned().collect(),
        },
        measures: execution.measures,
        warnings,
        // Milliseconds, as in reports: statistics of a stored result are those of the original.
        took: Duration::from_millis(u64::try_from(execution.took.as_millis()).unwrap_or(u64::MAX)),
        earlier_attempts: Vec::new(),
    }
}
