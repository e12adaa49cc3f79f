//! The answer to an action. One that lets it through can only be built from the receipt that the ledger gave.

use proctor_core::decision::{Decision, Effect};
use proctor_core::digest::Digest;
use proctor_core::id::{RecordId, SessionId};
use proctor_core::json::Json;
use proctor_ledger::Receipt;

/// The answer that a door translates for its caller.
#[derive(Debug, Clone)]
pub struct Answer {
    decision: Decision,
    recorded: Option<Recorded>,
    session: Option<SessionId>,
    args: Option<Json>,
}

#[derive(Debug, Clone, Copy)]
struct Recorded {
    id: RecordId,
    sequence: u64,
}

impl Answer {
    /// The answer that was recorded. `args` are the arguments with all changes applied, where there are changes.
    pub(crate) fn recorded(
        decision: Decision,
        session: SessionId,
        args: Option<Json>,
        receipt: &Receipt,
    ) -> Answer {
        Answer {
            decision,
            recorded: Some(Recorded { id: receipt.id(), sequence: receipt.seq() }),
            session: Some(session),
            args,
        }
    }

    /// A deny that could not be recorded. Only a deny can be answered without a receipt.
    pub fn unrecorded_deny(rule: &str, reason: impl Into<String>, policy: Digest) -> Answer {
        Answer { decision: Decision::deny(rule, reason, policy), recorded: None, session: None, args: None }
    }

    /// A deny before the policy was asked: recorded as an alarm.
    pub(crate) fn refused(
        rule: &str,
        reason: impl Into<String>,
        policy: Digest,
        receipt: &Receipt,
    ) -> Answer {
        Answer {
            decision: Decision::deny(rule, reason, policy),
            recorded: Some(Recorded { id: receipt.id(), sequence: receipt.seq() }),
            session: None,
            args: None,
        }
    }

    /// The decision.
    pub fn decision(&self) -> &Decision {
        &self.decision
    }

    /// The record's identifier and sequence, if there is one.
    pub fn record(&self) -> Option<(RecordId, u64)> {
        self.recorded.map(|recorded| (recorded.id, recorded.sequence))
    }

    /// The session, if it was recorded in one.
    pub fn session(&self) -> Option<SessionId> {
        self.session
    }

    /// The JSON form, one line of `proctor gate`.
    pub fn to_json(&self) -> Json {
        let decision = &self.decision;
        let mut out = Json::object();
        if let Some(recorded) = self.recorded {
            out.push("decision_id", recorded.id.to_string());
            out.push("seq", recorded.sequence);
        }
        if let Some(session) = self.session {
            out.push("session_id", session.to_string());
        }
        out.push("decision", decision.effect.word());
        out.push("rule", decision.rule.as_str());
        out.push("reason", decision.reason.as_str());
        add_details(&mut out, decision);
        if let Some(args) = &self.args {
            out.push("args", args.clone());
        }
        out.push("policy", decision.policy.to_string());
        out.push("recorded", self.recorded.is_some());
        out
    }
}

/// Approval, retry and changes, where a decision has them.
pub fn add_details(out: &mut Json, decision: &Decision) {
    if let Some(approval) = decision.approval {
        out.push("approval_id", approval.id.to_string());
        if decision.effect == Effect::Ask {
            out.push("expires_at", approval.expires.to_string());
        }
    }
    if !decision.approvers.is_empty() {
        out.push(
            "approvers",
            decision.approvers.iter().map(|name| Json::from(name.as_str())).collect::<Vec<_>>(),
        );
    }
    if let Some(retry) = decision.retry_after_ms {
        out.push("retry_after_ms", retry);
    }
    if !decision.changes.is_empty() {
        let changes = decision.changes.iter().map(|change| {
            Json::object().with("path", change.path.as_str()).with("replacement", change.replacement.clone())
        });
        out.push("changes", changes.collect::<Vec<_>>());
    }
}
