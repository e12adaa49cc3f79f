//! The wire formats: messages and rules of AHP and ATP, compiled agentcli manifests, and Agent Assembly's published vectors.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test fails by panicking, and its helpers are part of it"
)]

mod agentcli_compile;
mod ahp;
mod assembly_vectors;
mod atp;
