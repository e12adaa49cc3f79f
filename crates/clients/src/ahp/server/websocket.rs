//! WebSocket routes of a harness.

use std::sync::Arc;

use axum::Router;
use proctor_net::auth::Credentials;

pub use proctor_net::websocket::server::{WebSocketOptions, route};

use super::{AhpServer, EventHandler};

/// Router that upgrades WebSockets on `/ahp` and `/ahp/ws`. Can be merged with the HTTP router.
pub fn router<H: EventHandler>(server: AhpServer<H>, credentials: Arc<Credentials>) -> Router {
    let route = route(server, credentials, WebSocketOptions::default());
    Router::new().route("/ahp", route.clone()).route("/ahp/ws", route)
}

/// Router that upgrades WebSockets on any path, like the reference server; needs its own port.
pub fn router_for_any_path<H: EventHandler>(server: AhpServer<H>, credentials: Arc<Credentials>) -> Router {
    let route = route(server, credentials, WebSocketOptions::default());
    Router::new().route("/", route.clone()).route("/{*path}", route)
}
