//! The `aa-runtime` program: serves an agent's Agent Assembly library on a Unix socket of the same machine.
//!
//! Queries are decided by the gateway or by a rules file; undecidable ones are denied.

mod approvals;
mod decide;
mod metrics;
mod operations;
mod outage_log;
mod reports;
mod rules;
mod settings;
mod token_owner;

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use proctor_clients::assembly::client::{Client, ClientError, Options};
use proctor_clients::assembly::runtime::{RuntimeOptions, UnixSocket, serve};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::approvals::Approvals;
use self::decide::{Decider, Gateway, Parts};
use self::metrics::Metrics;
use self::operations::Operations;
use self::reports::{Buffer, Reports};
use self::rules::Rules;
use self::token_owner::TokenOwner;

pub use self::reports::OpenBufferError;
pub use self::rules::{LoadRulesError, ParseRulesError};
pub use self::settings::{Settings, SettingsError};
pub use proctor_clients::assembly::runtime::Framing;

/// Default socket path of the bare framing, from the specification.
const BARE_SOCKET: &str = "/var/run/aa-runtime.sock";
/// Time that a query may take beyond the gateway timeout, for the decision without the gateway.
const MARGIN: Duration = Duration::from_secs(1);

/// Parameters of the socket.
pub struct Launch<'a> {
    /// Framing of its messages.
    pub framing: Framing,
    /// Path of the socket; `None` uses the framing's default.
    pub socket: Option<PathBuf>,
    /// Called once the socket accepts connections, with its path.
    pub ready: &'a dyn Fn(&Path),
}

