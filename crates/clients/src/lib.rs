//! Client libraries of the Agent Harness Protocol, Agent Assembly and Attest; the AHP server trait; and the generated gRPC services.
//! One cargo feature a transport.

pub mod ahp;
#[cfg(feature = "grpc")]
pub mod assembly;
#[cfg(feature = "stdio")]
pub mod attest;
#[cfg(feature = "grpc")]
pub mod health;
#[cfg(any(feature = "stdio", feature = "unix-socket", feature = "websocket"))]
mod pending;
