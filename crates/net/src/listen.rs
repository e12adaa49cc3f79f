//! The HTTP/1 and HTTP/2 server that all network transports share.

mod activity;
#[cfg(all(unix, feature = "unix-socket"))]
mod authority;
mod user;

use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tower::Service;

use crate::accept::{AcceptLoop, ConnectionSet, ConnectionSlot};
use crate::deadline;
use crate::tls::ServerTls;
#[cfg(all(unix, feature = "unix-socket"))]
use crate::unix::{UnixSocket, may_connect};
use activity::{Activity, Due, ObservedStream, RequestGuard};
#[cfg(all(unix, feature = "unix-socket"))]
use authority::AuthorityFilter;

/// Time for a connection to end after an idle shutdown began.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);
/// Keep-alive of silent HTTP/2 peers: ping interval, and time for the answer.
const HTTP2_PING: Duration = Duration::from_secs(30);
const HTTP2_PONG: Duration = Duration::from_secs(20);

/// Longest head of an HTTP/1 request, which is also the size of the read buffer.
const MAX_HEAD: usize = 32 * 1024;
/// Flow control of HTTP/2: bytes that a peer may send before they are taken, for a stream and for all of a connection. They are not counted in the
/// budget of messages, because nothing has read them yet.
const STREAM_WINDOW: u32 = 64 * 1024;
const CONNECTION_WINDOW: u32 = 128 * 1024;
/// Streams of a connection at a time.
const MAX_STREAMS: u32 = 128;

/// Settings of a served port.
#[derive(Debug, Clone)]
pub struct ListenOptions {
    /// TLS settings; none: plain text.
    pub tls: Option<ServerTls>,
    /// Connections over this number are closed at once.
    pub max_connections: usize,
    /// Time for a client to send the head of a request.
    pub header_timeout: Duration,
    /// Time for the TLS handshake.
    pub handshake_timeout: Duration,
    /// Time that a connection is kept without a request. Longer than clients keep theirs, or they would now and then send into a
    /// connection that is being closed.
    pub idle: Duration,
    /// Time for requests in flight to finish when the server stops.
    pub grace: Duration,
}

impl Default for ListenOptions {
    fn default() -> ListenOptions {
        ListenOptions {
            tls: None,
            max_connections: 4096,
            header_timeout: Duration::from_secs(10),
            handshake_timeout: Duration::from_secs(10),
            idle: Duration::from_secs(180),
            grace: Duration::from_secs(15),
        }
    }
}

/// A connection's attributes; every request carries them in its extensions.
#[derive(Debug, Clone)]
pub struct ConnectionInfo {
    /// The remote address.
    pub peer_addr: SocketAddr,
    /// The subject of the client's certificate, if one was requested and verified.
    pub client_certificate_subject: Option<String>,
    end: OtherEnd,
    slot: Arc<ConnectionSlot>,
}

/// What is known of a connection's other end.
#[derive(Debug, Clone)]
enum OtherEnd {
    /// A process of this user.
    User(u32),
    /// A socket on this machine: the address that it is connected to, and its user once that was asked for.
    Socket(SocketAddr, Arc<OnceLock<Option<u32>>>),
    /// Nothing.
    Unknown,
}

impl ConnectionInfo {
    /// Attributes of a connection that [`serve`] did not accept.
    pub fn new(peer_addr: SocketAddr, client_certificate_subject: Option<String>) -> ConnectionInfo {
        let slot = Arc::new(ConnectionSlot::uncounted());
        ConnectionInfo { peer_addr, client_certificate_subject, end: OtherEnd::Unknown, slot }
    }

    /// The same, with the user at the other end.
    #[must_use]
    pub fn of_user(self, uid: u32) -> ConnectionInfo {
        ConnectionInfo { end: OtherEnd::User(uid), ..self }
    }

    /// The user at the other end of a connection within this machine; none if it cannot be found. The kernel is asked once for a connection.
    pub fn user(&self) -> Option<u32> {
        match &self.end {
            OtherEnd::User(uid) => Some(*uid),
            OtherEnd::Socket(local, user) => *user.get_or_init(|| user::of_peer(self.peer_addr, *local)),
            OtherEnd::Unknown => None,
        }
    }

    /// The connection's slot. Work that outlives its request holds it, so that a stop waits for it and the connection stays counted.
    pub fn slot(&self) -> Arc<ConnectionSlot> {
        Arc::clone(&self.slot)
    }
}

