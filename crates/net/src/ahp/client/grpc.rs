//! gRPC: one unary call a message.

use std::error::Error as _;
use std::sync::Arc;

use hyper_util::rt::TokioIo;
use proctor_core::json::Json;
use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tonic::codegen::http::Uri;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};
use tower::service_fn;

use super::auth::AuthConfig;
use super::error::{AhpError, Result, millis};
use super::message::Outgoing;
use super::options::ClientOptions;
use crate::ahp::grpc;
use crate::ahp::grpc::harness_client::HarnessClient;
use crate::lines::MAX_MESSAGE;

/// What gRPC adds around the params.
const FRAME: usize = 16 * 1024;

/// A channel, which connects again by itself.
pub(super) struct Grpc {
    client: HarnessClient<Channel>,
    credentials: Option<(&'static str, MetadataValue<Ascii>)>,
}

/// Anything that bytes travel over.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

impl Grpc {
    pub(super) async fn connect(
        url: &str,
        auth: Option<&AuthConfig>,
        options: &ClientOptions,
    ) -> Result<Grpc> {
        let wrong = |problem: &str| AhpError::InvalidConfig(format!("the gRPC URL: {problem}"));
        let uri: Uri = url.parse().map_err(|_| wrong("it is no URL"))?;
        let (port, tls) = match uri.scheme_str() {
            Some("http") => (80, None),
            Some("https") => {
                let config = options.tls.config(&[b"h2"]).map_err(AhpError::InvalidConfig)?;
                (443, Some(TlsConnector::from(Arc::new(config))))
            }
            _ => return Err(wrong("it starts with `http://` or `https://`")),
        };
        let host = uri.host().ok_or_else(|| wrong("it names no host"))?;
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let name = ServerName::try_from(host.clone()).map_err(|_| wrong("its host is no name or address"))?;
        let port = uri.port_u16().unwrap_or(port);
        let credentials = auth
            .map(|auth| {
                let (key, value) = auth.header();
                let mut value = MetadataValue::try_from(value.as_str())
                    .map_err(|_| AhpError::AuthFailed("the secret cannot stand in a header".to_owned()))?;
                value.set_sensitive(true);
                Ok((key, value))
            })
            .transpose()?;

        // TLS is made here and not by the library, so that all transports use the same settings; the library is told that there
        // is none, and the requests still say what there is.
        let plain = Uri::builder()
            .scheme("http")
            .authority(format!("{}:{port}", uri.host().unwrap_or_default()))
            .path_and_query("/")
            .build()
            .map_err(|_| wrong("it is no URL"))?;
        let endpoint = Endpoint::from(plain)
            .origin(uri)
            .connect_timeout(options.connect_timeout)
            .http2_keep_alive_interval(options.ping_every)
            .keep_alive_timeout(options.write_timeout);
        let connector = service_fn(move |_: Uri| {
            let (host, name, tls) = (host.clone(), name.clone(), tls.clone());
            async move {
                let stream = TcpStream::connect((host.as_str(), port)).await?;
                stream.set_nodelay(true)?;
                let stream: Box<dyn Stream> = match tls {
                    Some(tls) => Box::new(tls.connect(name, stream).await?),
                    None => Box::new(stream),
                };
                Ok::<_, std::io::Error>(TokioIo::new(stream))
            }
        });
        let connecting = endpoint.connect_with_connector(connector);
        let channel = match tokio::time::timeout(options.connect_timeout, connecting).await {
            Ok(Ok(channel)) => channel,
            Ok(Err(error)) => return Err(AhpError::Transport(innermost(&error))),
            Err(_) => {
                return Err(AhpError::Timeout { what: "connect", ms: millis(options.connect_timeout) });
            }
        };
        let client = HarnessClient::new(channel)
            .max_decoding_message_size(MAX_MESSAGE + FRAME)
            .max_encoding_message_size(MAX_MESSAGE + FRAME);
        Ok(Grpc { client, credentials })
    }

    pub(super) async fn send(&self, message: &Outgoing) -> Result<Json> {
        let mut client = self.client.clone();
        let method = message.method;
        let params_json = message.params.clone().into_bytes();
        let Some(id) = message.id.clone() else {
            let notification = grpc::Notification { method: method.to_owned(), params_json };
            let reply = client.notify(self.signed(notification)).await.map_err(|status| failed(&status))?;
            return match reply.into_inner().refusal {
                None => Ok(Json::Null),
                Some(refusal) => Err(refused(refusal, method)),
            };
        };
        let request = grpc::Request { id: Some(id.clone()), method: method.to_owned(), params_json };
        let reply = client.call(self.signed(request)).await.map_err(|status| failed(&status))?.into_inner();
        match reply.outcome {
            Some(grpc::response::Outcome::Refusal(refusal)) => Err(refused(refusal, method)),
            _ if reply.id != id => {
                Err(AhpError::Protocol("the reply has the id of another request".to_owned()))
            }
            Some(grpc::response::Outcome::ResultJson(text)) => match Json::parse(&text) {
                Ok(Json::Null) => Err(AhpError::Protocol("the reply has no result".to_owned())),
                Ok(result) => Ok(result),
                Err(error) => Err(AhpError::Protocol(format!("the result is no JSON: {error}"))),
            },
            None => Err(AhpError::Protocol("the reply has no result".to_owned())),
        }
    }

    fn signed<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        if let Some((key, value)) = &self.credentials {
            request.metadata_mut().insert(*key, value.clone());
        }
        request
    }
}

fn refused(refusal: grpc::Refusal, method: &'static str) -> AhpError {
    let grpc::Refusal { code, message, data_json } = refusal;
    match (data_json.is_empty(), Json::parse(&data_json)) {
        (true, _) => AhpError::Rpc { method, code, message, data: None },
        (false, Ok(data)) => AhpError::Rpc { method, code, message, data: Some(data) },
        (false, Err(error)) => AhpError::Protocol(format!("the error's data is no JSON: {error}")),
    }
}

fn failed(status: &Status) -> AhpError {
    let text = || match status.source() {
        Some(source) => innermost(source),
        None => status.message().to_owned(),
    };
    match status.code() {
        Code::Unauthenticated | Code::PermissionDenied => AhpError::AuthFailed(status.message().to_owned()),
        // A status that the harness sent has no source; one that has is about the connection.
        _ if status.source().is_some() && !never_connected(status) => AhpError::ConnectionClosed,
        code => AhpError::Transport(format!("{code}: {}", text())),
    }
}

fn never_connected(status: &Status) -> bool {
    let mut source = status.source();
    while let Some(cause) = source {
        if cause.downcast_ref::<std::io::Error>().is_some_and(|error| {
            matches!(error.kind(), std::io::ErrorKind::ConnectionRefused | std::io::ErrorKind::TimedOut)
        }) {
            return true;
        }
        source = cause.source();
    }
    false
}

fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut innermost = error;
    while let Some(cause) = innermost.source() {
        innermost = cause;
    }
    innermost.to_string()
}

#[cfg(test)]
mod tests;
