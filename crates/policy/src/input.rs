//! Input of a decision.

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
    /// JSONPath from the action: `$.args.api_key`.
    pub path: String,
}

/// Input of a decision, apart from the past. Secrets are redacted from the facts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    /// The action.
    pub facts: Facts,
    /// Secrets that the scanner found in it.
    pub findings: Vec<FoundSecret>,
    /// Caller.
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
