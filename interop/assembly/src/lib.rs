//! Agent Assembly's own messages and clients, as they are released, against the gateway of the released binary.

pub mod actions;
pub mod agent;
pub mod gateway;
pub mod link;
pub mod log;
pub mod official;
pub mod policies;
