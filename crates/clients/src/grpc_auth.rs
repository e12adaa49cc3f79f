//! Authentication of gRPC calls, before their bodies are read.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::Response;
use proctor_net::auth::Credentials;
use proctor_net::listen::ConnectionInfo;
use proctor_net::peer::Peer;
use tonic::Status;

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
