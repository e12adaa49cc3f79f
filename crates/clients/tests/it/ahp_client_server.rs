//! The client against the server of this crate, over every transport that has a socket.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proctor_clients::ahp::client::{AhpClient, AhpError, AuthConfig, ClientOptions, Transport};
use proctor_clients::ahp::server::{AhpServer, EventHandler, HandlerError, Peer, grpc, http, websocket};
use proctor_clients::ahp::{
    AhpEvent, Decision, Entry, EventType, HarnessConfig, IdleDecision, QueryRequest, QueryResponse,
};
use proctor_core::json::Json;
use proctor_net::auth::{Credentials, SecretKind};
use proctor_net::listen::{self, ListenOptions};
use proctor_net::tls::{ClientTls, ServerTls};
use proctor_net::unix::{UnixOptions, UnixSocket};
use serde_json::json;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Blocks `rm`, and remembers what it was told.
#[derive(Clone, Default)]
struct Guard {
    noted: Arc<Mutex<Vec<String>>>,
    greeted: Arc<AtomicUsize>,
}

impl EventHandler for Guard {
    async fn handle_event(&self, _peer: &Peer, event: AhpEvent) -> Result<Decision, HandlerError> {
        match event.payload["tool_name"].as_str() {
            Some("rm") => Ok(Decision::block("deleting needs a person")),
            Some("slow") => std::future::pending().await,
            _ => Ok(Decision::allow()),
        }
    }

    async fn handle_notification(&self, _peer: &Peer, entry: Entry) -> Result<(), HandlerError> {
        self.noted.lock().unwrap().push(entry.event.event_type.to_string());
        Ok(())
    }

    fn handle_handshake(&self, _peer: &Peer, _request: &proctor_clients::ahp::HandshakeRequest) {
        self.greeted.fetch_add(1, Ordering::SeqCst);
    }

    async fn handle_query(&self, _peer: &Peer, query: QueryRequest) -> Result<QueryResponse, HandlerError> {
        Ok(QueryResponse { answer: query.payload, reason: Some(query.query_type), alternatives: None })
    }
}

fn server(guard: &Guard) -> AhpServer<Guard> {
    let config = HarnessConfig { timeout_ms: Some(5_000), batch_size: Some(3), max_depth: Some(4) };
    AhpServer::new(guard.clone()).with_config(config)
}

