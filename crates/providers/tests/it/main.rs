//! Integration tests of the providers: vendors' wire formats, the shared store, and the local model.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, and its helpers are part of it"
)]

#[path = "../double/server.rs"]
mod double;
#[cfg(feature = "local-embeddings")]
mod local_model;
mod store_shared;
mod vendor_clients;
mod vendors;
