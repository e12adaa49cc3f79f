//! The engine of Proctor as a library: policy, state and ledger put together.

pub mod access;
pub mod approvers;
mod engine;
mod error;
pub mod in_flight;
pub mod orders;
pub mod owner;
pub mod policy_files;
pub mod policy_watch;
pub mod rederive;
pub mod settings;
pub mod state_dir;
pub mod tokens;
pub mod traces;
pub mod truncated;

pub use engine::*;
pub use error::EngineError;
