//! WebSocket harnesses.

use std::time::{Duration, Instant};

use futures_util::{SinkExt, StreamExt};
use proctor_clients::ahp::EventType;
use proctor_clients::ahp::client::{AhpClient, AhpError, AuthConfig, ClientOptions, Transport};
use proctor_core::json::Json;
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::http::StatusCode;

type Socket = WebSocketStream<TcpStream>;

struct Harness {
    listener: TcpListener,
}

impl Harness {
    async fn new() -> Harness {
        Harness { listener: TcpListener::bind("127.0.0.1:0").await.unwrap() }
    }

    fn transport(&self, auth: Option<AuthConfig>) -> Transport {
        let port = self.listener.local_addr().unwrap().port();
        Transport::WebSocket { url: format!("ws://127.0.0.1:{port}/ahp?x=1"), auth }
    }

    async fn accept(&self) -> Socket {
        tokio_tungstenite::accept_async(self.listener.accept().await.unwrap().0).await.unwrap()
    }

    async fn connected(&self) -> (AhpClient, Socket) {
        let (client, mut socket) =
            tokio::join!(AhpClient::connect(self.transport(None), quick()), self.accept());
        let client = client.unwrap();
        let (greeted, _) = tokio::join!(client.handshake(vec!["a".to_owned()]), greet(&mut socket));
        greeted.unwrap();
        (client, socket)
    }
}

fn quick() -> ClientOptions {
    ClientOptions {
        connect_timeout: Duration::from_millis(400),
        write_timeout: Duration::from_millis(300),
        close_timeout: Duration::from_millis(300),
        ..ClientOptions::default()
    }
}

async fn next(socket: &mut Socket) -> Json {
    loop {
        if let Message::Text(text) = socket.next().await.unwrap().unwrap() {
            return Json::parse(text.as_bytes()).unwrap();
        }
    }
}

async fn result(socket: &mut Socket, request: &Json, result: &str) {
    let reply = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, request["id"]);
    socket.send(Message::text(reply)).await.unwrap();
}

async fn greet(socket: &mut Socket) -> Json {
    let request = next(socket).await;
    assert_eq!(request["method"], "ahp/handshake");
    let greeting =
        r#"{"protocol_version":"2.4","harness_info":{"name":"w","version":"1","capabilities":[]}}"#;
    result(socket, &request, greeting).await;
    request
}

fn ask(client: &AhpClient) -> tokio::task::JoinHandle<Result<Json, AhpError>> {
    let client = client.clone();
    tokio::spawn(async move { client.send_event(EventType::PreAction, json!({})).await })
}

