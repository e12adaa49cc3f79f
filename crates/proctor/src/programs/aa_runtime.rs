//! `aa-runtime`: what an agent's Agent Assembly library asks, on a socket of the same machine.
//!
//! Queries go to the gateway, or to a file of rules; what nobody can decide is denied.

mod approvals;
mod decide;
mod holder;
mod operations;
mod reports;
mod rules;
mod settings;
mod talk;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use proctor_clients::assembly::client::{Client, Options};
use proctor_clients::assembly::runtime::{Framing, RuntimeOptions, UnixSocket, serve};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::approvals::Approvals;
use self::decide::{Decider, Gateway};
use self::holder::Holders;
use self::operations::Operations;
use self::reports::{Buffer, Reports};
use self::rules::Rules;
use self::settings::Settings;
use self::talk::say;
use crate::config::{Config, Overrides};
use crate::failure::FAILED;
use crate::output;
use crate::programs::attest_engine::variable;
use crate::state_dir::StateDir;

/// Where the specification puts the socket.
const BARE_SOCKET: &str = "/var/run/aa-runtime.sock";
/// What a query may take beyond the time that the gateway has: what to do without an answer is decided within it.
const MARGIN: Duration = Duration::from_secs(1);

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

/// Runs the program with what stands after its name.
pub fn run(arguments: &[OsString]) -> ExitCode {
    let flags: Flags = match super::flags("aa-runtime", arguments) {
        Ok(flags) => flags,
        Err(code) => return code,
    };
    let outcome = prepare().and_then(|settings| start(flags, settings));
    crate::log::flush();
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            output::note_plain(&format!("aa-runtime: {problem}"));
            ExitCode::from(FAILED)
        }
    }
}

/// The settings, with the gateway of a state directory if none is named.
fn prepare() -> Result<Settings, String> {
    let mut settings = Settings::read(&variable)?;
    if !settings.unused.is_empty() {
        say(&format!("not used by this program: {}", settings.unused.join(", ")));
    }
    if settings.gateway.is_none() {
        settings.gateway = own_gateway()?;
    }
    if settings.token.is_some() && settings.gateway_agent_id.is_none() {
        say("commands to operations are not heard: AA_GATEWAY_CREDENTIAL_TOKEN needs AA_GATEWAY_AGENT_ID");
    }
    Ok(settings)
}

/// The gateway of the state directory, if something names one.
fn own_gateway() -> Result<Option<String>, String> {
    let directory = std::env::current_dir().map_err(|error| format!("working directory: {error}"))?;
    let named = variable("PROCTOR_STATE").filter(|value| !value.is_empty()).map(PathBuf::from);
    let config = Config::load(&directory, &Overrides { state: named.clone(), ..Overrides::default() })?;
    if named.is_none() && !config.state_is_named {
        return Ok(None);
    }
    Ok(Some(format!("unix:{}", StateDir::new(&config.state).assembly_socket().display())))
}

fn start(flags: Flags, settings: Settings) -> Result<(), String> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.enable_all();
    if let Some(threads) = settings.worker_threads {
        builder.worker_threads(threads);
    }
    let runtime = builder.build().map_err(|error| format!("no threads: {error}"))?;
    let outcome = runtime.block_on(answer(flags, settings));
    // What is still running was given its time.
    runtime.shutdown_background();
    outcome
}

