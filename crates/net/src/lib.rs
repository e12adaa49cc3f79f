//! Transports, both ends: stdio, Unix socket, HTTP, WebSocket, gRPC and TLS, with one cargo feature each.
//!
//! No protocol is known here. A server implements [`connection::TextHandler`] and is then served by [`stream`], [`unix`] and
//! [`websocket`]; the routers of HTTP and gRPC services are served by [`listen`]. A client gets halves of a connection
//! ([`message`]) or a channel ([`http`], [`grpc`]). Event streams are decoded by [`sse`].

#[cfg(any(feature = "unix-socket", feature = "listen"))]
pub mod accept;
#[cfg(feature = "listen")]
pub mod auth;
pub mod budget;
pub mod connection;
mod deadline;
#[cfg(feature = "grpc")]
pub mod grpc;
#[cfg(feature = "http")]
pub mod http;
pub mod lines;
#[cfg(feature = "listen")]
pub mod listen;
pub mod message;
pub mod peer;
pub mod sse;
#[cfg(feature = "stdio")]
pub mod stdio;
pub mod stream;
#[cfg(feature = "tls")]
pub mod tls;
#[cfg(all(unix, feature = "unix-socket"))]
pub mod unix;
#[cfg(feature = "websocket")]
pub mod websocket;
