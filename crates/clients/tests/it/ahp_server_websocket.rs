//! WebSocket: order, windows, pings, ends and credentials.

use std::sync::Arc;
use std::time::Duration;

use crate::support::port::Running;
use crate::support::probe::{Probe, ask, ask_nth, assert_decides, assert_refuses, tell, value};
use axum::Router;
use futures_util::{SinkExt, StreamExt};
use proctor_clients::ahp::server::websocket::{self, WebSocketOptions};
use proctor_clients::ahp::server::{AhpServer, Identity, StreamLimits};
use proctor_net::auth::{Credentials, SecretKind};
use proctor_net::listen::ListenOptions;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

struct Client(WebSocketStream<MaybeTlsStream<TcpStream>>);

impl Client {
    async fn connect(running: &Running) -> Client {
        Client(connect_async(format!("ws://{}/ahp", running.address)).await.unwrap().0)
    }

    async fn send(&mut self, text: impl Into<String>) {
        self.0.send(Message::text(text.into())).await.unwrap();
    }

    async fn reply(&mut self) -> Value {
        loop {
            match self.0.next().await.unwrap().unwrap() {
                Message::Text(text) => return value(text.as_str()),
                Message::Ping(_) | Message::Pong(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    async fn answer(&mut self, text: impl Into<String>) -> Value {
        self.send(text).await;
        self.reply().await
    }

    async fn close_code(&mut self) -> Option<u16> {
        while let Some(Ok(message)) = self.0.next().await {
            if let Message::Close(frame) = message {
                return frame.map(|frame| frame.code.into());
            }
        }
        None
    }
}

async fn start(server: &AhpServer<Probe>) -> Running {
    Running::start(websocket::router(server.clone(), Arc::default()), ListenOptions::default()).await
}

async fn start_with(server: &AhpServer<Probe>, options: WebSocketOptions) -> Running {
    let app = Router::new().route("/ahp", websocket::route(server.clone(), Arc::default(), options));
    Running::start(app, ListenOptions::default()).await
}

#[tokio::test]
async fn messages_are_answered_by_id_and_what_is_none_is_refused() {
    let server = Probe::server();
    let running = start(&server).await;
    let mut client = Client::connect(&running).await;
    for id in [json!("s"), json!(""), json!(12), json!(null)] {
        assert_decides(&client.answer(ask(id.clone(), "ok")).await, id, "allow");
    }
    assert_refuses(&client.answer("no json").await, json!(null), -32700);
    assert_refuses(&client.answer("[".repeat(100_000)).await, json!(null), -32700);
    assert_refuses(&client.answer("[]").await, json!(null), -32600);
    assert_refuses(&client.answer(ask(1, "ok").replace("ahp/event", "x")).await, 1, -32601);
    client.0.send(Message::binary(ask("binary", "ok").into_bytes())).await.unwrap();
    client.send(tell("ok")).await;
    assert_decides(&client.answer(ask("panics", "panic")).await, "panics", "block");
    server.handler().noticed(1).await;
    let peer = server.handler().peers.lock().unwrap()[0].clone();
    assert_eq!((peer.transport, peer.identity), ("websocket", Identity::Loopback));
    client.0.close(None).await.unwrap();
    client.close_code().await;
    running.stop().await;
}

#[tokio::test]
async fn a_slow_decision_delays_nobody_and_a_stop_waits_for_it_and_says_goodbye() {
    let server = Probe::server();
    let running = start(&server).await;
    let mut client = Client::connect(&running).await;
    client.send(ask("slow", "wait")).await;
    assert_decides(&client.answer(ask("quick", "ok")).await, "quick", "allow");
    running.stop.cancel();
    server.handler().gate.add_permits(1);
    assert_decides(&client.reply().await, "slow", "allow");
    assert_eq!(client.close_code().await, Some(1001));
    drop(client);
    running.stop().await;
}

#[tokio::test]
async fn messages_begin_in_order_and_no_more_than_a_window_at_once() {
    let server = Probe::server().window(300);
    let running = start(&server).await;
    let mut client = Client::connect(&running).await;
    for n in 0..1000 {
        client.0.feed(Message::text(ask_nth(n, "wait", n))).await.unwrap();
    }
    client.0.flush().await.unwrap();
    server.handler().begun(300).await;
    server.handler().gate.add_permits(1000);
    for _ in 0..1000 {
        client.reply().await;
    }
    assert_eq!(server.handler().most_at_once(), 300);
    assert!(server.handler().order.lock().unwrap().iter().copied().eq(0..1000));
    drop(client);
    running.stop().await;
}

#[tokio::test]
async fn both_paths_upgrade_and_one_router_serves_posts_as_well() {
    let server = Probe::server();
    #[cfg(feature = "http")]
    let app = proctor_clients::ahp::server::http::router(server.clone(), Arc::default())
        .merge(websocket::router(server.clone(), Arc::default()));
    #[cfg(not(feature = "http"))]
    let app = websocket::router(server.clone(), Arc::default());
    let running = Running::start(app, ListenOptions::default()).await;
    for path in ["/ahp", "/ahp/ws"] {
        let (socket, _) = connect_async(format!("ws://{}{path}", running.address)).await.unwrap();
        assert_decides(&Client(socket).answer(ask(1, "ok")).await, 1, "allow");
    }
    #[cfg(feature = "http")]
    assert_eq!(running.connect().await.post(ask(1, "ok")).await.status, 200);
    running.stop().await;
    let any =
        Running::start(websocket::router_for_any_path(server, Arc::default()), ListenOptions::default())
            .await;
    for path in ["/", "/ahp/a3s", ""] {
        let (socket, _) = connect_async(format!("ws://{}{path}", any.address)).await.unwrap();
        assert_decides(&Client(socket).answer(ask(1, "ok")).await, 1, "allow");
    }
    any.stop().await;
}

#[tokio::test]
async fn upgrades_need_credentials_or_come_from_this_machine() {
    let server = Probe::server();
    let credentials = Arc::new(
        Credentials::none().with_secret("build", SecretKind::Bearer, "b secret".to_owned()).with_secret(
            "laptop",
            SecretKind::ApiKey,
            "k-secret".to_owned(),
        ),
    );
    let running =
        Running::start(websocket::router(server.clone(), credentials), ListenOptions::default()).await;
    let connect = async |query: &str, header: Option<(&'static str, &str)>| {
        let mut request = format!("ws://{}/ahp{query}", running.address).into_client_request().unwrap();
        if let Some((name, value)) = header {
            request.headers_mut().insert(name, value.parse().unwrap());
        }
        match connect_async(request).await {
            Ok((socket, _)) => {
                assert_decides(&Client(socket).answer(ask(1, "ok")).await, 1, "allow");
                101
            }
            Err(Error::Http(response)) => response.status().as_u16(),
            Err(other) => panic!("{other}"),
        }
    };
    assert_eq!(connect("?token=b+secret", None).await, 101);
    assert_eq!(connect("?api_key=k-secret", None).await, 101);
    assert_eq!(connect("", Some(("authorization", "Bearer b secret"))).await, 101);
    assert_eq!(connect("", Some(("x-api-key", "k-secret"))).await, 101);
    assert_eq!(connect("", None).await, 401);
    assert_eq!(connect("?token=wrong", None).await, 401);
    assert_eq!(connect("", Some(("x-api-key", "wrong"))).await, 401);
    running.stop().await;

    let open = start(&server).await;
    let mut request = format!("ws://{}/ahp", open.address).into_client_request().unwrap();
    request.headers_mut().insert("origin", "https://evil.example".parse().unwrap());
    let Err(Error::Http(response)) = connect_async(request).await else { panic!("a page may not call") };
    assert_eq!(response.status(), 403);
    open.stop().await;
}

#[tokio::test]
async fn a_message_that_is_too_long_ends_the_connection_with_a_reason() {
    let options = WebSocketOptions {
        limits: StreamLimits { max_message: 10_000, ..WebSocketOptions::default().limits },
        ..WebSocketOptions::default()
    };
    let running = start_with(&Probe::server(), options).await;
    let mut client = Client::connect(&running).await;
    client.send(" ".repeat(10_001)).await;
    assert_eq!(client.close_code().await, Some(1009));
    drop(client);
    running.stop().await;
}

#[tokio::test]
async fn silent_peers_are_pinged_and_dead_ones_closed() {
    let options = WebSocketOptions { ping: Duration::from_millis(150), ..WebSocketOptions::default() };
    let running = start_with(&Probe::server(), options).await;
    let mut alive = Client::connect(&running).await;
    // A peer that never reads never answers a ping.
    let mut dead = TcpStream::connect(running.address).await.unwrap();
    let hello = "GET /ahp HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
        sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    tokio::io::AsyncWriteExt::write_all(&mut dead, hello.as_bytes()).await.unwrap();
    let mut heard = Vec::new();
    let mut ended = std::pin::pin!(tokio::io::AsyncReadExt::read_to_end(&mut dead, &mut heard));
    let mut pings = 0;
    // The other one answers all the while, because it reads.
    while pings < 4 || futures_util::future::poll_immediate(&mut ended).await.is_none() {
        if let Message::Ping(_) = alive.0.next().await.unwrap().unwrap() {
            pings += 1;
        }
    }
    assert!(heard.starts_with(b"HTTP/1.1 101"));
    assert_decides(&alive.answer(ask("still here", "ok")).await, "still here", "allow");
    drop(alive);
    running.stop().await;
}

#[tokio::test]
async fn a_peer_that_does_not_read_is_given_up() {
    let server = Probe::server();
    let limits =
        StreamLimits { write_deadline: Duration::from_millis(300), ..WebSocketOptions::default().limits };
    let running = start_with(&server, WebSocketOptions { limits, ..WebSocketOptions::default() }).await;
    let client = Client::connect(&running).await;
    let (mut sink, stream) = client.0.split();
    let long = ask("x".repeat(4000), "ok");
    // Until the connection is closed: by then the buffers on the way are full.
    while sink.send(Message::text(long.clone())).await.is_ok() {}
    drop(stream);
    running.stop().await;
}
