//! gRPC: one unary call a message.

use std::error::Error as _;

use proctor_core::json::Json;
use proctor_net::grpc::client::{ChannelOptions, Target, TargetError, is_timeout, root_cause};
use proctor_net::lines::MAX_MESSAGE;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::Channel;
use tonic::{Code, Request, Status};

use super::auth::AuthConfig;
use super::error::{AhpError, Result, millis};
use super::message::Outgoing;
use super::options::ClientOptions;
use crate::ahp::grpc;
use crate::ahp::grpc::harness_client::HarnessClient;

/// Allowance for the message around the params.
const ENVELOPE: usize = 16 * 1024;

/// A channel, which reconnects by itself.
pub(super) struct Grpc {
    client: HarnessClient<Channel>,
    credentials: Option<(&'static str, MetadataValue<Ascii>)>,
}

impl Grpc {
    pub(super) async fn connect(
        url: &str,
        auth: Option<&AuthConfig>,
        options: &ClientOptions,
    ) -> Result<Grpc> {
        let target = Target::network(url, &options.tls).map_err(|error| match error {
            TargetError::Tls(error) => AhpError::InvalidConfig(error.to_string()),
            TargetError::UnknownScheme => {
                AhpError::InvalidConfig("the gRPC URL: it starts with `http://` or `https://`".to_owned())
            }
            error => AhpError::InvalidConfig(format!("the gRPC URL: {error}")),
        })?;
        let credentials = auth
            .map(|auth| {
                let (key, value) = auth.header();
                let mut value = MetadataValue::try_from(value.as_str())
                    .map_err(|_| AhpError::AuthFailed("the secret cannot stand in a header".to_owned()))?;
                value.set_sensitive(true);
                Ok((key, value))
            })
            .transpose()?;
        let channel_options = ChannelOptions {
            connect_timeout: options.connect_timeout,
            ping: options.ping_every,
            ping_timeout: options.write_timeout,
            ping_while_idle: false,
        };
        let connecting = target.connect(&channel_options);
        let channel = match tokio::time::timeout(options.connect_timeout, connecting).await {
            Ok(Ok(channel)) => channel,
            Ok(Err(error)) if !is_timeout(&error) => return Err(AhpError::Transport(root_cause(&error))),
            Ok(Err(_)) | Err(_) => {
                return Err(AhpError::Timeout { what: "connect", ms: millis(options.connect_timeout) });
            }
        };
        let client = HarnessClient::new(channel)
            .max_decoding_message_size(MAX_MESSAGE + ENVELOPE)
            .max_encoding_message_size(MAX_MESSAGE + ENVELOPE);
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
        Some(source) => root_cause(source),
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

#[cfg(test)]
mod tests;
