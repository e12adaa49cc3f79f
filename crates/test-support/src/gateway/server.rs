//! The listening double.

use std::path::{Path, PathBuf};

use futures_util::stream;
use proctor_net::listen::{self, ListenOptions};
use proctor_net::tls::ServerTls;
use tokio::net::{TcpListener, UnixListener};
use tokio_util::sync::CancellationToken;

use super::GatewayDouble;
use super::services::routes;

/// A double that listens.
pub struct GatewayServer {
    /// The address, for clients.
    pub endpoint: String,
    /// The double.
    pub double: GatewayDouble,
    stop: CancellationToken,
    task: tokio::task::JoinHandle<()>,
    file: Option<PathBuf>,
    _folder: Option<tempfile::TempDir>,
}

impl GatewayServer {
    /// Listens on a free port of loopback.
    pub async fn tcp(double: GatewayDouble, tls: Option<ServerTls>) -> GatewayServer {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let scheme = if tls.is_some() { "https" } else { "http" };
        let endpoint = format!("{scheme}://{}", listener.local_addr().unwrap());
        let stop = CancellationToken::new();
        let app = routes(&double).into_axum_router();
        let options = ListenOptions { tls, ..ListenOptions::default() };
        let serving = listen::serve(listener, app, options, stop.clone());
        let task = tokio::spawn(async move { serving.await.unwrap() });
        GatewayServer { endpoint, double, stop, task, file: None, _folder: None }
    }

    /// Listens on a Unix socket in a folder of its own.
    pub fn unix(double: GatewayDouble) -> GatewayServer {
        let folder = tempfile::tempdir().unwrap();
        let server = GatewayServer::unix_at(double, &folder.path().join("gateway.sock"));
        GatewayServer { _folder: Some(folder), ..server }
    }

    /// Listens on a Unix socket.
    pub fn unix_at(double: GatewayDouble, path: &Path) -> GatewayServer {
        let listener = UnixListener::bind(path).unwrap();
        let incoming = stream::unfold(listener, |listener| async move {
            Some((listener.accept().await.map(|(stream, _)| stream), listener))
        });
        let stop = CancellationToken::new();
        let serving = tonic::transport::Server::builder()
            .add_routes(routes(&double))
            .serve_with_incoming_shutdown(incoming, stop.clone().cancelled_owned());
        let task = tokio::spawn(async move { serving.await.unwrap() });
        let endpoint = format!("unix:{}", path.display());
        GatewayServer { endpoint, double, stop, task, file: Some(path.to_owned()), _folder: None }
    }

    /// Stops the server and waits for its connections to end.
    pub async fn end(self) {
        self.stop.cancel();
        self.task.await.unwrap();
        if let Some(file) = self.file {
            std::fs::remove_file(file).unwrap();
        }
    }

    /// Lets the server run until the runtime ends.
    pub(super) fn detach(self) {
        drop(self.task);
    }
}
