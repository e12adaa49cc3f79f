//! The wire formats: AHP's messages and rules, and Agent Assembly's published vectors.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test fails by panicking, and its helpers are part of it"
)]

mod ahp;
mod assembly_vectors;
