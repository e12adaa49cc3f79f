//! Agents behind a URL.

use std::time::Duration;

use bytes::Bytes;
use proctor_net::tls::ClientTls;

use super::{Exchange, Headers};

/// Settings of an [`AgentClient`].
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// Time limit of connecting, including TLS and the upgrade to a WebSocket.
    pub connect_timeout: Duration,
    /// Whether an HTTP URL without a path is used as it is, too. Otherwise `/execute/stream`, `/execute` and `/` are tried.
    pub is_exact: bool,
    /// Additional headers, for example credentials.
    pub headers: Headers,
    /// Trusted authorities and client certificate.
    pub tls: ClientTls,
}

impl Default for ClientOptions {
    fn default() -> ClientOptions {
        ClientOptions {
            connect_timeout: Duration::from_secs(10),
            is_exact: false,
            headers: Headers::default(),
            tls: ClientTls::default(),
        }
    }
}

/// An address that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// The scheme is none of an agent.
    #[error("an agent's URL starts with `http://`, `https://`, `ws://`, `wss://`, `grpc://` or `grpcs://`")]
    UnknownScheme,
    /// The transport is not part of this build.
    #[error("this build has no {0} transport")]
    NotBuilt(&'static str),
    /// The header is one that the transport sets itself.
    #[error("the header `{0}` is set by the transport; leave it out")]
    ReservedHeader(String),
    /// The header has a malformed name or value. The value is not shown: it may be a secret.
    #[error("the header `{0}` has a name or value that cannot be sent")]
    InvalidHeader(String),
    /// The URL or the TLS settings are malformed.
    #[error("the agent's URL cannot be used: {0}")]
    Invalid(String),
}

/// A client of one agent, for any number of executions, also at the same time. Clones share its connections.
#[derive(Clone)]
pub struct AgentClient(Kind);

#[derive(Clone)]
#[allow(
    clippy::large_enum_variant,
    reason = "one value for each execution; which variant is the large one depends on the features"
)]
enum Kind {
    #[cfg(feature = "http")]
    Http(super::http::HttpAgent),
    #[cfg(feature = "websocket")]
    WebSocket(super::websocket::SocketAgent),
    #[cfg(feature = "grpc")]
    Grpc(super::grpc::GrpcAgent),
}

impl AgentClient {
    /// Checks the address; connections are made by [`AgentClient::execute`]. Must be called within a tokio runtime.
    pub fn new(url: &str, options: &ClientOptions) -> Result<AgentClient, AddressError> {
        let (scheme, _) = url.split_once("://").ok_or(AddressError::UnknownScheme)?;
        match scheme.to_ascii_lowercase().as_str() {
            #[cfg(feature = "http")]
            "http" | "https" => Ok(AgentClient(Kind::Http(super::http::HttpAgent::new(url, options)?))),
            #[cfg(not(feature = "http"))]
            "http" | "https" => Err(AddressError::NotBuilt("HTTP")),
            #[cfg(feature = "websocket")]
            "ws" | "wss" => {
                Ok(AgentClient(Kind::WebSocket(super::websocket::SocketAgent::new(url, options)?)))
            }
            #[cfg(not(feature = "websocket"))]
            "ws" | "wss" => Err(AddressError::NotBuilt("WebSocket")),
            #[cfg(feature = "grpc")]
            name @ ("grpc" | "grpcs") => {
                let transport = if name == "grpcs" { "https" } else { "http" };
                let url = format!("{transport}{}", url.get(scheme.len()..).unwrap_or_default());
                Ok(AgentClient(Kind::Grpc(super::grpc::GrpcAgent::new(&url, options)?)))
            }
            #[cfg(not(feature = "grpc"))]
            "grpc" | "grpcs" => Err(AddressError::NotBuilt("gRPC")),
            _ => Err(AddressError::UnknownScheme),
        }
    }

    /// Sends a request, which is JSON text. The connection is made by the first call of [`Exchange::next`].
    pub fn execute(&self, request: Bytes) -> Exchange {
        match &self.0 {
            #[cfg(feature = "http")]
            Kind::Http(agent) => agent.execute(request),
            #[cfg(feature = "websocket")]
            Kind::WebSocket(agent) => agent.execute(request),
            #[cfg(feature = "grpc")]
            Kind::Grpc(agent) => agent.execute(request),
        }
    }
}
