//! Answers of the runtime itself.

use proctor_wire::assembly::proto::common::v1::Decision;
use proctor_wire::assembly::proto::policy::v1::CheckActionResponse;

use super::framing::Framing;

/// Reason of the denial in place of a redaction.
const REDACTION: &str =
    "the action holds secrets, and a client of this socket cannot cut them out: send it again without them";

/// A denial.
///
/// ```
/// use proctor_clients::assembly::runtime::deny;
///
/// let answer = deny("operation.paused", "operation is paused");
/// assert_eq!((answer.policy_rule.as_str(), answer.reason.as_str()), ("operation.paused", "operation is paused"));
/// ```
pub fn deny(policy_rule: &str, reason: impl Into<String>) -> CheckActionResponse {
    CheckActionResponse {
        decision: Decision::Deny.into(),
        reason: reason.into(),
        policy_rule: policy_rule.to_owned(),
        ..Default::default()
    }
}

/// The denial of a query that timed out.
pub(super) fn late() -> CheckActionResponse {
    deny("runtime.timeout", "gateway did not answer in time")
}

/// The denial of a query whose handler panicked.
pub(super) fn defect() -> CheckActionResponse {
    deny("runtime.defect", "the runtime failed on this query")
}

/// The denial in place of an answer that is too long for a frame.
pub(super) fn too_long() -> CheckActionResponse {
    deny("runtime.answer", "the gateway's answer is too long for the socket")
}

/// Replaces an answer that the client cannot carry out by a denial: one without a decision, or a redaction that the framing does not carry.
pub(super) fn decided(answer: CheckActionResponse, framing: Framing) -> CheckActionResponse {
    match Decision::try_from(answer.decision) {
        Ok(Decision::Redact) if !framing.carries_redactions() => {
            let mut denial = deny("runtime.redaction", REDACTION);
            denial.decision_id = answer.decision_id;
            denial
        }
        Ok(Decision::Allow | Decision::Deny | Decision::Pending | Decision::Redact) => answer,
        Ok(Decision::Unspecified) | Err(_) => deny("runtime.answer", "the gateway's answer decides nothing"),
    }
}
