//! Agents behind the gRPC service `proctor.atp.v1.Agent`.

use std::error::Error as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use proctor_net::grpc::client::{ChannelOptions, NotConnected, Target, is_timeout, root_cause};
use tonic::metadata::{AsciiMetadataKey, AsciiMetadataValue, MetadataMap};
use tonic::transport::Channel;
use tonic::{Code, Request, Status, Streaming};

use super::address::{AddressError, ClientOptions};
use super::connection::Connection;
use super::error::start_of;
use super::{ConnectError, Exchange, ExecuteError, Headers, Item, MAX_MESSAGE, Message, Origin};
use crate::atp::proto;
use crate::atp::proto::agent_client::AgentClient;
use crate::atp::proto::message::Kind;

/// Allowance for the envelope, so that a message over the limit by less than this is told from other failures.
const ENVELOPE: usize = 64 * 1024;
/// HTTP/2 keep-alive: interval of pings, and time for the answer.
const PING: Duration = Duration::from_secs(30);
const PONG: Duration = Duration::from_secs(20);
/// Bytes of the text of a status that are kept.
const STATUS_TEXT: usize = 1024;

/// A client of a gRPC agent. Executions share a connection.
#[derive(Clone)]
pub(super) struct GrpcAgent {
    client: AgentClient<Channel>,
    headers: MetadataMap,
    /// Whether the agent has no `ExecuteStream`.
    is_unary: Arc<AtomicBool>,
}

impl GrpcAgent {
    /// Must be called within a tokio runtime.
    pub(super) fn new(url: &str, options: &ClientOptions) -> Result<GrpcAgent, AddressError> {
        let target = Target::network(url, &options.tls);
        let target = target.map_err(|error| AddressError::Invalid(error.to_string()))?;
        let channel_options = ChannelOptions {
            connect_timeout: options.connect_timeout,
            ping: PING,
            ping_timeout: PONG,
            ping_while_idle: false,
        };
        let channel = target.connect_lazily(&channel_options);
        let channel = channel.map_err(|error| AddressError::Invalid(root_cause(&error)))?;
        let client = AgentClient::new(channel)
            .max_decoding_message_size(MAX_MESSAGE + ENVELOPE)
            .max_encoding_message_size(usize::MAX);
        Ok(GrpcAgent { client, headers: metadata(&options.headers)?, is_unary: Arc::default() })
    }

    pub(super) fn execute(&self, request: Bytes) -> Exchange {
        let agent = self.clone();
        Exchange::opening(async move { agent.open(request).await.map(Connection::Grpc) })
    }

    async fn open(mut self, request: Bytes) -> Result<Call, ExecuteError> {
        if self.is_unary.load(Ordering::Relaxed) {
            return Ok(self.unary(request));
        }
        let message = self.message(&request);
        match self.client.execute_stream(message).await {
            Ok(reply) => Ok(Call::Streaming {
                messages: Box::new(reply.into_inner()),
                fallback: Some((self, request)),
            }),
            Err(status) if status.code() == Code::Unimplemented => Ok(self.unary(request)),
            Err(status) => Err(failed(&status)),
        }
    }

    fn message(&self, request: &Bytes) -> Request<proto::Request> {
        let mut message = Request::new(proto::Request { request_json: request.to_vec() });
        *message.metadata_mut() = self.headers.clone();
        message
    }

    fn unary(mut self, request: Bytes) -> Call {
        let calling = async move {
            let message = self.message(&request);
            let reply = self.client.execute(message).await.map_err(|status| failed(&status))?;
            self.is_unary.store(true, Ordering::Relaxed);
            Ok(reply.into_inner().response_json)
        };
        Call::Unary(calling.boxed())
    }
}

fn metadata(headers: &Headers) -> Result<MetadataMap, AddressError> {
    let mut metadata = MetadataMap::new();
    for (name, value) in headers.iter() {
        let invalid = || AddressError::InvalidHeader(name.to_owned());
        let key = AsciiMetadataKey::from_bytes(name.as_bytes()).map_err(|_| invalid())?;
        let mut value = AsciiMetadataValue::try_from(value).map_err(|_| invalid())?;
        value.set_sensitive(true);
        metadata.insert(key, value);
    }
    Ok(metadata)
}

/// A call that is being answered.
#[allow(
    clippy::large_enum_variant,
    reason = "one value for each execution; which variant is the large one depends on the features"
)]
pub(super) enum Call {
    Streaming {
        messages: Box<Streaming<proto::Message>>,
        /// For an agent that says only after the head of its reply that it has no such method; none after the first message.
        fallback: Option<(GrpcAgent, Bytes)>,
    },
    Unary(BoxFuture<'static, Result<Vec<u8>, ExecuteError>>),
    Ended,
}

impl Call {
    pub(super) async fn next(&mut self) -> Result<Option<Item>, ExecuteError> {
        loop {
            match self {
                Call::Ended => return Ok(None),
                Call::Unary(calling) => {
                    let called = calling.await;
                    *self = Call::Ended;
                    return item(called?, Origin::Response);
                }
                Call::Streaming { messages, fallback } => match messages.message().await {
                    Ok(Some(message)) => {
                        *fallback = None;
                        return match message.kind {
                            Some(Kind::EventJson(text)) => item(text, Origin::Event),
                            Some(Kind::ResponseJson(text)) => item(text, Origin::Response),
                            // An empty envelope is a message that its reader refuses.
                            None => item(Vec::new(), Origin::Event),
                        };
                    }
                    Ok(None) => return Ok(None),
                    Err(status) => match fallback.take() {
                        Some((agent, request)) if status.code() == Code::Unimplemented => {
                            *self = agent.unary(request);
                        }
                        _ => return Err(failed(&status)),
                    },
                },
            }
        }
    }
}

fn item(text: Vec<u8>, origin: Origin) -> Result<Option<Item>, ExecuteError> {
    if text.len() > MAX_MESSAGE {
        return Err(ExecuteError::TooLong);
    }
    Ok(Some(Item::Message(Message { text: Bytes::from(text), origin })))
}

fn failed(status: &Status) -> ExecuteError {
    // The transport library has no other sign for a message over its limit than this status of its own.
    if status.code() == Code::OutOfRange && status.message().contains("decoded message length too large") {
        return ExecuteError::TooLong;
    }
    // A status that the agent sent has no source; one that has is about the connection.
    let Some(source) = status.source() else {
        let message = start_of(status.message().as_bytes(), STATUS_TEXT);
        return ExecuteError::GrpcStatus { code: status.code().into(), message };
    };
    let mut cause = Some(source);
    while let Some(error) = cause {
        if let Some(NotConnected(reason)) = error.downcast_ref::<NotConnected>() {
            return if is_timeout(reason) {
                ConnectError::TimedOut.into()
            } else {
                ConnectError::Failed(root_cause(reason)).into()
            };
        }
        cause = error.source();
    }
    ExecuteError::ConnectionLost
}
