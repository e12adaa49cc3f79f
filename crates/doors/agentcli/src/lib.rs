//! The door of the agentcli protocol: JSON-RPC on standard streams ([`methods`]), and its command line ([`program`]).
//!
//! Both give the results of the same operations: manifests are validated, compiled, converted and applied; identities, proofs and
//! authorization of a task are examined; tasks are run. Rules are in `wire::agentcli`, work is in `flow`, `identity` and `proof`.

pub mod agents;
pub mod arguments;
pub mod door;
pub mod failure;
pub mod home;
pub mod input;
pub mod methods;
mod operations;
pub mod output;
pub mod program;
pub mod registry;
pub mod serve;
pub mod write;
