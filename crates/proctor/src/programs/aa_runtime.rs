//! `aa-runtime`: flags and environment of the program that an agent's Agent Assembly library talks to.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use proctor_aa_runtime::{Framing, Launch, RunError, Settings, SettingsError};
use proctor_engine::state_dir::StateDir;

use super::attest_engine::variable;
use crate::config::{Config, ConfigError, Overrides};
use crate::failure::FAILED;
use crate::output;

/// Answers an agent's library on a local socket: asks the gateway, or a file of rules, and denies what nobody can decide.
///
/// Settings are variables: AA_AGENT_ID (required), AA_GATEWAY_ENDPOINT, AA_GATEWAY_FAIL_CLOSED, AA_GATEWAY_TIMEOUT_MS,
/// AA_GATEWAY_CREDENTIAL_TOKEN, AA_GATEWAY_AGENT_ID, AA_AGENT_TEAM_ID, AA_AGENT_ORG_ID, AA_IPC_MAX_CONNECTIONS, AA_POLICY_PATH,
/// AA_AUDIT_BUFFER_PATH, AA_PIPELINE_INPUT_BUFFER, AA_PIPELINE_BATCH_SIZE, AA_PIPELINE_FLUSH_INTERVAL_MS, AA_RUNTIME_WORKER_THREADS,
/// AA_RUNTIME_SHUTDOWN_TIMEOUT_SECS. Without AA_GATEWAY_ENDPOINT the gateway of the state directory
/// that PROCTOR_STATE or proctor.toml names is asked.
#[derive(Debug, Parser)]
#[command(name = "aa-runtime", version, about, disable_help_subcommand = true)]
struct Flags {
    /// What the bytes mean: `tagged` (released libraries), `tagged-s` (the first ones) or `bare` (the specification).
    #[arg(long, value_name = "FRAMING", default_value = "tagged")]
    framing: Framing,
    /// Where the socket is (default: /tmp/aa-runtime-AA_AGENT_ID.sock; for `bare`: /var/run/aa-runtime.sock).
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
}

/// Error of preparing or running the program.
#[derive(Debug, thiserror::Error)]
enum ProgramError {
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error("working directory: {0}")]
    WorkingDirectory(#[source] std::io::Error),
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Run(#[from] RunError),
}

/// Runs the program with what stands after its name.
pub fn run(arguments: &[OsString]) -> ExitCode {
    let flags: Flags = match super::flags("aa-runtime", arguments) {
        Ok(flags) => flags,
        Err(code) => return code,
    };
    let framing = flags.framing;
    // Scripts wait for this line.
    let ready = |path: &Path| {
        crate::logging::raw(&format!("aa-runtime listening on {} (framing {framing})", path.display()));
    };
    let launch = Launch { framing, socket: flags.socket, ready: &ready };
    let outcome = prepare().and_then(|settings| Ok(proctor_aa_runtime::run(&launch, settings)?));
    crate::logging::flush();
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            output::note_plain(&format!("aa-runtime: {problem}"));
            ExitCode::from(FAILED)
        }
    }
}

/// The settings, with the gateway of a state directory if none is named.
fn prepare() -> Result<Settings, ProgramError> {
    let mut settings = Settings::read(&variable)?;
    if !settings.unused.is_empty() {
        log::info!("not used by this program: {}", settings.unused.join(", "));
    }
    if settings.gateway.is_none() {
        settings.gateway = own_gateway()?;
    }
    if settings.token.is_some() && settings.gateway_agent_id.is_none() {
        log::info!(
            "commands to operations are not heard: AA_GATEWAY_CREDENTIAL_TOKEN needs AA_GATEWAY_AGENT_ID"
        );
    }
    Ok(settings)
}

/// The gateway of the state directory, if something names one.
fn own_gateway() -> Result<Option<String>, ProgramError> {
    let directory = std::env::current_dir().map_err(ProgramError::WorkingDirectory)?;
    let named = variable("PROCTOR_STATE").filter(|value| !value.is_empty()).map(PathBuf::from);
    let config = Config::load(&directory, &Overrides { state: named.clone(), ..Overrides::default() })?;
    if named.is_none() && !config.state_is_named {
        return Ok(None);
    }
    Ok(Some(format!("unix:{}", StateDir::new(&config.engine.state).assembly_socket().display())))
}
