//! One run of a test from start to end: workspace, setup, agent, snapshot, checks, score.

mod attest;
mod claims;
mod command;
mod evaluate;
mod guard;
mod planted;
mod pytest;
mod uncut;

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
use crate::secrets::{Emitted, Secrets, emission};
use crate::suite::TestCase;
use crate::supervision::Prices;
use crate::tools::{EndpointError, EndpointRun, MAX_CALLS, ToolEndpoints};

pub use command::HookError;
use uncut::Uncut;

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
    /// List prices of models, for budgets of agents that report no cost.
    pub prices: Prices,
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
    pub score: Option<Arc<Score>>,
    /// Results of the assertions.
    pub assertions: Arc<[AssertionResult]>,
    /// Trace id of the response, if it has one. The response itself, with all its artifacts, is not kept.
    pub trace_id: Option<String>,
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
    let is_public = |name: &str| test.settings.public.iter().any(|public| public == name);
    let of_test = test.settings.environment.iter().map(|(name, value)| (name.as_str(), value.expose()));
    let values = of_test.chain(agent.spec.secrets(&around.variables)).filter(|(name, _)| !is_public(name));
    let secrets = Arc::new(Secrets::new(values));
    match Workspace::create(&around.scratch) {
        Ok(workspace) => in_workspace(around, agent, test, identity, &workspace, &secrets).await,
        Err(error) => not_run(&identity, &error.into()).cut(&secrets),
    }
}

fn not_run(identity: &RunIdentity, error: &PrepareError) -> Uncut {
    Uncut::new(RunResult {
        number: identity.number,
        task_id: identity.task_id.clone(),
        verdict: Verdict::Error,
        ending: Ending::Error,
        error: Some(error.to_string()),
        last_lines: Vec::new(),
        score: None,
        assertions: Arc::default(),
        trace_id: None,
        events: 0,
        flawed_events: 0,
        shown_events: Vec::new(),
        measures: Measures::default(),
        warnings: Vec::new(),
        took: Duration::ZERO,
        earlier_attempts: Vec::new(),
    })
}

async fn in_workspace(
    around: &Surroundings,
    agent: &Agent,
    test: &TestCase,
    identity: RunIdentity,
    workspace: &Workspace,
    secrets: &Arc<Secrets>,
) -> RunResult {
    let exists = |path: &std::path::Path| path.exists();
    let locate = |written: &str| {
        crate::suite::locate(written, &around.suite_directory, &around.working_directory, &exists)
    };
    let prepared = async {
        prepare(around, test, workspace, &locate, secrets).await?;
        if let Some(recorder) = &around.recorder {
            recorder.run_started(StartedRun { agent, test, identity: &identity }).await?;
        }
        endpoint(around, agent, test, &identity, secrets).await
    };
    let (network, endpoint) = match prepared.await {
        Ok(prepared) => prepared,
        Err(error) => return not_run(&identity, &error).cut(secrets),
    };
    let reference = ResolvedFile::resolve(&test.settings.reference, &locate);
    let files = ResolvedFile::resolve(&test.settings.files, &locate);
    let context = RunContext {
        agent,
        test,
        identity: &identity,
        sandbox: &around.sandbox,
        workspace,
        hidden: &around.hidden,
        variables: &around.variables,
        secrets,
        network,
        prices: around.prices,
        interrupted: around.interrupted.clone(),
    };
    let execution = execute(&context, &reference, endpoint).await;
    let fixture = test.task.workspace_fixture.as_deref().map(&locate);
    let given = evaluate::Given {
        files: &files,
        fixture: fixture.as_deref(),
        reference: &reference,
        expected_artifacts: test.task.expected_artifacts.as_deref().unwrap_or_default(),
    };
    let emitted = Emitted::default();
    let (evaluated, mut warnings) =
        evaluate::evaluate(around, test, workspace, &execution, &given, (secrets, &emitted)).await;
    warnings.splice(0..0, execution.warnings.iter().cloned());
    for command in test.settings.teardown.iter() {
        if let Err(reason) = command::run_hook(around, workspace, command, secrets).await {
            warnings.push(format!("teardown `{}` failed: {reason}", command.words.join(" ")));
        }
    }
    let uncut = conclude(test, &identity, &execution, evaluated, warnings, &emitted.names());
    let mut result = uncut.cut(secrets);
    if let Some(recorder) = &around.recorder {
        let ended = EndedRun { agent, test, execution: &execution, result: &result };
        if let Err(error) = recorder.run_ended(ended).await {
            result.verdict = Verdict::Error;
            result.error.get_or_insert_with(|| secrets.cut_shortened(&error.to_string()));
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
    let closed = if test.settings.network { Network::Host } else { Network::None };
    let endpoints = match &agent.spec {
        // These call no tools.
        AgentSpec::Nop | AgentSpec::Reference => None,
        AgentSpec::Process(_) | AgentSpec::Remote(_) => around.endpoints.as_ref(),
    };
    let Some(endpoints) = endpoints else { return Ok((closed, None)) };
    // An agent with the host's network, or outside of the sandbox, reaches the host's loopback address.
    let is_inside = matches!(&agent.spec, AgentSpec::Process(_)) && !test.settings.network;
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
        call_timeout: Duration::from_secs(test.settings.constraints.timeout_seconds.into()),
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
    secrets: &Secrets,
) -> Result<(), PrepareError> {
    if let Some(fixture) = &test.task.workspace_fixture {
        workspace.copy_fixture(&locate(fixture), CopyLimits::default())?;
    }
    for command in test.settings.setup.iter() {
        command::run_hook(around, workspace, command, secrets)
            .await
            .map_err(|reason| PrepareError::Setup { command: command.words.join(" "), reason })?;
    }
    Ok(())
}

fn conclude(
    test: &TestCase,
    identity: &RunIdentity,
    execution: &Execution,
    evaluated: Result<evaluate::Evaluated, Option<String>>,
    warnings: Vec<String>,
    in_files: &[String],
) -> Uncut {
    let mut unevaluated = None;
    let (assertions, score, problem) = match evaluated {
        Ok(evaluated) => (evaluated.assertions, Some(evaluated.score), evaluated.problem),
        Err(reason) => {
            unevaluated = reason;
            (Vec::new(), None, None)
        }
    };
    let mut verdict = run_verdict(execution.ending, test.settings.allow_partial, score.as_ref());
    if problem.is_some() && verdict == Verdict::Passed {
        verdict = Verdict::Failed;
    }
    let mut error = execution.error.clone().or(problem);
    // Names that the agent emitted otherwise are in its own error.
    let in_files: Vec<String> =
        in_files.iter().filter(|name| !execution.leaked.contains(name)).cloned().collect();
    if !in_files.is_empty() {
        verdict = Verdict::Failed;
        let emission = format!("{} in a file of its workspace", emission(&in_files));
        error = Some(error.map_or_else(|| emission.clone(), |own| format!("{emission}; {own}")));
    }
    // What was not evaluated is an error, whatever the agent's own end was.
    if let Some(reason) = unevaluated {
        verdict = Verdict::Error;
        error = Some(error.map_or_else(|| reason.clone(), |own| format!("{own}; {reason}")));
    }
    Uncut::new(RunResult {
        number: identity.number,
        task_id: identity.task_id.clone(),
        verdict,
        ending: execution.ending,
        error,
        last_lines: execution.last_lines.clone(),
        score: score.map(Arc::new),
        assertions: assertions.into(),
        trace_id: execution.response.get("trace_id").and_then(Json::as_str).map(str::to_owned),
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
    })
}
