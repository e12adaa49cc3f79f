//! HTTP: one message a `POST`.

pub mod client;
pub mod server;
