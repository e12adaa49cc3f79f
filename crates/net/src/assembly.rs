//! Agent Assembly over gRPC: the services, client and server; their messages are in `proctor_wire::assembly::proto`.

pub mod codec;
pub mod services;

#[cfg(test)]
mod tests;
