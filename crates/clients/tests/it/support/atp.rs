//! Agents made of nothing but a socket, and what an exchange with them gives.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use proctor_clients::atp::client::{AgentClient, ClientOptions, Exchange, ExecuteError, Item};
use proctor_wire::atp::Conversation;
use proctor_wire::atp::conversation::Transcript as Outcome;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

pub(crate) const REQUEST: &str = r#"{"version":"1.0","task_id":"t-1","task":{"description":"say hello"}}"#;
pub(crate) const EVENT: &str = r#"{"version":"1.0","task_id":"t-1","timestamp":"2026-01-01T00:00:00Z","sequence":0,"event_type":"progress","payload":{}}"#;
pub(crate) const RESPONSE: &str =
    r#"{"version":"1.0","task_id":"t-1","status":"completed","artifacts":[],"metrics":{}}"#;

/// Everything that an exchange gave.
#[derive(Debug, Default)]
pub(crate) struct Transcript {
    /// Texts, and whether they are responses by their channel or content.
    pub(crate) messages: Vec<(String, bool)>,
    pub(crate) lines: Vec<String>,
    pub(crate) errors: Vec<ExecuteError>,
}

impl Transcript {
    /// The only error, of an exchange without a response.
    pub(crate) fn error(mut self) -> ExecuteError {
        assert_eq!(self.errors.len(), 1, "{self:?}");
        self.errors.remove(0)
    }

    /// The texts of an exchange without errors.
    pub(crate) fn texts(&self) -> Vec<&str> {
        assert_eq!(self.errors, [], "{self:?}");
        self.messages.iter().map(|(text, _)| text.as_str()).collect()
    }
}

/// What the rules of the protocol say of an exchange about task `t-1`.
pub(crate) async fn outcome(mut exchange: Exchange) -> Outcome {
    let mut conversation = Conversation::new("t-1");
    loop {
        match exchange.next().await {
            Ok(Item::End) => return conversation.finish(),
            Ok(item) => item.feed(&mut conversation),
            Err(error) => panic!("{error}"),
        }
    }
}

/// Reads an exchange to its end. The time limit only keeps a failing test from hanging.
pub(crate) async fn transcript(mut exchange: Exchange) -> Transcript {
    let reading = async {
        let mut transcript = Transcript::default();
        let text = |bytes: Bytes| String::from_utf8_lossy(&bytes).into_owned();
        loop {
            match exchange.next().await {
                Ok(Item::Message(message)) => {
                    let is_response = message.is_response();
                    transcript.messages.push((text(message.text), is_response));
                }
                Ok(Item::Line(line)) => transcript.lines.push(text(line)),
                Ok(Item::End) => return transcript,
                Err(error) => transcript.errors.push(error),
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(60), reading).await.unwrap()
}

pub(crate) fn client(url: &str) -> AgentClient {
    AgentClient::new(url, &ClientOptions::default()).unwrap()
}

pub(crate) async fn executed(url: &str) -> Transcript {
    transcript(client(url).execute(Bytes::from_static(REQUEST.as_bytes()))).await
}

/// A received HTTP request.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) path: String,
    /// The head in lowercase.
    pub(crate) head: String,
    pub(crate) body: String,
}

/// An HTTP agent whose reply to each request is a function of it.
pub(crate) struct RawAgent {
    pub(crate) url: String,
    pub(crate) seen: Arc<Mutex<Vec<Seen>>>,
}

impl RawAgent {
    /// `reply` gets the connection after the request was read, writes what it likes, and closes it by returning.
    pub(crate) async fn start<F, W>(reply: F) -> RawAgent
    where
        F: Fn(Seen, TcpStream) -> W + Send + Sync + 'static,
        W: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::<Mutex<Vec<Seen>>>::default();
        let noted = Arc::clone(&seen);
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let Some(request) = read_request(&mut stream).await else { continue };
                noted.lock().unwrap().push(request.clone());
                tokio::spawn(reply(request, stream));
            }
        });
        RawAgent { url, seen }
    }

    /// Writes the same bytes to everybody.
    pub(crate) async fn saying(reply: impl Into<Vec<u8>>) -> RawAgent {
        let reply: Arc<[u8]> = reply.into().into();
        RawAgent::start(move |_, mut stream| {
            let reply = Arc::clone(&reply);
            async move {
                let _ = stream.write_all(&reply).await;
            }
        })
        .await
    }

    pub(crate) fn paths(&self) -> Vec<String> {
        self.seen.lock().unwrap().iter().map(|seen| seen.path.clone()).collect()
    }
}

async fn read_request(stream: &mut TcpStream) -> Option<Seen> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).unwrap();
    let path = head.split(' ').nth(1).unwrap().to_owned();
    let head = head.to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    stream.read_exact(&mut body).await.ok()?;
    Some(Seen { path, head, body: String::from_utf8(body).unwrap() })
}

/// A whole reply.
pub(crate) fn reply(status: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n{body}")
}

/// The head of a reply whose body ends with the connection.
pub(crate) fn stream_head() -> &'static str {
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\nconnection: close\r\n\r\n"
}

/// Ends a connection by a reset instead of in good order.
pub(crate) fn reset(stream: TcpStream) {
    rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO)).unwrap();
    drop(stream);
}

/// Waits until the other side has closed, and drops what it sent before.
pub(crate) async fn closed(stream: &mut TcpStream) {
    let mut buffer = [0; 1024];
    while let Ok(1..) = stream.read(&mut buffer).await {}
}
