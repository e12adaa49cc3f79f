//! Agent Assembly over gRPC: the services, client and server; their messages are in `proctor_wire::assembly::proto`.

pub mod client;
pub mod codec;
#[cfg(all(unix, feature = "unix-socket"))]
pub mod runtime;
pub mod services;

#[cfg(test)]
mod tests;
