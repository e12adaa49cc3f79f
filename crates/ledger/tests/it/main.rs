//! Integration tests of the ledger through its public interface.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::unnecessary_wraps,
    clippy::needless_for_each,
    clippy::print_stdout,
    unreachable_pub,
    reason = "a test fails by panicking, and its helpers are part of it"
)]

mod append;
mod bundle;
mod damage;
mod erase;
mod faults;
mod files;
mod permits;
mod read;
mod read_only;
mod support;
