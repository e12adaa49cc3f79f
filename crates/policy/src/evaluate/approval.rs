//! An ask meets what became of earlier asks for the same action.

use proctor_core::decision::{ApprovalRef, Decision, Effect};

use crate::input::Input;
use crate::question::{Answer, AnswerSource, ApprovalState, Question};

/// When to look again at an approval that waits.
const RETRY_MS: u64 = 5_000;

/// Turns an ask into what it really is: a new question, one that waits, a grant to use, or a refusal to pass on.
pub(super) fn settle(decision: &mut Decision, input: &Input, answers: &dyn AnswerSource, wait_micros: u64) {
    let open = match answers.answer(&Question::Approval) {
        Some(Answer::Approval(open)) => open,
        _ => {
            decision.effect = Effect::Deny;
            "whether this was approved is not known".clone_into(&mut decision.reason);
            return;
        }
    };
    let Some(open) = open else {
        let wait = i64::try_from(wait_micros).unwrap_or(i64::MAX);
        decision.approval =
            Some(ApprovalRef { id: input.fresh_approval, expires: input.now.plus_micros(wait) });
        decision.retry_after_ms = Some(RETRY_MS);
        return;
    };
    let reference = ApprovalRef { id: open.id, expires: open.expires };
    decision.approval = Some(reference);
    let expired = input.now >= open.expires;
    match open.state {
        ApprovalState::Waiting if !expired => {
            decision.retry_after_ms = Some(RETRY_MS);
        }
        ApprovalState::Granted { by } if !expired && !may_approve(&decision.approvers, &by) => {
            decision.effect = Effect::Deny;
            decision.reason = format!("approved by `{by}`, who may not approve this ({})", open.id);
            decision.approvers.clear();
        }
        ApprovalState::Granted { by } if !expired => {
            decision.effect = Effect::Allow;
            decision.approvers.clear();
            decision.reason = format!("approved by `{by}` ({})", open.id);
        }
        ApprovalState::Refused { by, reason } => {
            decision.effect = Effect::Deny;
            decision.approvers.clear();
            let why = if reason.is_empty() { String::new() } else { format!(": {reason}") };
            decision.reason = format!("refused by `{by}` ({}){why}", open.id);
        }
        ApprovalState::Waiting | ApprovalState::Granted { .. } => {
            decision.effect = Effect::Deny;
            decision.approvers.clear();
            decision.reason = format!("approval {} expired at {}", open.id, open.expires);
        }
    }
}

/// Whether somebody is among those who may approve; an empty list is everybody.
fn may_approve(approvers: &[String], by: &str) -> bool {
    approvers.is_empty() || approvers.iter().any(|name| by.strip_prefix("approver:") == Some(name.as_str()))
}
