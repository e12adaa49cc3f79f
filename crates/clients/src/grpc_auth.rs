//! Authentication of gRPC calls, before their bodies are read.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use proctor_net::auth::{Credentials, Refusals, of_this_user};
use proctor_net::listen::ConnectionInfo;
use proctor_net::peer::Peer;
use tonic::Status;

/// Restricts services, which agents call with tokens of their own or none, to callers of this process's user.
pub fn for_this_user(services: Router, refusals: Arc<Refusals>) -> Router {
    services.route_layer(from_fn_with_state(refusals, refuse_other_users))
}

async fn refuse_other_users(State(refusals): State<Arc<Refusals>>, request: Request, next: Next) -> Response {
    let connection = request.extensions().get::<ConnectionInfo>();
    match of_this_user(connection) {
        Ok(()) => next.run(request).await,
        Err(refused) => {
            refusals.note(connection, refused.reason());
            Status::unauthenticated(refused.to_string()).into_http()
        }
    }
}

/// Middleware that refuses callers without valid credentials; the others carry their [`Peer`] in the request's extensions.
pub(crate) async fn authenticate(
    State(credentials): State<Arc<Credentials>>,
    mut request: Request,
    next: Next,
) -> Response {
    let connection = request.extensions().get::<ConnectionInfo>();
    match credentials.identify(request.headers(), request.uri(), connection) {
        Ok(identity) => {
            request.extensions_mut().insert(Peer { transport: "grpc", identity });
            next.run(request).await
        }
        Err(refused) => {
            let status = match refused.status() {
                StatusCode::UNAUTHORIZED => Status::unauthenticated(refused.to_string()),
                _ => Status::permission_denied(refused.to_string()),
            };
            status.into_http()
        }
    }
}
