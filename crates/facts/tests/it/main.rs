//! Tests of the shell parser against a real shell.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    unreachable_pub,
    reason = "a test fails by panicking, and prints its seed"
)]

mod bash;
mod honest;
