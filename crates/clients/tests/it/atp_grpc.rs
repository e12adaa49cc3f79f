//! The client of gRPC agents, against correct and hostile ones.

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use futures_util::{Stream, StreamExt, stream};
use proctor_clients::atp::client::{ConnectError, ExecuteError, MAX_MESSAGE};
use proctor_clients::atp::proto::agent_server::{Agent, AgentServer};
use proctor_clients::atp::proto::message::Kind;
use proctor_clients::atp::proto::{Message, Request as ExecuteRequest, Response as ExecuteResponse};
use proctor_net::listen::ListenOptions;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tonic::{Request, Response, Status};

use crate::atp_rules::{check_foreign, check_second};
use crate::support::atp::{
    EVENT, REQUEST, RESPONSE, RawAgent, Transcript, client, closed, executed, outcome, reply, transcript,
};
use crate::support::port::Running;

type Messages = Pin<Box<dyn Stream<Item = Result<Message, Status>> + Send>>;
type Streamed = Arc<dyn Fn() -> Result<Messages, Status> + Send + Sync>;

/// An agent whose stream is made by a function, and whose unary method gives the response, if it has one.
struct Double {
    streamed: Streamed,
    unary: bool,
    streams: Arc<AtomicUsize>,
    requests: Arc<Mutex<Vec<String>>>,
}

#[tonic::async_trait]
impl Agent for Double {
    async fn execute(&self, request: Request<ExecuteRequest>) -> Result<Response<ExecuteResponse>, Status> {
        let request = String::from_utf8(request.into_inner().request_json).unwrap();
        self.requests.lock().unwrap().push(request);
        if self.unary {
            Ok(Response::new(ExecuteResponse { response_json: RESPONSE.into() }))
        } else {
            Err(Status::unimplemented("no"))
        }
    }

    type ExecuteStreamStream = Messages;

    async fn execute_stream(&self, request: Request<ExecuteRequest>) -> Result<Response<Messages>, Status> {
        let request = String::from_utf8(request.into_inner().request_json).unwrap();
        self.requests.lock().unwrap().push(request);
        self.streams.fetch_add(1, Ordering::SeqCst);
        (self.streamed)().map(Response::new)
    }
}

struct Started {
    url: String,
    streams: Arc<AtomicUsize>,
    requests: Arc<Mutex<Vec<String>>>,
    _running: Running,
}

async fn start(
    unary: bool,
    streamed: impl Fn() -> Result<Messages, Status> + Send + Sync + 'static,
) -> Started {
    let (streams, requests) = (Arc::<AtomicUsize>::default(), Arc::<Mutex<Vec<String>>>::default());
    let double = Double {
        streamed: Arc::new(streamed),
        unary,
        streams: Arc::clone(&streams),
        requests: Arc::clone(&requests),
    };
    let service = AgentServer::new(double).max_encoding_message_size(usize::MAX);
    let app = Router::new().route_service("/proctor.atp.v1.Agent/{*method}", service);
    let running = Running::start(app, ListenOptions::default()).await;
    Started { url: format!("grpc://{}", running.address), streams, requests, _running: running }
}

#[expect(clippy::unnecessary_wraps, reason = "an item of a stream")]
fn event(text: &str) -> Result<Message, Status> {
    Ok(Message { kind: Some(Kind::EventJson(text.into())) })
}

#[expect(clippy::unnecessary_wraps, reason = "an item of a stream")]
fn response() -> Result<Message, Status> {
    Ok(Message { kind: Some(Kind::ResponseJson(RESPONSE.into())) })
}

/// What a stream of these gives.
async fn said(messages: Vec<Result<Message, Status>>) -> Transcript {
    let agent = start(true, move || Ok(stream::iter(messages.clone()).boxed())).await;
    let got = executed(&agent.url).await;
    assert_eq!(agent.requests.lock().unwrap()[0], REQUEST);
    got
}

#[tokio::test]
async fn the_stream_is_tried_first() {
    let got = said(vec![event(EVENT), response()]).await;
    assert_eq!(got.messages, [(EVENT.to_owned(), false), (RESPONSE.to_owned(), true)]);
    assert_eq!(got.errors, []);
}

#[tokio::test]
async fn an_agent_without_a_stream_is_called_once_and_that_is_remembered() {
    // The status may come instead of the reply, or at the end of an empty one.
    let early = start(true, || Err(Status::unimplemented("no streams"))).await;
    let late = start(true, || Ok(stream::iter([Err(Status::unimplemented("no streams"))]).boxed())).await;
    for agent in [early, late] {
        let client = client(&agent.url);
        for _ in 0..3 {
            let got = transcript(client.execute(REQUEST.into())).await;
            assert_eq!(got.messages, [(RESPONSE.to_owned(), true)]);
            assert_eq!(got.errors, []);
        }
        assert_eq!(agent.streams.load(Ordering::SeqCst), 1);
    }
}

#[tokio::test]
async fn after_a_message_nothing_is_called_twice() {
    let got = said(vec![event(EVENT), Err(Status::unimplemented("late"))]).await;
    assert!(matches!(got.error(), ExecuteError::GrpcStatus { code: 12, .. }));
}