/// A running server.
struct Running {
    stop: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

impl Running {
    async fn end(self) {
        self.stop.cancel();
        self.task.await.unwrap();
    }
}

fn serve(listener: TcpListener, app: axum::Router, tls: Option<ServerTls>) -> Running {
    let stop = CancellationToken::new();
    let options = ListenOptions { tls, grace: Duration::from_millis(100), ..ListenOptions::default() };
    let serving = listen::serve(listener, app, options, stop.clone());
    Running { stop, task: tokio::spawn(async { serving.await.unwrap() }) }
}

async fn bound() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

/// Server for each network transport, with its address and the options of its clients.
async fn network(
    guard: &Guard,
    credentials: Credentials,
    tls: Option<ServerTls>,
    auth: Option<AuthConfig>,
) -> Vec<(Transport, Running)> {
    let credentials = Arc::new(credentials);
    let secure = if tls.is_some() { "s" } else { "" };
    let mut running = Vec::new();
    let (listener, port) = bound().await;
    running.push((
        Transport::Http { url: format!("http{secure}://localhost:{port}/ahp"), auth: auth.clone() },
        serve(listener, http::router(server(guard), Arc::clone(&credentials)), tls.clone()),
    ));
    let (listener, port) = bound().await;
    running.push((
        Transport::WebSocket { url: format!("ws{secure}://localhost:{port}/ahp"), auth: auth.clone() },
        serve(listener, websocket::router_for_any_path(server(guard), Arc::clone(&credentials)), tls.clone()),
    ));
    let (listener, port) = bound().await;
    running.push((
        Transport::Grpc { url: format!("http{secure}://localhost:{port}"), auth },
        serve(listener, grpc::routes(server(guard), credentials), tls),
    ));
    running
}

async fn unix(guard: &Guard, path: &std::path::Path) -> Running {
    let stop = CancellationToken::new();
    let listening = UnixSocket::bind(path).await.unwrap();
    let options = UnixOptions { grace: Duration::from_millis(100), ..UnixOptions::default() };
    let serving = listening.serve(server(guard), options, stop.clone());
    Running { stop, task: tokio::spawn(async { serving.await.unwrap() }) }
}

/// All requests that an agent sends.
async fn exercise(client: &AhpClient, guard: &Guard) {
    let harness = client.handshake(vec!["pre_action".to_owned()]).await.unwrap();
    assert_eq!(harness.config.unwrap().batch_size, Some(3));
    let decide = async |tool: &str| {
        client.send_event_decision(EventType::PreAction, json!({ "tool_name": tool })).await
    };
    assert!(matches!(decide("ls").await.unwrap(), Decision::Allow { .. }));
    assert!(
        matches!(decide("rm").await.unwrap(), Decision::Block { reason, .. } if reason.contains("person"))
    );
    let idle = json!({"idle_duration_ms": 5, "idle_reason": "waiting"});
    let idle: IdleDecision = client.send_typed_event(EventType::Idle, idle).await.unwrap();
    assert!(matches!(idle, IdleDecision::Allow { .. }));
    // An unreadable payload is the harness's error, with its code.
    let error = client.send_event(EventType::Idle, json!({})).await.unwrap_err();
    assert!(matches!(error, AhpError::Rpc { code: -32603, .. }), "{error:?}");
    let answer = client.query("echo", json!({"big": 12_345_678_901_234_567_890_u64})).await.unwrap();
    assert_eq!(answer.answer.to_string(), r#"{"big":12345678901234567890}"#);
    assert_eq!(answer.reason.as_deref(), Some("echo"));
    let event = |kind, tool: &str| AhpEvent {
        event_type: kind,
        session_id: "s".to_owned(),
        agent_id: "a".to_owned(),
        timestamp: String::new(),
        depth: 4,
        payload: json!({ "tool_name": tool }).into(),
        context: None,
        metadata: None,
    };
    let batch = vec![event(EventType::PreAction, "ls"), event(EventType::PreAction, "rm")];
    let decisions = client.send_batch(batch).await.unwrap().decisions;
    assert!(matches!(decisions[..], [Decision::Allow { .. }, Decision::Block { .. }]));
    client.notify(EventType::PostAction, json!({})).await.unwrap();
    // On a stream, what was sent before a question is known when it is answered.
    decide("ls").await.unwrap();
    assert_eq!(guard.noted.lock().unwrap().pop().as_deref(), Some("post_action"));
    let all = futures_util::future::join_all((0..64).map(|_| decide("ls"))).await;
    assert!(all.iter().all(Result::is_ok));
    let hurried = client.with_timeout(Duration::from_millis(100));
    let error = hurried.send_event(EventType::PreAction, json!({"tool_name": "slow"})).await.unwrap_err();
    assert_eq!(error, AhpError::Timeout { what: "reply", ms: 100 });
    assert_eq!(client.in_flight(), 0);
}

#[tokio::test]
async fn every_call_works_over_every_transport() {
    let guard = Guard::default();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let mut running = network(&guard, Credentials::none(), None, None).await;
    running.push((Transport::UnixSocket { path: path.clone() }, unix(&guard, &path).await));
    for (transport, running) in running {
        let client = AhpClient::new(transport).await.unwrap();
        exercise(&client, &guard).await;
        client.close().await.unwrap();
        running.end().await;
    }
}

#[tokio::test]
async fn credentials_open_the_door_over_every_transport() {
    let guard = Guard::default();
    let credentials = || {
        Credentials::none().with_secret("bearer", SecretKind::Bearer, "t0ken".to_owned()).with_secret(
            "key",
            SecretKind::ApiKey,
            "k3y".to_owned(),
        )
    };
    for (auth, opens) in [
        (Some(AuthConfig::bearer("t0ken")), true),
        (Some(AuthConfig::api_key("k3y")), true),
        (Some(AuthConfig::bearer("t0ken").in_url()), true),
        (Some(AuthConfig::bearer("wrong")), false),
        (None, false),
    ] {
        for (transport, running) in network(&guard, credentials(), None, auth.clone()).await {
            let outcome = async { AhpClient::new(transport.clone()).await?.handshake(vec![]).await }.await;
            match outcome {
                Ok(_) => assert!(opens, "{transport:?}"),
                Err(error) => {
                    assert!(!opens && matches!(error, AhpError::AuthFailed(_)), "{transport:?}: {error:?}");
                }
            }
            running.end().await;
        }
    }
}

#[tokio::test]
async fn tls_with_client_certificates_works_over_every_transport() {
    let guard = Guard::default();
    let key = rcgen::KeyPair::generate().unwrap();
    let mut params = rcgen::CertificateParams::new(vec![]).unwrap();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let authority = params.self_signed(&key).unwrap().pem();
    let issuer = rcgen::Issuer::new(params, key);
    let issue = |name: &str| {
        let key = rcgen::KeyPair::generate().unwrap();
        let params = rcgen::CertificateParams::new(vec![name.to_owned()]).unwrap();
        (params.signed_by(&key, &issuer).unwrap().pem(), key.serialize_pem())
    };
    let (certificate, key) = issue("localhost");
    let tls =
        ServerTls::from_pem(certificate.as_bytes(), key.as_bytes(), Some(authority.as_bytes())).unwrap();
    let trusting = ClientTls::default().with_authority(authority.clone());
    let (certificate, key) = issue("agent");
    let shown = trusting.clone().with_certificate(certificate, key);
    let credentials = Credentials::none().with_client_certificates();
    for (transport, running) in network(&guard, credentials, Some(tls), None).await {
        let outcome = |tls: ClientTls| {
            let options = ClientOptions { tls, ..ClientOptions::default() };
            let transport = transport.clone();
            async { AhpClient::connect(transport, options).await?.handshake(vec![]).await }
        };
        outcome(shown.clone()).await.unwrap();
        assert!(outcome(trusting.clone()).await.is_err(), "{transport:?}");
        assert!(outcome(ClientTls::default()).await.is_err(), "{transport:?}");
        running.end().await;
    }
}

/// A harness that comes back at the same place is greeted again.
#[tokio::test]
async fn a_restarted_server_is_greeted_again() {
    let guard = Guard::default();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let (listener, port) = bound().await;
    let app = || websocket::router_for_any_path(server(&guard), Arc::new(Credentials::none()));
    let at_socket = AhpClient::new(Transport::UnixSocket { path: path.clone() });
    let socket = unix(&guard, &path).await;
    let web = serve(listener, app(), None);
    let clients = [
        at_socket.await.unwrap(),
        AhpClient::new(Transport::WebSocket { url: format!("ws://127.0.0.1:{port}/"), auth: None })
            .await
            .unwrap(),
    ];
    for client in &clients {
        client.handshake(vec![]).await.unwrap();
    }
    socket.end().await;
    web.end().await;
    let socket = unix(&guard, &path).await;
    let web = serve(TcpListener::bind(("127.0.0.1", port)).await.unwrap(), app(), None);
    for client in &clients {
        let decided = loop {
            match client.send_event(EventType::PreAction, json!({})).await {
                // Written before the end was known: it may have been delivered, so it is the agent's to repeat.
                Err(AhpError::ConnectionClosed) => {}
                other => break other.unwrap(),
            }
        };
        assert_eq!(decided["decision"], Json::from("allow"));
    }
    assert_eq!(guard.greeted.load(Ordering::SeqCst), 4);
    drop(clients);
    socket.end().await;
    web.end().await;
}
