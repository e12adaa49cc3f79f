//! Integration tests of the crate.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod http;
mod killed;
mod providers;
mod server;
