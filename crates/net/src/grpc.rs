//! gRPC: channels of clients, and streaming calls of servers. Services themselves are generated elsewhere.

pub mod client;
pub mod server;
mod unfinished;

pub use unfinished::count_messages;
