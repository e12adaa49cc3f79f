//! `proctor serve`: all doors, until it is told to stop.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::http::StatusCode;
use proctor_clients::ahp::server::{grpc, http, websocket};
use proctor_clients::assembly::for_this_user;
use proctor_core::digest::Digest;
use proctor_core::json::Json;
use proctor_core::session::Caller;
use proctor_net::auth::{Credentials, QUIET, Refusals, may_listen};
use proctor_net::listen::{self, ListenOptions};
use proctor_net::tls::ServerTls;
use proctor_net::unix::{UnixOptions, UnixSocket};
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::Context;
use crate::access::{AHP, Access, Owner};
use crate::commands::follow::Followers;
use crate::config::{Config, TlsFiles};
use crate::failure::{Failure, Outcome};
use crate::output;
use proctor_door_assembly::{self, AssemblyDoor};
use proctor_engine::state_dir::StateDir;
use proctor_engine::{owner, policy_watch};

/// Bound addresses and sockets.
pub struct Bound {
    /// HTTP and WebSocket.
    pub http: SocketAddr,
    /// gRPC.
    pub grpc: SocketAddr,
    /// The Unix socket.
    pub socket: PathBuf,
    /// The Unix socket of Agent Assembly.
    pub assembly_socket: PathBuf,
}

pub(super) fn run(context: &Context) -> Outcome {
    let signal = until_stopped(&context.config, async |owner, stop| {
        let (bound, serving) = start(&context.config, owner, stop).await?;
        announce(context, &bound)?;
        Ok(serving)
    })?;
    Ok(u8::try_from(128 + signal).unwrap_or(1))
}

/// Owns the state directory, opens doors and serves until a signal; then drains requests, ledger and followers. Returns the signal.
pub fn until_stopped(
    config: &Config,
    open: impl AsyncFnOnce(&Owner, &CancellationToken) -> Result<Serving, Failure>,
) -> Result<i32, Failure> {
    let owner = own(config)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::from(error.to_string()))?;
    let stop = CancellationToken::new();
    let followers = Followers::start(config, &owner.engine)?;
    let outcome = runtime.block_on(async {
        let mut signals = StopSignals::catch()?;
        let serving = open(&owner, &stop).await?;
        let signal = signals.next().await;
        stop.cancel();
        serving.finished().await;
        Ok(signal)
    });
    owner::drain_commands();
    owner.engine.finish();
    followers.finish();
    // Blocked tasks must not delay the exit.
    runtime.shutdown_background();
    outcome
}

/// Becomes the owner of the state directory; a server cannot be a relay.
pub(super) fn own(config: &Config) -> Result<Owner, Failure> {
    let owner = match Access::open(config, AHP)? {
        Access::Owner(owner) => owner,
        Access::Relay(_) => {
            return Err(Failure::from(format!(
                "{} is owned by another process: stop that one, or use another `--state`",
                config.engine.state.display()
            )));
        }
    };
    for weakening in owner.engine.policy().weakenings() {
        log::info!("weaker than closed: {weakening}");
    }
    if let Some(path) = &config.engine.policy {
        policy_watch::start(path, &owner.engine, crate::allocator::give_back);
    }
    Ok(owner)
}

/// Doors that are open.
pub struct Serving {
    /// Links to sockets, to be removed in the end.
    links: Vec<PathBuf>,
    tasks: tokio::task::JoinSet<std::io::Result<()>>,
}

impl Serving {
    /// Waits until all are closed.
    pub async fn finished(mut self) {
        while let Some(ended) = self.tasks.join_next().await {
            if let Ok(Err(error)) = ended {
                log::info!("a door closed with an error: {error}");
            }
        }
        for link in &self.links {
            let _ = std::fs::remove_file(link);
        }
    }
}

