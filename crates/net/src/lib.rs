//! How bytes travel, both ends: stdio, Unix socket, HTTP, WebSocket, gRPC; and on them the client and server libraries of the
//! protocols. One cargo feature a transport.

pub mod ahp;
#[cfg(feature = "grpc")]
pub mod assembly;
#[cfg(feature = "stdio")]
pub mod attest;
pub mod budget;
#[cfg(feature = "grpc")]
pub mod health;
pub mod lines;
#[cfg(any(feature = "http", feature = "websocket", feature = "grpc"))]
pub mod listen;
#[cfg(feature = "tls")]
pub mod tls;
