//! Test bench for agents.

pub mod statistics;
