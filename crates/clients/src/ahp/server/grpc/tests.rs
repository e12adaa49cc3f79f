use std::sync::Mutex;
use std::time::Duration;

use proctor_net::auth::SecretKind;
use proctor_net::listen::{ListenOptions, serve};
use proctor_wire::ahp::{AhpEvent, Decision, check::Entry};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio_util::sync::CancellationToken;
use tonic::Code;
use tonic::transport::Channel;

use super::super::{HandlerError, Identity};
use super::*;
use crate::ahp::grpc::harness_client::HarnessClient;

struct Probe {
    gate: Semaphore,
    order: Mutex<Vec<u64>>,
    begun: watch::Sender<usize>,
    noticed: watch::Sender<usize>,
    peers: Mutex<Vec<Peer>>,
}

impl Probe {
    async fn act(&self, peer: &Peer, event: &AhpEvent) {
        self.peers.lock().unwrap().push(peer.clone());
        self.order.lock().unwrap().push(event.payload.get("n").and_then(Json::as_u64).unwrap_or_default());
        self.begun.send_modify(|begun| *begun += 1);
        match event.payload.get("tool_name").and_then(Json::as_str) {
            Some("wait") => self.gate.acquire().await.unwrap().forget(),
            Some("panic") => panic!("as the event says"),
            _ => {}
        }
    }
}

impl EventHandler for Probe {
    async fn handle_event(&self, peer: &Peer, event: AhpEvent) -> Result<Decision, HandlerError> {
        self.act(peer, &event).await;
        Ok(Decision::allow())
    }

    async fn handle_notification(&self, peer: &Peer, entry: Entry) -> Result<(), HandlerError> {
        self.act(peer, &entry.event).await;
        self.noticed.send_modify(|noticed| *noticed += 1);
        Ok(())
    }
}

struct Running {
    server: AhpServer<Probe>,
    channel: Channel,
    stop: CancellationToken,
    task: tokio::task::JoinHandle<io::Result<()>>,
}

async fn start(credentials: Credentials) -> Running {
    let server = AhpServer::new(Probe {
        gate: Semaphore::new(0),
        order: Mutex::default(),
        begun: watch::Sender::new(0),
        noticed: watch::Sender::new(0),
        peers: Mutex::default(),
    })
    .window(300);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let target = format!("http://{}", listener.local_addr().unwrap());
    let stop = CancellationToken::new();
    let app = routes(server.clone(), Arc::new(credentials));
    let task = tokio::spawn(serve(listener, app, ListenOptions::default(), stop.clone()));
    let channel = Channel::from_shared(target).unwrap().connect().await.unwrap();
    Running { server, channel, stop, task }
}

impl Running {
    fn client(&self) -> HarnessClient<Channel> {
        HarnessClient::new(self.channel.clone()).max_encoding_message_size(64 << 20)
    }

    async fn stop(self) {
        drop(self.channel);
        self.stop.cancel();
        self.task.await.unwrap().unwrap();
    }
}

fn params(kind: &str, tool: &str, n: u64) -> Vec<u8> {
    format!(
        r#"{{"event_type":"{kind}","session_id":"s","agent_id":"a","timestamp":"","depth":0,
            "payload":{{"tool_name":"{tool}","n":{n}}}}}"#
    )
    .into_bytes()
}

fn ask(id: &str, tool: &str, n: u64) -> proto::Request {
    let params_json = params("pre_action", tool, n);
    proto::Request { id: Some(id.to_owned()), method: "ahp/event".to_owned(), params_json }
}

fn tell(tool: &str) -> proto::Notification {
    proto::Notification { method: "ahp/event".to_owned(), params_json: params("post_action", tool, 0) }
}

fn decision(response: &proto::Response) -> String {
    match response.outcome.as_ref().unwrap() {
        Outcome::ResultJson(text) => {
            Json::parse(text).unwrap().get("decision").unwrap().as_str().unwrap().to_owned()
        }
        Outcome::Refusal(refusal) => refusal.code.to_string(),
    }
}

#[tokio::test]
async fn calls_are_answered_and_refused_by_id() {
    let running = start(Credentials::none()).await;
    let mut client = running.client();
    for (request, id, expected) in [
        (ask("1", "ok", 0), "1", "allow"),
        (ask("", "panic", 0), "", "block"),
        (proto::Request { id: None, ..ask("", "ok", 0) }, "", "allow"),
        (proto::Request { method: "x".to_owned(), ..ask("m", "ok", 0) }, "m", "-32601"),
        (proto::Request { params_json: b"{}".to_vec(), ..ask("p", "ok", 0) }, "p", "-32602"),
        (proto::Request { params_json: b"\xff".to_vec(), ..ask("j", "ok", 0) }, "j", "-32700"),
        (proto::Request { params_json: vec![b'['; 100_000], ..ask("d", "ok", 0) }, "d", "-32700"),
        (proto::Request { params_json: vec![], ..ask("e", "ok", 0) }, "e", "-32600"),
        (ask(&"x".repeat(4097), "ok", 0), "", "-32600"),
    ] {
        let response = client.call(request).await.unwrap().into_inner();
        assert_eq!((response.id.as_str(), decision(&response).as_str()), (id, expected));
    }
    let huge = proto::Request { params_json: vec![b' '; MAX_MESSAGE + 1], ..ask("h", "ok", 0) };
    assert_eq!(client.call(huge).await.unwrap_err().code(), Code::OutOfRange);
    let peer = running.server.handler().peers.lock().unwrap()[0].clone();
    assert_eq!(peer, Peer { transport: "grpc", identity: Identity::Loopback });
    running.stop().await;
}