/// Error of starting or running the runtime.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The worker threads cannot be started.
    #[error("no threads: {0}")]
    Threads(#[source] io::Error),
    /// The signal handlers cannot be installed.
    #[error("signals: {0}")]
    Signals(#[source] io::Error),
    /// The gateway's endpoint is not valid.
    #[error(transparent)]
    Gateway(#[from] ClientError),
    /// The rules file is not valid.
    #[error(transparent)]
    Rules(#[from] LoadRulesError),
    /// The file for undelivered events cannot be used.
    #[error(transparent)]
    Buffer(#[from] OpenBufferError),
    /// The address of the metrics cannot be bound.
    #[error("AA_METRICS_ADDR {address}: {source}")]
    Metrics {
        /// The address.
        address: SocketAddr,
        /// The operating system's error.
        source: io::Error,
    },
    /// The socket cannot be bound.
    #[error("{0}")]
    Socket(#[source] io::Error),
}

/// Serves the socket until SIGINT or SIGTERM.
pub fn run(launch: &Launch<'_>, settings: Settings) -> Result<(), RunError> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.enable_all();
    if let Some(threads) = settings.worker_threads {
        builder.worker_threads(threads);
    }
    let runtime = builder.build().map_err(RunError::Threads)?;
    let outcome = runtime.block_on(answer(launch, settings));
    // Tasks that still run had the shutdown timeout.
    runtime.shutdown_background();
    outcome
}

async fn answer(launch: &Launch<'_>, settings: Settings) -> Result<(), RunError> {
    let mut signals = Signals::catch()?;
    let path = socket(launch.socket.as_deref(), launch.framing, &settings);
    let gateway = settings.gateway.as_deref().map(|endpoint| gateway(endpoint, &settings)).transpose()?;
    // A fail-closed gateway never falls back to the rules.
    let rules = match &gateway {
        Some(_) if settings.fail_closed => Rules::unread(),
        Some(_) => Rules::load(settings.policy.as_deref())?,
        None => Rules::load_alone(settings.policy.as_deref())?,
    };
    let stop = CancellationToken::new();
    let operations = Arc::new(Operations::new(settings.names()));
    let approvals = Arc::new(Approvals::new());
    let owner = Arc::new(TokenOwner::new(settings.token.is_some().then(|| settings.agent())));
    if settings.buffer.is_some() && gateway.is_none() {
        log::info!("AA_AUDIT_BUFFER_PATH is not used: there is no gateway to deliver to");
    }
    let buffer = settings.buffer.as_deref().filter(|_| gateway.is_some()).map(Buffer::open).transpose()?;
    let metrics = Arc::new(Metrics::default());
    let reports = Reports::new(settings.reports, Arc::clone(&owner), buffer).counted_by(Arc::clone(&metrics));
    let reports = Arc::new(reports);
    let reporting = gateway.clone().map(|Gateway { reports: client, .. }| {
        // Without a configured token the runtime learns one, with its owner, from queries.
        if settings.token.is_none() || settings.has_pair() {
            tokio::spawn(Arc::clone(&operations).follow(client.clone(), owner.subscribe()));
        }
        let name = settings.agent_id.clone();
        tokio::spawn(Arc::clone(&approvals).follow(client.clone(), name, owner.subscribe()));
        tokio::spawn(Arc::clone(&reports).deliver(client))
    });
    if let Some(address) = settings.metrics {
        serve_metrics(address, &metrics, &reports, &stop).await?;
    }
    let listener = UnixSocket::bind(&path).await.map_err(RunError::Socket)?;
    let options = RuntimeOptions {
        framing: launch.framing,
        max_connections: settings.max_connections,
        query_timeout: settings.timeout.saturating_add(MARGIN),
        grace: settings.shutdown,
        ..RuntimeOptions::new(settings.agent_id.clone())
    };
    let shutdown = settings.shutdown;
    let parts = Parts { rules, operations, approvals, reports: Arc::clone(&reports), owner, metrics };
    let decider = Decider::new(settings, gateway, parts);
    (launch.ready)(&path);
    decider.log_decision_source();

    let serving = tokio::spawn(serve(listener, options, decider, stop.clone()));
    let by = signals.next().await;
    log::info!("{by}: no more connections; what is in flight is answered");
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
        again = signals.next() => log::info!("{again} again: ending at once"),
    }
    if let Some(left) = reports.undelivered() {
        log::info!("{left}");
    }
    Ok(())
}

/// Starts the endpoint of the metrics. It ends with the socket.
async fn serve_metrics(
    address: SocketAddr,
    metrics: &Arc<Metrics>,
    reports: &Arc<Reports>,
    stop: &CancellationToken,
) -> Result<(), RunError> {
    let failed = |source| RunError::Metrics { address, source };
    let listener = metrics::bind(address).await.map_err(failed)?;
    log::info!("metrics at http://{}/metrics", listener.local_addr().map_err(failed)?);
    let reports = Arc::clone(reports);
    tokio::spawn(Arc::clone(metrics).serve(listener, move || reports.waiting(), stop.clone()));
    Ok(())
}

/// Path of the socket: the given one, or the default of the framing.
fn socket(named: Option<&Path>, framing: Framing, settings: &Settings) -> PathBuf {
    match (named, framing) {
        (Some(path), _) => path.to_owned(),
        (None, Framing::Bare) => PathBuf::from(BARE_SOCKET),
        (None, Framing::Tagged | Framing::TaggedS) => settings.default_socket(),
    }
}

fn gateway(endpoint: &str, settings: &Settings) -> Result<Gateway, ClientError> {
    let client = || {
        let options = Options {
            connect_timeout: settings.timeout,
            call_timeout: settings.timeout,
            ..Options::default()
        };
        let client = Client::connect_later(endpoint, options)?;
        client.set_token(settings.token.clone());
        Ok::<_, ClientError>(client)
    };
    Ok(Gateway { checks: client()?, reports: client()? })
}

/// Handlers of SIGINT and SIGTERM, active from construction on.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn catch() -> Result<Signals, RunError> {
        let listen = |kind: SignalKind| signal(kind).map_err(RunError::Signals);
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
        for (framing, named, path) in [
            (Framing::Tagged, None, "/tmp/aa-runtime-agent-001.sock"),
            (Framing::TaggedS, None, "/tmp/aa-runtime-agent-001.sock"),
            (Framing::Bare, None, "/var/run/aa-runtime.sock"),
            (Framing::Bare, Some("/run/x.sock"), "/run/x.sock"),
            (Framing::Tagged, Some("x.sock"), "x.sock"),
        ] {
            assert_eq!(socket(named.map(Path::new), framing, &settings), Path::new(path), "{framing}");
        }
    }
}