/// Opens all doors.
pub(super) async fn start(
    config: &Config,
    owner: &Owner,
    stop: &CancellationToken,
) -> Result<(Bound, Serving), Failure> {
    let tls = config.tls.as_ref().map(read_tls).transpose()?;
    let refusals = refusals(owner);
    let credentials = Arc::new(credentials(config, tls.as_ref())?.with_refusals(Arc::clone(&refusals)));
    for address in [config.http, config.grpc] {
        may_listen(address, !credentials.is_empty()).map_err(|error| error.to_string())?;
    }
    let http = bind(config.http).await?;
    let grpc = bind(config.grpc).await?;
    let link = config.ahp.socket.clone().unwrap_or_else(|| config.engine.state.join("run").join("ahp.sock"));
    let (listening, ahp_link) = bind_socket(&link).await?;
    let assembly = assembly_door(config, owner)?;
    let (assembly_listening, assembly_link) = bind_socket(&assembly_socket(config)).await?;
    let bound = Bound {
        http: local_address(&http)?,
        grpc: local_address(&grpc)?,
        socket: listening.path().to_owned(),
        assembly_socket: assembly_listening.path().to_owned(),
    };
    let server = owner.ahp.server();
    let options = ListenOptions { tls, ..ListenOptions::default() };
    let engine = Arc::clone(&owner.engine);
    let health = axum::Router::new()
        .route("/healthz", axum::routing::get(move || std::future::ready(health(&engine))));
    let app = http::router(server.clone(), Arc::clone(&credentials))
        .merge(websocket::router(server.clone(), Arc::clone(&credentials)))
        .merge(health);
    let services = proctor_door_assembly::routes(&assembly);
    let mut calls = grpc::routes(server.clone(), credentials);
    match may_serve_agents(config.grpc, config, options.tls.as_ref()) {
        Ok(()) => {
            let own = for_callers(services.clone(), config, options.tls.as_ref(), &refusals);
            calls = calls.merge(own);
        }
        Err(problem) => log::info!("Agent Assembly is served on its Unix socket only: {problem}"),
    }
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(listen::serve(http, app, options.clone(), stop.clone()));
    tasks.spawn(listen::serve(grpc, calls, options.clone(), stop.clone()));
    tasks.spawn(listening.serve(server, UnixOptions::default(), stop.clone()));
    tasks.spawn(tell_refusals(refusals, stop.clone()));
    tasks.spawn(listen::serve_unix(assembly_listening, services, options, stop.clone()));
    watch_door(&assembly, stop);
    Ok((bound, Serving { links: ahp_link.into_iter().chain(assembly_link).collect(), tasks }))
}

/// Opens the doors of Agent Assembly alone, as its own gateway has them: an address, if there shall be one, and Unix sockets.
pub async fn start_gateway(
    config: &Config,
    has_address: bool,
    owner: &Owner,
    stop: &CancellationToken,
) -> Result<(Option<SocketAddr>, Serving), Failure> {
    let tls = config.tls.as_ref().map(read_tls).transpose()?;
    let grpc = if has_address {
        may_serve_agents(config.grpc, config, tls.as_ref())?;
        Some(bind(config.grpc).await?)
    } else {
        None
    };
    let address = grpc.as_ref().map(local_address).transpose()?;
    let assembly = assembly_door(config, owner)?;
    let services = proctor_door_assembly::routes(&assembly);
    let options = ListenOptions { tls, ..ListenOptions::default() };
    let mut tasks = tokio::task::JoinSet::new();
    let mut links = Vec::new();
    let usual = StateDir::new(&config.engine.state).assembly_socket();
    let named = config.assembly.socket.clone().filter(|named| *named != usual);
    for socket in std::iter::once(usual).chain(named) {
        let (listening, link) = bind_socket(&socket).await?;
        links.extend(link);
        tasks.spawn(listen::serve_unix(listening, services.clone(), options.clone(), stop.clone()));
    }
    if let Some(grpc) = grpc {
        let refusals = refusals(owner);
        let services = for_callers(services, config, options.tls.as_ref(), &refusals);
        tasks.spawn(listen::serve(grpc, services, options, stop.clone()));
        tasks.spawn(tell_refusals(refusals, stop.clone()));
    }
    watch_door(&assembly, stop);
    Ok((address, Serving { links, tasks }))
}

/// Agent Assembly's services for a TCP address. Its agents enrol themselves, so that only this user's may, unless the configuration opens
/// them to everybody or callers show certificates.
fn for_callers(
    services: axum::Router,
    config: &Config,
    tls: Option<&ServerTls>,
    refusals: &Arc<Refusals>,
) -> axum::Router {
    if config.assembly.open || tls.is_some_and(ServerTls::asks_for_certificates) {
        return services;
    }
    for_this_user(services, Arc::clone(refusals))
}

