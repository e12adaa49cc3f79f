//! Tests of the crate through its public interface, in one binary.

#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod any_input;
mod document_advice;
mod document_problems;
mod document_roundtrip;
mod document_valid;
mod robustness;
mod scanner_laws;
mod scanner_vectors;
mod schema_examples;
