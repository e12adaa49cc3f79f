//! HTTP: one message a `POST`.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, post};
use proctor_net::auth::Credentials;
use proctor_net::http::server::{json_response, read_json_body};
use proctor_net::listen::ConnectionInfo;
use proctor_wire::ahp::rpc::{self, Id, Message, PARSE_ERROR};

pub use proctor_net::http::server::MAX_BODY;

use super::{AhpServer, EventHandler, Peer, safe};

/// `POST /ahp`. Can be merged with the WebSocket router.
pub fn router<H: EventHandler>(server: AhpServer<H>, credentials: Arc<Credentials>) -> Router {
    Router::new().route("/ahp", route(server, credentials))
}

/// `POST` for a path of one's own.
pub fn route<H: EventHandler>(server: AhpServer<H>, credentials: Arc<Credentials>) -> MethodRouter {
    post(handle::<H>).with_state(Arc::new(Endpoint { server, credentials }))
}

struct Endpoint<H> {
    server: AhpServer<H>,
    credentials: Arc<Credentials>,
}

async fn handle<H: EventHandler>(State(endpoint): State<Arc<Endpoint<H>>>, request: Request) -> Response {
    let (mut head, body) = request.into_parts();
    let connection = head.extensions.remove::<ConnectionInfo>();
    let identity = match endpoint.credentials.identify(&head.headers, &head.uri, connection.as_ref()) {
        Ok(identity) => identity,
        Err(refused) => return refused.into_response(),
    };
    let server = &endpoint.server;
    let (unfinished, memory) = (&server.inner.bounds.unfinished, &server.inner.bounds.memory);
    let patience = server.inner.answer_within;
    let (text, reading) = match read_json_body(&head.headers, body, unfinished, patience).await {
        Ok(read) => read,
        Err(error) => return error.into_response(),
    };
    let peer = Peer { transport: "http", identity };
    match rpc::read(&text) {
        Ok(Message::Notification { method, params }) => {
            let slot = connection.map(|it| it.slot());
            match server.take_notification(peer, method, params, slot).await {
                Ok(()) => StatusCode::NO_CONTENT.into_response(),
                Err(error) => json_response(StatusCode::OK, rpc::refuse(&Id::from(""), &error)),
            }
        }
        Ok(request) => {
            let length = text.len();
            // Before handling: the text and its memory are needed no longer.
            drop((text, reading));
            let reply = match memory.try_reserve_handling(length) {
                Some(reservation) => server.handle_admitted(&peer, request, reservation).await,
                None => safe::overloaded(&request),
            };
            json_response(StatusCode::OK, reply.unwrap_or_default())
        }
        Err(unreadable) => {
            let status = match unreadable.error.code {
                PARSE_ERROR => StatusCode::BAD_REQUEST,
                _ => StatusCode::OK,
            };
            json_response(status, server.refuse_unreadable(&peer, &unreadable))
        }
    }
}