/// Refused callers as alarms; those that the ledger does not take now are counted as a gap.
fn refusals(owner: &Owner) -> Arc<Refusals> {
    let engine = Arc::clone(&owner.engine);
    Arc::new(Refusals::new(move |refusal| {
        let Ok(reservation) = engine.try_reserve() else {
            return engine.ledger().note_unrecorded_many(refusal.count);
        };
        let caller = Caller { principal: "anonymous".to_owned(), ..Caller::default() };
        let about = Json::object()
            .with("peer", refusal.peer.as_deref().unwrap_or("others"))
            .with("count", refusal.count);
        drop(engine.enqueue_refusal(reservation, &caller, "serve", "caller_refused", refusal.reason, &about));
    }))
}

/// Records what was counted since the last alarm, every minute and in the end.
async fn tell_refusals(refusals: Arc<Refusals>, stop: CancellationToken) -> std::io::Result<()> {
    while tokio::time::timeout(QUIET, stop.cancelled()).await.is_err() {
        refusals.tell_waiting(false);
    }
    refusals.tell_waiting(true);
    Ok(())
}

/// An address on which anyone who reaches it could register an agent.
#[derive(Debug, thiserror::Error)]
#[error(
    "`{0}` can be reached from other machines, and whoever reaches it can register an agent; set a client authority \
     (`tls.client_ca`), say `assembly.open = true` (to `aa-gateway` also AA_GATEWAY_OPEN=1), or listen on 127.0.0.1"
)]
struct UnrestrictedAddress(SocketAddr);

impl From<UnrestrictedAddress> for Failure {
    fn from(error: UnrestrictedAddress) -> Failure {
        Failure::from(error.to_string())
    }
}

/// Whether Agent Assembly may be served there. Its agents enrol themselves, so beyond this machine it is for those who show a certificate, unless
/// the configuration opens it to everybody.
fn may_serve_agents(
    address: SocketAddr,
    config: &Config,
    tls: Option<&ServerTls>,
) -> Result<(), UnrestrictedAddress> {
    let is_restricted = tls.is_some_and(ServerTls::asks_for_certificates);
    if is_restricted || config.assembly.open || address.ip().to_canonical().is_loopback() {
        return Ok(());
    }
    Err(UnrestrictedAddress(address))
}

fn assembly_socket(config: &Config) -> PathBuf {
    config.assembly.socket.clone().unwrap_or_else(|| StateDir::new(&config.engine.state).assembly_socket())
}

/// The door of Agent Assembly, with the people who may decide.
fn assembly_door(config: &Config, owner: &Owner) -> Result<AssemblyDoor, Failure> {
    let mut settings = config.assembly.door.clone();
    for token in config.ahp.tokens.iter().filter(|token| token.approver) {
        settings.approvers.push((token.name.clone(), Digest::from_bytes(token.digest()?)));
    }
    Ok(AssemblyDoor::new(Arc::clone(&owner.engine), settings))
}

/// Spawns the expiry task, and closes streams at shutdown.
fn watch_door(door: &AssemblyDoor, stop: &CancellationToken) {
    door.spawn_expiry();
    let (door, stop) = (door.clone(), stop.clone());
    tokio::spawn(async move {
        stop.cancelled().await;
        door.close();
    });
}

fn announce(context: &Context, bound: &Bound) -> Result<(), Failure> {
    let state = std::path::absolute(&context.config.engine.state)
        .unwrap_or_else(|_| context.config.engine.state.clone());
    if context.json {
        return output::data(
            Json::object()
                .with("http", bound.http.to_string())
                .with("grpc", bound.grpc.to_string())
                .with("ahp_socket", bound.socket.display().to_string())
                .with("assembly_socket", bound.assembly_socket.display().to_string())
                .with("state", state.display().to_string())
                .with("pid", std::process::id()),
        );
    }
    let scheme =
        |plain: &str| if context.config.tls.is_some() { format!("{plain}s") } else { plain.to_owned() };
    output::data(format!("AHP     {}://{}/ahp", scheme("http"), bound.http))?;
    output::data(format!("        {}://{}/ahp", scheme("ws"), bound.http))?;
    output::data(format!("        {}", bound.socket.display()))?;
    output::data(format!("gRPC    {}://{}", scheme("http"), bound.grpc))?;
    output::data(format!("        {}", bound.assembly_socket.display()))?;
    output::data(format!("state   {}", state.display()))
}

