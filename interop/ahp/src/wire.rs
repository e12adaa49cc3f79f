//! A connection of nothing but bytes: one message out, one reply in, on every transport.

use std::process::Stdio;

use futures_util::{SinkExt, StreamExt};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::{TcpStream, UnixStream};
use tokio::process::{Child, Command};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

/// A connection.
pub enum Wire {
    /// Lines: standard input and output, or a Unix socket.
    Lines(Lines),
    /// HTTP/1.1, kept open.
    Http(HttpWire),
    /// A WebSocket.
    WebSocket(Box<WebSocketStream<MaybeTlsStream<TcpStream>>>),
}

/// Connection with one JSON text for each line.
pub struct Lines {
    /// Replies.
    pub reader: BufReader<Box<dyn AsyncRead + Send + Unpin>>,
    /// Messages.
    pub writer: Box<dyn AsyncWrite + Send + Unpin>,
    /// The process at the other end, if it is ours.
    pub child: Option<Child>,
}

/// Connection with one JSON text for each `POST`.
pub struct HttpWire {
    stream: BufReader<TcpStream>,
    host: String,
}

/// A reply.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// The HTTP status; 200 on other transports.
    pub status: u16,
    /// The body, if it is JSON.
    pub body: Option<Value>,
}

impl Reply {
    /// The code of the error that it is.
    pub fn code(&self) -> Option<i64> {
        self.body.as_ref()?["error"]["code"].as_i64()
    }
}

impl Wire {
    /// Starts a program.
    pub fn stdio(program: &str, arguments: &[String]) -> Wire {
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap_or_else(|error| panic!("`{program}` does not start: {error}"));
        let reader = Box::new(child.stdout.take().unwrap());
        let writer = Box::new(child.stdin.take().unwrap());
        Wire::Lines(Lines { reader: BufReader::new(reader), writer, child: Some(child) })
    }

    /// Connects to a Unix socket.
    pub async fn unix(path: &str) -> Wire {
        let (reader, writer) = UnixStream::connect(path).await.unwrap().into_split();
        Wire::Lines(Lines { reader: BufReader::new(Box::new(reader)), writer: Box::new(writer), child: None })
    }

    /// Connects to an HTTP server, for `POST /ahp`.
    pub async fn http(address: &str) -> Wire {
        Wire::Http(HttpWire::connect(address).await)
    }

    /// Connects to a WebSocket server.
    pub async fn websocket(url: &str) -> Wire {
        let (socket, _) = tokio_tungstenite::connect_async(url).await.unwrap();
        if let MaybeTlsStream::Plain(stream) = socket.get_ref() {
            stream.set_nodelay(true).unwrap();
        }
        Wire::WebSocket(Box::new(socket))
    }

    /// Whether a notification gets a reply.
    pub fn answers_notifications(&self) -> bool {
        matches!(self, Wire::Http(_))
    }

    /// Sends a message that gets a reply, and waits for it.
    pub async fn exchange(&mut self, text: &str) -> Reply {
        if let Wire::Http(http) = self {
            return http.exchange(text).await;
        }
        self.say(text).await;
        self.hear().await
    }

    /// Sends a message that gets no reply; on HTTP, what it gets.
    pub async fn notify(&mut self, text: &str) -> Option<Reply> {
        if let Wire::Http(http) = self {
            return Some(http.exchange(text).await);
        }
        self.say(text).await;
        None
    }

    async fn say(&mut self, text: &str) {
        match self {
            Wire::Lines(lines) => {
                lines.writer.write_all(format!("{text}\n").as_bytes()).await.unwrap();
                lines.writer.flush().await.unwrap();
            }
            Wire::WebSocket(socket) => socket.send(Message::text(text)).await.unwrap(),
            Wire::Http(_) => unreachable!("HTTP exchanges"),
        }
    }

    async fn hear(&mut self) -> Reply {
        let text = match self {
            Wire::Lines(lines) => {
                let mut line = String::new();
                assert_ne!(lines.reader.read_line(&mut line).await.unwrap(), 0, "the server closed");
                line
            }
            Wire::WebSocket(socket) => loop {
                match socket.next().await.expect("the server closed").unwrap() {
                    Message::Text(text) => break text.to_string(),
                    Message::Close(_) => panic!("the server closed"),
                    _ => {}
                }
            },
            Wire::Http(_) => unreachable!("HTTP exchanges"),
        };
        Reply { status: 200, body: Some(serde_json::from_str(&text).expect("a reply is JSON")) }
    }
}

impl HttpWire {
    /// Connects.
    pub async fn connect(address: &str) -> HttpWire {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        HttpWire { stream: BufReader::new(stream), host: address.to_owned() }
    }

    /// Posts a message.
    pub async fn exchange(&mut self, text: &str) -> Reply {
        let mut body = Vec::new();
        let status = self.post(text, &mut body).await;
        Reply { status, body: serde_json::from_slice(&body).ok() }
    }

    /// Posts a message; the status and the body's bytes.
    pub async fn post(&mut self, text: &str, body: &mut Vec<u8>) -> u16 {
        let request = format!(
            "POST /ahp HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{text}",
            self.host,
            text.len()
        );
        self.stream.get_mut().write_all(request.as_bytes()).await.unwrap();
        let (mut status, mut length) = (None, 0);
        loop {
            let mut line = String::new();
            assert_ne!(self.stream.read_line(&mut line).await.unwrap(), 0, "the server closed");
            let line = line.trim_end();
            if line.is_empty() {
                break;
            }
            if status.is_none() {
                status = line.split(' ').nth(1).and_then(|code| code.parse().ok());
            } else if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().unwrap();
            }
        }
        body.resize(length, 0);
        self.stream.read_exact(body).await.unwrap();
        status.expect("a status line")
    }
}
