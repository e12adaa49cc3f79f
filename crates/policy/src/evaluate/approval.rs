//! Asks and the approval state: one approval for each action of a principal.

use proctor_core::decision::{ApprovalRef, Decision, Effect};
use proctor_facts::Facts;
use rust_decimal::Decimal;

use crate::input::Input;
use crate::question::{Answer, AnswerSource, ApprovalState, ApprovalView, Estimate, Question};

/// Retry delay of an ask that waits.
const RETRY_MS: u64 = 5_000;

/// Resolves an ask against the approval state: new, waiting, granted or refused.
pub(super) fn settle(decision: &mut Decision, input: &Input, answers: &dyn AnswerSource, wait_micros: u64) {
    let open = match answers.answer(&Question::Approval) {
        Some(Answer::Approval(open)) => open,
        _ => {
            decision.effect = Effect::Deny;
            "whether this was approved is not known".clone_into(&mut decision.reason);
            return;
        }
    };
    // A grant for less is no grant for this.
    let (open, outgrown) = match open {
        Some(open) if is_outgrown(&open, input) => (None, Some(open)),
        open => (open, None),
    };
    let Some(open) = open else {
        if let Some(granted) = outgrown {
            decision.reason = format!(
                "{}; approval {} was for at most {} USD and {} tokens",
                decision.reason,
                granted.id,
                granted.estimate.usd.normalize(),
                granted.estimate.tokens.normalize()
            );
        }
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

/// Whether an approval was granted for an action that was expected to cost less.
fn is_outgrown(open: &ApprovalView, input: &Input) -> bool {
    matches!(open.state, ApprovalState::Granted { .. }) && !open.estimate.covers(&estimate(&input.facts))
}

/// Expected cost of an action.
pub(super) fn estimate(facts: &Facts) -> Estimate {
    Estimate { usd: crate::prices::expected_cost(facts), tokens: Decimal::from(facts.tokens) }
}

/// Whether `by` is a permitted approver; an empty list permits all.
fn may_approve(approvers: &[String], by: &str) -> bool {
    approvers.is_empty() || approvers.iter().any(|name| by.strip_prefix("approver:") == Some(name.as_str()))
}
