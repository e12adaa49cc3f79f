//! A harness on our own server trait whose answers wait: shows how many callers are served side by side.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use proctor_clients::ahp::server::{AhpServer, EventHandler, HandlerError, Peer, grpc, http, websocket};
use proctor_clients::ahp::{AhpEvent, Decision};
use proctor_net::auth::Credentials;
use proctor_net::listen::{self, ListenOptions};
use proctor_net::unix::{UnixOptions, UnixSocket};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::Barrier;
use tokio_util::sync::CancellationToken;

/// Allows everything, after a wait.
#[derive(Debug)]
pub enum Waiting {
    /// Until so many callers wait.
    ForCallers(Barrier),
    /// For so long.
    ForTime(Duration),
}

impl EventHandler for Waiting {
    async fn handle_event(&self, _peer: &Peer, _event: AhpEvent) -> Result<Decision, HandlerError> {
        match self {
            Waiting::ForCallers(barrier) => {
                barrier.wait().await;
            }
            Waiting::ForTime(Duration::ZERO) => {}
            Waiting::ForTime(time) => tokio::time::sleep(*time).await,
        }
        Ok(Decision::allow())
    }
}

/// Serves HTTP and WebSockets; says where on standard output.
pub async fn serve_http(server: AhpServer<Waiting>) -> io::Result<()> {
    let credentials = Arc::new(Credentials::none());
    let app =
        http::router(server.clone(), Arc::clone(&credentials)).merge(websocket::router(server, credentials));
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    println!("{}", json!({ "address": listener.local_addr()?.to_string() }));
    listen::serve(listener, app, ListenOptions::default(), CancellationToken::new()).await
}

/// Serves gRPC; says where on standard output.
pub async fn serve_grpc(server: AhpServer<Waiting>) -> io::Result<()> {
    let app = grpc::routes(server, Arc::new(Credentials::none()));
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    println!("{}", json!({ "address": listener.local_addr()?.to_string() }));
    listen::serve(listener, app, ListenOptions::default(), CancellationToken::new()).await
}

/// Serves a Unix socket; says where on standard output.
pub async fn serve_unix(server: AhpServer<Waiting>, path: &Path) -> io::Result<()> {
    let listening = UnixSocket::bind(path).await?;
    println!("{}", json!({ "socket": path }));
    listening.serve(server, UnixOptions::default(), CancellationToken::new()).await
}
