//! Routes of the endpoint.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use proctor_core::json::Json;
use proctor_net::http::server::{BodyError, json_response, read_body};
use proctor_wire::atp::limits::MAX_MESSAGE;
use proctor_wire::atp::tool::{self, Call, CallShape, Reply, Route, RouteError};
use proctor_wire::atp::{ErrorCode, ReadError};
use subtle::ConstantTimeEq;

use crate::backend::ToolInfo;
use crate::door::Shared;

/// The routes, for [`proctor_net::listen::serve`]. Paths are compared by hand, so that all unknown ones get the same answer.
pub(crate) fn router(shared: Arc<Shared>) -> Router {
    Router::new().fallback(handle).with_state(shared)
}

async fn handle(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let Some(path) = below_secret(head.uri.path(), &shared.secret) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let route = match Route::parse(head.method.as_str(), path, head.uri.query().unwrap_or_default()) {
        Ok(route) => route,
        Err(error) => return wrong_route(error),
    };
    // Bodies are read, and listings written, only by so many requests at a time.
    let Ok(Ok(permit)) =
        tokio::time::timeout(shared.run.call_timeout, Arc::clone(&shared.in_flight).acquire_owned()).await
    else {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    };
    match route {
        Route::CallNamed { .. } | Route::Call => {
            // A task of its own: a caller that goes away must not leave a decision without its outcome.
            let tasks = shared.tasks.clone();
            let handled = tasks.spawn(async move {
                let reply = call(&shared, &route, &head, body).await;
                drop(permit);
                reply
            });
            handled.await.unwrap_or_else(|_| StatusCode::INTERNAL_SERVER_ERROR.into_response())
        }
        Route::Tools => ok(&tool::tools(shared.available_tools().iter().map(ToolInfo::as_wire))),
        Route::Tool { tool } => match shared.available_tools().iter().find(|info| info.name == tool) {
            Some(info) => ok(&info.as_wire().to_json()),
            None => json_response(StatusCode::NOT_FOUND, tool::not_found(&tool).to_string()),
        },
        Route::Records(filter) => ok(&tool::records(&shared.calls.listed(&filter))),
        Route::ClearRecords => ok(&tool::cleared(shared.calls.clear())),
        Route::Health => ok(&tool::healthy()),
    }
}

async fn call(shared: &Shared, route: &Route, head: &Parts, body: Body) -> Response {
    let read = tokio::select! {
        // A trickling body must not hold up the end of the run.
        () = shared.stop.cancelled() => return StatusCode::SERVICE_UNAVAILABLE.into_response(),
        read = read_body(&head.headers, body, MAX_MESSAGE) => read,
    };
    let (status, problem) = match read {
        Ok(body) => match Call::read(route, &body) {
            Ok(call) => {
                // The text is not needed while the tool works.
                drop(body);
                return ok(&shared.call(&call).await.to_json(&call));
            }
            Err(error @ ReadError::TooLarge { .. }) => (StatusCode::PAYLOAD_TOO_LARGE, error.to_string()),
            Err(error) => (StatusCode::BAD_REQUEST, error.to_string()),
        },
        Err(BodyError::TooLarge) => {
            (StatusCode::PAYLOAD_TOO_LARGE, format!("a call is at most {MAX_MESSAGE} bytes long"))
        }
        Err(error @ BodyError::TimedOut) => (StatusCode::REQUEST_TIMEOUT, error.to_string()),
        Err(error) => (StatusCode::BAD_REQUEST, error.to_string()),
    };
    let named = match route {
        Route::CallNamed { tool } => Some(tool),
        _ => None,
    };
    let shape = if named.is_some() { CallShape::Document } else { CallShape::Released };
    let call = Call { tool: named.cloned().unwrap_or_default(), input: None, task_id: None, shape };
    let reply = shared.malformed(&call, problem).await;
    json_response(status, reply.to_json(&call).to_string())
}

/// The path below the unguessable segment; none if that is not in it.
fn below_secret<'a>(path: &'a str, secret: &str) -> Option<&'a str> {
    let path = path.strip_prefix('/')?;
    let (first, rest) = path.split_once('/').unwrap_or((path, ""));
    // A comparison that ends at the first difference would tell how much of a guess is right.
    bool::from(first.as_bytes().ct_eq(secret.as_bytes())).then_some(rest)
}

fn wrong_route(error: RouteError) -> Response {
    let status = match error {
        RouteError::UnknownPath => StatusCode::NOT_FOUND,
        RouteError::WrongMethod { .. } => StatusCode::METHOD_NOT_ALLOWED,
        RouteError::Malformed => StatusCode::BAD_REQUEST,
    };
    let call = Call { tool: String::new(), input: None, task_id: None, shape: CallShape::Document };
    let reply = Reply::error(error.to_string(), ErrorCode::InvalidRequest, None).to_json(&call);
    let mut response = json_response(status, reply.to_string());
    if let RouteError::WrongMethod { allowed } = error {
        response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(allowed));
    }
    response
}

fn ok(body: &Json) -> Response {
    json_response(StatusCode::OK, body.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_with_the_secret_are_served() {
        assert_eq!(below_secret("/abc/tools/call", "abc"), Some("tools/call"));
        assert_eq!(below_secret("/abc", "abc"), Some(""));
        for wrong in ["", "/", "abc/x", "/ab/x", "/abcd/x", "/ABC/x", "//abc/x", "/x/abc", "/%61bc/x"] {
            assert_eq!(below_secret(wrong, "abc"), None, "{wrong}");
        }
    }
}
