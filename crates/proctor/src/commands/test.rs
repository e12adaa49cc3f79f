//! `proctor test`: runs a suite against an agent.

pub(super) mod listing;
pub(super) mod report;
pub(super) mod store;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use proctor_core::digest::Digest;
use proctor_core::json::Json;
use proctor_door_attest::{Evaluator, Settings};
use proctor_policy::scan::Scanner;
use proctor_runner::agent::{self, Agent, AgentSpec, resolve};
use proctor_runner::isolation::check_files;
use proctor_runner::judging::Judges;
use proctor_runner::recording::{AnnouncedRuns, StartedRun};
use proctor_runner::results::{SuiteResult, TestResult};
use proctor_runner::run::Surroundings;
use proctor_runner::suite::{
    LoadOptions, Partition, PathKind, SUITE_LIMITS, SecretFinding, Suite, TagFilter, load, locate,
};
use proctor_runner::suite_run::{Bench, Options, run_suite};
use proctor_runs::{DeciderSource, EngineJudges};
use proctor_sandbox::{Features, Mode, Protection, Sandbox, homes, private_paths, sweep};
use proctor_system::{SystemClock, SystemRandomness};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use super::Context;
use crate::cli::{SandboxArg, TestArgs};
use crate::failure::{Failure, OK, Outcome};
use crate::output::{self, live};
use crate::programs::attest_engine::variable;

/// Variable with kernel features that the sandbox leaves unused, to see what a system without them gives.
const WITHOUT_FEATURES: &str = "PROCTOR_SANDBOX_WITHOUT";

pub(super) fn run(context: &Context, directory: &Path, arguments: &TestArgs) -> Outcome {
    if let Some(folder) = &arguments.init {
        return init(folder);
    }
    let path = arguments.suite.as_deref().unwrap_or(Path::new(""));
    let (suite, digest) = read_suite(path, directory)?;
    let suite = Arc::new(suite);
    let selected = select(&suite, arguments)?;
    if arguments.check {
        let noun = if suite.tests.len() == 1 { "test" } else { "tests" };
        let text = format!("{}: {} {noun}, {} selected", path.display(), suite.tests.len(), selected.len());
        let json = Json::object()
            .with("suite", suite.name.as_str())
            .with("tests", suite.tests.len())
            .with("selected", selected.len());
        output::data(if context.json { json.to_string() } else { text })?;
        return Ok(OK);
    }
    let agents = agents(context, &suite, directory, arguments)?;
    let agents: Vec<Arc<Agent>> = agents.into_iter().map(Arc::new).collect();
    let mut reports = report::Reports::open(context, arguments, &suite, &selected, agents.len())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime =
        runtime.map_err(|error| Failure::from(format!("the runtime cannot be started: {error}")))?;
    let suite_file = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    // Once for all agents: a second owner of the state directory would be a stranger to the first.
    let source = store::source(context)?;
    let mut results: Vec<SuiteResult> = Vec::new();
    for agent in &agents {
        let mut finished = |test: &TestResult| reports.finished(&agent.name, test);
        let selected = selected.clone();
        let plan = Plan { suite: &suite, suite_file: suite_file.clone(), digest, selected, agent };
        let run = execute(context, directory, arguments, &source, plan, &mut finished);
        results.extend(runtime.block_on(run)?);
        if results.iter().any(|result| result.is_interrupted) {
            break;
        }
    }
    if results.is_empty() {
        // Nothing was to be run again.
        return Ok(OK);
    }
    reports.finish(context.json, arguments, results)
}

/// A suite run that is about to begin.
struct Plan<'p> {
    suite: &'p Arc<Suite>,
    suite_file: PathBuf,
    digest: Digest,
    selected: Vec<usize>,
    agent: &'p Arc<Agent>,
}

fn init(folder: &Path) -> Outcome {
    let files = proctor_runner::starter::write(folder)?;
    for file in &files {
        output::data(file.display())?;
    }
    output::note(&format!("run it: cd {} && proctor test suite.yaml", folder.display()));
    Ok(OK)
}

fn read_suite(path: &Path, directory: &Path) -> Result<(Suite, Digest), Failure> {
    let length = std::fs::metadata(path).map_err(|error| Failure::io(path, &error))?.len();
    if length > SUITE_LIMITS.source_bytes as u64 {
        return Err(Failure::from(format!(
            "{}: more than {} bytes",
            path.display(),
            SUITE_LIMITS.source_bytes
        )));
    }
    let source = std::fs::read(path).map_err(|error| Failure::io(path, &error))?;
    let scanner = Scanner::standard();
    let scan = |text: &str| {
        let finding = scanner.scan(text).into_iter().next()?;
        Some(SecretFinding { kind: finding.kind.name().to_owned(), offset: finding.offset })
    };
    let environment = |name: &str| std::env::var(name).ok();
    let folder = path.parent().map_or_else(|| directory.to_owned(), |folder| directory.join(folder));
    let paths = |written: &str| PathKind::of(&locate(written, &folder, directory, &|path| path.exists()));
    let loaded = load(&source, &LoadOptions::new(&environment, &scan).with_paths(&paths));
    let loaded = loaded.map_err(|mistakes| {
        Failure::list(mistakes.iter().map(|mistake| format!("{}:{mistake}", path.display())))
    })?;
    for warning in &loaded.warnings {
        output::note(&format!("{}:{warning}", path.display()));
    }
    Ok((loaded.suite, Digest::of(&source)))
}

