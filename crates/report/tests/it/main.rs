//! Tests of the report files from outside.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::panic,
    reason = "a test fails by panicking, and says if it was not run"
)]

mod browser;
mod snapshots;
mod suites;
