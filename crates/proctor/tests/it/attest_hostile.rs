//! Hostile clients, traces, assertions, files and vendors: the engine answers each request, in order, and goes on.

pub mod clients;
pub mod files;
pub mod lines;
pub mod models;
pub mod schemas;
pub mod thresholds;
pub mod vendor;
