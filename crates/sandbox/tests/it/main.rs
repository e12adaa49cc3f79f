//! Sandbox battery: each protection attacked from inside, endings, reports, and what is left afterwards.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test fails by panicking, and its helpers are part of it"
)]

mod attack;
mod battery;
mod claims;
mod endings;
mod helper;
mod interpreters;
mod leaks;
mod ordinary;
mod reports;
mod support;
mod world;
