//! `agentcli`: what clients of the agentcli protocol start; `proctor manifest` is the same with Proctor's exit codes.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use proctor_door_agentcli::agents::{AgentError, ConfiguredAgents};
use proctor_door_agentcli::door::{Door, DoorParts};
use proctor_door_agentcli::home::Surroundings;
use proctor_door_agentcli::program::{self, End, Streams};
use proctor_door_agentcli::{arguments, failure};
use proctor_flow::run::{AgentRuntime, Cancel, JOBS, Recorder};
use proctor_system::{SystemClock, SystemRandomness};

use super::attest_engine::variable;
use crate::access::Access;
use crate::config::{Config, Overrides};
use crate::failure::FAILED;
use crate::output;

/// Runs the program with the arguments after its name: exit code 0 or 1.
pub fn run(words: &[OsString]) -> ExitCode {
    let words: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    // Clients read standard error as one JSON document.
    log::set_max_level(log::LevelFilter::Off);
    let named = variable("PROCTOR_STATE").filter(|value| !value.is_empty()).map(PathBuf::from);
    let policy = variable("PROCTOR_POLICY").filter(|value| !value.is_empty()).map(PathBuf::from);
    let overrides = Overrides { state: named, policy, ..Overrides::default() };
    let loaded = std::env::current_dir()
        .map_err(|error| format!("working directory: {}", proctor_system::describe(&error)))
        .and_then(|folder| Config::load(&folder, &overrides).map_err(|error| error.to_string()));
    let mut config = match loaded {
        Ok(config) => config,
        Err(problem) => {
            output::note_plain(&format!("agentcli: {problem}"));
            return ExitCode::from(FAILED);
        }
    };
    if !config.state_is_named {
        config.engine.state = home(&words).join("state");
    }
    match ended("agentcli", &words, &config) {
        Ok((end, _)) => ExitCode::from(end.code()),
        Err(problem) => {
            output::note_plain(&format!("agentcli: {problem}"));
            ExitCode::from(FAILED)
        }
    }
}

/// Folder of the program's own files: `--home`, `AGENTCLI_HOME`, else `~/.agentcli`.
fn home(words: &[String]) -> PathBuf {
    let named = arguments::home(words).or_else(|| variable("AGENTCLI_HOME")).filter(|home| !home.is_empty());
    named.map_or_else(|| user_home().unwrap_or_default().join(".agentcli"), PathBuf::from)
}

fn user_home() -> Option<PathBuf> {
    variable("HOME").map(PathBuf::from).filter(|home| home.is_absolute())
}

/// Runs one command on the state directory of the settings: its end, and the signal that stopped it, if one did.
pub fn ended(name: &str, words: &[String], config: &Config) -> Result<(End, Option<i32>), AgentError> {
    let surroundings = surroundings(words, &config.engine.state);
    let agents = agents(config, &surroundings)?;
    let opened = config.clone();
    let open_state = move || {
        let access = Access::open(&opened, JOBS).map_err(|error| failure::unopened(&error))?;
        Ok(Recorder::from(access.into_engine()))
    };
    let door = Door::new(DoorParts {
        surroundings,
        has_state: config.state_is_named,
        open_state: Box::new(open_state),
        agents,
        clock: Arc::new(SystemClock),
        randomness: Arc::new(SystemRandomness),
    });
    let (mut cancel, signal) = cancel_on_signal();
    let mut input = (!std::io::stdin().is_terminal()).then(|| BufReader::new(std::io::stdin()));
    let streams = Streams {
        stdin: input.as_mut().map(|input| input as &mut dyn BufRead),
        stdout: &mut std::io::stdout(),
        stderr: &mut std::io::stderr(),
    };
    let end = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(program::run(&door, name, words, streams, &mut cancel)),
        Err(error) => {
            output::error(&format!("no runtime: {}", proctor_system::describe(&error)));
            End::Unwritten
        }
    };
    let signal = signal.load(Ordering::Acquire);
    Ok((end, (signal != 0).then_some(signal)))
}

fn surroundings(words: &[String], state: &Path) -> Surroundings {
    let variables = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    let user = variable("USER").or_else(|| variable("LOGNAME")).or_else(proctor_sandbox::account_name);
    let user = user.unwrap_or_else(|| "unknown".to_owned());
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    Surroundings {
        working_dir: std::env::current_dir().unwrap_or_default(),
        home: home(words),
        user_home: user_home(),
        state: state.to_owned(),
        variables,
        user_at_host: format!("{user}@{host}"),
    }
}

fn agents(config: &Config, surroundings: &Surroundings) -> Result<Option<Arc<dyn AgentRuntime>>, AgentError> {
    if config.flow_agents.is_empty() {
        return Ok(None);
    }
    let addresses = config.flow_agents.iter().map(|(id, address)| (id.as_str(), address.as_str()));
    let agents = ConfiguredAgents::new(
        addresses,
        &surroundings.working_dir,
        std::env::vars_os().collect(),
        &surroundings.state,
    )?;
    Ok(Some(Arc::new(agents)))
}

/// An order to stop that SIGINT and SIGTERM give, and the signal that came.
fn cancel_on_signal() -> (Cancel, Arc<AtomicI32>) {
    use signal_hook::consts::{SIGINT, SIGTERM};
    let came = Arc::new(AtomicI32::new(0));
    let (order, receiver) = tokio::sync::watch::channel(false);
    if let Ok(mut signals) = signal_hook::iterator::Signals::new([SIGINT, SIGTERM]) {
        let came = Arc::clone(&came);
        let _ = std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
            for signal in signals.forever() {
                // The second signal ends the process at once; its supervisor ends what runs.
                if came.swap(signal, Ordering::AcqRel) != 0 || order.send(true).is_err() {
                    std::process::exit(128 + signal);
                }
            }
        });
    }
    (Cancel::new(receiver), came)
}
