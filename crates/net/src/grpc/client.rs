//! Channels to gRPC servers over TCP, TLS or a Unix socket. They reconnect when the connection was lost, and never use a proxy.

use std::error::Error;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::TokioIo;
use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
#[cfg(unix)]
use tokio::net::UnixStream;
use tokio_rustls::TlsConnector;
use tonic::codegen::http::Uri;
use tonic::transport::{Channel, Endpoint};
use tower::{Service, service_fn};

use crate::tls::{ClientTls, TlsError};

/// The address of a gRPC server: `http://host:port`, `https://host:port` or `unix:/path`.
#[derive(Clone)]
pub struct Target {
    origin: Uri,
    address: Address,
}

#[derive(Clone)]
enum Address {
    Network { host: String, port: u16, tls: Option<(TlsConnector, ServerName<'static>)> },
    UnixSocket(PathBuf),
}

/// Settings of a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChannelOptions {
    /// Time limit of connecting, including TLS.
    pub connect_timeout: Duration,
    /// The interval of HTTP/2 pings.
    pub ping: Duration,
    /// Time limit of the server's answer to a ping.
    pub ping_timeout: Duration,
    /// Whether connections without calls are pinged, too.
    pub ping_while_idle: bool,
}

/// An address that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// The text is no URL.
    #[error("it is no URL")]
    NotAUrl,
    /// The URL names no host.
    #[error("it names no host")]
    NoHost,
    /// The host can stand in no certificate.
    #[error("its host is no name or address")]
    InvalidHost,
    /// The scheme is neither `http` nor `https`.
    #[error("its scheme is not known")]
    UnknownScheme,
    /// The path of the Unix socket is missing.
    #[error("it names no file")]
    NoFile,
    /// The TLS settings cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// A connection that could not be made. In the source chain of a call's status it distinguishes calls that were never sent from calls
/// whose connection was lost.
#[derive(Debug, thiserror::Error)]
#[error("no connection")]
pub struct NotConnected(#[source] pub io::Error);

impl Target {
    /// Parses an address of any kind.
    pub fn parse(address: &str, tls: &ClientTls) -> Result<Target, TargetError> {
        let Some(path) = address.strip_prefix("unix:") else { return Target::network(address, tls) };
        let path = path.strip_prefix("//").unwrap_or(path);
        if path.is_empty() || path.contains('\0') {
            return Err(TargetError::NoFile);
        }
        let origin = Uri::from_static("http://localhost/");
        Ok(Target { origin, address: Address::UnixSocket(PathBuf::from(path)) })
    }

    /// Parses a network address.
    pub fn network(url: &str, tls: &ClientTls) -> Result<Target, TargetError> {
        let origin: Uri = url.parse().map_err(|_| TargetError::NotAUrl)?;
        let host = origin.host().ok_or(TargetError::NoHost)?;
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let (port, tls) = match origin.scheme_str() {
            Some("http") => (80, None),
            Some("https") => {
                let name = ServerName::try_from(host.clone()).map_err(|_| TargetError::InvalidHost)?;
                (443, Some((TlsConnector::from(Arc::new(tls.config(&[b"h2"])?)), name)))
            }
            _ => return Err(TargetError::UnknownScheme),
        };
        let port = origin.port_u16().unwrap_or(port);
        Ok(Target { origin, address: Address::Network { host, port, tls } })
    }

    /// The host and, if it was given, the port, the user and the password.
    pub fn authority(&self) -> Option<&str> {
        self.origin.authority().map(tonic::codegen::http::uri::Authority::as_str)
    }

    /// Connects.
    pub async fn connect(self, options: &ChannelOptions) -> Result<Channel, tonic::transport::Error> {
        let limit = options.connect_timeout;
        endpoint(self.origin, options)?.connect_with_connector(connector(self.address, limit)).await
    }

    /// A channel that connects with its first call. Must be called within a tokio runtime.
    pub fn connect_lazily(self, options: &ChannelOptions) -> Result<Channel, tonic::transport::Error> {
        let limit = options.connect_timeout;
        Ok(endpoint(self.origin, options)?.connect_with_connector_lazy(connector(self.address, limit)))
    }
}

/// TLS is made by our connector and not by the library, so that all transports use the same settings: the library gets a plain address,
/// and the requests keep their origin.
fn endpoint(origin: Uri, options: &ChannelOptions) -> Result<Endpoint, tonic::transport::Error> {
    let authority = origin.authority().map_or("localhost", |authority| authority.as_str());
    let plain = Endpoint::from_shared(format!("http://{authority}/"))?;
    Ok(plain
        .origin(origin)
        .http2_keep_alive_interval(options.ping)
        .keep_alive_timeout(options.ping_timeout)
        .keep_alive_while_idle(options.ping_while_idle))
}

/// Any byte stream.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

type Connection = TokioIo<Box<dyn Stream>>;
type Connecting = Pin<Box<dyn Future<Output = Result<Connection, NotConnected>> + Send>>;

/// The service that the library calls for each connection.
fn connector(
    address: Address,
    limit: Duration,
) -> impl Service<Uri, Response = Connection, Error = NotConnected, Future = Connecting> + Send + 'static {
    service_fn(move |_: Uri| -> Connecting {
        let address = address.clone();
        Box::pin(async move {
            match tokio::time::timeout(limit, open(address)).await {
                Ok(Ok(stream)) => Ok(TokioIo::new(stream)),
                Ok(Err(error)) => Err(NotConnected(error)),
                Err(_) => Err(NotConnected(io::Error::new(
                    io::ErrorKind::TimedOut,
                    format!("connecting took longer than {} ms", limit.as_millis()),
                ))),
            }
        })
    })
}

async fn open(address: Address) -> io::Result<Box<dyn Stream>> {
    match address {
        Address::Network { host, port, tls } => {
            let stream = TcpStream::connect((host.as_str(), port)).await?;
            // Calls are small and waited for.
            stream.set_nodelay(true)?;
            Ok(match tls {
                Some((tls, name)) => Box::new(tls.connect(name, stream).await?),
                None => Box::new(stream),
            })
        }
        #[cfg(unix)]
        Address::UnixSocket(path) => {
            let stream = UnixStream::connect(&path).await.map_err(|error| {
                io::Error::new(error.kind(), format!("socket `{}`: {error}", path.display()))
            })?;
            Ok(Box::new(stream))
        }
        #[cfg(not(unix))]
        Address::UnixSocket(_) => {
            Err(io::Error::new(io::ErrorKind::Unsupported, "there are no Unix sockets here"))
        }
    }
}

/// Whether an error was caused by a time limit.
pub fn is_timeout(error: &(dyn Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::TimedOut) {
            return true;
        }
        cause = error.source();
    }
    false
}

/// The text of the innermost cause of an error.
pub fn root_cause(error: &(dyn Error + 'static)) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}
