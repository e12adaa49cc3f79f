//! WebSocket: requests, events and responses are text messages; one request at a time on each connection.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, WebSocketUpgrade, close_code};
use axum::extract::{FromRequestParts, Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use proctor_net::accept::ConnectionSlot;
use proctor_net::auth::Credentials;
use proctor_net::listen::ConnectionInfo;

use super::{Agent, AgentServer, Outgoing};

/// Time for the close frame to be sent and answered.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// Upgrades on any path, for [`proctor_net::listen::serve`].
pub fn router<A: Agent>(server: AgentServer<A>, credentials: Arc<Credentials>) -> Router {
    let route = any(upgrade::<A>).with_state(Arc::new(Endpoint { server, credentials }));
    Router::new().route("/", route.clone()).route("/{*path}", route)
}

struct Endpoint<A> {
    server: AgentServer<A>,
    credentials: Arc<Credentials>,
}

async fn upgrade<A: Agent>(State(endpoint): State<Arc<Endpoint<A>>>, request: Request) -> Response {
    let (mut head, _body) = request.into_parts();
    let connection = head.extensions.remove::<ConnectionInfo>();
    if let Err(refused) = endpoint.credentials.identify(&head.headers, &head.uri, connection.as_ref()) {
        return refused.into_response();
    }
    let upgrade = match WebSocketUpgrade::from_request_parts(&mut head, &()).await {
        Ok(upgrade) => upgrade,
        Err(no_upgrade) => return no_upgrade.into_response(),
    };
    let slot = connection.map_or_else(|| Arc::new(ConnectionSlot::uncounted()), |it| it.slot());
    let limit = endpoint.server.inner.max_request;
    upgrade.max_message_size(limit).max_frame_size(limit).on_upgrade(move |socket| async move {
        let mut connection = Connection { socket, next: None };
        let ended = tokio::select! {
            biased;
            () = slot.stop.cancelled() => End::Stopped,
            ended = connection.serve(&endpoint.server) => ended,
        };
        connection.close(ended).await;
    })
}

/// The reason of the end of a connection.
enum End {
    Finished,
    Stopped,
    TooLarge,
}

struct Connection {
    socket: WebSocket,
    /// A request that came while another one was executed.
    next: Option<Utf8Bytes>,
}

/// Something that arrived.
enum Input {
    Text(Utf8Bytes),
    Other,
    End(End),
}

impl Connection {
    async fn serve<A: Agent>(&mut self, server: &AgentServer<A>) -> End {
        loop {
            let text = match self.next.take() {
                Some(text) => text,
                None => match self.receive().await {
                    Input::Text(text) => text,
                    Input::Other => continue,
                    Input::End(End::TooLarge) => {
                        // Sent before the close frame; a caller that has gone away gets neither.
                        let _ = self.send(server.too_large().response).await;
                        return End::TooLarge;
                    }
                    Input::End(end) => return end,
                },
            };
            if let Err(end) = self.execute(server, &text).await {
                return end;
            }
        }
    }

    /// Executes a request. The caller is listened to meanwhile: when it goes away, the execution is dropped.
    async fn execute<A: Agent>(&mut self, server: &AgentServer<A>, text: &str) -> Result<(), End> {
        let mut execution = match server.begin(text.as_bytes()) {
            Ok(execution) => execution,
            Err(refusal) => return self.send(refusal.response).await,
        };
        loop {
            let message = tokio::select! {
                biased;
                message = execution.next() => message,
                // One request is held back; then nothing is read, and the caller waits.
                input = self.receive(), if self.next.is_none() => {
                    match input {
                        Input::Text(text) => self.next = Some(text),
                        Input::Other => {}
                        Input::End(end) => return Err(end),
                    }
                    continue;
                }
            };
            match message {
                Some(Outgoing::Event(text)) => self.send(text).await?,
                Some(Outgoing::Response(text)) => return self.send(text).await,
                None => return Ok(()),
            }
        }
    }

    async fn receive(&mut self) -> Input {
        match self.socket.recv().await {
            Some(Ok(Message::Text(text))) => Input::Text(text),
            Some(Ok(Message::Binary(_) | Message::Ping(_) | Message::Pong(_))) => Input::Other,
            Some(Err(error)) if proctor_net::websocket::server::is_too_large(&error) => {
                Input::End(End::TooLarge)
            }
            Some(Ok(Message::Close(_)) | Err(_)) | None => Input::End(End::Finished),
        }
    }

    async fn send(&mut self, text: String) -> Result<(), End> {
        self.socket.send(Message::Text(text.into())).await.map_err(|_| End::Finished)
    }

    async fn close(mut self, end: End) {
        let (code, reason) = match end {
            End::Finished => (close_code::NORMAL, ""),
            End::Stopped => (close_code::AWAY, "the agent stops"),
            End::TooLarge => (close_code::SIZE, "the request is too long"),
        };
        let frame = CloseFrame { code, reason: reason.into() };
        let _ = tokio::time::timeout(CLOSE_TIMEOUT, async {
            if self.socket.send(Message::Close(Some(frame))).await.is_ok() {
                // Closing a socket with unread input resets it, and the frame would be lost.
                while let Some(Ok(_)) = self.socket.recv().await {}
            }
        })
        .await;
    }
}
