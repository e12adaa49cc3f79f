//! The doors: each translates the messages of a protocol to words of `core`, asks, and translates back.

pub mod ahp;
pub mod assembly;
pub mod attest;
