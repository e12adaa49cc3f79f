//! The assertion layers against slow, obvious references.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::float_cmp,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, and its sums are exact"
)]

mod layers_reference;
mod trees_reference;
