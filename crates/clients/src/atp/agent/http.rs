//! HTTP: `POST /execute` for the response alone, `POST /execute/stream` for events and response as server-sent events.

mod negotiation;

use std::convert::Infallible;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use proctor_net::auth::Credentials;
use proctor_net::http::server::{BodyError, read_body};
use proctor_net::listen::ConnectionInfo;

use super::{Agent, AgentServer, Execution, Outgoing, Reason, Refusal};
use negotiation::{Form, JSON, is_supported_body};

/// The routes, for [`proctor_net::listen::serve`].
///
/// The form of a reply is that of its path, unless `Accept` allows only the other one. JSON goes out as
/// `application/vnd.atp.v1+json` to callers that name it. Refused requests are failed responses with status 400, 406, 408, 413, 415 or
/// 503.
pub fn router<A: Agent>(server: AgentServer<A>, credentials: Arc<Credentials>) -> Router {
    let endpoint = Arc::new(Endpoint { server, credentials });
    Router::new()
        .route("/execute", post(whole::<A>))
        .route("/execute/stream", post(streamed::<A>))
        .with_state(endpoint)
}

struct Endpoint<A> {
    server: AgentServer<A>,
    credentials: Arc<Credentials>,
}

async fn whole<A: Agent>(State(endpoint): State<Arc<Endpoint<A>>>, request: Request) -> Response {
    endpoint.handle(request, Form::Json(JSON)).await
}

async fn streamed<A: Agent>(State(endpoint): State<Arc<Endpoint<A>>>, request: Request) -> Response {
    endpoint.handle(request, Form::Events).await
}

impl<A: Agent> Endpoint<A> {
    async fn handle(&self, request: Request, preferred: Form) -> Response {
        let (mut head, body) = request.into_parts();
        let connection = head.extensions.remove::<ConnectionInfo>();
        if let Err(refused) = self.credentials.identify(&head.headers, &head.uri, connection.as_ref()) {
            return refused.into_response();
        }
        if !is_supported_body(&head.headers) {
            let problem = "the content type must be `application/json` or `application/vnd.atp.v1+json`";
            return refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, &Refusal::unreadable(problem));
        }
        let Some(form) = preferred.negotiate(&head.headers) else {
            let problem =
                "replies are `application/vnd.atp.v1+json`, `application/json` or `text/event-stream`";
            return refuse(StatusCode::NOT_ACCEPTABLE, &Refusal::unreadable(problem));
        };
        let text = match read_body(&head.headers, body, self.server.inner.max_request).await {
            Ok(text) => text,
            Err(BodyError::TooLarge) => {
                return refuse(StatusCode::PAYLOAD_TOO_LARGE, &self.server.too_large());
            }
            Err(BodyError::TimedOut) => {
                let problem = BodyError::TimedOut.to_string();
                return refuse(StatusCode::REQUEST_TIMEOUT, &Refusal::unreadable(&problem));
            }
            Err(error) => {
                return refuse(StatusCode::BAD_REQUEST, &Refusal::unreadable(&error.to_string()));
            }
        };
        let execution = match self.server.begin(&text) {
            Ok(execution) => execution,
            Err(refusal) => return refuse(status_of(refusal.reason), &refusal),
        };
        // The text is not needed while the agent works.
        drop(text);
        match form {
            Form::Json(media_type) => json(StatusCode::OK, media_type, execution.response().await),
            Form::Events => events(execution),
        }
    }
}

fn status_of(reason: Reason) -> StatusCode {
    match reason {
        Reason::Invalid => StatusCode::BAD_REQUEST,
        Reason::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        Reason::Busy => StatusCode::SERVICE_UNAVAILABLE,
    }
}

fn refuse(status: StatusCode, refusal: &Refusal) -> Response {
    json(status, JSON, refusal.response.clone())
}

fn json(status: StatusCode, media_type: &'static str, text: String) -> Response {
    (status, [(header::CONTENT_TYPE, HeaderValue::from_static(media_type))], text).into_response()
}

fn events(execution: Execution) -> Response {
    // The body owns the execution: a caller that goes away drops it.
    let frames = futures_util::stream::unfold(execution, |mut execution| async move {
        let message = execution.next().await?;
        Some((Ok::<Bytes, Infallible>(Bytes::from(frame(message))), execution))
    });
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    (headers, Body::from_stream(frames)).into_response()
}

/// One line of data each: compact JSON has no line ends.
fn frame(message: Outgoing) -> String {
    match message {
        Outgoing::Event(text) => format!("data: {text}\n\n"),
        Outgoing::Response(text) => format!("event: response\ndata: {text}\n\n"),
    }
}
