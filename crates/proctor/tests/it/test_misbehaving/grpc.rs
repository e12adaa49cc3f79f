//! Agents behind gRPC.

use std::pin::Pin;
use std::sync::Arc;

use axum::Router;
use futures_util::{Stream, StreamExt as _, stream};
use proctor_clients::atp::proto::agent_server::{Agent, AgentServer};
use proctor_clients::atp::proto::message::Kind as Text;
use proctor_clients::atp::proto::{Message, Request as ExecuteRequest, Response as ExecuteResponse};
use proctor_net::listen::{ListenOptions, serve};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status};

use super::{Bench, Kind, check, kinds};

const KINDS: &str = "\
status-internal | 60 | error | gRPC status 13: the model is on fire
status-unavailable-after-an-event | 60 | error | gRPC status 14: gone
status-unauthenticated | 60 | error | gRPC status 16: who are you
neither-method | 60 | error | gRPC status 12
only-unary | 60 | passed |
only-unary-that-fails | 60 | error | gRPC status 2: no luck
no-response | 60 | error | closed the connection before it sent a response
empty-envelope | 60 | error | not valid JSON
two-responses | 60 | error | second response
foreign-id | 60 | error | response has task id `another`
foreign-event | 60 | error | event has task id `another`
event-in-the-envelope-of-a-response | 60 | error | response is not valid
response-in-the-envelope-of-an-event | 60 | error | closed the connection before it sent a response
bad-json | 60 | error | not valid JSON
invalid-utf8 | 60 | error | UTF-8
deep | 60 | error | nested
long | 60 | error | longer than 16777216
endless-events | 60 | error | more than 100000 events
silence | 1 | failed | TIMEOUT: the agent took longer than 1 s
left-open | 60 | passed |
calm | 60 | passed |
";

type Messages = Pin<Box<dyn Stream<Item = Result<Message, Status>> + Send>>;

struct Misbehaving {
    /// Opens when the calm kind may answer.
    gate: Arc<Semaphore>,
}

struct Asked {
    test: String,
    task: String,
}

fn asked(request: Request<ExecuteRequest>) -> Asked {
    let request: serde_json::Value = serde_json::from_slice(&request.into_inner().request_json).unwrap();
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    Asked { test: text(&request["metadata"]["test_id"]), task: text(&request["task_id"]) }
}

fn response(task: &str) -> String {
    format!(r#"{{"version":"1.0","task_id":"{task}","status":"completed","artifacts":[],"metrics":{{}}}}"#)
}

fn event(task: &str) -> String {
    format!(
        r#"{{"version":"1.0","task_id":"{task}","timestamp":"2026-01-01T00:00:00Z","sequence":0,"event_type":"progress","payload":{{}}}}"#
    )
}

#[expect(clippy::unnecessary_wraps, reason = "an item of a stream of results")]
fn as_event(text: impl Into<Vec<u8>>) -> Result<Message, Status> {
    Ok(Message { kind: Some(Text::EventJson(text.into())) })
}

#[expect(clippy::unnecessary_wraps, reason = "an item of a stream of results")]
fn as_response(text: impl Into<Vec<u8>>) -> Result<Message, Status> {
    Ok(Message { kind: Some(Text::ResponseJson(text.into())) })
}

#[tonic::async_trait]
impl Agent for Misbehaving {
    async fn execute(&self, request: Request<ExecuteRequest>) -> Result<Response<ExecuteResponse>, Status> {
        let Asked { test, task } = asked(request);
        match test.as_str() {
            "only-unary" => Ok(Response::new(ExecuteResponse { response_json: response(&task).into() })),
            "only-unary-that-fails" => Err(Status::unknown("no luck")),
            _ => Err(Status::unimplemented("there is no such method")),
        }
    }

    type ExecuteStreamStream = Messages;

    async fn execute_stream(&self, request: Request<ExecuteRequest>) -> Result<Response<Messages>, Status> {
        let Asked { test, task } = asked(request);
        let (event, response) = (event(&task), response(&task));
        let messages: Vec<Result<Message, Status>> = match test.as_str() {
            "status-internal" => return Err(Status::internal("the model is on fire")),
            "status-unauthenticated" => return Err(Status::unauthenticated("who are you")),
            "neither-method" | "only-unary" | "only-unary-that-fails" => {
                return Err(Status::unimplemented("there is no such method"));
            }
            "status-unavailable-after-an-event" => vec![as_event(event), Err(Status::unavailable("gone"))],
            "no-response" => vec![as_event(event)],
            "empty-envelope" => vec![Ok(Message { kind: None }), as_response(response)],
            "two-responses" => vec![as_response(response.clone()), as_response(response)],
            "foreign-id" => vec![as_response(response.replace(&task, "another"))],
            "foreign-event" => vec![as_event(event.replace(&task, "another")), as_response(response)],
            "event-in-the-envelope-of-a-response" => vec![as_response(event)],
            "response-in-the-envelope-of-an-event" => vec![as_event(response)],
            "bad-json" => vec![as_response("{oops")],
            "invalid-utf8" => vec![as_response(b"{\"status\":\"\xff\"}".to_vec())],
            "deep" => vec![as_response(format!("{}{}", "[".repeat(100_000), "]".repeat(100_000)))],
            "long" => vec![as_response(vec![b'x'; 17 << 20])],
            "endless-events" => {
                let endless = stream::repeat_with(move || as_event(event.clone()));
                return Ok(Response::new(Box::pin(endless)));
            }
            "silence" => return Ok(Response::new(Box::pin(stream::pending()))),
            "left-open" => {
                let open = stream::iter([as_response(response)]).chain(stream::pending());
                return Ok(Response::new(Box::pin(open)));
            }
            "calm" => {
                let _permit = self.gate.acquire().await;
                vec![as_event(event), as_response(response)]
            }
            other => panic!("no kind `{other}`"),
        };
        Ok(Response::new(Box::pin(stream::iter(messages))))
    }
}

#[test]
fn over_grpc() {
    let bench = Bench::new();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let gate = Arc::new(Semaphore::new(0));
    let service =
        AgentServer::new(Misbehaving { gate: Arc::clone(&gate) }).max_encoding_message_size(usize::MAX);
    let app = Router::new().route_service("/proctor.atp.v1.Agent/{*method}", service);
    let stop = CancellationToken::new();
    let (address, serving) = runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        (address, tokio::spawn(serve(listener, app, ListenOptions::default(), stop.clone())))
    });
    let agent = format!("grpc://{address}");
    let kinds = kinds(KINDS);
    let calm: Vec<Kind> = kinds.iter().filter(|kind| kind.id == super::CALM).cloned().collect();
    // Closed again after the first run, so that the second one waits too.
    let (_, alone) = bench.run(&agent, &calm, &|| gate.add_permits(1));
    gate.forget_permits(1);
    let (result, after_others) = bench.run(&agent, &kinds, &|| gate.add_permits(1));
    check(&kinds, &result);
    assert_eq!(after_others, alone, "left after the others");
    // Ends when the last connection is closed.
    stop.cancel();
    runtime.block_on(serving).unwrap().unwrap();
}
