//! File descriptors of closed clients, counted in a process of its own.

use crate::support::harness::{Harness, eventually, quick};
use crate::support::isolated;
use futures_util::StreamExt;
use proctor_clients::ahp::client::{AhpClient, Transport};

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Opens a client, and closes or drops it.
async fn visit(transport: Transport, close: bool) {
    let client = AhpClient::connect(transport, quick()).await.unwrap();
    if close {
        client.close().await.unwrap();
    }
}

#[tokio::test]
async fn clients_that_come_and_go_leave_no_descriptors() {
    if !isolated("ahp_client_descriptors::clients_that_come_and_go_leave_no_descriptors") {
        return;
    }
    let harness = Harness::new();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("ws://{}/", listener.local_addr().unwrap());
    // Opens what the runtime itself needs for programs.
    let cat = || Transport::Stdio { program: "cat".to_owned(), args: vec![] };
    visit(cat(), true).await;
    let before = descriptors();
    for n in 0..300 {
        let close = n % 2 == 0;
        let (mut peer, ()) = tokio::join!(harness.accept(), visit(harness.transport(), close));
        assert_eq!(peer.next().await, None);
        let serve = async {
            let (stream, _) = listener.accept().await.unwrap();
            let mut socket = tokio_tungstenite::accept_async(stream).await.unwrap();
            while let Some(Ok(_)) = socket.next().await {}
        };
        tokio::join!(serve, visit(Transport::WebSocket { url: url.clone(), auth: None }, close));
        if n % 10 < 2 {
            visit(cat(), close).await;
        }
    }
    eventually("all descriptors are back", || descriptors() <= before).await;
}
