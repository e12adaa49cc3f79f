//! The accept loop that all network transports share.

mod activity;

use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
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

use crate::ahp::server::accept::{Accepting, Connections, Place};
use crate::ahp::server::alarm;
#[cfg(all(unix, feature = "unix-socket"))]
use crate::ahp::server::unix::{Listening, may_call};
use crate::tls::ServerTls;
use activity::{Activity, Counted, Due, Watched};

/// How long a connection has to end after it was asked to.
const LAST_WORDS: Duration = Duration::from_secs(10);
/// How often a silent HTTP/2 peer is asked whether it is there, and how long it has to say so.
const HTTP2_PING: Duration = Duration::from_secs(30);
const HTTP2_PONG: Duration = Duration::from_secs(20);

/// How a port is served.
#[derive(Debug, Clone)]
pub struct ListenOptions {
    /// TLS; none: plain text.
    pub tls: Option<ServerTls>,
    /// More connections than this are closed at once.
    pub max_connections: usize,
    /// How long a caller may take to send the head of a request.
    pub header_timeout: Duration,
    /// How long a caller may take to agree on TLS.
    pub handshake_timeout: Duration,
    /// How long a connection may be kept without a request. Longer than clients keep theirs, or they would now and then send into a
    /// connection that is being closed.
    pub idle: Duration,
    /// How long requests in flight have to finish when the server stops.
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

/// What is known of a connection; every request of it carries this in its extensions.
#[derive(Debug, Clone)]
pub struct ConnectionInfo {
    /// The address at the other end.
    pub peer_addr: SocketAddr,
    /// Whom the client's certificate is for, if one was asked for and verified.
    pub client_certificate_subject: Option<String>,
    place: Arc<Place>,
}

impl ConnectionInfo {
    /// For connections that [`serve`] did not accept.
    pub fn new(peer_addr: SocketAddr, client_certificate_subject: Option<String>) -> ConnectionInfo {
        ConnectionInfo { peer_addr, client_certificate_subject, place: Arc::new(Place::uncounted()) }
    }

    /// What outlives its request holds this, so that a stop waits for it and the connection stays counted.
    pub(crate) fn place(&self) -> Arc<Place> {
        Arc::clone(&self.place)
    }
}

/// Serves HTTP/1 and HTTP/2 until `shutdown` is cancelled; then requests in flight are answered. No error of a connection, and none
/// of accepting one, ends it.
pub async fn serve(
    listener: TcpListener,
    app: Router,
    options: ListenOptions,
    shutdown: CancellationToken,
) -> io::Result<()> {
    let connections = Connections::new(options.max_connections, shutdown.clone());
    let shared = Arc::new(Shared::new(app, options));
    let mut accepting = Accepting::new(|cx: &mut std::task::Context<'_>| listener.poll_accept(cx));
    while let Some((stream, peer_addr)) = accepting.next(&shutdown).await {
        let Some(place) = connections.admit() else { continue };
        // Replies are small and waited for. A socket that cannot do this can still be served.
        let _ = stream.set_nodelay(true);
        tokio::spawn(Arc::clone(&shared).converse(stream, peer_addr, place));
    }
    drop(listener);
    connections.finish(shared.options.grace).await;
    Ok(())
}

/// The same on a Unix socket, for this user and root; without TLS, since nobody is between.
#[cfg(all(unix, feature = "unix-socket"))]
pub async fn serve_unix(
    listening: Listening,
    app: Router,
    options: ListenOptions,
    shutdown: CancellationToken,
) -> io::Result<()> {
    let connections = Connections::new(options.max_connections, shutdown.clone());
    let shared = Arc::new(Shared::new(app, ListenOptions { tls: None, ..options }));
    let mut accepting = Accepting::new(|cx: &mut std::task::Context<'_>| listening.poll_accept(cx));
    while let Some(stream) = accepting.next(&shutdown).await {
        let Some(place) = connections.admit() else { continue };
        let Ok(caller) = stream.peer_cred() else { continue };
        if !may_call(caller.uid()) {
            continue;
        }
        let peer_addr = SocketAddr::from(([127, 0, 0, 1], 0));
        let info = ConnectionInfo { peer_addr, client_certificate_subject: None, place: Arc::new(place) };
        let shared = Arc::clone(&shared);
        tokio::spawn(async move { shared.talk(stream, info).await });
    }
    drop(listening);
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
        // Its own timeout for heads would also end kept connections, which may be idle for longer.
        http.http1().timer(TokioTimer::new()).header_read_timeout(None);
        http.http2().timer(TokioTimer::new()).keep_alive_interval(HTTP2_PING).keep_alive_timeout(HTTP2_PONG);
        Shared { http, app, options }
    }

    async fn converse(self: Arc<Self>, stream: TcpStream, peer_addr: SocketAddr, place: Place) {
        let mut info = ConnectionInfo { peer_addr, client_certificate_subject: None, place: Arc::new(place) };
        let Some(tls) = &self.options.tls else {
            return self.talk(stream, info).await;
        };
        let handshake = tokio::time::timeout(self.options.handshake_timeout, tls.acceptor().accept(stream));
        if let Ok(Ok(stream)) = handshake.await {
            let shown = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
            info.client_certificate_subject = shown.and_then(|certificate| ServerTls::subject(certificate));
            self.talk(stream, info).await;
        }
    }

    async fn talk<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
        &self,
        stream: S,
        info: ConnectionInfo,
    ) {
        let activity = Arc::new(Activity::new());
        let place = info.place();
        let service = {
            let (activity, app) = (Arc::clone(&activity), self.app.clone());
            hyper::service::service_fn(move |mut request: hyper::Request<Incoming>| {
                let counted = Counted::new(&activity);
                request.extensions_mut().insert(info.clone());
                let answer = app.clone().call(Request::from(request));
                async move { answer.await.map(|response| response.map(|body| counted.around(body))) }
            })
        };
        let stream = TokioIo::new(Watched::new(stream, Arc::clone(&activity)));
        let mut connection = pin!(self.http.serve_connection_with_upgrades(stream, service));
        let mut killed = pin!(place.kill.cancelled());
        let mut stopped = pin!(place.stop.cancelled());
        let mut alarm = pin!(alarm::unset());
        let mut last_words: Option<Instant> = None;
        let mut stop_seen = false;
        poll_fn(|cx| {
            loop {
                // A connection that breaks is over; there is nobody to tell.
                if connection.as_mut().poll(cx).is_ready() || killed.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(());
                }
                if !stop_seen && stopped.as_mut().poll(cx).is_ready() {
                    stop_seen = true;
                    connection.as_mut().graceful_shutdown();
                    continue;
                }
                let due = match last_words {
                    Some(until) => Due::End(until),
                    None => activity.due(self.options.header_timeout, self.options.idle),
                };
                let (Due::Busy(at) | Due::Idle(at) | Due::End(at)) = due;
                if !alarm::rings(alarm.as_mut(), at, cx) {
                    return Poll::Pending;
                }
                match due {
                    Due::Busy(_) => {}
                    Due::Idle(_) => {
                        last_words = Some(Instant::now() + LAST_WORDS);
                        connection.as_mut().graceful_shutdown();
                    }
                    Due::End(_) => return Poll::Ready(()),
                }
            }
        })
        .await;
    }
}
