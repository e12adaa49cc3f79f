//! x

pub mod merkle;
