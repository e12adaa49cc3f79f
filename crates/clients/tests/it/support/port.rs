//! A server on a port of its own, and the plainest of HTTP clients.

use std::io;
use std::net::SocketAddr;

use axum::Router;
use proctor_net::listen::{ListenOptions, serve};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) stop: CancellationToken,
    task: JoinHandle<io::Result<()>>,
}

impl Running {
    pub(crate) async fn start(app: Router, options: ListenOptions) -> Running {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let task = tokio::spawn(serve(listener, app, options, stop.clone()));
        Running { address, stop, task }
    }

    pub(crate) async fn connect(&self) -> Http<TcpStream> {
        Http::new(TcpStream::connect(self.address).await.unwrap())
    }

    pub(crate) async fn stop(self) {
        self.stop.cancel();
        self.task.await.unwrap().unwrap();
    }
}

pub(crate) struct Http<S> {
    stream: BufReader<S>,
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Http<S> {
    pub(crate) fn new(stream: S) -> Http<S> {
        Http { stream: BufReader::new(stream) }
    }

    pub(crate) async fn write(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.stream.write_all(bytes.as_ref()).await?;
        self.stream.flush().await
    }

    /// `POST /ahp` with JSON.
    pub(crate) async fn post(&mut self, body: impl AsRef<[u8]>) -> Answer {
        self.post_with("/ahp", "host: localhost\r\ncontent-type: application/json\r\n", body).await
    }

    pub(crate) async fn post_with(&mut self, target: &str, headers: &str, body: impl AsRef<[u8]>) -> Answer {
        self.send(target, headers, body).await;
        self.answer().await.unwrap()
    }

    pub(crate) async fn send(&mut self, target: &str, headers: &str, body: impl AsRef<[u8]>) {
        let body = body.as_ref();
        let head = format!("POST {target} HTTP/1.1\r\n{headers}content-length: {}\r\n\r\n", body.len());
        // A server that refuses a long body may stop reading it.
        let _ = self.write([head.as_bytes(), body].concat()).await;
    }

    pub(crate) async fn answer(&mut self) -> io::Result<Answer> {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if self.stream.read_line(&mut head).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        let head = head.to_ascii_lowercase();
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
        self.stream.read_exact(&mut body).await?;
        Ok(Answer { status, head, body: String::from_utf8(body).unwrap() })
    }

    /// Waits for the server to close.
    pub(crate) async fn is_closed(&mut self) -> bool {
        self.stream.read_u8().await.is_err()
    }
}
