//! Against a harness that says what it is told to.

use std::result::Result;
use std::time::{Duration, Instant};

use proctor_wire::ahp::EventType;
use serde_json::json;
use tokio::net::TcpListener;
use tonic::{Response, async_trait};

use super::*;
use crate::ahp::client::{AhpClient, Transport};
use crate::ahp::grpc::harness_server::{Harness, HarnessServer};

/// Answers the handshake, and everything else as its `tool_name` says.
struct Told;

#[async_trait]
impl Harness for Told {
    type StreamStream = futures_util::stream::Empty<Result<grpc::Response, Status>>;

    async fn call(&self, request: Request<grpc::Request>) -> Result<Response<grpc::Response>, Status> {
        let token =
            request.metadata().get("authorization").and_then(|value| value.to_str().ok()).map(str::to_owned);
        if token.as_deref() == Some("Bearer wrong") {
            return Err(Status::unauthenticated("no such token"));
        }
        let grpc::Request { id, method, params_json } = request.into_inner();
        let params = Json::parse(&params_json).unwrap();
        let result = |text: &str| Some(grpc::response::Outcome::ResultJson(text.as_bytes().to_vec()));
        let mut id = id.unwrap();
        let outcome = match params["payload"]["tool_name"].as_str() {
            _ if method == "ahp/handshake" => result(
                r#"{"protocol_version":"2.4","harness_info":{"name":"g","version":"1","capabilities":[]}}"#,
            ),
            Some("refuse") => Some(grpc::response::Outcome::Refusal(refusal())),
            Some("other id") => {
                id.push('x');
                result("1")
            }
            Some("null") => result("null"),
            Some("no json") => result("{"),
            Some("nothing") => None,
            Some("never") => std::future::pending().await,
            Some("fail") => return Err(Status::internal("broken")),
            _ => result(r#"{"decision":"allow"}"#),
        };
        Ok(Response::new(grpc::Response { id, outcome }))
    }

    async fn notify(
        &self,
        request: Request<grpc::Notification>,
    ) -> Result<Response<grpc::Acknowledgement>, Status> {
        let params = Json::parse(&request.into_inner().params_json).unwrap();
        let refused = params["payload"]["tool_name"].as_str() == Some("refuse");
        Ok(Response::new(grpc::Acknowledgement { refusal: refused.then(refusal) }))
    }

    async fn stream(
        &self,
        _: Request<tonic::Streaming<grpc::Request>>,
    ) -> Result<Response<Self::StreamStream>, Status> {
        Err(Status::unimplemented("not here"))
    }
}

fn refusal() -> grpc::Refusal {
    grpc::Refusal { code: -32602, message: "m".to_owned(), data_json: b"{\"a\":1}".to_vec() }
}

async fn harness() -> (String, tokio::task::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let accepted = futures_util::stream::unfold(listener, |listener| async {
        let stream = listener.accept().await.map(|(stream, _)| stream);
        Some((stream, listener))
    });
    let serving = tokio::spawn(async move {
        let server = tonic::transport::Server::builder().add_service(HarnessServer::new(Told));
        server.serve_with_incoming(Box::pin(accepted)).await.unwrap();
    });
    (url, serving)
}

async fn connected() -> (AhpClient, tokio::task::JoinHandle<()>) {
    let (url, serving) = harness().await;
    let auth = Some(AuthConfig::bearer("right"));
    let client = AhpClient::new(Transport::Grpc { url, auth }).await.unwrap();
    client.handshake(vec![]).await.unwrap();
    (client, serving)
}

#[tokio::test]
async fn calls_are_answered_and_replies_checked() {
    let (client, _serving) = connected().await;
    let ask = async |tool: &str| client.send_event(EventType::PreAction, json!({ "tool_name": tool })).await;
    assert_eq!(ask("ls").await.unwrap().to_string(), r#"{"decision":"allow"}"#);
    for tool in ["other id", "null", "no json", "nothing"] {
        let error = ask(tool).await.unwrap_err();
        assert!(matches!(error, AhpError::Protocol(_)), "{tool}: {error:?}");
    }
    let error = ask("refuse").await.unwrap_err();
    let AhpError::Rpc { code: -32602, data: Some(data), .. } = error else { panic!("{error:?}") };
    assert_eq!(data.to_string(), r#"{"a":1}"#);
    let error = ask("fail").await.unwrap_err();
    assert!(matches!(&error, AhpError::Transport(text) if text.contains("broken")), "{error:?}");
    let all = futures_util::future::join_all((0..64).map(|_| ask("ls"))).await;
    assert!(all.iter().all(Result::is_ok));
}

#[tokio::test]
async fn notifications_are_checked() {
    let (client, _serving) = connected().await;
    client.notify(EventType::PostAction, json!({})).await.unwrap();
    let error = client.notify(EventType::PostAction, json!({"tool_name": "refuse"})).await.unwrap_err();
    assert!(matches!(error, AhpError::Rpc { code: -32602, .. }), "{error:?}");
}

#[tokio::test]
async fn waiting_has_a_limit_and_refused_credentials_are_told_apart() {
    let (client, _serving) = connected().await;
    let hurried = client.with_timeout(Duration::from_millis(100));
    let error = hurried.send_event(EventType::PreAction, json!({"tool_name": "never"})).await.unwrap_err();
    assert_eq!(error, AhpError::Timeout { what: "reply", ms: 100 });
    let (url, _serving) = harness().await;
    let auth = Some(AuthConfig::bearer("wrong"));
    let client = AhpClient::new(Transport::Grpc { url, auth }).await.unwrap();
    let error = client.handshake(vec![]).await.unwrap_err();
    assert!(matches!(&error, AhpError::AuthFailed(text) if text == "no such token"), "{error:?}");
}

#[tokio::test]
async fn a_harness_that_hangs_up_is_noticed_at_once() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (client, accepted) =
        tokio::join!(AhpClient::new(Transport::Grpc { url: url.clone(), auth: None }), listener.accept());
    let client = client.unwrap();
    let started = Instant::now();
    let dying = async {
        drop(accepted.unwrap());
        drop(listener);
    };
    let (outcome, ()) = tokio::join!(client.handshake(vec![]), dying);
    assert!(matches!(outcome.unwrap_err(), AhpError::ConnectionClosed | AhpError::Transport(_)));
    assert!(started.elapsed() < Duration::from_secs(1));
    let error = AhpClient::new(Transport::Grpc { url, auth: None }).await.unwrap_err();
    assert!(matches!(error, AhpError::Transport(_)), "{error:?}");
}
