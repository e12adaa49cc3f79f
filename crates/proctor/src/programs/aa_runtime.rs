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

/// Environment variables, as `--help` lists them.
const VARIABLES: &str = "\
Environment:
  AA_AGENT_ID                       agent that this runtime serves (required)
  AA_AGENT_TEAM_ID, AA_AGENT_ORG_ID team and organisation of the agent
  AA_GATEWAY_ENDPOINT               gateway: http://…, https://… or unix:PATH. Without it, the gateway of
                                    the state directory that PROCTOR_STATE or proctor.toml names
  AA_GATEWAY_TIMEOUT_MS             timeout of connecting to the gateway and of each call (default: 5000)
  AA_GATEWAY_FAIL_CLOSED            deny while the gateway is unreachable (default: true); with `false` the
                                    rules of AA_POLICY_PATH decide
  AA_GATEWAY_CREDENTIAL_TOKEN       token for queries that carry none
  AA_GATEWAY_AGENT_ID               agent id that the token was issued to; needed for operation commands
  AA_POLICY_PATH                    file of local rules (default: /etc/aa/policy.toml). Empty: no rules; without a
                                    gateway every action is then ALLOWED
  AA_AUDIT_BUFFER_PATH              file or folder that keeps reported events until the gateway has them
  AA_IPC_MAX_CONNECTIONS            concurrent connections to the socket (default: 64)
  AA_PIPELINE_INPUT_BUFFER          events that wait in memory; the oldest are dropped (default: 10000)
  AA_PIPELINE_BATCH_SIZE            events of one report to the gateway (default: 100)
  AA_PIPELINE_FLUSH_INTERVAL_MS     longest wait before a report is sent (default: 100)
  AA_RUNTIME_WORKER_THREADS         worker threads (default: 0, one for each core)
  AA_RUNTIME_SHUTDOWN_TIMEOUT_SECS  timeout of a graceful shutdown (default: 3)
  AA_METRICS_ADDR                   address of Prometheus metrics, at /metrics (default: none)
  AA_METRICS_ALLOW_REMOTE           1: AA_METRICS_ADDR may be another address than one of the loopback";

/// Serves the Unix socket that an agent's Agent Assembly library connects to.
///
/// Each query is decided by the gateway, or by a file of local rules. A query that neither can decide is denied.
#[derive(Debug, Parser)]
#[command(name = "aa-runtime", version, about, disable_help_subcommand = true, after_long_help = VARIABLES)]
struct Flags {
    /// Frame format: `tagged` (released libraries, with a handshake), `tagged-s` (first releases, without one) or `bare` (the
    /// specification's plain frames).
    #[arg(long, value_name = "FRAMING", default_value = "tagged")]
    framing: Framing,
    /// Unix socket to listen on (default: /tmp/aa-runtime-AA_AGENT_ID.sock; with `bare` frames: /var/run/aa-runtime.sock).
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

/// Runs the program with the arguments after its name.
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

/// The gateway of the state directory, if one is named.
fn own_gateway() -> Result<Option<String>, ProgramError> {
    let directory = std::env::current_dir().map_err(ProgramError::WorkingDirectory)?;
    let named = variable("PROCTOR_STATE").filter(|value| !value.is_empty()).map(PathBuf::from);
    let config = Config::load(&directory, &Overrides { state: named.clone(), ..Overrides::default() })?;
    if named.is_none() && !config.state_is_named {
        return Ok(None);
    }
    Ok(Some(format!("unix:{}", StateDir::new(&config.engine.state).assembly_socket().display())))
}
