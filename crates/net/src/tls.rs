//! TLS with rustls: certificates, private authorities and client certificates.

mod client;
mod server;

pub use client::ClientTls;
pub use server::ServerTls;
