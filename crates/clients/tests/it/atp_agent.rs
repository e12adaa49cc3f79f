//! The servers of the agent trait, spoken to by the client: the same conversation on every transport.

use std::sync::Arc;

use axum::Router;
use bytes::Bytes;
use proctor_clients::atp::agent::{Agent, AgentServer, EventError, Events, Reason, grpc, http, websocket};
use proctor_clients::atp::client::stdio::{Pipes, execute};
use proctor_clients::atp::client::{ExecuteError, Item};
use proctor_core::json::Json;
use proctor_core::time::{ManualClock, Timestamp};
use proctor_net::auth::Credentials;
use proctor_net::listen::ListenOptions;
use proctor_wire::atp::event::{Payload, Progress};
use proctor_wire::atp::{ErrorCode, Request, Response, Status, Strictness};
use tokio::io::duplex;
use tokio::sync::mpsc;

use crate::support::atp::{Transcript, client, transcript};
use crate::support::port::Running;

/// An agent that does what its description says.
struct Obedient {
    /// Told when work on a task begins, and when its future is dropped.
    log: mpsc::Sender<&'static str>,
}

struct Guard(mpsc::Sender<&'static str>);

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.try_send("dropped");
    }
}

impl Agent for Obedient {
    async fn execute(&self, request: Request, events: Events) -> Response {
        match request.description() {
            "panic" => panic!("as told"),
            "hang" => {
                let _guard = Guard(self.log.clone());
                let _ = self.log.try_send("begun");
                std::future::pending().await
            }
            "swap ids" => Response::new("another", Status::Completed),
            "too long" => {
                Response::new("", Status::Completed).with_member("note", "x".repeat(17 * 1024 * 1024))
            }
            "leave a task behind" => {
                let late = events.clone();
                tokio::spawn(async move { while progress(&late, "late").await.is_ok() {} });
                Response::new("", Status::Completed)
            }
            description => {
                for step in ["one", "two", "three"] {
                    progress(&events, step).await.unwrap();
                }
                Response::new("", Status::Completed).with_member("said", description)
            }
        }
    }
}

async fn progress(events: &Events, message: &str) -> Result<(), EventError> {
    events.send(&Payload::Progress(Progress { message: Some(message), ..Progress::default() })).await
}

fn server() -> (AgentServer<Obedient>, mpsc::Receiver<&'static str>) {
    let (log, logged) = mpsc::channel(16);
    let clock = Arc::new(ManualClock::new(Timestamp::from_micros(1_000_000)));
    (AgentServer::new(Obedient { log }, clock), logged)
}

