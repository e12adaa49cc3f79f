//! agentcli protocol: JSON-RPC envelopes, manifests and their rules, compiled forms.
//!
//! Manifests are [`Json`](proctor_core::json::Json) values: their findings name paths of the document as it was written.

pub mod binding;
pub mod canonical;
pub mod compile;
pub mod convert;
pub mod describe;
pub mod effective;
pub mod error;
pub mod expand;
pub mod finding;
pub mod providers;
pub mod rpc;
pub mod schema;
mod structure;
pub mod validate;
