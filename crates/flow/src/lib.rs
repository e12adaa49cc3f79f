//! Workflows: checks of manifests beyond the protocol's, authorization, applying to a scheduler, and runs of tasks under policy.

pub mod authorization;
pub mod lint;
pub mod run;
pub mod scheduler;

mod text;
