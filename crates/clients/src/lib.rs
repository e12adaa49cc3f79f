//! Client libraries of the Agent Harness Protocol, Agent Assembly and Attest; both ends of the Agent Test Protocol; the AHP server
//! trait; and the generated gRPC services.
//! One cargo feature for each transport.

/// Declares the module of a generated gRPC package.
#[cfg(feature = "grpc")]
macro_rules! generated {
    ($(#[$doc:meta])* $module:ident, $package:literal) => {
        $(#[$doc])*
        #[allow(
            missing_docs,
            unreachable_pub,
            clippy::all,
            clippy::pedantic,
            clippy::allow_attributes_without_reason,
            reason = "generated"
        )]
        pub mod $module {
            tonic::include_proto!($package);
        }
    };
}

pub mod ahp;
#[cfg(feature = "grpc")]
pub mod assembly;
#[cfg(feature = "atp")]
pub mod atp;
#[cfg(feature = "stdio")]
pub mod attest;
#[cfg(feature = "grpc")]
mod grpc_auth;
#[cfg(feature = "grpc")]
pub mod health;
#[cfg(feature = "ahp-stream")]
mod pending;
