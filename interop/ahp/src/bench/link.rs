//! Connections that do as little as can be done.

use std::time::{Duration, Instant};

use futures_util::{FutureExt, SinkExt, StreamExt};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};
use tonic::transport::{Channel, Endpoint};

use super::{CALLERS, Request, answered};
use crate::grpc;
use crate::grpc::harness_client::HarnessClient;
use crate::grpc::response::Outcome;
use crate::wire::{HttpWire, Lines, Wire};

/// A connection. Many callers share it, except on HTTP, where each has its own.
pub enum Link {
    /// Standard input and output, or a Unix socket.
    Lines(Lines),
    /// A WebSocket.
    WebSocket(Box<WebSocketStream<MaybeTlsStream<TcpStream>>>),
    /// HTTP/1.1, kept open.
    Http(Vec<HttpWire>),
    /// gRPC, one unary call a decision.
    Grpc(HarnessClient<Channel>),
}

impl From<Wire> for Link {
    fn from(wire: Wire) -> Link {
        match wire {
            Wire::Lines(lines) => Link::Lines(lines),
            Wire::WebSocket(socket) => Link::WebSocket(socket),
            Wire::Http(http) => Link::Http(vec![http]),
        }
    }
}

impl Link {
    /// HTTP connections, one a caller.
    pub async fn http(address: &str) -> Link {
        let mut connections = Vec::new();
        for _ in 0..CALLERS {
            connections.push(HttpWire::connect(address).await);
        }
        Link::Http(connections)
    }

    /// A gRPC connection.
    pub async fn grpc(address: &str) -> Link {
        let endpoint = Endpoint::from_shared(format!("http://{address}")).expect("an address");
        Link::Grpc(HarnessClient::new(endpoint.connect().await.expect("it listens")))
    }

    /// Asks once and waits for the answer.
    pub async fn call(&mut self, request: &Request) {
        match self {
            Link::Lines(lines) => {
                write(lines, format!("{}\n", request.text(0)).as_bytes()).await;
                read(lines).await;
            }
            Link::WebSocket(socket) => {
                socket.send(Message::text(request.text(0))).await.expect("it is open");
                hear(socket).await;
            }
            Link::Http(connections) => post(&mut connections[0], &request.text(0)).await,
            Link::Grpc(client) => ask(client, &request.params).await,
        }
    }

    /// Runs many callers until the time is over; returns the number of answers.
    pub async fn crowd(&mut self, request: &Request, time: Duration) -> u64 {
        match self {
            Link::Lines(lines) => crowd_on_lines(lines, request, time).await,
            Link::WebSocket(socket) => crowd_on_websocket(socket, request, time).await,
            Link::Http(connections) => crowd_on_http(connections, request, time).await,
            Link::Grpc(client) => crowd_on_grpc(client, request, time).await,
        }
    }
}

async fn write(lines: &mut Lines, bytes: &[u8]) {
    lines.writer.write_all(bytes).await.expect("it reads");
    lines.writer.flush().await.expect("it reads");
}

async fn read(lines: &mut Lines) -> usize {
    let mut line = Vec::with_capacity(512);
    assert_ne!(lines.reader.read_until(b'\n', &mut line).await.expect("it writes"), 0, "the server closed");
    answered(&line)
}

async fn crowd_on_lines(lines: &mut Lines, request: &Request, time: Duration) -> u64 {
    let start = Instant::now();
    let texts: Vec<String> = (0..CALLERS).map(|slot| format!("{}\n", request.text(slot))).collect();
    write(lines, texts.concat().as_bytes()).await;
    let (mut waiting, mut decisions, mut next) = (CALLERS, 0, Vec::new());
    while waiting > 0 {
        let slot = read(lines).await;
        decisions += 1;
        if start.elapsed() < time {
            next.extend_from_slice(texts[slot].as_bytes());
        } else {
            waiting -= 1;
        }
        // What has arrived already is answered in one write.
        if !lines.reader.buffer().contains(&b'\n') && !next.is_empty() {
            write(lines, &next).await;
            next.clear();
        }
    }
    decisions
}

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

async fn hear(socket: &mut Socket) -> usize {
    loop {
        if let Message::Text(text) = socket.next().await.expect("it is open").expect("it is well") {
            return answered(text.as_bytes());
        }
    }
}

async fn crowd_on_websocket(socket: &mut Socket, request: &Request, time: Duration) -> u64 {
    let start = Instant::now();
    let texts: Vec<String> = (0..CALLERS).map(|slot| request.text(slot)).collect();
    for text in &texts {
        socket.feed(Message::text(text.as_str())).await.expect("it is open");
    }
    socket.flush().await.expect("it is open");
    let (mut waiting, mut decisions) = (CALLERS, 0);
    while waiting > 0 {
        let at_hand = hear(socket).now_or_never();
        let slot = match at_hand {
            Some(slot) => slot,
            None => {
                socket.flush().await.expect("it is open");
                hear(socket).await
            }
        };
        decisions += 1;
        if start.elapsed() < time {
            socket.feed(Message::text(texts[slot].as_str())).await.expect("it is open");
        } else {
            waiting -= 1;
        }
    }
    decisions
}

async fn post(connection: &mut HttpWire, text: &str) {
    let mut body = Vec::new();
    assert_eq!(connection.post(text, &mut body).await, 200);
    answered(&body);
}

async fn crowd_on_http(connections: &mut Vec<HttpWire>, request: &Request, time: Duration) -> u64 {
    let start = Instant::now();
    let mut callers = JoinSet::new();
    for (slot, mut connection) in connections.drain(..).enumerate() {
        let text = request.text(slot);
        callers.spawn(async move {
            let mut decisions = 0;
            while start.elapsed() < time {
                post(&mut connection, &text).await;
                decisions += 1;
            }
            (connection, decisions)
        });
    }
    let mut sum = 0;
    for (connection, decisions) in callers.join_all().await {
        connections.push(connection);
        sum += decisions;
    }
    sum
}

async fn ask(client: &mut HarnessClient<Channel>, params: &str) {
    let request = grpc::Request {
        id: Some("0".to_owned()),
        method: "ahp/event".to_owned(),
        params_json: params.as_bytes().to_vec(),
    };
    let response = client.call(request).await.expect("it answers").into_inner();
    match response.outcome {
        Some(Outcome::ResultJson(result)) => {
            assert!(String::from_utf8_lossy(&result).contains(r#""decision":"allow""#));
        }
        other => panic!("not allowed: {other:?}"),
    }
}

async fn crowd_on_grpc(client: &HarnessClient<Channel>, request: &Request, time: Duration) -> u64 {
    let start = Instant::now();
    let mut callers = JoinSet::new();
    for _ in 0..CALLERS {
        let (mut client, params) = (client.clone(), request.params.clone());
        callers.spawn(async move {
            let mut decisions = 0;
            while start.elapsed() < time {
                ask(&mut client, &params).await;
                decisions += 1;
            }
            decisions
        });
    }
    callers.join_all().await.into_iter().sum()
}