/// Numbers of the tests that the flags select.
fn select(suite: &Suite, arguments: &TestArgs) -> Result<Vec<usize>, Failure> {
    let tags = arguments.tags.as_deref().map(TagFilter::parse).unwrap_or_default();
    let partition = arguments.partition.as_deref().map(str::parse::<Partition>).transpose();
    let partition = partition.map_err(|error| Failure::from(format!("--partition: {error}")))?;
    let is_selected = |test: &proctor_runner::suite::TestCase| {
        tags.selects(&test.tags) && partition.as_ref().is_none_or(|partition| partition.selects(&test.id))
    };
    let selected: Vec<usize> = suite
        .tests
        .iter()
        .enumerate()
        .filter(|(_, test)| is_selected(test))
        .map(|(index, _)| index)
        .collect();
    if selected.is_empty() {
        return Err(Failure::from(format!("none of the {} tests matches the flags", suite.tests.len())));
    }
    Ok(selected)
}

/// The agents under test: one, or two that are compared.
fn agents(
    context: &Context,
    suite: &Suite,
    directory: &Path,
    arguments: &TestArgs,
) -> Result<Vec<Agent>, Failure> {
    // `PROCTOR_AGENT` is the caller's name in other commands, and clap hands it on to the flag of the same name.
    let is_given = std::env::args_os()
        .any(|word| word.to_str().is_some_and(|word| word == "--agent" || word.starts_with("--agent=")));
    let given: Vec<&str> = match (is_given, suite.agents.as_slice()) {
        (true, _) => arguments.agent.iter().map(String::as_str).collect(),
        (false, [only]) => vec![only.name.as_str()],
        (false, _) => {
            return Err(agent::unnamed(&suite.agents).into());
        }
    };
    if given.len() > 2 {
        return Err("`--agent` is given more than twice; two agents can be compared".into());
    }
    given.into_iter().map(|given| resolve_agent(context, given, &suite.agents, directory)).collect()
}

/// The agent of a name or an address.
pub(super) fn resolve_agent(
    context: &Context,
    given: &str,
    named: &[proctor_runner::suite::Agent],
    directory: &Path,
) -> Result<Agent, Failure> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_program = |name: &str| std::env::split_paths(&path).any(|folder| folder.join(name).is_file());
    let around = agent::Surroundings {
        directory,
        is_file: &|path| path.is_file(),
        is_program: &is_program,
        configured: agent::Configured {
            agents: &context.config.test_agents,
            directory: context.config.file.as_deref().and_then(Path::parent),
        },
    };
    let agent = resolve(given, named, &around).map_err(|error| Failure::from(format!("agent: {error}")))?;
    for warning in agent::warnings(given, &agent, &around) {
        output::note(&format!("agent: {warning}"));
    }
    Ok(agent)
}

async fn execute(
    context: &Context,
    directory: &Path,
    arguments: &TestArgs,
    source: &DeciderSource,
    plan: Plan<'_>,
    finished: &mut dyn FnMut(&TestResult),
) -> Result<Option<SuiteResult>, Failure> {
    let Plan { suite, suite_file, digest, selected, agent } = plan;
    let scratch = scratch()?;
    // Other agents may never start a program; trying the sandbox out would cost them more than everything else.
    let sandbox = sandbox(arguments.sandbox, &scratch, matches!(agent.spec, AgentSpec::Process(_)))?;
    let interrupted = interrupts()?;
    let mut options = Options {
        selected,
        runs: arguments.runs,
        parallel: arguments.parallel.into(),
        fail_fast: arguments.fail_fast,
        retries: arguments.retries,
        known: HashMap::new(),
    };
    let store = store::open(context, arguments, source, (&**suite, digest), agent, &mut options)?;
    let Some(store) = store else { return Ok(None) };
    let suite_directory = suite_file.parent().unwrap_or(directory).to_owned();
    let mut hidden = hidden(context, &suite_file);
    // What reports say of a suite is the suite.
    hidden.extend(report::files(arguments));
    // Other runs; the folder of a run itself stays within its reach.
    hidden.push(scratch.clone());
    let locate = |written: &str| locate(written, &suite_directory, directory, &|path| path.exists());
    hidden.extend(check_files(&suite.tests, &locate, &agent.files()));
    let around = Arc::new(Surroundings {
        sandbox,
        hidden,
        scratch,
        variables: std::env::vars_os().collect(),
        suite_directory: suite_directory.clone(),
        working_directory: directory.to_owned(),
        interrupted,
        endpoints: Some(store.clone()),
        judges: judges(suite),
        prices: proctor_policy::prices::list_price_usd,
        recorder: Some(Arc::new(AnnouncedRuns { recorder: store.clone(), announce: show_run })),
    });
    let bench = Bench {
        suite: Arc::clone(suite),
        agent: Arc::clone(agent),
        around,
        randomness: Arc::new(SystemRandomness),
    };
    store.suite_started().await?;
    let shown = live::Live::start(options.selected.len());
    let result = run_suite(&bench, &options, finished).await;
    drop(shown);
    store.suite_ended(&result).await?;
    output::note(&format!("recorded as suite run {}", store.id()));
    Ok(Some(result))
}

