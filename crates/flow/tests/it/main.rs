//! Integration tests of the crate.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, and its helpers are part of it"
)]

mod apply;
mod authorization;
mod inspect;
mod runs;
mod stand_in;
mod tls;
