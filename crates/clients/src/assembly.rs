//! Agent Assembly: the gRPC services, a client of a gateway, and the runtime's socket. The messages are in
//! `proctor_wire::assembly::proto`.

pub mod client;
pub mod codec;
#[cfg(all(unix, feature = "unix-socket"))]
pub mod runtime;
pub mod services;

pub use crate::grpc_auth::for_this_user;

#[cfg(test)]
mod tests;
