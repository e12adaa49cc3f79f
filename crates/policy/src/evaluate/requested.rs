//! Approvals that the caller itself requires: an action that would be let through is asked about.

use proctor_core::decision::Effect;
use proctor_core::json::Json;

use super::Opinion;
use crate::document::Position;
use crate::input::Input;

/// Door whose actions may require an approval. Only this one: agents at the other doors use metadata as they like, and decisions on
/// record from before this rule must be derived as they were.
const DOOR: &str = "agentcli";

/// Rule of a decision that asks because the caller requires it.
pub(super) const RULE: &str = "required-approval";

/// Opinion of `metadata.required_approval`: an object with `reason`, and optionally `timeout_s` and `approvers`.
///
/// It only tightens: it turns an allow into an ask, and restricts an ask further. A deny stays one, also that of the default.
pub(super) fn opinion(input: &Input) -> Option<Opinion> {
    if input.facts.door != DOOR {
        return None;
    }
    let required = input.facts.metadata.get("required_approval")?;
    let reason = required.get("reason").and_then(Json::as_str)?;
    let listed = required.get("approvers").and_then(Json::as_array).unwrap_or_default();
    let seconds = required.get("timeout_s").and_then(Json::as_u64);
    Some(Opinion {
        effect: Effect::Ask,
        rule: RULE.to_owned(),
        reason: reason.to_owned(),
        file: String::new(),
        at: Position::default(),
        expires_micros: seconds.map(|seconds| seconds.saturating_mul(1_000_000)),
        approvers: listed.iter().filter_map(Json::as_str).map(str::to_owned).collect(),
        retry_after_ms: None,
    })
}

#[cfg(test)]
mod tests {
    use proctor_core::action::Action;
    use proctor_core::decision::Decision;
    use proctor_core::digest::Digest;
    use proctor_core::id::{ApprovalId, SessionId};
    use proctor_core::session::Caller;
    use proctor_core::time::Timestamp;

    use super::*;
    use crate::evaluate::evaluate;
    use crate::policy::{Policy, Source};
    use crate::prepare::prepare;
    use crate::state::State;

    fn decide(rule: &str, required: &str) -> Decision {
        decide_at(DOOR, rule, required)
    }

    fn decide_at(door: &str, rule: &str, required: &str) -> Decision {
        let text = format!("version: \"1\"\ndefault: deny\nrules:\n{rule}");
        let policy = Policy::compile(vec![Source::document("policy.yaml", &text)]).unwrap();
        let metadata = Json::parse(format!(r#"{{"required_approval":{required}}}"#).as_bytes()).unwrap();
        let action =
            Action { name: "deploy".to_owned(), door: door.to_owned(), metadata, ..Action::default() };
        let prepared = prepare(&policy, &action, None);
        let caller = Caller { principal: "job:w/t".to_owned(), ..Caller::default() };
        let (session, digest, now) = (
            SessionId::from_bytes([7; 16]),
            Digest::of(b"action"),
            Timestamp::from_micros(1_763_239_507_000_000),
        );
        let input = Input {
            facts: prepared.facts,
            findings: prepared.findings,
            caller: caller.clone(),
            agent: String::new(),
            session,
            digest,
            now,
            fresh_approval: ApprovalId::from_bytes([9; 16]),
        };
        evaluate(&policy, &input, &State::new().view(&caller, session, digest, now)).decision
    }

    #[test]
    fn a_required_approval_tightens_and_never_loosens() {
        const REQUIRED: &str = r#"{"reason":"the task says so","timeout_s":60,"approvers":["ann","bob"]}"#;
        let allow = "  - {id: a, when: 'true', then: allow}\n";
        let decision = decide(allow, REQUIRED);
        assert_eq!((decision.effect, decision.rule.as_str()), (Effect::Ask, RULE));
        assert_eq!(decision.approvers, ["ann", "bob"]);
        let expires = decision.approval.unwrap().expires;
        assert_eq!(expires, Timestamp::from_micros(1_763_239_567_000_000), "the task's own time");
        // Nobody is asked about what the policy denies, or does not mention.
        let deny = "  - {id: d, when: 'true', then: deny}\n";
        let other = "  - {id: o, when: 'false', then: allow}\n";
        for rule in [deny, other, &format!("{allow}{deny}")] {
            assert_eq!(decide(rule, REQUIRED).effect, Effect::Deny, "{rule}");
        }
        // The policy's question stays its own; only approvers that both name may decide, within the shorter time.
        let ask = "  - {id: q, when: 'true', then: ask, approvers: [bob, eve], expires: 10s}\n";
        let decision = decide(ask, REQUIRED);
        assert_eq!((decision.rule.as_str(), decision.approvers), ("q", vec!["bob".to_owned()]));
        assert_eq!(decision.approval.unwrap().expires, Timestamp::from_micros(1_763_239_517_000_000));
        // Without a reason it is a member that others use for something else.
        assert_eq!(decide(allow, r#"{"by":"me"}"#).effect, Effect::Allow);
        assert_eq!(decide(allow, "true").effect, Effect::Allow);
        assert_eq!(decide_at("ahp", allow, REQUIRED).effect, Effect::Allow);
    }
}
