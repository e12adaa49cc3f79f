//! Where a gateway is, and the channel to it.

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

use super::Options;
use super::error::{ClientError, NotConnected, innermost};

/// How often a silent gateway is asked whether it is there, and how long it has to say so.
const PING: Duration = Duration::from_secs(30);
const PONG: Duration = Duration::from_secs(20);

/// Anything that bytes travel over.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// A place that can be connected to.
#[derive(Clone)]
enum Place {
    Network { host: String, port: u16, tls: Option<(TlsConnector, ServerName<'static>)> },
    File(PathBuf),
}

/// A channel, which connects when it is needed, and again when the connection was lost. Never through a proxy.
pub(super) async fn connect(endpoint: &str, options: &Options) -> Result<Channel, ClientError> {
    let (target, place) = read(endpoint, options)?;
    let connecting = target.connect_with_connector(connector(place, options.connect_timeout));
    connecting.await.map_err(|error| ClientError::Unreachable(innermost(&error)))
}

/// The same, without connecting yet.
pub(super) fn connect_later(endpoint: &str, options: &Options) -> Result<Channel, ClientError> {
    if tokio::runtime::Handle::try_current().is_err() {
        return Err(ClientError::Settings("a client needs a tokio runtime around it".to_owned()));
    }
    let (target, place) = read(endpoint, options)?;
    Ok(target.connect_with_connector_lazy(connector(place, options.connect_timeout)))
}

fn read(endpoint: &str, options: &Options) -> Result<(Endpoint, Place), ClientError> {
    let wrong =
        |problem: &str| ClientError::Endpoint { endpoint: endpoint.to_owned(), problem: problem.to_owned() };
    let (origin, place) = match endpoint.strip_prefix("unix:") {
        Some(path) => {
            let path = path.strip_prefix("//").unwrap_or(path);
            if path.is_empty() || path.contains('\0') {
                return Err(wrong("it names no file"));
            }
            (Uri::from_static("http://localhost/"), Place::File(PathBuf::from(path)))
        }
        None => network(endpoint, options, &wrong)?,
    };
    // TLS is made here and not by the library, so that all transports use the same settings; the library is told that there is
    // none, and the requests still say what there is.
    let plain = Uri::builder()
        .scheme("http")
        .authority(origin.authority().map_or("localhost", |authority| authority.as_str()))
        .path_and_query("/")
        .build()
        .map_err(|_| wrong("it is no URL"))?;
    let target = Endpoint::from(plain)
        .origin(origin)
        .http2_keep_alive_interval(PING)
        .keep_alive_timeout(PONG)
        .keep_alive_while_idle(true);
    Ok((target, place))
}

fn network(
    endpoint: &str,
    options: &Options,
    wrong: &impl Fn(&str) -> ClientError,
) -> Result<(Uri, Place), ClientError> {
    let uri: Uri = endpoint.parse().map_err(|_| wrong("it is no URL"))?;
    if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
        return Err(wrong("it must not hold a user or a password"));
    }
    let host = uri.host().ok_or_else(|| wrong("it names no host"))?;
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let (port, tls) = match uri.scheme_str() {
        Some("http") => (80, None),
        Some("https") => {
            let name =
                ServerName::try_from(host.clone()).map_err(|_| wrong("its host is no name or address"))?;
            let config = options.tls.config(&[b"h2"]).map_err(ClientError::Settings)?;
            (443, Some((TlsConnector::from(Arc::new(config)), name)))
        }
        _ => return Err(wrong("its scheme is not known")),
    };
    let port = uri.port_u16().unwrap_or(port);
    Ok((uri, Place::Network { host, port, tls }))
}

/// A connection, and the making of one.
type Link = TokioIo<Box<dyn Stream>>;
type Connecting = Pin<Box<dyn Future<Output = Result<Link, NotConnected>> + Send>>;

/// What the library calls for each connection.
fn connector(
    place: Place,
    limit: Duration,
) -> impl Service<Uri, Response = Link, Error = NotConnected, Future = Connecting> + Send + 'static {
    service_fn(move |_: Uri| -> Connecting {
        let place = place.clone();
        Box::pin(async move {
            match tokio::time::timeout(limit, open(place)).await {
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

async fn open(place: Place) -> io::Result<Box<dyn Stream>> {
    match place {
        Place::Network { host, port, tls } => {
            let stream = TcpStream::connect((host.as_str(), port)).await?;
            // Calls are small and waited for.
            stream.set_nodelay(true)?;
            Ok(match tls {
                Some((tls, name)) => Box::new(tls.connect(name, stream).await?),
                None => Box::new(stream),
            })
        }
        #[cfg(unix)]
        Place::File(path) => {
            let stream = UnixStream::connect(&path).await.map_err(|error| {
                io::Error::new(error.kind(), format!("socket `{}`: {error}", path.display()))
            })?;
            Ok(Box::new(stream))
        }
        #[cfg(not(unix))]
        Place::File(_) => Err(io::Error::new(io::ErrorKind::Unsupported, "there are no Unix sockets here")),
    }
}
