//! HTTP harnesses.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::body::Bytes;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use proctor_clients::ahp::EventType;
use proctor_clients::ahp::client::{AhpClient, AhpError, AuthConfig, ClientOptions, Transport};
use proctor_core::json::Json;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// Reaction of the harness to everything after the handshake; `$ID` stands for the request's identifier.
#[derive(Clone)]
enum Then {
    Answer(u16, String),
    Never,
}

type Seen = Arc<Mutex<Vec<(Method, Uri, HeaderMap, Json)>>>;

async fn harness(then: Then) -> (String, Seen) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/deep/path?tenant=1", listener.local_addr().unwrap());
    let seen = Seen::default();
    let noted = Arc::clone(&seen);
    let app = axum::Router::new().fallback(move |method: Method, uri: Uri, headers: HeaderMap, body: Bytes| {
        let (then, noted) = (then.clone(), Arc::clone(&noted));
        async move {
            let message = Json::parse(&body).unwrap();
            let greeting = message["method"] == "ahp/handshake";
            let id = message["id"].to_string();
            noted.lock().unwrap().push((method, uri, headers, message));
            if greeting {
                let harness = r#"{"name":"h","version":"1","capabilities":[]}"#;
                let body = format!(
                    r#"{{"jsonrpc":"2.0","id":{id},"result":{{"protocol_version":"2.4","harness_info":{harness}}}}}"#
                );
                return (StatusCode::OK, [("location", "/elsewhere")], body);
            }
            match then {
                Then::Never => std::future::pending().await,
                Then::Answer(status, body) => {
                    (StatusCode::from_u16(status).unwrap(), [("location", "/elsewhere")], body.replace("$ID", &id))
                }
            }
        }
    });
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    (url, seen)
}

async fn connected(then: Then, auth: Option<AuthConfig>) -> (AhpClient, Seen) {
    let (url, seen) = harness(then).await;
    let options = ClientOptions { reply_timeout: Some(Duration::from_secs(5)), ..ClientOptions::default() };
    let client = AhpClient::connect(Transport::Http { url, auth }, options).await.unwrap();
    client.handshake(vec![]).await.unwrap();
    (client, seen)
}

async fn asked(status: u16, body: &str) -> Result<Json, AhpError> {
    let (client, _) = connected(Then::Answer(status, body.to_owned()), None).await;
    client.send_event(EventType::PreAction, json!({})).await
}

async fn noticed(status: u16, body: &str) -> Result<(), AhpError> {
    let (client, _) = connected(Then::Answer(status, body.to_owned()), None).await;
    client.notify(EventType::PostAction, json!({})).await
}

#[tokio::test]
async fn messages_are_posted_exactly_to_the_url_with_credentials() {
    let allow = r#"{"jsonrpc":"2.0","id":$ID,"result":{"decision":"allow"}}"#;
    for (auth, name, value) in [
        (AuthConfig::bearer("t0ken"), "authorization", "Bearer t0ken"),
        (AuthConfig::api_key("k3y"), "x-api-key", "k3y"),
    ] {
        let (client, seen) = connected(Then::Answer(200, allow.to_owned()), Some(auth)).await;
        client.with_id("e-1").send_event(EventType::PreAction, json!({"a": 1})).await.unwrap();
        let seen = seen.lock().unwrap();
        let (method, uri, headers, message) = &seen[1];
        assert_eq!((method, uri.to_string().as_str()), (&Method::POST, "/deep/path?tenant=1"));
        assert_eq!(headers["content-type"], "application/json");
        assert_eq!(headers[name], value);
        assert_eq!(message["id"], "e-1");
    }
}

