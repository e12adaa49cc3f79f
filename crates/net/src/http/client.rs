//! Posting JSON messages to one URL.

use std::error::Error as _;
use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Response, Url, redirect};

pub use reqwest::StatusCode;

use crate::tls::{ClientTls, TlsError};

/// A URL with a connection pool.
#[derive(Debug, Clone)]
pub struct HttpClient {
    client: Client,
    url: Url,
    max_reply: usize,
}

/// Settings of an [`HttpClient`].
#[derive(Debug, Clone)]
pub struct HttpOptions<'a> {
    /// The `http://` or `https://` URL.
    pub url: &'a str,
    /// A header with a secret value, in lowercase: the name, and the value.
    pub credentials: Option<(&'static str, &'a str)>,
    /// Time limit of connecting, including TLS.
    pub connect_timeout: Duration,
    /// The longest reply.
    pub max_reply: usize,
    /// Trust and client certificate.
    pub tls: &'a ClientTls,
}

/// Settings that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HttpOptionsError {
    /// The text is no URL.
    #[error("it is no URL")]
    NotAUrl,
    /// The scheme is neither `http` nor `https`.
    #[error("it starts with `http://` or `https://`")]
    UnknownScheme,
    /// The secret cannot stand in a header.
    #[error("the secret cannot stand in a header")]
    InvalidSecret,
    /// The TLS settings cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The client cannot be built.
    #[error("{0}")]
    Client(String),
}

/// A post without a reply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PostError {
    /// The server could not be connected to in time.
    #[error("connecting took too long")]
    ConnectTimeout,
    /// The connection was lost after the request; the server may have seen it.
    #[error("the connection was lost")]
    ConnectionLost,
    /// The reply is longer than the limit.
    #[error("the reply is longer than {0} bytes")]
    ReplyTooLong(usize),
    /// The request failed in another way.
    #[error("{0}")]
    Failed(String),
}

impl HttpClient {
    /// Checks the settings. Connections are made by [`HttpClient::post`].
    pub fn new(options: &HttpOptions<'_>) -> Result<HttpClient, HttpOptionsError> {
        let url: Url = options.url.parse().map_err(|_| HttpOptionsError::NotAUrl)?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(HttpOptionsError::UnknownScheme);
        }
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some((name, value)) = options.credentials {
            let mut value = HeaderValue::from_str(value).map_err(|_| HttpOptionsError::InvalidSecret)?;
            value.set_sensitive(true);
            headers.insert(HeaderName::from_static(name), value);
        }
        let mut builder = Client::builder()
            .default_headers(headers)
            // A redirect could carry messages and credentials to another server.
            .redirect(redirect::Policy::none())
            .connect_timeout(options.connect_timeout)
            .tcp_nodelay(true)
            .tls_backend_preconfigured(options.tls.config(&[])?);
        if is_loopback(&url) {
            // Local messages stay on this machine, whatever proxy is set.
            builder = builder.no_proxy();
        }
        let client = builder.build().map_err(|error| HttpOptionsError::Client(root_cause(&error)))?;
        Ok(HttpClient { client, url, max_reply: options.max_reply })
    }

    /// Posts a message; the status and the body of the reply.
    pub async fn post(&self, body: String) -> Result<(StatusCode, Vec<u8>), PostError> {
        let response = self.client.post(self.url.clone()).body(body).send().await.map_err(failed)?;
        let status = response.status();
        Ok((status, self.body(response).await?))
    }

    async fn body(&self, mut response: Response) -> Result<Vec<u8>, PostError> {
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(failed)? {
            if body.len() + chunk.len() > self.max_reply {
                return Err(PostError::ReplyTooLong(self.max_reply));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the signature that `map_err` wants")]
fn failed(error: reqwest::Error) -> PostError {
    if error.is_timeout() {
        return PostError::ConnectTimeout;
    }
    if !error.is_connect() && is_lost_connection(&error) {
        return PostError::ConnectionLost;
    }
    PostError::Failed(root_cause(&error))
}

fn is_lost_connection(error: &reqwest::Error) -> bool {
    let mut source = error.source();
    while let Some(cause) = source {
        if cause
            .downcast_ref::<hyper::Error>()
            .is_some_and(|error| error.is_incomplete_message() || error.is_closed())
            || cause.downcast_ref::<std::io::Error>().is_some_and(|error| {
                use std::io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
                matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof)
            })
        {
            return true;
        }
        source = cause.source();
    }
    false
}

/// The text of the innermost cause. The outer texts hold the URL, which may hold a secret.
fn root_cause(error: &reqwest::Error) -> String {
    let mut source = error.source();
    let mut text = None;
    while let Some(cause) = source {
        text = Some(cause.to_string());
        source = cause.source();
    }
    text.unwrap_or_else(|| "the request failed".to_owned())
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_servers_are_not_reached_through_a_proxy() {
        let here = |url: &str| is_loopback(&url.parse().unwrap());
        assert!(here("http://localhost:1/") && here("http://127.0.0.9/") && here("https://[::1]:2/x"));
        assert!(
            !here("http://example.com/")
                && !here("http://10.0.0.1/")
                && !here("http://localhost.example.com/")
        );
    }
}
