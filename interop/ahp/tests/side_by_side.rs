//! 64 callers of a harness on our server trait whose handler lets nobody go before all 64 are there: it only ends if they are
//! served side by side, on one connection where the transport has only one.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::process::Command;

use interop_ahp::process::Server;
use serde_json::json;
use tempfile::TempDir;

const HARNESS: &str = env!("CARGO_BIN_EXE_waiting-harness");
const CALLERS: usize = 64;

fn start(mode: &[&str]) -> Server {
    Server::start(Command::new(HARNESS).args(["--callers", "64"]).args(mode))
}

fn unix() -> (Server, TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket").to_str().unwrap().to_owned();
    (start(&["unix", &path]), folder, path)
}

fn stdio_arguments() -> Vec<String> {
    ["--callers", "64", "stdio"].map(str::to_owned).to_vec()
}

mod official_client {
    use a3s_ahp::{AhpClient, Decision, EventType, Transport};
    use std::sync::Arc;

    use super::*;

    async fn all_get_through(transport: Transport) {
        let client = Arc::new(AhpClient::new(transport).await.unwrap());
        client.handshake(Vec::new()).await.unwrap();
        let callers = (0..CALLERS).map(|number| {
            let client = Arc::clone(&client);
            tokio::spawn(async move {
                client.send_event_decision(EventType::PreAction, json!({ "number": number })).await
            })
        });
        for caller in callers.collect::<Vec<_>>() {
            let decision = caller.await.unwrap().unwrap();
            assert!(matches!(decision, Decision::Allow { .. }), "{decision:?}");
        }
    }

    #[tokio::test]
    async fn stdio() {
        all_get_through(Transport::Stdio { program: HARNESS.to_owned(), args: stdio_arguments() }).await;
    }

    #[tokio::test]
    async fn unix_socket() {
        let (_server, _folder, path) = unix();
        all_get_through(Transport::UnixSocket { path }).await;
    }

    #[tokio::test]
    async fn http() {
        let server = start(&["http"]);
        all_get_through(Transport::Http {
            url: format!("http://{}/ahp", server.text("address")),
            auth: None,
        })
        .await;
    }

    #[tokio::test]
    async fn websocket() {
        let server = start(&["http"]);
        all_get_through(Transport::WebSocket {
            url: format!("ws://{}/ahp", server.text("address")),
            auth: None,
        })
        .await;
    }
}

mod our_client {
    use proctor_clients::ahp::client::{AhpClient, Transport};
    use proctor_clients::ahp::{AhpEvent, Decision, EventType};

    use super::*;

    async fn connect(transport: Transport) -> AhpClient {
        let client = AhpClient::new(transport).await.unwrap();
        client.handshake(Vec::new()).await.unwrap();
        client
    }

    async fn all_get_through(transport: Transport) {
        let client = connect(transport).await;
        let callers = (0..CALLERS).map(|number| {
            let client = client.clone();
            tokio::spawn(async move {
                client.send_event_decision(EventType::PreAction, json!({ "number": number })).await
            })
        });
        for caller in callers.collect::<Vec<_>>() {
            assert_eq!(caller.await.unwrap(), Ok(Decision::allow()));
        }
    }

    #[tokio::test]
    async fn stdio() {
        all_get_through(Transport::Stdio { program: HARNESS.to_owned(), args: stdio_arguments() }).await;
    }

    #[tokio::test]
    async fn unix_socket() {
        let (_server, _folder, path) = unix();
        all_get_through(Transport::UnixSocket { path: path.into() }).await;
    }

    #[tokio::test]
    async fn http() {
        let server = start(&["http"]);
        all_get_through(Transport::Http {
            url: format!("http://{}/ahp", server.text("address")),
            auth: None,
        })
        .await;
    }

    #[tokio::test]
    async fn websocket() {
        let server = start(&["http"]);
        all_get_through(Transport::WebSocket {
            url: format!("ws://{}/ahp", server.text("address")),
            auth: None,
        })
        .await;
    }

    #[tokio::test]
    async fn grpc() {
        let server = start(&["grpc"]);
        all_get_through(Transport::Grpc { url: format!("http://{}", server.text("address")), auth: None })
            .await;
    }

    /// The events of one batch do not wait for each other.
    #[tokio::test]
    async fn one_batch() {
        let (_server, _folder, path) = unix();
        let client = connect(Transport::UnixSocket { path: path.into() }).await;
        let event = interop_ahp::samples::event("pre_action", &json!({}));
        let event = AhpEvent::from_json(event.into(), false).unwrap();
        let decisions = client.send_batch(vec![event; CALLERS]).await.unwrap().decisions;
        assert_eq!(decisions, vec![Decision::allow(); CALLERS]);
    }
}
