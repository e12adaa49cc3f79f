//! Errors of the engine. A decision never fails: what cannot be decided is denied, and only other requests get one of these.

use proctor_core::id::{ApprovalId, RecordId};
use proctor_ledger::{NotRecorded, ReadError};
use proctor_policy::state::StateDamage;

/// Error of a request to the engine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    /// The ledger cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The stored state cannot be read.
    #[error(transparent)]
    State(#[from] StateDamage),
    /// The ledger did not take a record.
    #[error(transparent)]
    NotRecorded(#[from] NotRecorded),
    /// The ledger did not take the record of the policy, so the policy is not in force.
    #[error("the policy could not be recorded: {0}")]
    PolicyNotRecorded(NotRecorded),
    /// A report names a decision of another principal, or none.
    #[error("decision {0} is not one of yours")]
    NotYours(RecordId),
    /// A decision has an outcome already.
    #[error("the outcome of {decision} is on record already, at {first}")]
    OutcomeKnown {
        /// The decision.
        decision: RecordId,
        /// The sequence of its outcome.
        first: u64,
    },
    /// An event with this identifier is on record.
    #[error("this is on record already, at {first}")]
    Known {
        /// The sequence of the first one.
        first: u64,
    },
    /// A report made no record.
    #[error("nothing was recorded")]
    NothingRecorded,
    /// The deadline passed while the decision was taken.
    #[error("deciding took too long")]
    TooLate,
    /// The body of the decision that asked was erased, and with it the names of those who may decide.
    #[error("the record of approval {0} was erased: it cannot be decided any more")]
    AskErased(ApprovalId),
    /// The body of the decision that asked is not JSON.
    #[error("the record of approval {id} is damaged: {reason}")]
    AskDamaged {
        /// The approval.
        id: ApprovalId,
        /// Description of the mistake.
        reason: String,
    },
}

impl EngineError {
    /// The cause as a clause of its own, for messages that already say that a write failed.
    pub fn cause(&self) -> String {
        match self {
            EngineError::NotRecorded(problem) => problem.cause(),
            other => other.to_string(),
        }
    }
}
