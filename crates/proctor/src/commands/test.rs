//! `proctor test`: runs a suite against an agent.

mod listing;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use proctor_core::json::Json;
use proctor_policy::scan::Scanner;
use proctor_runner::agent::{self, Agent, AgentSpec, resolve};
use proctor_runner::isolation::check_files;
use proctor_runner::results::SuiteResult;
use proctor_runner::run::Surroundings;
use proctor_runner::suite::{
    AgentKind, LoadOptions, Loaded, Partition, SUITE_LIMITS, SecretFinding, Suite, TagFilter, load, locate,
};
use proctor_runner::suite_run::{Options, run_suite};
use proctor_sandbox::{Features, Mode, Sandbox, private_paths, sweep};
use proctor_system::SystemRandomness;

use super::Context;
use crate::cli::{SandboxArg, TestArgs};
use crate::failure::{CHECKS_FAILED, Failure, OK, Outcome, UNDECIDED};
use crate::output;

/// Variable with kernel features that the sandbox leaves unused, to see what a system without them gives.
const WITHOUT_FEATURES: &str = "PROCTOR_SANDBOX_WITHOUT";

/// Exit code after SIGINT, as shells expect it.
const INTERRUPTED: u8 = 130;

pub(super) fn run(context: &Context, directory: &Path, arguments: &TestArgs) -> Outcome {
    let loaded = read_suite(&arguments.suite)?;
    let suite = loaded.suite;
    refuse_unsupported(&arguments.suite, &suite)?;
    let selected = select(&suite, arguments)?;
    if arguments.check {
        let text = format!(
            "{}: {} tests, {} selected",
            arguments.suite.display(),
            suite.tests.len(),
            selected.len()
        );
        let json = Json::object()
            .with("suite", suite.name.as_str())
            .with("tests", suite.tests.len())
            .with("selected", selected.len());
        output::data(if context.json { json.to_string() } else { text })?;
        return Ok(OK);
    }
    let agent = agent(&suite, directory, arguments)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime =
        runtime.map_err(|error| Failure::from(format!("the runtime cannot be started: {error}")))?;
    let result = runtime.block_on(execute(context, directory, arguments, &suite, selected, &agent))?;
    if context.json {
        output::data(result.to_json())?;
    } else {
        listing::print(&result)?;
    }
    Ok(code(&result, arguments.gate))
}

/// The exit code. Tests that nobody evaluated never count as passed.
fn code(result: &SuiteResult, gate: bool) -> u8 {
    let counts = result.counts();
    if result.is_interrupted {
        INTERRUPTED
    } else if counts.failed > 0 || (counts.errors > 0 && !gate) || counts.passed + counts.errors == 0 {
        CHECKS_FAILED
    } else if counts.errors > 0 {
        UNDECIDED
    } else {
        OK
    }
}

fn read_suite(path: &Path) -> Result<Loaded, Failure> {
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
    let loaded = load(&source, &LoadOptions::new(&environment, &scan));
    let loaded = loaded.map_err(|mistakes| {
        Failure::list(mistakes.iter().map(|mistake| format!("{}:{mistake}", path.display())))
    })?;
    for warning in &loaded.warnings {
        output::note(&format!("{}:{warning}", path.display()));
    }
    Ok(loaded)
}

