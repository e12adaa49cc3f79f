//! HTTP: one message a `POST`.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, post};
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use proctor_wire::ahp::rpc::{self, Id, Message, PARSE_ERROR};

use super::auth::Credentials;
use super::{AhpServer, EventHandler, Peer, safe};
use crate::budget::{FREE, Share};
use crate::listen::ConnectionInfo;

/// The longest body.
pub const MAX_BODY: usize = 2 * 1024 * 1024;
/// How long a body may take to arrive.
const BODY_WITHIN: Duration = Duration::from_secs(30);

/// `POST /ahp`. Can be merged with [`super::websocket::router`].
pub fn router<H: EventHandler>(server: AhpServer<H>, credentials: Arc<Credentials>) -> Router {
    Router::new().route("/ahp", route(server, credentials))
}

/// The same, for a path of one's own.
pub fn route<H: EventHandler>(server: AhpServer<H>, credentials: Arc<Credentials>) -> MethodRouter {
    post(take::<H>).with_state(Arc::new(Door { server, credentials }))
}

struct Door<H> {
    server: AhpServer<H>,
    credentials: Arc<Credentials>,
}

async fn take<H: EventHandler>(State(door): State<Arc<Door<H>>>, request: Request) -> Response {
    let (mut head, body) = request.into_parts();
    let connection = head.extensions.remove::<ConnectionInfo>();
    let identity = match door.credentials.identify(&head.headers, &head.uri, connection.as_ref()) {
        Ok(identity) => identity,
        Err(refused) => return refused.into_response(),
    };
    if !is_json(&head.headers) {
        return (StatusCode::UNSUPPORTED_MEDIA_TYPE, "the content type must be `application/json`")
            .into_response();
    }
    let (text, reading) = match read(&head.headers, body, &door.server).await {
        Ok(text) => text,
        Err(refusal) => return refusal,
    };
    let server = &door.server;
    let peer = Peer { transport: "http", identity };
    match rpc::read(&text) {
        Ok(Message::Notification { method, params }) => {
            let place = connection.map(|it| it.place());
            match server.take_notification(peer, method, params, place).await {
                Ok(()) => StatusCode::NO_CONTENT.into_response(),
                Err(error) => json(StatusCode::OK, rpc::refuse(&Id::from(""), &error)),
            }
        }
        Ok(request) => {
            let length = text.len();
            drop((text, reading));
            let reply = match server.budget().for_work(length) {
                Some(share) => server.handle_admitted(&peer, request, share).await,
                None => safe::overloaded(&request),
            };
            json(StatusCode::OK, reply.unwrap_or_default())
        }
        Err(unreadable) => {
            let status = match unreadable.error.code {
                PARSE_ERROR => StatusCode::BAD_REQUEST,
                _ => StatusCode::OK,
            };
            json(status, server.refuse_unreadable(&peer, &unreadable))
        }
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let Some(Ok(kind)) = headers.get(header::CONTENT_TYPE).map(HeaderValue::to_str) else { return false };
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    kind == "application/json" || (kind.starts_with("application/") && kind.ends_with("+json"))
}

async fn read<H: EventHandler>(
    headers: &HeaderMap,
    body: Body,
    server: &AhpServer<H>,
) -> Result<(Bytes, Option<Share>), Response> {
    let announced =
        headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| length > MAX_BODY as u64) {
        return Err(too_large());
    }
    let deadline = tokio::time::Instant::now() + BODY_WITHIN;
    // A body that does not say how long it is may become as long as any.
    let most = announced.and_then(|length| usize::try_from(length).ok()).unwrap_or(MAX_BODY);
    let share = if most <= FREE {
        None
    } else {
        // While others take their time, this one is not even read.
        let room = server.budget().take(most, tokio::time::Instant::now() + server.answers_within()).await;
        Some(room.ok_or_else(|| StatusCode::SERVICE_UNAVAILABLE.into_response())?)
    };
    match tokio::time::timeout_at(deadline, Limited::new(body, MAX_BODY).collect()).await {
        Ok(Ok(collected)) => Ok((collected.to_bytes(), share)),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
        Ok(Err(_)) => Err((StatusCode::BAD_REQUEST, "the body broke off").into_response()),
        Err(_elapsed) => Err((StatusCode::REQUEST_TIMEOUT, "the body took too long").into_response()),
    }
}

fn too_large() -> Response {
    (StatusCode::PAYLOAD_TOO_LARGE, "a message is at most 2 MiB long").into_response()
}

fn json(status: StatusCode, text: String) -> Response {
    let kind = HeaderValue::from_static("application/json");
    (status, [(header::CONTENT_TYPE, kind)], text).into_response()
}
