//! The Agent Test Protocol, both ends: a [`client`] for agents under test, and an [`agent`] trait with its servers.
//!
//! The client delivers the texts of messages as they came; reading them, and the rules between them, are `proctor_wire::atp`.

pub mod agent;
pub mod client;

#[cfg(feature = "grpc")]
generated! {
    /// The generated messages and stubs of `schemas/atp/v1/agent.proto`.
    proto, "proctor.atp.v1"
}
