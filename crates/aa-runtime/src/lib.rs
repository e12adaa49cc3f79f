//! The `aa-runtime` program: serves an agent's Agent Assembly library on a Unix socket of the same machine.
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

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use proctor_clients::assembly::client::{Client, Options};
use proctor_clients::assembly::runtime::{RuntimeOptions, UnixSocket, serve};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::approvals::Approvals;
use self::decide::{Decider, Gateway};
use self::holder::Holders;
use self::operations::Operations;
use self::reports::{Buffer, Reports};
use self::rules::Rules;
use self::talk::say;

pub use self::settings::Settings;
pub use proctor_clients::assembly::runtime::Framing;

/// Where the specification puts the socket.
const BARE_SOCKET: &str = "/var/run/aa-runtime.sock";
/// What a query may take beyond the time that the gateway has: what to do without an answer is decided within it.
const MARGIN: Duration = Duration::from_secs(1);

/// How the socket is served.
pub struct Launch<'a> {
    /// The framing of its messages.
    pub framing: Framing,
    /// Its path; none: where libraries of that framing look.
    pub socket: Option<PathBuf>,
    /// Called once the socket accepts connections, with its path.
    pub ready: &'a dyn Fn(&Path),
}

/// Serves the socket until SIGINT or SIGTERM.
pub fn run(launch: &Launch<'_>, settings: Settings) -> Result<(), String> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.enable_all();
    if let Some(threads) = settings.worker_threads {
        builder.worker_threads(threads);
    }
    let runtime = builder.build().map_err(|error| format!("no threads: {error}"))?;
    let outcome = runtime.block_on(answer(launch, settings));
    // What is still running was given its time.
    runtime.shutdown_background();
    outcome
}

async fn answer(launch: &Launch<'_>, settings: Settings) -> Result<(), String> {
    let mut signals = Signals::catch()?;
    let path = socket(launch.socket.as_deref(), launch.framing, &settings);
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
        framing: launch.framing,
        max_connections: settings.max_connections,
        query_timeout: settings.timeout.saturating_add(MARGIN),
        grace: settings.shutdown,
        ..RuntimeOptions::new(settings.agent_id.clone())
    };
    let shutdown = settings.shutdown;
    let decider =
        Decider::new(settings, gateway, rules, operations, approvals, Arc::clone(&reports), holders);
    (launch.ready)(&path);
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
