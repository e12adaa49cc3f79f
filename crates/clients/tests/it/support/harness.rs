//! Harnesses made of nothing but a socket, so that a test says every byte.

use std::time::Duration;

use proctor_clients::ahp::client::ClientOptions;
use proctor_core::json::Json;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};

/// A harness at a Unix socket.
pub(crate) struct Harness {
    pub(crate) folder: tempfile::TempDir,
    listener: UnixListener,
}

impl Harness {
    pub(crate) fn new() -> Harness {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("socket")).unwrap();
        Harness { folder, listener }
    }

    pub(crate) fn path(&self) -> std::path::PathBuf {
        self.folder.path().join("socket")
    }

    pub(crate) fn transport(&self) -> proctor_clients::ahp::client::Transport {
        proctor_clients::ahp::client::Transport::UnixSocket { path: self.path() }
    }

    pub(crate) async fn accept(&self) -> UnixPeer {
        let (stream, _) = self.listener.accept().await.unwrap();
        peer(stream)
    }

    /// Ends the harness and starts another one at the same path.
    pub(crate) fn restart(&mut self) {
        std::fs::remove_file(self.path()).unwrap();
        self.listener = UnixListener::bind(self.path()).unwrap();
    }
}

fn peer(stream: UnixStream) -> UnixPeer {
    let (reader, writer) = stream.into_split();
    Peer { reader: BufReader::new(reader), writer }
}

/// A connection at a Unix socket, seen from the harness.
pub(crate) type UnixPeer = Peer<BufReader<OwnedReadHalf>, OwnedWriteHalf>;

/// Connection, seen from the harness.
pub(crate) struct Peer<R, W> {
    pub(crate) reader: R,
    pub(crate) writer: W,
}

impl<R: AsyncBufReadExt + AsyncRead + Unpin, W: AsyncWrite + Unpin> Peer<R, W> {
    /// The next message; none at the end.
    pub(crate) async fn next(&mut self) -> Option<Json> {
        let mut line = String::new();
        match self.reader.read_line(&mut line).await {
            Ok(0) | Err(_) => None,
            Ok(_) => Some(Json::parse(line.as_bytes()).unwrap()),
        }
    }

    pub(crate) async fn line(&mut self, text: impl AsRef<[u8]>) {
        self.writer.write_all(text.as_ref()).await.unwrap();
        self.writer.write_all(b"\n").await.unwrap();
    }

    pub(crate) async fn result(&mut self, request: &Json, result: &str) {
        self.line(result_line(request, result)).await;
    }

    /// Answers a handshake with these limits.
    pub(crate) async fn greet(&mut self, config: &str) -> Json {
        let request = self.next().await.unwrap();
        assert_eq!(request["method"], "ahp/handshake");
        self.result(&request, &greeting(config)).await;
        request
    }
}

pub(crate) fn result_line(request: &Json, result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, request["id"])
}

pub(crate) fn greeting(config: &str) -> String {
    format!(
        r#"{{"protocol_version":"2.4","harness_info":{{"name":"h","version":"1","capabilities":[]}},"config":{config}}}"#
    )
}

/// Settings with short times.
pub(crate) fn quick() -> ClientOptions {
    ClientOptions {
        connect_timeout: Duration::from_millis(500),
        write_timeout: Duration::from_millis(300),
        reply_timeout: Some(Duration::from_secs(10)),
        close_timeout: Duration::from_millis(500),
        ..ClientOptions::default()
    }
}

/// Waits until something holds, and fails if it does not soon.
pub(crate) async fn eventually(what: &str, holds: impl Fn() -> bool) {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(10);
    while !holds() {
        assert!(tokio::time::Instant::now() < deadline, "{what} does not hold");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
