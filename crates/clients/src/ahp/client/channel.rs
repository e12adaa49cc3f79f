//! Interface common to all transports.

use std::sync::Arc;

use proctor_core::json::Json;
use tokio::time::Instant;

use super::error::Result;
use super::handshake::Handshake;
use super::message::Outgoing;
use super::options::{ClientOptions, Transport};
#[cfg(feature = "ahp-stream")]
use super::streamed::{Streamed, Target};

/// A connected transport.
pub(super) enum Channel {
    #[cfg(feature = "ahp-stream")]
    Streamed(Box<Streamed>),
    #[cfg(feature = "http")]
    Http(Box<super::http::Http>),
    #[cfg(feature = "grpc")]
    Grpc(Box<super::grpc::Grpc>),
}

impl Channel {
    pub(super) async fn connect(
        transport: Transport,
        options: &ClientOptions,
        handshake: &Arc<Handshake>,
    ) -> Result<Channel> {
        #[cfg(feature = "ahp-stream")]
        let streamed = async |target| {
            let streamed = Streamed::connect(target, options, Arc::clone(handshake)).await?;
            Ok(Channel::Streamed(Box::new(streamed)))
        };
        #[cfg(not(feature = "ahp-stream"))]
        let _ = handshake;
        match transport {
            #[cfg(feature = "stdio")]
            Transport::Stdio { program, args } => streamed(Target::Stdio { program, args }).await,
            #[cfg(feature = "unix-socket")]
            Transport::UnixSocket { path } => streamed(Target::UnixSocket { path }).await,
            #[cfg(feature = "websocket")]
            Transport::WebSocket { url, auth } => {
                let target = super::websocket::target(&url, auth.as_ref(), options)?;
                streamed(Target::WebSocket(Box::new(target))).await
            }
            #[cfg(feature = "http")]
            Transport::Http { url, auth } => {
                Ok(Channel::Http(Box::new(super::http::Http::new(&url, auth.as_ref(), options)?)))
            }
            #[cfg(feature = "grpc")]
            Transport::Grpc { url, auth } => {
                let grpc = super::grpc::Grpc::connect(&url, auth.as_ref(), options).await?;
                Ok(Channel::Grpc(Box::new(grpc)))
            }
        }
    }

    /// Sends a message; the result of a request, or null for a notification. The caller enforces the deadline; here it only bounds
    /// attempts to reconnect.
    pub(super) async fn send(&self, message: &Outgoing, deadline: Instant) -> Result<Json> {
        match self {
            #[cfg(feature = "ahp-stream")]
            Channel::Streamed(streamed) => streamed.send(message, deadline).await,
            #[cfg(feature = "http")]
            Channel::Http(http) => http.send(message).await,
            #[cfg(feature = "grpc")]
            Channel::Grpc(grpc) => grpc.send(message).await,
        }
        // HTTP and gRPC alone do not look at it.
        .inspect(|_| _ = deadline)
    }

    pub(super) fn waiting(&self) -> usize {
        match self {
            #[cfg(feature = "ahp-stream")]
            Channel::Streamed(streamed) => streamed.waiting(),
            #[cfg(feature = "http")]
            Channel::Http(_) => 0,
            #[cfg(feature = "grpc")]
            Channel::Grpc(_) => 0,
        }
    }

    /// The longest message that the transport carries.
    pub(super) fn max_message(&self) -> usize {
        match self {
            #[cfg(feature = "ahp-stream")]
            Channel::Streamed(_) => proctor_net::lines::MAX_MESSAGE,
            #[cfg(feature = "http")]
            Channel::Http(_) => super::http::MAX_BODY,
            #[cfg(feature = "grpc")]
            Channel::Grpc(_) => proctor_net::lines::MAX_MESSAGE,
        }
    }

    pub(super) async fn close(&self) {
        match self {
            #[cfg(feature = "ahp-stream")]
            Channel::Streamed(streamed) => streamed.close().await,
            // Pooled connections end with the client, and no call starts another one.
            #[cfg(feature = "http")]
            Channel::Http(_) => {}
            #[cfg(feature = "grpc")]
            Channel::Grpc(_) => {}
        }
    }
}
