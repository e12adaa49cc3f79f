//! Decisions about actions.

use std::fmt;
use std::str::FromStr;

use crate::digest::Digest;
use crate::id::ApprovalId;
use crate::json::Json;
use crate::time::Timestamp;

/// Effect of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Effect {
    /// The action may run unchanged.
    Allow,
    /// The action must not run.
    Deny,
    /// The action needs an approval.
    Ask,
    /// The action may run with changed arguments.
    Modify,
    /// The action may run once the findings are redacted.
    Redact,
    /// Retry later.
    Defer,
}

impl Effect {
    /// The word for it in records, documents and answers.
    pub const fn word(self) -> &'static str {
        match self {
            Effect::Allow => "allow",
            Effect::Deny => "deny",
            Effect::Ask => "ask",
            Effect::Modify => "modify",
            Effect::Redact => "redact",
            Effect::Defer => "defer",
        }
    }

    /// Whether the action is let through: allow, redact and modify.
    pub const fn lets_through(self) -> bool {
        matches!(self, Effect::Allow | Effect::Modify | Effect::Redact)
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.word())
    }
}

impl FromStr for Effect {
    type Err = ();

    fn from_str(word: &str) -> Result<Effect, ()> {
        Ok(match word {
            "allow" => Effect::Allow,
            "deny" => Effect::Deny,
            "ask" => Effect::Ask,
            "modify" => Effect::Modify,
            "redact" => Effect::Redact,
            "defer" => Effect::Defer,
            _ => return Err(()),
        })
    }
}

/// Replacement of one value in an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// JSONPath of the value, from the action: `$.args.api_key`.
    pub path: String,
    /// New value.
    pub replacement: Json,
}

/// The approval that a decision asks for, waits for or rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ApprovalRef {
    /// Identifier.
    pub id: ApprovalId,
    /// Expiry; the ask then counts as denied.
    pub expires: Timestamp,
}

/// The answer to an action, with what it rests on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Effect.
    pub effect: Effect,
    /// The rule that decided; never empty.
    pub rule: String,
    /// Reason, for people.
    pub reason: String,
    /// Digest of all policy sources in force.
    pub policy: Digest,
    /// Replacements, for redact and modify.
    pub changes: Vec<Change>,
    /// The approval concerned, if any.
    pub approval: Option<ApprovalRef>,
    /// Approvers, for ask; empty: any approver.
    pub approvers: Vec<String>,
    /// Retry delay, for defer and for an approval that waits.
    pub retry_after_ms: Option<u64>,
    /// Taints that the decision sets on the session.
    pub taints: Vec<String>,
    /// Decision that observe mode replaced by allow.
    pub shadow: Option<Box<Shadow>>,
}

/// A decision that was not enforced, because the policy lets the agent be only observed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shadow {
    /// Effect in enforce mode.
    pub effect: Effect,
    /// The rule that would have decided.
    pub rule: String,
    /// Reason.
    pub reason: String,
}

impl Decision {
    /// A deny with a rule and a reason and nothing else.
    pub fn deny(rule: &str, reason: impl Into<String>, policy: Digest) -> Decision {
        Decision {
            effect: Effect::Deny,
            rule: rule.to_owned(),
            reason: reason.into(),
            policy,
            changes: Vec::new(),
            approval: None,
            approvers: Vec::new(),
            retry_after_ms: None,
            taints: Vec::new(),
            shadow: None,
        }
    }
}
