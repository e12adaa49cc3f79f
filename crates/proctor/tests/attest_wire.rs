//! The Attest engine from the outside: every promise of its protocol, as a client sees it.

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

#[path = "attest_wire/batches.rs"]
mod batches;
#[path = "attest_wire/command_line.rs"]
mod command_line;
#[path = "attest_wire/envelope.rs"]
mod envelope;
#[path = "attest_wire/history.rs"]
mod history;
#[path = "attest_wire/methods.rs"]
mod methods;
#[path = "attest_wire/records.rs"]
mod records;
#[path = "attest_wire/validation.rs"]
mod validation;
#[path = "attest_hostile/vendor.rs"]
mod vendor;

mod support;

#[path = "support/attest.rs"]
mod attest;
