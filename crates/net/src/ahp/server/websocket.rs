//! WebSocket: one message a text message, replies in any order.

mod wire;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::extract::{FromRequestParts, Request, State};
use axum::http::{StatusCode, Version, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use proctor_wire::ahp::rpc;

use super::accept::Place;
use super::auth::Credentials;
use super::connection::{self, End, Work};
use super::{AhpServer, EventHandler, Peer, StreamLimits, safe};
use crate::lines::MAX_MESSAGE;
use crate::listen::ConnectionInfo;
use wire::SocketWire;

/// How long the last frame may take.
const FAREWELL: Duration = Duration::from_secs(1);
/// How much is read at once; every connection has this much memory, also when it is idle.
const READ_BUFFER: usize = 8 * 1024;
/// How much output the library holds back before it writes.
const WRITE_BUFFER: usize = 64 * 1024;

/// How WebSocket connections are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebSocketOptions {
    /// How often a silent peer is pinged. One that stays silent for as long again is given up.
    pub ping: Duration,
    /// What each connection may take. Without a limit of idle time a peer may stay as long as it answers pings.
    pub limits: StreamLimits,
}

impl Default for WebSocketOptions {
    fn default() -> WebSocketOptions {
        let limits = StreamLimits { idle: None, max_message: MAX_MESSAGE, ..StreamLimits::socket() };
        WebSocketOptions { ping: Duration::from_secs(30), limits }
    }
}

/// Upgrades on `/ahp` and `/ahp/ws`. Can be merged with [`super::http::router`].
pub fn router<H: EventHandler>(server: AhpServer<H>, credentials: Arc<Credentials>) -> Router {
    let route = route(server, credentials, WebSocketOptions::default());
    Router::new().route("/ahp", route.clone()).route("/ahp/ws", route)
}

/// Upgrades on any path, as the protocol's own server does it; for a port of its own.
pub fn router_for_any_path<H: EventHandler>(server: AhpServer<H>, credentials: Arc<Credentials>) -> Router {
    let route = route(server, credentials, WebSocketOptions::default());
    Router::new().route("/", route.clone()).route("/{*path}", route)
}

/// Upgrades, for a path of one's own.
pub fn route<H: EventHandler>(
    server: AhpServer<H>,
    credentials: Arc<Credentials>,
    options: WebSocketOptions,
) -> MethodRouter {
    get(upgrade::<H>).with_state(Arc::new(Door { server, credentials, options }))
}

struct Door<H> {
    server: AhpServer<H>,
    credentials: Arc<Credentials>,
    options: WebSocketOptions,
}

async fn upgrade<H: EventHandler>(State(door): State<Arc<Door<H>>>, request: Request) -> Response {
    let (mut head, _body) = request.into_parts();
    let connection = head.extensions.remove::<ConnectionInfo>();
    let identity = match door.credentials.identify(&head.headers, &head.uri, connection.as_ref()) {
        Ok(identity) => identity,
        Err(refused) => return refused.into_response(),
    };
    if !head.headers.contains_key(header::UPGRADE) && head.version < Version::HTTP_2 {
        // An ordinary GET: nothing is to be had here but by POST.
        return (StatusCode::METHOD_NOT_ALLOWED, [(header::ALLOW, "POST")]).into_response();
    }
    let upgrade = match WebSocketUpgrade::from_request_parts(&mut head, &()).await {
        Ok(upgrade) => upgrade,
        Err(no_upgrade) => return no_upgrade.into_response(),
    };
    let limit = door.options.limits.max_message;
    let place = connection.map_or_else(|| Arc::new(Place::uncounted()), |it| it.place());
    let peer = Peer { transport: "websocket", identity };
    upgrade
        .max_message_size(limit)
        .max_frame_size(limit)
        .read_buffer_size(READ_BUFFER)
        .write_buffer_size(WRITE_BUFFER)
        .on_upgrade(move |socket| async move {
            tokio::select! {
                biased;
                () = place.kill.cancelled() => {}
                () = door.converse(&peer, socket, &place) => {}
            }
        })
}

impl<H: EventHandler> Door<H> {
    async fn converse(&self, peer: &Peer, socket: WebSocket, place: &Place) {
        let server = &self.server;
        let mut wire = SocketWire::new(socket, self.options.ping);
        let begin = |text: axum::extract::ws::Utf8Bytes| match (
            rpc::read(text.as_bytes()),
            server.budget().for_work(text.len()),
        ) {
            (Ok(message), Some(share)) => Work::Later(server.handle_admitted(peer, message, share)),
            (Ok(message), None) => safe::overloaded(&message).map_or(Work::Nothing, Work::Now),
            (Err(unreadable), _) => Work::Now(server.refuse_unreadable(peer, &unreadable)),
        };
        let window = server.connection_window();
        let limits = &self.options.limits;
        let end = connection::serve(&mut wire, window, server.messages(), limits, &place.stop, begin).await;
        let (code, reason) = match end {
            Ok(End::Finished) => (close_code::NORMAL, ""),
            Ok(End::Stopped) => (close_code::AWAY, "the harness stops"),
            Ok(End::Idle) => (close_code::NORMAL, "idle for too long"),
            Err(error) if wire::is_too_large(&error) => (close_code::SIZE, "the message is too long"),
            Err(error) if error.kind() == std::io::ErrorKind::TimedOut => {
                (close_code::POLICY, "no sign of life")
            }
            Err(_) => (close_code::PROTOCOL, ""),
        };
        let frame = CloseFrame { code, reason: reason.into() };
        let mut socket = wire.into_socket();
        // A peer that has closed already has its answer; one that does not read gets none.
        let _ = tokio::time::timeout(FAREWELL, async {
            if socket.send(Message::Close(Some(frame))).await.is_ok() {
                // The frame arrives only if the connection is not torn down with something unread.
                while let Some(Ok(_)) = socket.recv().await {}
            }
        })
        .await;
    }
}
