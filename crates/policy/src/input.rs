//! What a decision is made from.

use proctor_core::digest::Digest;
use proctor_core::id::{ApprovalId, SessionId};
use proctor_core::session::Caller;
use proctor_core::time::Timestamp;
use proctor_facts::Facts;

/// A secret or personal datum that was found and cut (or left visible, for kinds that stay).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundSecret {
    /// The kind's name: `OpenAiKey`, `EmailAddress`, `Custom`, …
    pub kind: String,
    /// Where, as a JSONPath from the action: `$.args.api_key`.
    pub path: String,
}

/// Everything that a decision reads besides the past. Facts are as cut: no secret is in them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    /// The action.
    pub facts: Facts,
    /// What the scanner found in it.
    pub findings: Vec<FoundSecret>,
    /// Who acts.
    pub caller: Caller,
    /// The agent, as claimed.
    pub agent: String,
    /// The session.
    pub session: SessionId,
    /// The keyed digest of the action as sent.
    pub digest: Digest,
    /// The moment.
    pub now: Timestamp,
    /// The identifier that a new approval would get.
    pub fresh_approval: ApprovalId,
}
