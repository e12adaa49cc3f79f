//! Integration tests of the crate.

#![expect(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod certificate;
mod detached;
mod evidence;
mod hostile;
mod jwks;
mod jwt;
mod ssh_keygen;
mod support;
mod verify;
