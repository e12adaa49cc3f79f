//! The engine from outside.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod full_queue;