/// The signal that stopped the suite run; 0 if none did.
static STOPPED_BY: AtomicU8 = AtomicU8::new(0);

/// Exit code of a suite run that a signal stopped.
pub(super) fn stopped_code() -> u8 {
    match STOPPED_BY.load(Ordering::Acquire) {
        0 => 130,
        signal => 128 + signal,
    }
}

/// Becomes true at the first SIGINT, SIGTERM or SIGHUP: runs end, and reports of what was done are written.
fn interrupts() -> Result<watch::Receiver<bool>, Failure> {
    let failed = |error: std::io::Error| Failure::from(format!("signals cannot be caught: {error}"));
    let caught = |kind: SignalKind| signal(kind).map_err(failed);
    let mut int = caught(SignalKind::interrupt())?;
    let mut term = caught(SignalKind::terminate())?;
    let mut hup = caught(SignalKind::hangup())?;
    let (interrupt, interrupted) = watch::channel(false);
    tokio::spawn(async move {
        let kind = tokio::select! {
            _ = int.recv() => SignalKind::interrupt(),
            _ = term.recv() => SignalKind::terminate(),
            _ = hup.recv() => SignalKind::hangup(),
        };
        STOPPED_BY.store(u8::try_from(kind.as_raw_value()).unwrap_or_default(), Ordering::Release);
        live::with(proctor_report::LiveLine::interrupt);
        let _ = interrupt.send(true);
        // Kept, so that receivers go on waiting instead of seeing a closed channel.
        interrupt.closed().await;
    });
    Ok(interrupted)
}

/// Shows a run that begins on the live line.
fn show_run(run: StartedRun<'_>) {
    live::with(|live| live.started(&run.test.id, &run.test.name, (run.identity.number, run.identity.total)));
}

/// Judges and the assertion engine, if a test needs them: opening their history takes time.
fn judges(suite: &Suite) -> Option<Arc<dyn Judges>> {
    if !suite.tests.iter().any(proctor_runner::suite::TestCase::needs_engine) {
        return None;
    }
    let settings = Settings::read(&variable);
    let evaluator =
        Evaluator::new(&settings, Arc::new(SystemClock), Arc::new(SystemRandomness), output::note);
    Some(Arc::new(EngineJudges::new(evaluator, SystemRandomness)))
}

/// The sandbox. If programs are started in it, it is tried out first, and protections that it lacks are named.
pub(super) fn sandbox(mode: SandboxArg, scratch: &Path, starts_programs: bool) -> Result<Sandbox, Failure> {
    let mode = match mode {
        SandboxArg::Auto => Mode::Auto,
        SandboxArg::Require => Mode::Require,
        SandboxArg::Off => Mode::Off,
    };
    let without = std::env::var(WITHOUT_FEATURES).unwrap_or_default();
    let features =
        Features::all_but(&without).map_err(|error| Failure::from(format!("{WITHOUT_FEATURES}: {error}")))?;
    let mut sandbox = Sandbox::deferred(mode, features, scratch);
    if user_homes().is_empty() {
        sandbox =
            sandbox.lacking(Protection::HiddenPaths, "neither HOME nor the account names a home folder");
    }
    if starts_programs || mode == Mode::Require {
        let tried = sandbox.try_out();
        let protections =
            tried.map_err(|error| Failure::from(format!("the sandbox cannot be used: {error}")))?;
        for (protection, reason) in protections.missing() {
            output::note(&format!("not protected: {protection} ({reason})"));
        }
    }
    Ok(sandbox)
}

fn user_homes() -> Vec<PathBuf> {
    homes(std::env::var_os("HOME").as_deref(), &std::env::current_dir().unwrap_or_default())
}

/// Folder for the runs' folders, private to this user. What a killed process left there is removed.
pub(super) fn scratch() -> Result<PathBuf, Failure> {
    let folder = std::env::temp_dir().join(format!("proctor-runs-{}", rustix::process::getuid().as_raw()));
    proctor_system::private::create_folder(&folder).map_err(|error| Failure::from(error.to_string()))?;
    sweep(&folder).map_err(|error| Failure::from(error.to_string()))?;
    Ok(folder)
}

/// Paths that no agent may reach: state, credentials, the suite.
pub(super) fn hidden(context: &Context, suite_file: &Path) -> Vec<PathBuf> {
    let mut hidden: Vec<PathBuf> = vec![context.config.engine.state.clone(), suite_file.to_owned()];
    let credential = |home: &PathBuf| home.join(".config/proctor/approver.key");
    hidden.extend(user_homes().iter().flat_map(|home| private_paths(home).chain([credential(home)])));
    hidden.extend(std::env::var_os("PROCTOR_CREDENTIAL").map(PathBuf::from));
    hidden.extend(super::init::default_credential());
    hidden
}
