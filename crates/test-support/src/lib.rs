//! Test doubles that the tests of several crates share. Only ever a dev-dependency.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

pub mod gateway;
