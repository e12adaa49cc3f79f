//! The protocol's facts, each as a test that fails if it is broken.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod any_input;
mod conventions;
mod decisions;
mod durable;
mod kinds;
mod payloads;
mod rpc;
mod rules;
mod session;
mod shape;
