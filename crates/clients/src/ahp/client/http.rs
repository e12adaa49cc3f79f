//! HTTP: one POST a message.

use std::time::Duration;

use proctor_core::json::Json;
use proctor_net::http::client::{HttpClient, HttpOptions, HttpOptionsError, PostError, StatusCode};
use proctor_net::lines::MAX_MESSAGE;
use proctor_wire::ahp::rpc::RpcError;

use super::auth::AuthConfig;
use super::error::{AhpError, Result, millis};
use super::message::Outgoing;
use super::options::ClientOptions;
use super::reply::{Fault, answer};

/// The longest request body that the protocol's own server takes.
pub(super) const MAX_BODY: usize = 2 * 1024 * 1024;

/// Posts messages and reads the replies.
pub(super) struct Http {
    client: HttpClient,
    connect_timeout: Duration,
}

impl Http {
    pub(super) fn new(url: &str, auth: Option<&AuthConfig>, options: &ClientOptions) -> Result<Http> {
        let header = auth.map(AuthConfig::header);
        let client = HttpClient::new(&HttpOptions {
            url,
            credentials: header.as_ref().map(|(name, value)| (*name, value.as_str())),
            connect_timeout: options.connect_timeout,
            max_reply: MAX_MESSAGE,
            tls: &options.tls,
        });
        let client = client.map_err(|error| match error {
            HttpOptionsError::NotAUrl | HttpOptionsError::UnknownScheme => {
                AhpError::InvalidConfig(format!("the HTTP URL: {error}"))
            }
            HttpOptionsError::InvalidSecret => AhpError::AuthFailed(error.to_string()),
            HttpOptionsError::Tls(_) | HttpOptionsError::Client(_) => {
                AhpError::InvalidConfig(error.to_string())
            }
        })?;
        Ok(Http { client, connect_timeout: options.connect_timeout })
    }

    pub(super) async fn send(&self, message: &Outgoing) -> Result<Json> {
        let (status, body) = self.client.post(message.text()).await.map_err(|error| match error {
            PostError::ConnectTimeout => {
                AhpError::Timeout { what: "connect", ms: millis(self.connect_timeout) }
            }
            PostError::ConnectionLost => AhpError::ConnectionClosed,
            PostError::ReplyTooLong(_) => AhpError::Protocol(error.to_string()),
            PostError::NotConnected(problem) | PostError::Failed(problem) => AhpError::Transport(problem),
        })?;
        let reply = Json::parse(&body);
        if !status.is_success() {
            return Err(match reply.map(answer) {
                // Some harnesses send JSON-RPC errors with a status other than 200.
                Ok(Err(Fault::Refused(error))) => Fault::Refused(error).into_error(message.method),
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
            // A notification is accepted unless the body holds an error.
            None => match reply.ok().and_then(|reply| reply.get("error").cloned()) {
                Some(error) if !error.is_null() => Err(match RpcError::from_json(&error) {
                    Ok(error) => Fault::Refused(error).into_error(message.method),
                    Err(problem) => AhpError::Protocol(problem.to_string()),
                }),
                _ => Ok(Json::Null),
            },
        }
    }
}

fn checked(id: &str, reply: Json, method: &'static str) -> Result<Json> {
    let same = reply.get("id").and_then(Json::as_str) == Some(id);
    // An error without an identifier is about the only message there was.
    let unidentified = matches!(reply.get("id"), None | Some(Json::Null))
        || reply.get("id").and_then(Json::as_str) == Some("");
    match answer(reply) {
        Err(Fault::Refused(error)) if same || unidentified => Err(Fault::Refused(error).into_error(method)),
        Err(Fault::Malformed(problem)) => Err(AhpError::Protocol(problem)),
        _ if !same => Err(AhpError::Protocol("the reply has the id of another request".to_owned())),
        Ok(result) => Ok(result),
        Err(fault) => Err(fault.into_error(method)),
    }
}

fn refused(status: StatusCode) -> AhpError {
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => AhpError::AuthFailed(format!("status {status}")),
        _ => AhpError::Transport(format!("it answered with status {status}")),
    }
}
