//! The connecting side.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::error::ProtocolError;
use tokio_tungstenite::tungstenite::http::header::{HeaderName, HeaderValue};
use tokio_tungstenite::tungstenite::http::{Request, StatusCode, Uri};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{Connector, MaybeTlsStream, WebSocketStream, connect_async_tls_with_config};

use crate::lines::MAX_MESSAGE;
use crate::message::{MessageReader, MessageWriter, Received};
use crate::tls::{ClientTls, TlsError};

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// Time for the peer to answer a close frame.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// A checked `ws://` or `wss://` URL with its credentials.
pub struct Target {
    request: Request<()>,
    connector: Connector,
}

/// A target that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// The text is no URL.
    #[error("it is no URL")]
    NotAUrl,
    /// The scheme is neither `ws` nor `wss`.
    #[error("it starts with `ws://` or `wss://`")]
    UnknownScheme,
    /// No request can be made for the URL.
    #[error("{0}")]
    Request(String),
    /// The secret cannot stand in a header.
    #[error("the secret cannot stand in a header")]
    InvalidSecret,
    /// A header has a malformed name or value.
    #[error("a header has a malformed name or value")]
    InvalidHeader,
    /// The TLS settings cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// A connection that could not be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    /// The server does not accept the credentials.
    #[error("status {0}")]
    Unauthorized(StatusCode),
    /// The server refused the upgrade.
    #[error("the upgrade to a WebSocket was answered with status {0}")]
    NotUpgraded(StatusCode),
    /// The URL cannot be connected to. The URL is not shown: it may hold a secret.
    #[error("the WebSocket URL cannot be connected to")]
    Url,
    /// The connection failed.
    #[error("{0}")]
    Failed(String),
}

impl Target {
    /// Checks a URL; its fragment is ignored. `header` is sent with the upgrade, and its value is never printed.
    pub fn new(
        url: &str,
        header: Option<(&'static str, &str)>,
        tls: &ClientTls,
    ) -> Result<Target, TargetError> {
        let uri: Uri = url.parse().map_err(|_| TargetError::NotAUrl)?;
        let connector = match uri.scheme_str() {
            Some("ws") => Connector::Plain,
            Some("wss") => Connector::Rustls(Arc::new(tls.config(&[])?)),
            _ => return Err(TargetError::UnknownScheme),
        };
        let mut request =
            uri.into_client_request().map_err(|error| TargetError::Request(error.to_string()))?;
        if let Some((name, value)) = header {
            let mut value = HeaderValue::from_str(value).map_err(|_| TargetError::InvalidSecret)?;
            value.set_sensitive(true);
            request.headers_mut().insert(HeaderName::from_static(name), value);
        }
        Ok(Target { request, connector })
    }

    /// Sends a header with the upgrade. Its value is never printed.
    pub fn with_header(mut self, name: &str, value: &str) -> Result<Target, TargetError> {
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| TargetError::InvalidHeader)?;
        let mut value = HeaderValue::from_str(value).map_err(|_| TargetError::InvalidHeader)?;
        value.set_sensitive(true);
        self.request.headers_mut().insert(name, value);
        Ok(self)
    }

    /// The path of the URL.
    pub fn path(&self) -> &str {
        self.request.uri().path()
    }

    /// Connects and upgrades. Messages are at most [`MAX_MESSAGE`] bytes long.
    pub async fn connect(&self) -> Result<(SocketReader, SocketWriter), ConnectError> {
        self.connect_with_limit(MAX_MESSAGE).await
    }

    /// Connects and upgrades. Received messages are at most `limit` bytes long.
    pub async fn connect_with_limit(
        &self,
        limit: usize,
    ) -> Result<(SocketReader, SocketWriter), ConnectError> {
        let config = WebSocketConfig::default().max_message_size(Some(limit)).max_frame_size(Some(limit));
        let connecting = connect_async_tls_with_config(
            self.request.clone(),
            Some(config),
            // Disables Nagle's algorithm: small messages are not held back.
            true,
            Some(self.connector.clone()),
        );
        let (socket, _response) = connecting.await.map_err(connect_error)?;
        let (writer, reader) = socket.split();
        Ok((SocketReader(reader), SocketWriter(writer)))
    }
}

