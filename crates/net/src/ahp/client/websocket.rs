//! WebSocket connections.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::header::{HeaderName, HeaderValue};
use tokio_tungstenite::tungstenite::http::{Request, Uri};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{Connector, MaybeTlsStream, WebSocketStream, connect_async_tls_with_config};

use super::auth::AuthConfig;
use super::error::{AhpError, Result};
use super::link::{Incoming, Link, Received, Times, Writing};
use super::options::ClientOptions;
use crate::lines::MAX_MESSAGE;

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// How long the other side's goodbye is waited for.
const GOODBYE: Duration = Duration::from_secs(1);

/// Where to connect, checked.
pub(super) struct Target {
    request: Request<()>,
    connector: Connector,
}

impl Target {
    pub(super) fn new(url: &str, auth: Option<&AuthConfig>, options: &ClientOptions) -> Result<Target> {
        let wrong = |problem: &str| AhpError::InvalidConfig(format!("the WebSocket URL: {problem}"));
        let (url, _fragment) = url.split_once('#').unwrap_or((url, ""));
        let query = auth.and_then(AuthConfig::query);
        let url = match &query {
            Some(query) => {
                let join = if url.contains('?') { '&' } else { '?' };
                zeroize::Zeroizing::new(format!("{url}{join}{}", query.as_str()))
            }
            None => zeroize::Zeroizing::new(url.to_owned()),
        };
        let uri: Uri = url.parse().map_err(|_| wrong("it is no URL"))?;
        let connector = match uri.scheme_str() {
            Some("ws") => Connector::Plain,
            Some("wss") => {
                Connector::Rustls(Arc::new(options.tls.config(&[]).map_err(AhpError::InvalidConfig)?))
            }
            _ => return Err(wrong("it starts with `ws://` or `wss://`")),
        };
        let mut request = uri.into_client_request().map_err(|error| wrong(&error.to_string()))?;
        if let (Some(auth), None) = (auth, &query) {
            let (name, value) = auth.header();
            let mut value = HeaderValue::from_str(&value)
                .map_err(|_| AhpError::AuthFailed("the secret cannot stand in a header".to_owned()))?;
            value.set_sensitive(true);
            request.headers_mut().insert(HeaderName::from_static(name), value);
        }
        Ok(Target { request, connector })
    }

    pub(super) async fn connect(&self, times: Times) -> Result<Link> {
        let config =
            WebSocketConfig::default().max_message_size(Some(MAX_MESSAGE)).max_frame_size(Some(MAX_MESSAGE));
        let connecting = connect_async_tls_with_config(
            self.request.clone(),
            Some(config),
            // Small messages are not held back.
            true,
            Some(self.connector.clone()),
        );
        let (socket, _response) = connecting.await.map_err(refused)?;
        let (writer, reader) = socket.split();
        Ok(Link::start(SocketReader(reader), SocketWriter(writer), times))
    }
}

fn refused(error: Error) -> AhpError {
    match error {
        Error::Http(response) if matches!(response.status().as_u16(), 401 | 403) => {
            AhpError::AuthFailed(format!("status {}", response.status()))
        }
        Error::Http(response) => AhpError::Transport(format!(
            "the upgrade to a WebSocket was answered with status {}",
            response.status()
        )),
        // Its text would hold the URL, and that may hold a secret.
        Error::Url(_) => AhpError::InvalidConfig("the WebSocket URL cannot be connected to".to_owned()),
        other => AhpError::Transport(other.to_string()),
    }
}

struct SocketReader(SplitStream<Socket>);

impl Incoming for SocketReader {
    async fn next(&mut self) -> Option<Received> {
        match self.0.next().await {
            Some(Ok(Message::Text(text))) => Some(Received::Text(Bytes::from(text))),
            Some(Ok(Message::Close(_)) | Err(_)) | None => None,
            Some(Ok(_)) => Some(Received::Other),
        }
    }

    async fn finish(mut self, within: Duration) {
        let goodbye = async { while let Some(Ok(_)) = self.0.next().await {} };
        let _ = tokio::time::timeout(within.min(GOODBYE), goodbye).await;
    }
}

struct SocketWriter(SplitSink<Socket, Message>);

impl Writing for SocketWriter {
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
