//! WebSocket server: upgrades, pings, and the closing handshake.

mod frames;
mod handshake;
mod transport;

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::{StatusCode, Version, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use hyper_util::rt::TokioIo;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Utf8Bytes;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Message, Role, WebSocketConfig};

use crate::accept::ConnectionSlot;
use crate::auth::Credentials;
use crate::connection::{self, End, TextHandler};
use crate::lines::MAX_MESSAGE;
use crate::listen::ConnectionInfo;
use crate::peer::Peer;
use crate::stream::StreamLimits;
use frames::BoundedFrames;
use transport::{Socket, SocketTransport};

/// Time for the close frame to be sent and answered.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// Read buffer of each connection, also of an idle one.
const READ_BUFFER: usize = 8 * 1024;
/// Write buffer of the library.
const WRITE_BUFFER: usize = 64 * 1024;

/// Settings of WebSocket connections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebSocketOptions {
    /// Interval after which a silent peer is pinged. A peer that stays silent for as long again is disconnected.
    pub ping: Duration,
    /// Limits of each connection. Without an idle limit a peer may stay as long as it answers pings.
    pub limits: StreamLimits,
}

impl Default for WebSocketOptions {
    fn default() -> WebSocketOptions {
        let limits = StreamLimits { idle: None, max_message: MAX_MESSAGE, ..StreamLimits::socket() };
        WebSocketOptions { ping: Duration::from_secs(30), limits }
    }
}

/// A route that upgrades authenticated requests and serves them with `handler`.
pub fn route<H: TextHandler>(
    handler: H,
    credentials: Arc<Credentials>,
    options: WebSocketOptions,
) -> MethodRouter {
    get(upgrade::<H>).with_state(Arc::new(Endpoint { handler, credentials, options }))
}

/// Whether receiving failed because a message is longer than the limit of its connection. The connection can still be written to.
pub fn is_too_large(error: &axum::Error) -> bool {
    transport::is_capacity_error(Some(error))
}

struct Endpoint<H> {
    handler: H,
    credentials: Arc<Credentials>,
    options: WebSocketOptions,
}

async fn upgrade<H: TextHandler>(State(endpoint): State<Arc<Endpoint<H>>>, request: Request) -> Response {
    let (mut head, _body) = request.into_parts();
    let connection = head.extensions.remove::<ConnectionInfo>();
    let identity = match endpoint.credentials.identify(&head.headers, &head.uri, connection.as_ref()) {
        Ok(identity) => identity,
        Err(refused) => return refused.into_response(),
    };
    if !head.headers.contains_key(header::UPGRADE) && head.version < Version::HTTP_2 {
        // An ordinary GET: this path serves POST besides the upgrade.
        return (StatusCode::METHOD_NOT_ALLOWED, [(header::ALLOW, "POST")]).into_response();
    }
    let (response, upgrade) = match handshake::accept(&mut head) {
        Ok(accepted) => accepted,
        Err(refused) => return refused.into_response(),
    };
    let limit = endpoint.options.limits.max_message;
    let slot = connection.map_or_else(|| Arc::new(ConnectionSlot::uncounted()), |it| it.slot());
    let peer = Peer { transport: "websocket", identity };
    let config = WebSocketConfig::default()
        .max_message_size(Some(limit))
        .max_frame_size(Some(limit))
        .read_buffer_size(READ_BUFFER)
        .write_buffer_size(WRITE_BUFFER);
    tokio::spawn(async move {
        // A connection that ends before its upgrade has no peer.
        let Ok(upgraded) = upgrade.await else { return };
        let stream = BoundedFrames::new(TokioIo::new(upgraded), &endpoint.handler.bounds().unfinished, limit);
        let socket = WebSocketStream::from_raw_socket(stream, Role::Server, Some(config)).await;
        tokio::select! {
            biased;
            () = slot.abort.cancelled() => {}
            () = endpoint.serve_connection(&peer, socket, &slot) => {}
        }
    });
    response
}

impl<H: TextHandler> Endpoint<H> {
    async fn serve_connection(&self, peer: &Peer, socket: Socket, slot: &ConnectionSlot) {
        let Endpoint { handler, options, .. } = self;
        let mut transport = SocketTransport::new(socket, options.ping);
        let begin = |text: Utf8Bytes| {
            connection::holding_guard(slot.begin_work(), handler.begin(peer, Bytes::from(text)))
        };
        let served =
            connection::serve(&mut transport, handler.bounds(), &options.limits, &slot.stop, begin).await;
        let (code, reason) = match served {
            Ok(End::Finished) => (CloseCode::Normal, ""),
            Ok(End::Stopped) => (CloseCode::Away, H::STOP_REASON),
            Ok(End::Idle) => (CloseCode::Normal, "idle for too long"),
            Err(error) if transport::is_too_large(&error) => (CloseCode::Size, "the message is too long"),
            Err(error) if transport::is_exhausted(&error) => {
                (CloseCode::Again, "the memory for messages is exhausted; try again")
            }
            Err(error) if error.kind() == std::io::ErrorKind::TimedOut => {
                (CloseCode::Policy, "no sign of life")
            }
            Err(_) => (CloseCode::Protocol, ""),
        };
        let frame = CloseFrame { code, reason: reason.into() };
        let mut socket = transport.into_socket();
        // A peer that has closed already has its answer; one that does not read gets none.
        let _ = tokio::time::timeout(CLOSE_TIMEOUT, async {
            if socket.send(Message::Close(Some(frame))).await.is_ok() {
                // Closing a socket with unread input resets it, and the frame would be lost.
                while let Some(Ok(_)) = socket.next().await {}
            }
        })
        .await;
    }
}