fn request(description: &str) -> String {
    Request::new("task-7", description).to_string()
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Transport {
    Stdio,
    Http,
    WebSocket,
    Grpc,
}

const ALL: [Transport; 4] = [Transport::Stdio, Transport::Http, Transport::WebSocket, Transport::Grpc];

async fn listening(server: AgentServer<Obedient>, transport: Transport) -> (Running, String) {
    let local = Arc::new(Credentials::none());
    let (scheme, app): (_, Router) = match transport {
        Transport::Http => ("http", http::router(server, local)),
        Transport::WebSocket => ("ws", websocket::router(server, local)),
        _ => ("grpc", grpc::routes(server, local)),
    };
    let running = Running::start(app, ListenOptions::default()).await;
    let url = format!("{scheme}://{}", running.address);
    (running, url)
}

async fn asked(server: AgentServer<Obedient>, transport: Transport, request: impl Into<Bytes>) -> Transcript {
    if transport != Transport::Stdio {
        let (running, url) = listening(server, transport).await;
        let got = transcript(client(&url).execute(request.into())).await;
        running.stop().await;
        return got;
    }
    let (stdin, input) = duplex(1024);
    let (stdout, output) = duplex(1024);
    let (stderr, errors) = duplex(1024);
    let pipes = Pipes { stdin: Box::new(stdin), stdout: Box::new(stdout), stderr: Box::new(stderr) };
    let (got, served) =
        tokio::join!(transcript(execute(pipes, request.into())), server.serve_pipes(input, output, errors));
    served.unwrap();
    got
}

/// The response of a conversation that is expected to have nothing else.
fn response(got: &Transcript) -> Response {
    let texts = got.texts();
    Response::parse(texts.last().unwrap().as_bytes(), Strictness::Lenient).unwrap().message
}

#[tokio::test]
async fn the_conversation_is_the_same_on_every_transport() {
    let mut seen: Vec<Vec<String>> = Vec::new();
    for transport in ALL {
        let got = asked(server().0, transport, request("say hello")).await;
        let texts: Vec<String> = got.texts().into_iter().map(str::to_owned).collect();
        assert_eq!(texts.len(), 4, "{transport:?}");
        seen.push(texts);
    }
    let first = &seen[0];
    assert!(seen.iter().all(|texts| texts == first), "{seen:?}");
    for (number, event) in first[..3].iter().enumerate() {
        let event = Json::parse(event.as_bytes()).unwrap();
        assert_eq!(event["sequence"].as_u64(), Some(number as u64));
        assert_eq!(event["task_id"], "task-7");
        assert_eq!(event["timestamp"], "1970-01-01T00:00:01.000000Z");
    }
    assert!(first[3].contains(r#""task_id":"task-7""#) && first[3].contains(r#""said":"say hello""#));
}

/// Failed responses are messages; on HTTP they are the body of an error status.
async fn failed(server: AgentServer<Obedient>, transport: Transport, request: Vec<u8>) -> (u16, Response) {
    let got = asked(server, transport, request).await;
    let (status, text) = match got.errors.first() {
        Some(ExecuteError::Status { status, body, .. }) => (*status, body.to_vec()),
        _ => (200, got.texts().last().unwrap().as_bytes().to_vec()),
    };
    (status, Response::parse(&text, Strictness::Lenient).unwrap().message)
}

#[tokio::test]
async fn malformed_requests_are_failed_responses() {
    let other_version = r#"{"version":"2.0","task_id":"task-7","task":{"description":"x"}}"#;
    for transport in ALL {
        for (text, task_id) in [
            ("nonsense", "unknown"),
            ("[]", "unknown"),
            (r#"{"task_id":"task-7"}"#, "task-7"),
            (other_version, "task-7"),
        ] {
            let (status, response) = failed(server().0, transport, text.into()).await;
            assert_eq!(status, if transport == Transport::Http { 400 } else { 200 });
            assert_eq!(
                (response.status(), response.task_id()),
                (Status::Failed, task_id),
                "{transport:?} {text}"
            );
            assert_eq!(response.error_code(), Some(ErrorCode::InvalidRequest));
            assert!(response.error().is_some_and(|error| !error.is_empty()));
        }
    }
}

#[tokio::test]
async fn requests_over_the_limit_are_failed_responses() {
    for transport in ALL {
        let (server, _) = server();
        let (status, response) =
            failed(server.with_limits(1000, 1), transport, request(&"x".repeat(5000)).into_bytes()).await;
        assert_eq!(status, if transport == Transport::Http { 413 } else { 200 }, "{transport:?}");
        assert_eq!(response.error_code(), Some(ErrorCode::InvalidRequest));
        assert!(response.error().unwrap().contains("1000 bytes"));
    }
}

#[tokio::test]
async fn a_panic_is_an_internal_error() {
    for transport in ALL {
        let got = asked(server().0, transport, request("panic")).await;
        let response = response(&got);
        assert_eq!((response.status(), response.task_id()), (Status::Failed, "task-7"), "{transport:?}");
        assert_eq!(response.error_code(), Some(ErrorCode::InternalError));
        let got = asked(server().0, transport, request("too long")).await;
        assert_eq!(self::response(&got).error_code(), Some(ErrorCode::InternalError));
    }
}

#[tokio::test]
async fn the_response_has_the_task_id_of_its_request() {
    let got = asked(server().0, Transport::Http, request("swap ids")).await;
    assert_eq!(response(&got).task_id(), "task-7");
}

#[tokio::test]
async fn tasks_that_the_agent_left_behind_send_nothing_after_the_response() {
    for transport in ALL {
        let got = asked(server().0, transport, request("leave a task behind")).await;
        assert_eq!(response(&got).status(), Status::Completed);
    }
}

#[tokio::test]
async fn work_ends_when_its_caller_goes_away() {
    for transport in [Transport::Http, Transport::WebSocket, Transport::Grpc] {
        let (server, mut log) = server();
        let (_running, url) = listening(server, transport).await;
        let client = client(&url);
        let mut exchange = client.execute(request("hang").into());
        tokio::select! {
            biased;
            item = exchange.next() => panic!("{item:?}"),
            begun = log.recv() => assert_eq!(begun, Some("begun")),
        }
        drop(exchange);
        assert_eq!(log.recv().await, Some("dropped"), "{transport:?}");
    }
}

#[tokio::test]
async fn executions_are_bounded_and_their_places_come_back() {
    let (server, mut log) = server();
    let server = server.with_limits(1000, 1);
    let (_running, url) = listening(server.clone(), Transport::Http).await;
    let client = client(&url);
    let mut exchange = client.execute(request("hang").into());
    tokio::select! {
        biased;
        item = exchange.next() => panic!("{item:?}"),
        _ = log.recv() => {}
    }
    let refusal = server.begin(request("say hello").as_bytes()).unwrap_err();
    assert_eq!(refusal.reason, Reason::Busy);
    let error = transcript(client.execute(request("say hello").into())).await.error();
    assert!(matches!(error, ExecuteError::Status { status: 503, .. }), "{error:?}");
    drop(exchange);
    assert_eq!(log.recv().await, Some("dropped"));
    assert!(server.begin(request("say hello").as_bytes()).is_ok());
}

#[tokio::test]
async fn a_websocket_takes_one_request_after_the_other() {
    use futures_util::{SinkExt, StreamExt};
    use tokio_tungstenite::tungstenite::Message;
    let (_running, url) = listening(server().0, Transport::WebSocket).await;
    let (mut socket, _) = tokio_tungstenite::connect_async(format!("{url}/any/path")).await.unwrap();
    for _ in 0..3 {
        socket.send(Message::text(request("say hello"))).await.unwrap();
    }
    for number in 0..12 {
        let Message::Text(text) = socket.next().await.unwrap().unwrap() else { panic!() };
        let is_response = Json::parse(text.as_bytes()).unwrap().get("status").is_some();
        assert_eq!(is_response, number % 4 == 3, "{number}: {text}");
    }
}

/// Media types, over a plain connection.
#[tokio::test]
async fn media_types_are_negotiated() {
    let (running, _) = listening(server().0, Transport::Http).await;
    let ask = async |path: &str, headers: &str| {
        let headers = format!("host: localhost\r\nconnection: close\r\n{headers}");
        running.connect().await.post_with(path, &headers, request("say hello")).await
    };
    let json = "content-type: application/json\r\n";
    let vendor = "content-type: application/vnd.atp.v1+json\r\n";
    for (path, headers, status, media_type) in [
        ("/execute", json.to_owned(), 200, "application/json"),
        ("/execute", vendor.to_owned(), 200, "application/json"),
        (
            "/execute",
            format!("{json}accept: application/vnd.atp.v1+json\r\n"),
            200,
            "application/vnd.atp.v1+json",
        ),
        ("/execute", format!("{json}accept: text/event-stream\r\n"), 200, "text/event-stream"),
        ("/execute/stream", json.to_owned(), 200, "text/event-stream"),
        ("/execute/stream", format!("{json}accept: application/json\r\n"), 200, "application/json"),
        ("/execute", format!("{json}accept: application/vnd.atp.v2+json\r\n"), 406, "application/json"),
        ("/execute", "content-type: text/plain\r\n".to_owned(), 415, "application/json"),
        ("/execute", "content-type: application/vnd.atp.v2+json\r\n".to_owned(), 415, "application/json"),
        ("/execute/stream", String::new(), 415, "application/json"),
    ] {
        let answer = ask(path, &headers).await;
        assert_eq!(answer.status, status, "{path} {headers}");
        let expected = format!("content-type: {media_type}\r\n");
        assert!(answer.head.contains(&expected), "{path} {headers}: {}", answer.head);
        if status != 200 {
            assert!(answer.body.contains(r#""error_code":"INVALID_REQUEST""#), "{}", answer.body);
        }
    }
    running.stop().await;
}

/// Without credentials an agent serves its own machine alone, and no web page.
#[tokio::test]
async fn callers_are_authenticated() {
    let (running, _) = listening(server().0, Transport::Http).await;
    let headers = "host: evil.example\r\ncontent-type: application/json\r\n";
    let answer = running.connect().await.post_with("/execute", headers, request("x")).await;
    assert_eq!(answer.status, 403);
    running.stop().await;
}

#[tokio::test]
async fn an_execution_waits_for_a_caller_that_reads_slowly() {
    let (server, _) = server();
    let mut execution = server.begin(request("leave a task behind").as_bytes()).unwrap();
    // The task sends for ever, but no more than the queue holds goes out.
    let mut count = 0;
    while execution.next().await.is_some() {
        count += 1;
        assert!(count < 1000);
    }
    assert!(matches!(count, 1..1000));
}

#[tokio::test]
async fn an_unfinished_exchange_is_not_an_end() {
    let (server, _log) = server();
    let (_running, url) = listening(server, Transport::Http).await;
    let mut exchange = client(&url).execute(request("say hello").into());
    let mut count = 0;
    while exchange.next().await.unwrap() != Item::End {
        count += 1;
    }
    assert_eq!(count, 4);
}
