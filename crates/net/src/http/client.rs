//! Posting JSON messages to one URL, with replies as a whole or as a stream.

use std::error::Error as _;
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION};
use reqwest::{Client, Response, Url, redirect};

pub use reqwest::StatusCode;

use crate::tls::{ClientTls, TlsError};

/// A URL with a connection pool.
#[derive(Debug, Clone)]
pub struct HttpClient {
    client: Client,
    url: Url,
    headers: HeaderMap,
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

/// A header whose name or value is malformed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the header has a malformed name or value")]
pub struct InvalidHeader;

/// A post without a reply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PostError {
    /// The server could not be connected to in time.
    #[error("connecting took too long")]
    ConnectTimeout,
    /// The server could not be connected to.
    #[error("{0}")]
    NotConnected(String),
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
        Ok(HttpClient { client, url, headers: HeaderMap::new(), max_reply: options.max_reply })
    }

    /// Posts a message; the status and the body of the reply.
    pub async fn post(&self, body: String) -> Result<(StatusCode, Vec<u8>), PostError> {
        let response = self.client.post(self.url.clone()).body(body).send().await.map_err(failed)?;
        let status = response.status();
        Ok((status, self.body(response).await?))
    }

    /// Posts a message; the head of the reply, whose body is then read chunk by chunk.
    ///
    /// The limit of replies does not bind here: the caller counts. Dropping the reply before its end closes the connection.
    pub async fn post_streaming(&self, post: Post) -> Result<StreamedReply, PostError> {
        let mut url = self.url.clone();
        if let Some(path) = post.path {
            url.set_path(path);
        }
        let request = self
            .client
            .post(url)
            .headers(self.headers.clone())
            .header(CONTENT_TYPE, HeaderValue::from_static(post.content_type))
            .header(ACCEPT, HeaderValue::from_static(post.accept))
            .body(post.body);
        Ok(StreamedReply { response: request.send().await.map_err(failed)? })
    }

    /// Sends a header with every [`HttpClient::post_streaming`]. Its value is never printed.
    pub fn with_header(mut self, name: &str, value: &str) -> Result<HttpClient, InvalidHeader> {
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| InvalidHeader)?;
        let mut value = HeaderValue::from_str(value).map_err(|_| InvalidHeader)?;
        value.set_sensitive(true);
        self.headers.insert(name, value);
        Ok(self)
    }

    /// The client of the URL that has this text as one more segment of its path, percent-encoded. It shares the connection pool. None if
    /// the text is `.` or `..`, which URLs cannot express.
    pub fn below(&self, segment: &str) -> Option<HttpClient> {
        if matches!(segment, "." | "..") {
            return None;
        }
        let mut client = self.clone();
        client.url.path_segments_mut().ok()?.pop_if_empty().push(segment);
        Some(client)
    }

    /// The path of the URL.
    pub fn path(&self) -> &str {
        self.url.path()
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

/// A message for [`HttpClient::post_streaming`].
#[derive(Debug, Clone)]
pub struct Post {
    /// Replaces the path of the client's URL.
    pub path: Option<&'static str>,
    /// The media type of the body.
    pub content_type: &'static str,
    /// The media types that are accepted.
    pub accept: &'static str,
    /// The body.
    pub body: Bytes,
}

/// A reply whose body is being received.
#[derive(Debug)]
pub struct StreamedReply {
    response: Response,
}

impl StreamedReply {
    /// The status.
    pub fn status(&self) -> StatusCode {
        self.response.status()
    }

    /// The media type of the body in lowercase, without parameters; empty if the server names none.
    pub fn media_type(&self) -> String {
        let value = self.header(CONTENT_TYPE).unwrap_or_default();
        value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
    }

    /// The target of a redirect, if the server names one.
    pub fn location(&self) -> Option<&str> {
        self.header(LOCATION)
    }

    /// The next chunk of the body; none at its end. Cancelling loses nothing.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, PostError> {
        self.response.chunk().await.map_err(failed)
    }

    fn header(&self, name: HeaderName) -> Option<&str> {
        self.response.headers().get(name).and_then(|value| value.to_str().ok())
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
    let is_connect = error.is_connect();
    let cause = root_cause(&error);
    if is_connect { PostError::NotConnected(cause) } else { PostError::Failed(cause) }
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
    fn a_segment_never_leaves_the_path_of_the_url() {
        for url in ["http://localhost/base", "http://localhost/base/"] {
            let tls = ClientTls::default();
            let connect_timeout = Duration::from_secs(1);
            let options = HttpOptions { url, credentials: None, connect_timeout, max_reply: 1, tls: &tls };
            let client = HttpClient::new(&options).unwrap();
            let path = |segment: &str| client.below(segment).map(|client| client.path().to_owned());
            assert_eq!(path("a b").as_deref(), Some("/base/a%20b"));
            assert_eq!(path("../x?y#z").as_deref(), Some("/base/..%2Fx%3Fy%23z"));
            assert_eq!((path(".."), path(".")), (None, None));
        }
    }

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
