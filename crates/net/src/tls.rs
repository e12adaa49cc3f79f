//! TLS with rustls: server certificates, private authorities, and client certificates.

mod client;
mod error;
mod server;

pub use client::ClientTls;
pub use error::TlsError;
pub use server::ServerTls;