async fn answer(flags: Flags, settings: Settings) -> Result<(), String> {
    let mut signals = Signals::catch()?;
    let path = socket(flags.socket.as_deref(), flags.framing, &settings);
    let gateway = settings.gateway.as_deref().map(|endpoint| gateway(endpoint, &settings)).transpose()?;
    // With a gateway that is never done without, the rules would never be asked.
    let rules = if gateway.is_some() && settings.fail_closed {
        Rules::unread()
    } else {
        Rules::load(settings.policy.as_deref())?
    };
    let stop = CancellationToken::new();
    let operations = Arc::new(Operations::new(settings.names()));
    let approvals = Arc::new(Approvals::new());
    let holders = Arc::new(Holders::new(settings.token.is_some().then(|| settings.agent())));
    if settings.buffer.is_some() && gateway.is_none() {
        say("AA_AUDIT_BUFFER_PATH is not used: there is no gateway to deliver to");
    }
    let buffer = settings.buffer.as_deref().filter(|_| gateway.is_some()).map(Buffer::open).transpose()?;
    let reports = Arc::new(Reports::new(settings.reports, Arc::clone(&holders), buffer));
    let reporting = gateway.clone().map(|Gateway { reports: client, .. }| {
        // Without a token of its own the runtime learns one, with its holder, from queries.
        if settings.token.is_none() || settings.has_pair() {
            tokio::spawn(Arc::clone(&operations).follow(client.clone(), holders.subscribe()));
        }
        let name = settings.agent_id.clone();
        tokio::spawn(Arc::clone(&approvals).follow(client.clone(), name, holders.subscribe()));
        tokio::spawn(Arc::clone(&reports).deliver(client))
    });
    let listener = UnixSocket::bind(&path).await.map_err(|error| error.to_string())?;
    let options = RuntimeOptions {
        framing: flags.framing,
        max_connections: settings.max_connections,
        query_timeout: settings.timeout.saturating_add(MARGIN),
        grace: settings.shutdown,
        ..RuntimeOptions::new(settings.agent_id.clone())
    };
    let shutdown = settings.shutdown;
    let decider =
        Decider::new(settings, gateway, rules, operations, approvals, Arc::clone(&reports), holders);
    // Scripts wait for this line.
    crate::log::raw(&format!("aa-runtime listening on {} (framing {})", path.display(), flags.framing));
    decider.say_who_decides();

    let serving = tokio::spawn(serve(listener, options, decider, stop.clone()));
    let by = signals.next().await;
    say(&format!("{by}: no more connections; what is in flight is answered"));
    stop.cancel();
    let deadline = Instant::now() + shutdown;
    let ending = async {
        let _ = serving.await;
        reports.close(deadline);
        if let Some(reporting) = reporting {
            let _ = tokio::time::timeout_at(deadline, reporting).await;
        }
    };
    tokio::select! {
        () = ending => {}
        again = signals.next() => say(&format!("{again} again: ending at once")),
    }
    if let Some(left) = reports.undelivered() {
        say(&left);
    }
    Ok(())
}

/// Where libraries look for the socket.
fn socket(named: Option<&Path>, framing: Framing, settings: &Settings) -> PathBuf {
    match (named, framing) {
        (Some(path), _) => path.to_owned(),
        (None, Framing::Bare) => PathBuf::from(BARE_SOCKET),
        (None, Framing::Tagged | Framing::TaggedS) => settings.default_socket(),
    }
}

fn gateway(endpoint: &str, settings: &Settings) -> Result<Gateway, String> {
    let client = || {
        let options = Options {
            connect_timeout: settings.timeout,
            call_timeout: settings.timeout,
            ..Options::default()
        };
        let client = Client::connect_later(endpoint, options).map_err(|error| error.to_string())?;
        client.set_token(settings.token.clone());
        Ok::<_, String>(client)
    };
    Ok(Gateway { checks: client()?, reports: client()? })
}

/// SIGINT and SIGTERM, caught from the moment that this is made.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn catch() -> Result<Signals, String> {
        let listen = |kind: SignalKind| signal(kind).map_err(|error| format!("signals: {error}"));
        Ok(Signals {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
        })
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.terminate.recv() => "SIGTERM",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_socket_is_where_libraries_of_the_framing_look() {
        let settings =
            Settings::read(&|name| (name == "AA_AGENT_ID").then(|| "agent-001".to_owned())).unwrap();
        for (arguments, path) in [
            (&[][..], "/tmp/aa-runtime-agent-001.sock"),
            (&["--framing", "tagged"], "/tmp/aa-runtime-agent-001.sock"),
            (&["--framing", "tagged-s"], "/tmp/aa-runtime-agent-001.sock"),
            (&["--framing", "bare"], "/var/run/aa-runtime.sock"),
            (&["--framing", "bare", "--socket", "/run/x.sock"], "/run/x.sock"),
            (&["--socket", "x.sock"], "x.sock"),
        ] {
            let flags = Flags::try_parse_from([&["aa-runtime"], arguments].concat()).unwrap();
            let found = socket(flags.socket.as_deref(), flags.framing, &settings);
            assert_eq!(found, Path::new(path), "{arguments:?}");
        }
    }
}
