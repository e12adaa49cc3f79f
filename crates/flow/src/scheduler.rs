//! openclaw-scheduler: apply, plan and inspect.
//!
//! [`apply`] writes compiled jobs through the scheduler's command line, [`plan`] shows what an apply would change, [`inspect`] reads
//! the scheduler's database.

mod apply;
mod capabilities;
mod changes;
mod client;
mod error;
mod fields;
pub mod inspect;
mod order;
mod plan;

pub use apply::{Action, ActionKind, LocalProof, Options, Proofs, Replay, apply};
pub use changes::AdoptBy;
pub use client::{CALL_TIME, Client, Invocation, MAX_ANSWER_BYTES, MAX_LIST_BYTES};
pub use error::{ApplyError, CallError, CallProblem, ConsumeError, InvocationError};
pub use plan::{Plan, plan};
