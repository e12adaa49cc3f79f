//! Conversion of answers to responses of the protocol.

use proctor_core::decision::Effect;
use proctor_core::json::Json;
use proctor_wire::assembly::proto::common::v1::{AgentIdentityAssurance, Decision};
use proctor_wire::assembly::proto::policy::v1::{CheckActionResponse, RedactInstructions, RedactRule};

use proctor_engine::Answer;

/// Builds the response. Its latency is at least one microsecond.
pub(super) fn response(
    answer: &Answer,
    assurance: AgentIdentityAssurance,
    micros: u128,
) -> CheckActionResponse {
    let decision = answer.decision();
    let mut response = CheckActionResponse {
        reason: decision.reason.clone(),
        policy_rule: decision.rule.clone(),
        decision_latency_us: i64::try_from(micros).unwrap_or(i64::MAX).max(1),
        agent_identity_assurance: assurance.into(),
        decision_id: answer.record().map_or_else(String::new, |(id, _)| id.to_string()),
        ..CheckActionResponse::default()
    };
    let wire = match decision.effect {
        Effect::Allow => Decision::Allow,
        Effect::Deny => Decision::Deny,
        Effect::Ask => {
            response.approval_id = decision.approval.map_or_else(String::new, |asked| asked.id.to_string());
            Decision::Pending
        }
        Effect::Redact => {
            let rule = |change: &proctor_core::decision::Change| RedactRule {
                field_path: change.path.clone(),
                replacement: match &change.replacement {
                    Json::String(text) => text.clone(),
                    // A whole field that was replaced: still JSON.
                    other => other.to_string(),
                },
            };
            response.redact = Some(RedactInstructions { rules: decision.changes.iter().map(rule).collect() });
            Decision::Redact
        }
        Effect::Modify => match strings(answer) {
            Some(rules) => {
                response.redact = Some(RedactInstructions { rules });
                Decision::Redact
            }
            None => {
                response.reason = format!(
                    "the policy changes this action in a way that this protocol cannot say: {}",
                    decision.reason
                );
                Decision::Deny
            }
        },
        Effect::Defer => {
            let seconds = decision.retry_after_ms.unwrap_or(0).div_ceil(1000);
            response.reason = format!("not now, retry after {seconds} s: {}", decision.reason);
            Decision::Deny
        }
    };
    response.decision = wire.into();
    response
}

/// Converts changes to redactions; `None` unless all replacements are strings.
fn strings(answer: &Answer) -> Option<Vec<RedactRule>> {
    let changes = &answer.decision().changes;
    let rule = |change: &proctor_core::decision::Change| match &change.replacement {
        Json::String(text) => Some(RedactRule { field_path: change.path.clone(), replacement: text.clone() }),
        _ => None,
    };
    changes.iter().map(rule).collect()
}