/// Serves HTTP/1 and HTTP/2 over TCP until `shutdown` is cancelled; then requests in flight are answered. Errors of connections, and
/// of accepting them, do not end it.
pub async fn serve(
    listener: TcpListener,
    app: Router,
    options: ListenOptions,
    shutdown: CancellationToken,
) -> io::Result<()> {
    let connections = ConnectionSet::new(options.max_connections, shutdown.clone());
    let shared = Arc::new(Shared::new(app, options));
    let mut accepting = AcceptLoop::new(|cx: &mut std::task::Context<'_>| listener.poll_accept(cx));
    while let Some((stream, peer_addr)) = accepting.next(&shutdown).await {
        let Some(slot) = connections.admit() else { continue };
        // Replies are small and waited for. A socket that cannot do this can still be served.
        let _ = stream.set_nodelay(true);
        tokio::spawn(Arc::clone(&shared).serve_connection(stream, peer_addr, slot));
    }
    drop(listener);
    connections.finish(shared.options.grace).await;
    Ok(())
}

/// Serves HTTP/1 and HTTP/2 on a Unix socket, to our own user and root, without TLS.
#[cfg(all(unix, feature = "unix-socket"))]
pub async fn serve_unix(
    socket: UnixSocket,
    app: Router,
    options: ListenOptions,
    shutdown: CancellationToken,
) -> io::Result<()> {
    let connections = ConnectionSet::new(options.max_connections, shutdown.clone());
    let shared = Arc::new(Shared::new(app, ListenOptions { tls: None, ..options }));
    let mut accepting = AcceptLoop::new(|cx: &mut std::task::Context<'_>| socket.poll_accept(cx));
    while let Some(stream) = accepting.next(&shutdown).await {
        let Some(slot) = connections.admit() else { continue };
        let Ok(caller) = stream.peer_cred() else { continue };
        if !may_connect(caller.uid()) {
            continue;
        }
        let peer_addr = SocketAddr::from(([127, 0, 0, 1], 0));
        let end = OtherEnd::User(caller.uid());
        let info = ConnectionInfo { peer_addr, client_certificate_subject: None, end, slot: Arc::new(slot) };
        let shared = Arc::clone(&shared);
        tokio::spawn(async move { shared.talk(AuthorityFilter::new(stream), info).await });
    }
    drop(socket);
    connections.finish(shared.options.grace).await;
    Ok(())
}

struct Shared {
    http: auto::Builder<TokioExecutor>,
    app: Router,
    options: ListenOptions,
}

impl Shared {
    fn new(app: Router, options: ListenOptions) -> Shared {
        let mut http = auto::Builder::new(TokioExecutor::new());
        // The library's header timeout would also end kept connections, which may be idle for longer.
        http.http1().timer(TokioTimer::new()).header_read_timeout(None).max_buf_size(MAX_HEAD);
        http.http2()
            .timer(TokioTimer::new())
            .keep_alive_interval(HTTP2_PING)
            .keep_alive_timeout(HTTP2_PONG)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_concurrent_streams(MAX_STREAMS);
        Shared { http, app, options }
    }

    async fn serve_connection(
        self: Arc<Self>,
        stream: TcpStream,
        peer_addr: SocketAddr,
        slot: ConnectionSlot,
    ) {
        let end = match stream.local_addr() {
            Ok(local) => OtherEnd::Socket(local, Arc::default()),
            Err(_) => OtherEnd::Unknown,
        };
        let mut info =
            ConnectionInfo { peer_addr, client_certificate_subject: None, end, slot: Arc::new(slot) };
        let Some(tls) = &self.options.tls else {
            return self.talk(stream, info).await;
        };
        let handshake = tokio::time::timeout(self.options.handshake_timeout, tls.acceptor().accept(stream));
        if let Ok(Ok(stream)) = handshake.await {
            let certificate = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
            info.client_certificate_subject =
                certificate.and_then(|certificate| ServerTls::subject(certificate));
            self.talk(stream, info).await;
        }
    }

    async fn talk<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
        &self,
        stream: S,
        info: ConnectionInfo,
    ) {
        let activity = Arc::new(Activity::new());
        let slot = info.slot();
        let service = {
            let (activity, app) = (Arc::clone(&activity), self.app.clone());
            hyper::service::service_fn(move |mut request: hyper::Request<Incoming>| {
                let guard = RequestGuard::new(&activity, &info.slot);
                request.extensions_mut().insert(info.clone());
                let answer = app.clone().call(Request::from(request));
                async move { answer.await.map(|response| response.map(|body| guard.around(body))) }
            })
        };
        let stream = TokioIo::new(ObservedStream::new(stream, Arc::clone(&activity)));
        let mut connection = pin!(self.http.serve_connection_with_upgrades(stream, service));
        let mut aborted = pin!(slot.abort.cancelled());
        let mut stopped = pin!(slot.stop.cancelled());
        let mut timer = pin!(deadline::unset());
        let mut shutdown_due: Option<Instant> = None;
        let mut stop_seen = false;
        poll_fn(|cx| {
            loop {
                // A broken connection has no peer to report the error to.
                if connection.as_mut().poll(cx).is_ready() || aborted.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(());
                }
                if !stop_seen && stopped.as_mut().poll(cx).is_ready() {
                    stop_seen = true;
                    connection.as_mut().graceful_shutdown();
                    continue;
                }
                let due = match shutdown_due {
                    Some(until) => Due::End(until),
                    None => activity.due(self.options.header_timeout, self.options.idle),
                };
                let (Due::Busy(at) | Due::Idle(at) | Due::End(at)) = due;
                if !deadline::has_passed(timer.as_mut(), at, cx) {
                    return Poll::Pending;
                }
                match due {
                    Due::Busy(_) => {}
                    Due::Idle(_) => {
                        shutdown_due = Some(Instant::now() + SHUTDOWN_TIMEOUT);
                        connection.as_mut().graceful_shutdown();
                    }
                    Due::End(_) => return Poll::Ready(()),
                }
            }
        })
        .await;
    }
}
