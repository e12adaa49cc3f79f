//! Hostile clients, traces, assertions, files and vendors: the engine answers each request, in order, and goes on.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::float_cmp,
    clippy::type_complexity,
    clippy::needless_pass_by_value,
    clippy::disallowed_methods,
    unreachable_pub,
    reason = "a test fails by panicking"
)]

#[path = "attest_hostile/clients.rs"]
mod clients;
#[path = "attest_hostile/files.rs"]
mod files;
#[path = "attest_hostile/lines.rs"]
mod lines;
#[path = "attest_hostile/models.rs"]
mod models;
#[path = "attest_hostile/schemas.rs"]
mod schemas;
#[path = "attest_hostile/thresholds.rs"]
mod thresholds;
#[path = "attest_hostile/vendor.rs"]
mod vendor;

mod support;

#[path = "support/attest.rs"]
mod attest;