#[tokio::test]
async fn notifications_are_acknowledged_or_refused_and_slow_ones_go_on() {
    let running = start(Credentials::none()).await;
    let mut client = running.client();
    assert_eq!(client.notify(tell("ok")).await.unwrap().into_inner().refusal, None);
    for tool in ["panic"] {
        assert_eq!(client.notify(tell(tool)).await.unwrap().into_inner().refusal.unwrap().code, -32603);
    }
    assert_eq!(client.notify(tell("wait")).await.unwrap().into_inner().refusal, None);
    let handler = running.server.handler();
    assert_eq!(*handler.noticed.borrow(), 1);
    handler.gate.add_permits(1);
    handler.noticed.subscribe().wait_for(|noticed| *noticed == 2).await.unwrap();
    running.stop().await;
}

struct Asked(mpsc::Receiver<proto::Request>);

impl futures_util::Stream for Asked {
    type Item = proto::Request;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<proto::Request>> {
        self.0.poll_recv(cx)
    }
}

#[tokio::test]
async fn a_stream_answers_in_any_order_and_begins_in_order() {
    let running = start(Credentials::none()).await;
    let (sender, receiver) = mpsc::channel(2000);
    let mut replies = running.client().stream(Asked(receiver)).await.unwrap().into_inner();
    sender.send(ask("slow", "wait", 0)).await.unwrap();
    sender.send(proto::Request { id: None, ..ask("", "ok", 0) }).await.unwrap();
    sender.send(ask("quick", "ok", 1)).await.unwrap();
    let quick = replies.message().await.unwrap().unwrap();
    assert_eq!((quick.id.as_str(), decision(&quick).as_str()), ("quick", "allow"));
    let handler = running.server.handler();
    handler.gate.add_permits(1);
    assert_eq!(replies.message().await.unwrap().unwrap().id, "slow");

    handler.order.lock().unwrap().clear();
    let before = *handler.begun.borrow();
    for n in 0..1000 {
        sender.send(ask(&n.to_string(), "wait", n)).await.unwrap();
    }
    handler.begun.subscribe().wait_for(|begun| *begun == before + 300).await.unwrap();
    handler.gate.add_permits(1000);
    for _ in 0..1000 {
        replies.message().await.unwrap().unwrap();
    }
    assert!(handler.order.lock().unwrap().iter().copied().eq(0..1000));
    drop(sender);
    assert!(replies.message().await.unwrap().is_none());
    running.stop().await;
}

#[tokio::test]
async fn a_stop_answers_what_is_in_flight_on_a_stream_and_says_so() {
    let running = start(Credentials::none()).await;
    let (sender, receiver) = mpsc::channel(10);
    let mut replies = running.client().stream(Asked(receiver)).await.unwrap().into_inner();
    sender.send(ask("last", "wait", 0)).await.unwrap();
    let handler = running.server.handler();
    handler.begun.subscribe().wait_for(|begun| *begun == 1).await.unwrap();
    running.stop.cancel();
    handler.gate.add_permits(1);
    assert_eq!(replies.message().await.unwrap().unwrap().id, "last");
    assert_eq!(replies.message().await.unwrap_err().code(), Code::Unavailable);
    drop((sender, replies));
    tokio::time::timeout(Duration::from_secs(10), running.stop()).await.unwrap();
}

#[tokio::test]
async fn callers_show_who_they_are() {
    let credentials = Credentials::none()
        .with_secret("build", SecretKind::Bearer, "b-secret".to_owned())
        .with_secret("laptop", SecretKind::ApiKey, "k-secret".to_owned());
    let running = start(credentials).await;
    let mut client = running.client();
    for (name, value, expected) in [
        ("authorization", "Bearer b-secret", Ok("build")),
        ("x-api-key", "k-secret", Ok("laptop")),
        ("authorization", "Bearer wrong", Err(Code::Unauthenticated)),
        ("other", "thing", Err(Code::Unauthenticated)),
    ] {
        let mut request = Request::new(ask("1", "ok", 0));
        request.metadata_mut().insert(name, value.parse().unwrap());
        let outcome = client.call(request).await.map_err(|status| status.code());
        assert_eq!(outcome.as_ref().err(), expected.as_ref().err());
        if let Ok(name) = expected {
            let peer = running.server.handler().peers.lock().unwrap().pop().unwrap();
            assert_eq!(peer.identity, Identity::Token(name.to_owned()));
        }
    }
    running.stop().await;
}
