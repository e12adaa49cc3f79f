//! WebSocket: a message is a text frame, and replies come in any order.

pub mod client;
pub mod server;
