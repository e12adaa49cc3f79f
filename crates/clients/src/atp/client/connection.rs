//! The transports behind an exchange.

use super::{ExecuteError, Item};

/// A transport's connection. Each `next` is cancel-safe.
pub(super) enum Connection {
    #[cfg(feature = "stdio")]
    Stdio(super::stdio::PipeConnection),
    #[cfg(feature = "http")]
    Http(super::http::Reply),
    #[cfg(feature = "websocket")]
    WebSocket(super::websocket::Socket),
    #[cfg(feature = "grpc")]
    Grpc(super::grpc::Call),
}

impl Connection {
    /// The next element; none at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Item>, ExecuteError> {
        match self {
            #[cfg(feature = "stdio")]
            Connection::Stdio(pipes) => pipes.next().await,
            #[cfg(feature = "http")]
            Connection::Http(reply) => reply.next().await,
            #[cfg(feature = "websocket")]
            Connection::WebSocket(socket) => socket.next().await,
            #[cfg(feature = "grpc")]
            Connection::Grpc(call) => call.next().await,
        }
    }

    /// Begins to close the connection, after the response. Whether it is read only for a short time from now on.
    pub(super) fn begin_closing(&mut self) -> bool {
        match self {
            // The agent's process ends when it is done, or when its caller ends it.
            #[cfg(feature = "stdio")]
            Connection::Stdio(_) => false,
            #[cfg(feature = "http")]
            Connection::Http(_) => true,
            #[cfg(feature = "websocket")]
            Connection::WebSocket(socket) => {
                socket.close();
                true
            }
            #[cfg(feature = "grpc")]
            Connection::Grpc(_) => true,
        }
    }

    /// Whether the connection outlives an error and the end.
    pub(super) fn is_kept(&self) -> bool {
        match self {
            #[cfg(feature = "stdio")]
            Connection::Stdio(_) => true,
            #[cfg(feature = "listen")]
            _ => false,
        }
    }

    pub(super) fn last_lines(&self) -> Vec<String> {
        match self {
            #[cfg(feature = "stdio")]
            Connection::Stdio(pipes) => pipes.last_lines(),
            #[cfg(feature = "listen")]
            _ => Vec::new(),
        }
    }
}
