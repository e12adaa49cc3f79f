//! The protocol's facts, each as a test that fails if it is broken.

mod any_input;
mod conventions;
mod decisions;
mod durable;
mod kinds;
mod payloads;
mod rpc;
mod rules;
mod session;
mod shape;