#[tokio::test]
async fn statuses_are_errors_with_their_text() {
    for status in
        [Status::internal("broken"), Status::unauthenticated("who?"), Status::resource_exhausted("full")]
    {
        let (code, text) = (i32::from(status.code()), status.message().to_owned());
        let got = said(vec![event(EVENT), Err(status)]).await;
        assert_eq!(got.messages.len(), 1);
        assert_eq!(got.error(), ExecuteError::GrpcStatus { code, message: text });
    }
    // Neither method.
    let agent = start(false, || Err(Status::unimplemented("no"))).await;
    let error = executed(&agent.url).await.error();
    assert!(matches!(error, ExecuteError::GrpcStatus { code: 12, .. }), "{error:?}");
}

#[tokio::test]
async fn a_stream_without_a_response_is_an_error() {
    for messages in [vec![], vec![event(EVENT)]] {
        assert_eq!(said(messages).await.error(), ExecuteError::ClosedBeforeResponse);
    }
    // An empty envelope is delivered, for its reader to refuse.
    let got = said(vec![Ok(Message { kind: None }), response()]).await;
    assert_eq!(got.texts(), ["", RESPONSE]);
    let got = said(vec![response(), response()]).await;
    assert_eq!(got.texts(), [RESPONSE, RESPONSE]);
}

/// Defect 19, and a second response, on this transport.
#[tokio::test]
async fn defect_19_a_foreign_task_id_is_refused() {
    let foreign = || Ok(Message { kind: Some(Kind::ResponseJson(RESPONSE.replace("t-1", "t-2").into())) });
    for messages in [vec![foreign()], vec![event(EVENT), foreign()]] {
        let agent = start(true, move || Ok(stream::iter(messages.clone()).boxed())).await;
        check_foreign(&outcome(client(&agent.url).execute(REQUEST.into())).await);
    }
    let agent = start(true, || Ok(stream::iter([response(), response()]).boxed())).await;
    check_second(&outcome(client(&agent.url).execute(REQUEST.into())).await);
}

#[tokio::test]
async fn messages_over_the_limit_are_cut_off() {
    let got = said(vec![event(&"x".repeat(MAX_MESSAGE + 1))]).await;
    assert_eq!(got.error(), ExecuteError::TooLong);
    let got = said(vec![event(&"x".repeat(2 * MAX_MESSAGE))]).await;
    assert_eq!(got.error(), ExecuteError::TooLong);
    let long = "x".repeat(MAX_MESSAGE);
    assert_eq!(said(vec![event(&long), response()]).await.texts(), [&long, RESPONSE]);
}

#[tokio::test]
async fn a_flood_is_read_in_order() {
    let agent = start(true, || {
        let events = stream::iter(0..20_000).map(|number| event(&format!("{{\"sequence\":{number}}}")));
        Ok(events.chain(stream::once(async { response() })).boxed())
    })
    .await;
    let got = executed(&agent.url).await;
    assert_eq!((got.messages.len(), got.errors.len()), (20_001, 0));
    assert_eq!(got.messages[19_999].0, "{\"sequence\":19999}");
}

/// Reports when the stream of a call is dropped.
struct Dropped(mpsc::Sender<()>);

impl Drop for Dropped {
    fn drop(&mut self) {
        let _ = self.0.try_send(());
    }
}

#[tokio::test]
async fn silence_can_be_cancelled_and_ends_the_call() {
    let (silent, mut silences) = mpsc::channel(1);
    let (ended, mut ends) = mpsc::channel(1);
    let agent = start(true, move || {
        let guard = Dropped(ended.clone());
        let _ = silent.try_send(());
        Ok(stream::once(async move {
            let _guard = guard;
            std::future::pending().await
        })
        .boxed())
    })
    .await;
    let client = client(&agent.url);
    let mut exchange = client.execute(REQUEST.into());
    tokio::select! {
        biased;
        item = exchange.next() => panic!("{item:?}"),
        Some(()) = silences.recv() => {}
    }
    drop(exchange);
    ends.recv().await.unwrap();
}

#[tokio::test]
async fn lost_connections_and_wrong_servers_are_errors() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("grpc://{}", listener.local_addr().unwrap());
    // A server that closes at once, and one that speaks no HTTP/2.
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = stream.shutdown().await;
            closed(&mut stream).await;
        }
    });
    let error = executed(&url).await.error();
    assert!(matches!(error, ExecuteError::ConnectionLost | ExecuteError::Connect(_)), "{error:?}");
    let plain = RawAgent::saying(reply("200 OK", "", RESPONSE)).await;
    executed(&plain.url.replace("http", "grpc")).await.error();
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("grpc://{}", gone.local_addr().unwrap());
    drop(gone);
    let error = executed(&url).await.error();
    let ExecuteError::Connect(ConnectError::Failed(reason)) = &error else { panic!("{error:?}") };
    assert!(reason.contains("refused"), "{reason}");
}
