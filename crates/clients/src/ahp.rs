//! The Agent Harness Protocol: a client for agents, and a server for harnesses.

pub mod client;
#[cfg(feature = "grpc")]
mod grpc;
pub mod server;

pub use proctor_wire::ahp::*;
