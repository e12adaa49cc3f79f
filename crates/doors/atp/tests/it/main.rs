//! The endpoint with a real engine, called by a plain HTTP client.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    unreachable_pub,
    missing_docs,
    reason = "a test fails by panicking"
)]

mod decisions;
mod fixture;
mod forward;
mod lifetime;
mod refusals;
mod relay;
mod routes;
