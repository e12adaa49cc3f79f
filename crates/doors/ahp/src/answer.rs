//! Conversion of the engine's answers to decisions of the protocol.

use proctor_core::decision::Effect;
use proctor_core::json::Json;
use proctor_wire::ahp::{ConfirmationDecision, Decision};

use super::action::ParsedAction;
use proctor_engine::Answer;

/// Default `retry_after_ms`, for decisions without one.
const RETRY_MS: u64 = 5_000;

/// Request state of an approval: the first request is answered with `escalate`, a repeated one with `defer`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ApprovalRequest {
    First,
    Repeated,
}

/// Converts an answer to the protocol's generic decision.
pub(crate) fn generic(
    answer: &Answer,
    read: &ParsedAction,
    payload: &Json,
    asked: ApprovalRequest,
) -> Decision {
    let decision = answer.decision();
    let metadata = Some(metadata(answer));
    let block = |reason: String, metadata| Decision::Block { reason, metadata };
    match decision.effect {
        Effect::Allow => Decision::Allow { modified_payload: None, metadata },
        Effect::Deny => block(decision.reason.clone(), metadata),
        Effect::Redact | Effect::Modify => match read.changed_payload(payload, decision) {
            Ok(modified_payload) => Decision::Modify { modified_payload, metadata },
            Err(problem) => block(problem.to_string(), metadata),
        },
        Effect::Defer => Decision::Defer {
            retry_after_ms: decision.retry_after_ms.unwrap_or(RETRY_MS),
            reason: Some(decision.reason.clone()),
            approval_id: None,
            expires_at: None,
            metadata,
        },
        Effect::Ask => {
            let waiting = waiting(answer);
            match asked {
                ApprovalRequest::First => Decision::Escalate {
                    reason: waiting.reason,
                    escalation_target: waiting.target,
                    approval_id: waiting.approval_id,
                    retry_after_ms: Some(waiting.retry_after_ms),
                    expires_at: waiting.expires_at,
                    metadata,
                },
                ApprovalRequest::Repeated => Decision::Defer {
                    retry_after_ms: waiting.retry_after_ms,
                    reason: Some(waiting.reason),
                    approval_id: waiting.approval_id,
                    expires_at: waiting.expires_at,
                    metadata,
                },
            }
        }
    }
}

/// Converts an answer to the protocol's decision on a confirmation.
pub(crate) fn confirmation(answer: &Answer) -> ConfirmationDecision {
    let decision = answer.decision();
    let metadata = Some(metadata(answer));
    match decision.effect {
        // Nothing is carried out with the text of a confirmation, so what was cut from it in the records does not matter.
        Effect::Allow | Effect::Redact => ConfirmationDecision::Approve { metadata },
        Effect::Deny => ConfirmationDecision::Reject { reason: decision.reason.clone(), metadata },
        Effect::Modify => ConfirmationDecision::Reject {
            reason: format!("rule `{}` would change this, which a confirmation cannot carry", decision.rule),
            metadata,
        },
        Effect::Defer => ConfirmationDecision::Reject {
            reason: format!(
                "{} (ask again in {} ms)",
                decision.reason,
                decision.retry_after_ms.unwrap_or(RETRY_MS)
            ),
            metadata,
        },
        Effect::Ask => {
            let waiting = waiting(answer);
            ConfirmationDecision::Escalate {
                reason: Some(waiting.reason),
                approval_id: waiting.approval_id,
                retry_after_ms: Some(waiting.retry_after_ms),
                expires_at: waiting.expires_at,
                metadata,
            }
        }
    }
}

/// Metadata of a decision, which the agent echoes when it reports the outcome.
fn metadata(answer: &Answer) -> Json {
    let decision = answer.decision();
    let mut out = Json::object();
    if let Some((id, _)) = answer.record() {
        out.push("decision_id", id.to_string());
    }
    if let Some(session) = answer.session() {
        out.push("session_id", session.to_string());
    }
    out.with("rule", decision.rule.as_str())
        .with("reason", decision.reason.as_str())
        .with("policy", decision.policy.to_string())
}

struct Waiting {
    reason: String,
    target: Option<String>,
    approval_id: Option<String>,
    retry_after_ms: u64,
    expires_at: Option<String>,
}

fn waiting(answer: &Answer) -> Waiting {
    let decision = answer.decision();
    let id = decision.approval.map(|approval| approval.id.to_string());
    let why = if decision.reason.is_empty() { "a person has to decide" } else { &decision.reason };
    Waiting {
        reason: match &id {
            Some(id) => format!("{why} (approval {id})"),
            None => why.to_owned(),
        },
        target: (!decision.approvers.is_empty()).then(|| decision.approvers.join(",")),
        approval_id: id,
        retry_after_ms: decision.retry_after_ms.unwrap_or(RETRY_MS),
        expires_at: decision.approval.map(|approval| approval.expires.to_string()),
    }
}