fn connect_error(error: Error) -> ConnectError {
    match error {
        Error::Http(response) if matches!(response.status().as_u16(), 401 | 403) => {
            ConnectError::Unauthorized(response.status())
        }
        Error::Http(response) => ConnectError::NotUpgraded(response.status()),
        Error::Url(_) => ConnectError::Url,
        other => ConnectError::Failed(other.to_string()),
    }
}

/// A connection that ended other than by a close frame.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReceiveError {
    /// A message is longer than the limit of the connection.
    #[error("the message is too long")]
    TooLong,
    /// The connection ended without a close frame, perhaps within a message.
    #[error("the connection was lost")]
    ConnectionLost,
    /// The peer violated the WebSocket protocol.
    #[error("{0}")]
    Protocol(String),
    /// A binary message, where only texts are understood.
    #[error("a binary message came where a text was expected")]
    Binary,
    /// The peer closed the connection with a code that is no orderly end.
    #[error("the connection was closed with code {code}")]
    Closed {
        /// The code of the close frame.
        code: u16,
        /// Its text.
        reason: String,
    },
}

/// The reading half.
#[derive(Debug)]
pub struct SocketReader(SplitStream<Socket>);

impl SocketReader {
    /// The next event; none after a close frame. Unlike [`MessageReader::next`] it tells why a connection ended. Cancelling loses
    /// nothing.
    pub async fn receive(&mut self) -> Result<Option<Received>, ReceiveError> {
        match self.0.next().await {
            Some(Ok(Message::Text(text))) => Ok(Some(Received::Text(Bytes::from(text)))),
            Some(Ok(Message::Close(Some(frame)))) if !is_orderly(frame.code) => {
                Err(ReceiveError::Closed { code: frame.code.into(), reason: frame.reason.to_string() })
            }
            Some(Ok(Message::Close(_)) | Err(Error::ConnectionClosed)) => Ok(None),
            Some(Ok(Message::Binary(_))) => Err(ReceiveError::Binary),
            Some(Ok(_)) => Ok(Some(Received::Activity)),
            Some(Err(Error::Capacity(_))) => Err(ReceiveError::TooLong),
            None
            | Some(Err(
                Error::Io(_)
                | Error::AlreadyClosed
                | Error::Protocol(ProtocolError::ResetWithoutClosingHandshake),
            )) => Err(ReceiveError::ConnectionLost),
            Some(Err(error)) => Err(ReceiveError::Protocol(error.to_string())),
        }
    }
}

/// Whether a close code says that all is done, or that the peer goes away.
fn is_orderly(code: CloseCode) -> bool {
    matches!(code, CloseCode::Normal | CloseCode::Away | CloseCode::Status)
}

impl MessageReader for SocketReader {
    async fn next(&mut self) -> Option<Received> {
        match self.0.next().await {
            Some(Ok(Message::Text(text))) => Some(Received::Text(Bytes::from(text))),
            Some(Ok(Message::Close(_)) | Err(_)) | None => None,
            Some(Ok(_)) => Some(Received::Activity),
        }
    }

    async fn finish(mut self, within: Duration) {
        let closing = async { while let Some(Ok(_)) = self.0.next().await {} };
        let _ = tokio::time::timeout(within.min(CLOSE_TIMEOUT), closing).await;
    }
}

/// The writing half.
#[derive(Debug)]
pub struct SocketWriter(SplitSink<Socket, Message>);

impl MessageWriter for SocketWriter {
    async fn send(&mut self, text: String) -> io::Result<()> {
        self.0.send(Message::text(text)).await.map_err(io::Error::other)
    }

    async fn ping(&mut self) -> io::Result<()> {
        self.0.send(Message::Ping(Bytes::new())).await.map_err(io::Error::other)
    }

    async fn finish(mut self) {
        let _ = self.0.close().await;
    }
}