#[tokio::test]
async fn messages_are_text_and_everything_else_is_skipped() {
    let harness = Harness::new().await;
    let (client, mut socket) = harness.connected().await;
    let call = ask(&client);
    let request = next(&mut socket).await;
    socket.send(Message::binary(vec![0xff, 0xfe])).await.unwrap();
    socket.send(Message::text("log noise")).await.unwrap();
    socket.send(Message::Ping(vec![1].into())).await.unwrap();
    result(&mut socket, &request, r#"{"decision":"allow"}"#).await;
    call.await.unwrap().unwrap();
    assert!(matches!(socket.next().await.unwrap().unwrap(), Message::Pong(_)));
    client.notify(EventType::PostAction, json!({})).await.unwrap();
    assert!(next(&mut socket).await.get("id").is_none());
}

#[tokio::test]
async fn the_death_of_the_harness_is_noticed_at_once_and_it_is_called_back() {
    let harness = Harness::new().await;
    let (client, mut socket) = harness.connected().await;
    let calls = [ask(&client), ask(&client)];
    next(&mut socket).await;
    next(&mut socket).await;
    let started = Instant::now();
    // As the protocol's own server ends: without a closing frame.
    drop(socket);
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap_err(), AhpError::ConnectionClosed);
    }
    assert!(started.elapsed() < Duration::from_secs(1));
    let call = ask(&client);
    let mut socket = harness.accept().await;
    let hello = greet(&mut socket).await;
    assert_eq!(hello["params"]["agent_info"]["capabilities"].to_string(), r#"["a"]"#);
    let request = next(&mut socket).await;
    result(&mut socket, &request, r#"{"decision":"allow"}"#).await;
    call.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_closing_frame_ends_the_calls_in_flight() {
    let harness = Harness::new().await;
    let (client, mut socket) = harness.connected().await;
    let call = ask(&client);
    next(&mut socket).await;
    socket.close(None).await.unwrap();
    assert_eq!(call.await.unwrap().unwrap_err(), AhpError::ConnectionClosed);
}

#[tokio::test]
async fn closing_says_goodbye_and_dropping_ends_the_connection() {
    let harness = Harness::new().await;
    let (client, mut socket) = harness.connected().await;
    let (closed, message) = tokio::join!(client.close(), socket.next());
    closed.unwrap();
    assert!(matches!(message.unwrap().unwrap(), Message::Close(_)));

    let (client, mut socket) = harness.connected().await;
    drop(client);
    while let Some(Ok(message)) = socket.next().await {
        assert!(message.is_close());
    }
}

/// A peer that accepts and says nothing: the connection, including the upgrade, has a limit.
#[tokio::test]
async fn a_silent_peer_does_not_hang_the_constructor() {
    let harness = Harness::new().await;
    let started = Instant::now();
    let error = AhpClient::connect(harness.transport(None), quick()).await.unwrap_err();
    assert_eq!(error, AhpError::Timeout { what: "connect", ms: 400 });
    assert!(started.elapsed() < Duration::from_secs(2));
}

#[tokio::test]
async fn a_harness_that_stops_reading_freezes_nobody() {
    let harness = Harness::new().await;
    let (client, _socket) = harness.connected().await;
    let large = json!({"text": "x".repeat(3 * 1024 * 1024)});
    let client = client.with_timeout(Duration::from_millis(600));
    // The kernel's buffers take a few.
    for _ in 0..10 {
        let error = client.send_event(EventType::PreAction, large.clone()).await.unwrap_err();
        if error == (AhpError::Timeout { what: "write", ms: 300 }) {
            return;
        }
        assert_eq!(error, AhpError::Timeout { what: "reply", ms: 600 });
    }
    panic!("writing never ended");
}

#[tokio::test]
async fn a_harness_is_pinged_and_given_up_when_it_stays_silent() {
    let harness = Harness::new().await;
    let options = ClientOptions { ping_every: Duration::from_millis(60), reconnect: None, ..quick() };
    let (client, socket) =
        tokio::join!(AhpClient::connect(harness.transport(None), options), harness.accept());
    let (client, mut socket) = (client.unwrap(), socket);
    let (greeted, _) = tokio::join!(client.handshake(vec![]), greet(&mut socket));
    greeted.unwrap();
    for _ in 0..5 {
        assert!(matches!(socket.next().await.unwrap().unwrap(), Message::Ping(_)));
    }
    // From now on nothing is read here, so no pong goes back.
    let error = client.send_event(EventType::PreAction, json!({})).await.unwrap_err();
    assert_eq!(error, AhpError::ConnectionClosed);
}

/// The upgrade's target and headers, and the answer to it.
async fn upgrade(
    auth: AuthConfig,
    status: u16,
) -> (String, Option<String>, Option<String>, Result<AhpClient, AhpError>) {
    let harness = Harness::new().await;
    let mut seen = (String::new(), None, None);
    let accepting = async {
        let (stream, _) = harness.listener.accept().await.unwrap();
        let callback = |request: &Request, response: Response| -> Result<Response, ErrorResponse> {
            let header =
                |name: &str| request.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
            seen = (request.uri().to_string(), header("authorization"), header("x-api-key"));
            if status == 101 {
                return Ok(response);
            }
            let mut refusal = ErrorResponse::new(None);
            *refusal.status_mut() = StatusCode::from_u16(status).unwrap();
            Err(refusal)
        };
        let _ = tokio_tungstenite::accept_hdr_async(stream, callback).await;
    };
    let (client, ()) = tokio::join!(AhpClient::connect(harness.transport(Some(auth)), quick()), accepting);
    (seen.0, seen.1, seen.2, client)
}

#[tokio::test]
async fn credentials_go_into_a_header_or_on_request_into_the_url() {
    let (url, bearer, key, client) = upgrade(AuthConfig::bearer("s3cret"), 101).await;
    assert_eq!((url.as_str(), bearer.as_deref(), key), ("/ahp?x=1", Some("Bearer s3cret"), None));
    client.unwrap();
    let (url, bearer, key, _) = upgrade(AuthConfig::api_key("k&y +").in_url(), 101).await;
    assert_eq!((url.as_str(), bearer, key), ("/ahp?x=1&api_key=k%26y%20%2B", None, None));
}

#[tokio::test]
async fn refused_credentials_are_told_apart() {
    let transport = Transport::WebSocket {
        url: "ws://127.0.0.1:1/".to_owned(),
        auth: Some(AuthConfig::bearer("two\nlines")),
    };
    let error = AhpClient::connect(transport, quick()).await.unwrap_err();
    assert!(matches!(error, AhpError::AuthFailed(_)), "{error:?}");
    for status in [401, 403] {
        let (.., outcome) = upgrade(AuthConfig::bearer("s3cret"), status).await;
        let error = outcome.unwrap_err();
        assert!(matches!(error, AhpError::AuthFailed(_)), "{error:?}");
        assert!(!format!("{error:?} {error}").contains("s3cret"));
    }
    let (.., outcome) = upgrade(AuthConfig::bearer("s3cret").in_url(), 503).await;
    let error = outcome.unwrap_err();
    assert!(matches!(&error, AhpError::Transport(text) if text.contains("503")), "{error:?}");
}

#[tokio::test]
async fn a_url_of_another_scheme_is_refused() {
    for url in ["http://127.0.0.1:1/", "127.0.0.1:1", "ws:// nowhere", ""] {
        let transport = Transport::WebSocket { url: url.to_owned(), auth: None };
        let error = AhpClient::connect(transport, quick()).await.unwrap_err();
        assert!(matches!(error, AhpError::InvalidConfig(_)), "{url}: {error:?}");
    }
}