/// Refuses what a suite may say and this version does not do: leaving it out would make results that mean something else.
fn refuse_unsupported(path: &Path, suite: &Suite) -> Result<(), Failure> {
    let refusal = |at: proctor_runner::suite::Position, what: &str| {
        format!("{}:{}:{}: {what} is not supported by this version", path.display(), at.line, at.column)
    };
    let mut mistakes = Vec::new();
    for test in &suite.tests {
        if !test.mock_tools.is_empty() {
            mistakes.push(refusal(test.at, "`mock_tools`"));
        }
        if !test.approvals.is_empty() {
            mistakes.push(refusal(test.at, "`approvals`"));
        }
    }
    for agent in &suite.agents {
        let inherits = match &agent.kind {
            AgentKind::Cli(program) | AgentKind::Plain(program) => program.inherit_environment,
            _ => false,
        };
        if inherits {
            mistakes.push(refusal(agent.at, "`inherit_environment: true`"));
        }
        if agent.retry_count > 0 {
            mistakes.push(refusal(agent.at, "`retry_count`"));
        }
    }
    if mistakes.is_empty() { Ok(()) } else { Err(Failure::list(mistakes)) }
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

fn agent(suite: &Suite, directory: &Path, arguments: &TestArgs) -> Result<Agent, Failure> {
    // `PROCTOR_AGENT` is the caller's name in other commands, and clap hands it on to the flag of the same name.
    let is_given = std::env::args_os()
        .any(|word| word.to_str().is_some_and(|word| word == "--agent" || word.starts_with("--agent=")));
    let given = match (arguments.agent.as_ref().filter(|_| is_given), suite.agents.as_slice()) {
        (Some(given), _) => given.as_str(),
        (None, [only]) => only.name.as_str(),
        (None, _) => {
            return Err(Failure::from(
                "name the agent under test: `--agent NAME` or `--agent stdio:COMMAND`".to_owned(),
            ));
        }
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_program = |name: &str| std::env::split_paths(&path).any(|folder| folder.join(name).is_file());
    let around = agent::Surroundings { directory, is_file: &|path| path.is_file(), is_program: &is_program };
    resolve(given, &suite.agents, &around).map_err(|error| Failure::from(format!("--agent: {error}")))
}

async fn execute(
    context: &Context,
    directory: &Path,
    arguments: &TestArgs,
    suite: &Suite,
    selected: Vec<usize>,
    agent: &Agent,
) -> Result<SuiteResult, Failure> {
    let scratch = scratch()?;
    let mode = match arguments.sandbox {
        SandboxArg::Auto => Mode::Auto,
        SandboxArg::Require => Mode::Require,
        SandboxArg::Off => Mode::Off,
    };
    let without = std::env::var(WITHOUT_FEATURES).unwrap_or_default();
    let features =
        Features::all_but(&without).map_err(|error| Failure::from(format!("{WITHOUT_FEATURES}: {error}")))?;
    let sandbox = Sandbox::deferred(mode, features, &scratch);
    // Other agents may never start a program; trying the sandbox out would cost them more than everything else.
    if matches!(agent.spec, AgentSpec::Process(_)) || mode == Mode::Require {
        let tried = sandbox.try_out();
        let protections =
            tried.map_err(|error| Failure::from(format!("the sandbox cannot be used: {error}")))?;
        for (protection, reason) in protections.missing() {
            output::note(&format!("not protected: {protection} ({reason})"));
        }
    }
    let (interrupt, interrupted) = tokio::sync::watch::channel(false);
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            let _ = interrupt.send(true);
            // Kept, so that receivers go on waiting instead of seeing a closed channel.
            interrupt.closed().await;
        }
    });
    let suite_file = std::path::absolute(&arguments.suite).unwrap_or_else(|_| arguments.suite.clone());
    let suite_directory = suite_file.parent().unwrap_or(directory).to_owned();
    let mut hidden = hidden(context, suite_file);
    // Other runs; the folder of a run itself stays within its reach.
    hidden.push(scratch.clone());
    let locate = |written: &str| locate(written, &suite_directory, directory, &|path| path.exists());
    hidden.extend(check_files(&suite.tests, &locate, &agent.files()));
    let around = Surroundings {
        sandbox,
        hidden,
        scratch,
        variables: std::env::vars_os().collect(),
        suite_directory: suite_directory.clone(),
        working_directory: directory.to_owned(),
        interrupted,
    };
    let options = Options {
        selected,
        runs: arguments.runs,
        parallel: arguments.parallel.into(),
        fail_fast: arguments.fail_fast,
    };
    let mut finished = listing::progress;
    Ok(run_suite(suite, agent, &options, &around, &SystemRandomness, &mut finished).await)
}

/// Folder for the runs' folders, private to this user. What a killed process left there is removed.
fn scratch() -> Result<PathBuf, Failure> {
    let folder = std::env::temp_dir().join(format!("proctor-runs-{}", rustix::process::getuid().as_raw()));
    proctor_system::private::create_folder(&folder).map_err(|error| Failure::from(error.to_string()))?;
    sweep(&folder).map_err(|error| Failure::from(error.to_string()))?;
    Ok(folder)
}

/// Paths that no agent may reach: state, credentials, the suite.
fn hidden(context: &Context, suite_file: PathBuf) -> Vec<PathBuf> {
    let home: OsString = std::env::var_os("HOME").unwrap_or_default();
    let mut hidden: Vec<PathBuf> = vec![context.config.engine.state.clone(), suite_file];
    if !home.is_empty() {
        hidden.extend(private_paths(Path::new(&home)));
    }
    hidden.extend(std::env::var_os("PROCTOR_CREDENTIAL").map(PathBuf::from));
    hidden.extend(super::init::default_credential());
    hidden
}