#[tokio::test]
async fn replies_are_checked() {
    assert!(asked(202, r#"{"jsonrpc":"2.0","id":$ID,"result":{}}"#).await.is_ok());
    for (status, body) in [
        (200, r#"{"jsonrpc":"2.0","id":"another","result":{}}"#),
        (200, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#),
        (200, r#"{"jsonrpc":"1.0","id":$ID,"result":{}}"#),
        (200, r#"{"jsonrpc":"2.0","id":$ID,"result":null}"#),
        (200, r#"{"jsonrpc":"2.0","id":$ID}"#),
        (200, "<html>"),
        (204, ""),
    ] {
        let error = asked(status, body).await.unwrap_err();
        assert!(matches!(error, AhpError::Protocol(_)), "{body}: {error:?}");
    }
}

/// Code and data arrive under any status, and refused credentials are told apart.
#[tokio::test]
async fn errors_are_read_whatever_the_status() {
    let refusal = r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-32603,"message":"m","data":[1]}}"#;
    for status in [200, 400, 500] {
        let error = asked(status, refusal).await.unwrap_err();
        let AhpError::Rpc { code, data, .. } = error else { panic!("{status}: {error:?}") };
        assert_eq!((code, data.unwrap().to_string().as_str()), (-32603, "[1]"));
    }
    for status in [401, 403] {
        assert!(matches!(asked(status, "go away").await.unwrap_err(), AhpError::AuthFailed(_)));
    }
    for status in [404, 413, 500, 503] {
        let error = asked(status, "text").await.unwrap_err();
        assert!(
            matches!(&error, AhpError::Transport(text) if text.contains(&status.to_string())),
            "{error:?}"
        );
    }
}

/// A redirect is not followed: it could carry events and credentials to somebody else.
#[tokio::test]
async fn redirects_are_not_followed() {
    let (client, seen) = connected(Then::Answer(307, String::new()), Some(AuthConfig::bearer("t"))).await;
    let error = client.send_event(EventType::PreAction, json!({})).await.unwrap_err();
    assert!(matches!(&error, AhpError::Transport(text) if text.contains("307")), "{error:?}");
    assert_eq!(seen.lock().unwrap().len(), 2);
}

/// A notification that was refused is not taken for one that arrived.
#[tokio::test]
async fn notifications_are_checked() {
    noticed(204, "").await.unwrap();
    noticed(200, "").await.unwrap();
    noticed(200, r#"{"jsonrpc":"2.0","id":null,"result":{}}"#).await.unwrap();
    let refusal =
        r#"{"jsonrpc":"2.0","id":"","error":{"code":-32603,"message":"Handler error: full","data":7}}"#;
    let error = noticed(200, refusal).await.unwrap_err();
    assert!(matches!(&error, AhpError::Rpc { code: -32603, data: Some(_), .. }), "{error:?}");
    assert!(matches!(noticed(401, "").await.unwrap_err(), AhpError::AuthFailed(_)));
    for status in [413, 500] {
        assert!(matches!(noticed(status, "").await.unwrap_err(), AhpError::Transport(_)));
    }
}

#[tokio::test]
async fn a_timeout_is_a_timeout() {
    let (client, _) = connected(Then::Never, None).await;
    let client = client.with_timeout(Duration::from_millis(100));
    let timeout = AhpError::Timeout { what: "reply", ms: 100 };
    assert_eq!(client.send_event(EventType::PreAction, json!({})).await.unwrap_err(), timeout);
    assert_eq!(client.notify(EventType::PostAction, json!({})).await.unwrap_err(), timeout);
}

#[tokio::test]
async fn bodies_have_limits_both_ways() {
    let (client, seen) = connected(Then::Never, None).await;
    let error = client.notify(EventType::PostAction, json!("x".repeat(2 * 1024 * 1024))).await.unwrap_err();
    assert!(matches!(error, AhpError::TooLarge { max: 2_097_152, .. }));
    assert_eq!(seen.lock().unwrap().len(), 1);
    let long = format!(r#"{{"jsonrpc":"2.0","id":$ID,"result":"{}"}}"#, "x".repeat(5 * 1024 * 1024));
    assert!(matches!(asked(200, &long).await.unwrap_err(), AhpError::Protocol(_)));
}

#[tokio::test]
async fn a_harness_that_is_not_there_or_dies_is_reported_at_once() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/ahp", listener.local_addr().unwrap());
    let client = AhpClient::new(Transport::Http { url, auth: None }).await.unwrap();
    let dying = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let _ = stream.read(&mut [0; 64]).await;
        stream.shutdown().await.unwrap();
    };
    let started = Instant::now();
    let (outcome, ()) = tokio::join!(client.handshake(vec![]), dying);
    assert_eq!(outcome.unwrap_err(), AhpError::ConnectionClosed);
    drop(listener);
    assert!(matches!(client.handshake(vec![]).await.unwrap_err(), AhpError::Transport(_)));
    assert!(started.elapsed() < Duration::from_secs(2));
    client.close().await.unwrap();
    assert_eq!(client.handshake(vec![]).await.unwrap_err(), AhpError::ConnectionClosed);
}

#[tokio::test]
async fn sixty_four_calls_run_at_once() {
    let allow = r#"{"jsonrpc":"2.0","id":$ID,"result":{"decision":"allow"}}"#;
    let (client, seen) = connected(Then::Answer(200, allow.to_owned()), None).await;
    let calls = (0..64).map(|_| client.send_event(EventType::PreAction, json!({})));
    for outcome in futures_util::future::join_all(calls).await {
        outcome.unwrap();
    }
    assert_eq!(seen.lock().unwrap().len(), 65);
}

#[tokio::test]
async fn settings_that_cannot_work_are_refused() {
    for url in ["ftp://host/", "nothing", ""] {
        let transport = Transport::Http { url: url.to_owned(), auth: None };
        assert!(matches!(AhpClient::new(transport).await.unwrap_err(), AhpError::InvalidConfig(_)), "{url}");
    }
    let auth = Some(AuthConfig::bearer("two\nlines"));
    let transport = Transport::Http { url: "http://127.0.0.1:1/".to_owned(), auth };
    assert!(matches!(AhpClient::new(transport).await.unwrap_err(), AhpError::AuthFailed(_)));
}
