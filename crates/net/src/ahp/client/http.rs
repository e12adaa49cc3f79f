//! HTTP: one POST a message.

use std::error::Error as _;
use std::time::Duration;

use proctor_core::json::Json;
use proctor_wire::ahp::rpc::RpcError;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Response, StatusCode, Url, redirect};

use super::auth::AuthConfig;
use super::error::{AhpError, Result, millis};
use super::message::Outgoing;
use super::options::ClientOptions;
use super::reply::{Fault, answer};
use crate::lines::MAX_MESSAGE;

/// The longest request body that the protocol's own server takes.
pub(super) const MAX_BODY: usize = 2 * 1024 * 1024;

/// Where to post, and with what.
pub(super) struct Http {
    client: Client,
    url: Url,
    connect_timeout: Duration,
}

impl Http {
    pub(super) fn new(url: &str, auth: Option<&AuthConfig>, options: &ClientOptions) -> Result<Http> {
        let wrong = |problem: &str| AhpError::InvalidConfig(format!("the HTTP URL: {problem}"));
        let url: Url = url.parse().map_err(|_| wrong("it is no URL"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(wrong("it starts with `http://` or `https://`"));
        }
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(auth) = auth {
            let (name, value) = auth.header();
            let mut value = HeaderValue::from_str(&value)
                .map_err(|_| AhpError::AuthFailed("the secret cannot stand in a header".to_owned()))?;
            value.set_sensitive(true);
            headers.insert(HeaderName::from_static(name), value);
        }
        let mut builder = Client::builder()
            .default_headers(headers)
            // A redirect could carry events and credentials to somebody else.
            .redirect(redirect::Policy::none())
            .connect_timeout(options.connect_timeout)
            .tcp_nodelay(true)
            .tls_backend_preconfigured(options.tls.config(&[]).map_err(AhpError::InvalidConfig)?);
        if is_loopback(&url) {
            // What is said on this machine stays on it, whatever proxy is set.
            builder = builder.no_proxy();
        }
        let client = builder.build().map_err(|error| AhpError::InvalidConfig(described(&error)))?;
        Ok(Http { client, url, connect_timeout: options.connect_timeout })
    }

    pub(super) async fn send(&self, message: &Outgoing) -> Result<Json> {
        let sending = self.client.post(self.url.clone()).body(message.text()).send();
        let response = sending.await.map_err(|error| self.failed(&error))?;
        let status = response.status();
        let body = self.body(response).await?;
        let reply = Json::parse(&body);
        if !status.is_success() {
            return Err(match reply.map(answer) {
                // Some harnesses put their errors under another status.
                Ok(Err(Fault::Refused(error))) => Fault::Refused(error).of(message.method),
                _ => refused(status),
            });
        }
        match &message.id {
            Some(id) => {
                if body.is_empty() {
                    return Err(AhpError::Protocol(format!("no reply, only status {status}")));
                }
                let reply =
                    reply.map_err(|error| AhpError::Protocol(format!("the reply is no JSON: {error}")))?;
                checked(id, reply, message.method)
            }
            // Silence is consent; an error is not.
            None => match reply.ok().and_then(|reply| reply.get("error").cloned()) {
                Some(error) if !error.is_null() => Err(match RpcError::from_json(&error) {
                    Ok(error) => Fault::Refused(error).of(message.method),
                    Err(problem) => AhpError::Protocol(problem.to_string()),
                }),
                _ => Ok(Json::Null),
            },
        }
    }

    async fn body(&self, mut response: Response) -> Result<Vec<u8>> {
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| self.failed(&error))? {
            if body.len() + chunk.len() > MAX_MESSAGE {
                return Err(AhpError::Protocol(format!("the reply is longer than {MAX_MESSAGE} bytes")));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }

    fn failed(&self, error: &reqwest::Error) -> AhpError {
        if error.is_timeout() {
            return AhpError::Timeout { what: "connect", ms: millis(self.connect_timeout) };
        }
        if !error.is_connect() && lost(error) {
            return AhpError::ConnectionClosed;
        }
        AhpError::Transport(described(error))
    }
}

fn checked(id: &str, reply: Json, method: &'static str) -> Result<Json> {
    let same = reply.get("id").and_then(Json::as_str) == Some(id);
    // An error without an identifier is about the only message there was.
    let unidentified = matches!(reply.get("id"), None | Some(Json::Null))
        || reply.get("id").and_then(Json::as_str) == Some("");
    match answer(reply) {
        Err(Fault::Refused(error)) if same || unidentified => Err(Fault::Refused(error).of(method)),
        Err(Fault::Broken(problem)) => Err(AhpError::Protocol(problem)),
        _ if !same => Err(AhpError::Protocol("the reply has the id of another request".to_owned())),
        Ok(result) => Ok(result),
        Err(fault) => Err(fault.of(method)),
    }
}

fn refused(status: StatusCode) -> AhpError {
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => AhpError::AuthFailed(format!("status {status}")),
        _ => AhpError::Transport(format!("it answered with status {status}")),
    }
}

/// Whether the connection ended under a request.
fn lost(error: &reqwest::Error) -> bool {
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

/// The innermost reason. The outer texts hold the URL.
fn described(error: &reqwest::Error) -> String {
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
    fn what_is_said_on_this_machine_goes_through_no_proxy() {
        let here = |url: &str| is_loopback(&url.parse().unwrap());
        assert!(here("http://localhost:1/") && here("http://127.0.0.9/") && here("https://[::1]:2/x"));
        assert!(
            !here("http://example.com/")
                && !here("http://10.0.0.1/")
                && !here("http://localhost.example.com/")
        );
    }
}