/// `/healthz`: 200 while records can be written. Without them every action is denied, so this is no state to send agents to.
fn health(engine: &proctor_engine::Engine) -> (StatusCode, String) {
    match engine.ledger().check() {
        Ok(()) => (StatusCode::OK, "ok\n".to_owned()),
        Err(problem) => (StatusCode::SERVICE_UNAVAILABLE, format!("{}\n", problem.cause())),
    }
}

async fn bind(address: SocketAddr) -> Result<TcpListener, Failure> {
    TcpListener::bind(address).await.map_err(|error| Failure::from(format!("{address}: {error}")))
}

fn local_address(listener: &TcpListener) -> Result<SocketAddr, Failure> {
    listener.local_addr().map_err(|error| Failure::from(error.to_string()))
}

/// Listens on a socket; a path that is too long for the system leads to one that is not, and is linked to it.
async fn bind_socket(link: &Path) -> Result<(UnixSocket, Option<PathBuf>), Failure> {
    let fail = |path: &Path, error: std::io::Error| Failure::io(path, &error);
    let path = owner::socket_path(link);
    let linked = std::path::absolute(link).unwrap_or_else(|_| link.to_owned()) != path;
    if let Some(folder) = path.parent() {
        if linked {
            proctor_system::private::create_folder(folder)?;
        } else {
            std::fs::create_dir_all(folder).map_err(|error| fail(folder, error))?;
        }
    }
    let listening = UnixSocket::bind(&path).await.map_err(|error| fail(&path, error))?;
    if linked {
        if let Some(folder) = link.parent() {
            std::fs::create_dir_all(folder).map_err(|error| fail(folder, error))?;
        }
        match std::fs::symlink_metadata(link) {
            Ok(found) if found.is_symlink() => {
                std::fs::remove_file(link).map_err(|error| fail(link, error))?;
            }
            Ok(_) => return Err(Failure::from(format!("{}: something else is there", link.display()))),
            Err(_) => {}
        }
        std::os::unix::fs::symlink(&path, link).map_err(|error| fail(link, error))?;
    }
    Ok((listening, linked.then(|| link.to_owned())))
}

fn read_tls(files: &TlsFiles) -> Result<ServerTls, Failure> {
    let read = |path: &Path| std::fs::read(path).map_err(|error| Failure::io(path, &error));
    let authority = files.client_ca.as_deref().map(read).transpose()?;
    ServerTls::from_pem(&read(&files.certificate)?, &read(&files.key)?, authority.as_deref())
        .map_err(|problem| Failure::from(format!("{}: {problem}", files.certificate.display())))
}

fn credentials(config: &Config, tls: Option<&ServerTls>) -> Result<Credentials, Failure> {
    let mut credentials = Credentials::none();
    let mut known = HashSet::new();
    for token in config.ahp.tokens.iter().filter(|token| !token.approver) {
        let digest = token.digest()?;
        // Who acts would be a guess.
        if !known.insert(digest) {
            return Err(Failure::from(format!("token `{}` has the secret of another", token.name)));
        }
        credentials = credentials.with_digest(token.name.as_str(), digest);
    }
    let asks = tls.is_some_and(ServerTls::asks_for_certificates);
    Ok(if asks { credentials.with_client_certificates() } else { credentials })
}

/// SIGINT and SIGTERM, caught from the moment that this is made.
pub struct StopSignals {
    interrupt: Signal,
    terminate: Signal,
}

impl StopSignals {
    /// Catches them from now on. Needs the runtime.
    pub fn catch() -> Result<StopSignals, Failure> {
        let listen = |kind: SignalKind| signal(kind).map_err(|error| Failure::from(error.to_string()));
        Ok(StopSignals {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
        })
    }

    /// Waits for one of them.
    pub async fn next(&mut self) -> i32 {
        tokio::select! {
            _ = self.interrupt.recv() => SignalKind::interrupt().as_raw_value(),
            _ = self.terminate.recv() => SignalKind::terminate().as_raw_value(),
        }
    }
}
