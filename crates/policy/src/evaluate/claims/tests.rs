use std::sync::Arc;

use proctor_core::action::Action;
use proctor_core::digest::Digest;
use proctor_core::id::{ApprovalId, RecordId, SessionId};
use proctor_core::record::{Envelope, RecordKind, Registration};
use proctor_core::session::Caller;
use proctor_core::time::Timestamp;

use super::*;
use crate::body::{Derivation, rederive};
use crate::judge::{Judgement, Request, judge};
use crate::policy::{Policy, Source};
use crate::prepare::prepare;
use crate::state::State;

const NOW: i64 = 1_763_239_507_123_456;

struct World {
    policy: Arc<Policy>,
    state: State,
    next: u64,
    door: &'static str,
}

impl World {
    fn new(text: &str) -> World {
        let policy = Policy::compile(vec![Source::document("p.yaml", text)]);
        let policy = Arc::new(policy.unwrap_or_else(|problems| panic!("{problems:?}")));
        World { policy, state: State::new(), next: 0, door: DOOR }
    }

    fn apply(&mut self, envelope: &Envelope) {
        self.state.apply(self.next, envelope);
        self.next += 1;
    }

    fn register(&mut self, principal: &str, team: &str, risk: &str, parent: &str) {
        let registration =
            Registration { risk: risk.to_owned(), parent: parent.to_owned(), ..Registration::default() };
        self.apply(&Envelope {
            code: "registered".to_owned(),
            principal: principal.to_owned(),
            team: team.to_owned(),
            registration: Some(Box::new(registration)),
            ..Envelope::new(RecordId::from_bytes([3; 16]), Timestamp::from_micros(NOW), RecordKind::Agent)
        });
    }

    /// An action, which is on record then, and can be derived again.
    fn acts(&mut self, principal: &str, team: &str) -> Judgement {
        let caller = Caller { principal: principal.to_owned(), team: team.to_owned(), ..Caller::default() };
        let action = Action { name: "Bash".to_owned(), door: self.door.to_owned(), ..Action::default() };
        let now = Timestamp::from_micros(NOW);
        let session = SessionId::from_bytes([1; 16]);
        let digest = Digest::of(b"action");
        let request = Request {
            action: &action,
            prepared: prepare(&self.policy, &action, None),
            caller: &caller,
            agent: principal,
            session,
            digest,
            now,
            record: RecordId::from_bytes([2; 16]),
            fresh_approval: ApprovalId::from_bytes([4; 16]),
        };
        let judged = judge(&self.policy, request, &self.state.view(&caller, session, digest, now));
        let policy = Arc::clone(&self.policy);
        let derived = rederive(
            &judged.envelope,
            Some(&judged.body),
            &mut |_| Some(Arc::clone(&policy)),
            Some(&self.state),
        );
        assert_eq!(derived, Derivation::Same);
        self.apply(&judged.envelope);
        judged
    }

    fn effect(&mut self, principal: &str, team: &str) -> Effect {
        self.acts(principal, team).decision.effect
    }
}

#[test]
fn a_claimed_team_permits_nothing_and_takes_no_denial_away() {
    let permits = "default: deny\nrules:\n  - { id: a, when: 'agent.team == \"ops\"', then: allow }\n";
    let spares = "default: allow\nrules:\n  - { id: d, when: 'agent.team != \"ops\"', then: deny }\n";
    let asks = "default: allow\nrules:\n  - { id: d, when: 'agent.team != \"ops\"', then: ask }\n";
    for (text, with_claim) in [(permits, Effect::Deny), (spares, Effect::Deny), (asks, Effect::Ask)] {
        let mut world = World::new(text);
        assert_eq!(world.effect("agent:x", "ops"), with_claim, "{text}");
        // Where a team is not a claim, it counts.
        world.door = "ahp";
        assert_eq!(world.effect("agent:x", "ops"), Effect::Allow, "{text}");
    }
    // What a claim costs, it costs.
    let mut world =
        World::new("default: allow\nrules:\n  - { id: d, when: 'agent.team == \"bad\"', then: deny }\n");
    assert_eq!(world.effect("agent:x", "bad"), Effect::Deny);
    assert_eq!(world.effect("agent:x", "good"), Effect::Allow);
}

#[test]
fn a_document_for_a_claimed_team_permits_nothing() {
    let mut world = World::new("scope: team:ops\ndefault: allow\n");
    let judged = world.acts("agent:x", "ops");
    assert_eq!((judged.decision.effect, judged.decision.rule.as_str()), (Effect::Deny, "no-policy"));
}

#[test]
fn a_claimed_risk_tier_and_parent_permit_nothing() {
    for condition in ["agent.risk_tier == \"low\"", "agent.parent == \"boss\"", "agent.depth == 1"] {
        let text = format!("default: deny\nrules:\n  - {{ id: a, when: '{condition}', then: allow }}\n");
        let mut world = World::new(&text);
        world.register("boss", "", "low", "");
        world.register("agent:x", "", "low", "boss");
        assert_eq!(world.effect("agent:x", ""), Effect::Deny, "{condition}");
    }
}

#[test]
fn a_claimed_parents_stop_reaches_the_child() {
    let mut world = World::new("default: allow\n");
    world.register("boss", "", "", "");
    world.register("agent:x", "", "", "boss");
    assert_eq!(world.effect("agent:x", ""), Effect::Allow);
    world.apply(&Envelope {
        code: "killed".to_owned(),
        principal: "boss".to_owned(),
        ..Envelope::new(RecordId::from_bytes([5; 16]), Timestamp::from_micros(NOW), RecordKind::Agent)
    });
    let judged = world.acts("agent:x", "");
    assert_eq!(
        (judged.decision.effect, judged.decision.rule.as_str()),
        (Effect::Deny, "agent.parent_stopped")
    );
}

#[test]
fn a_new_team_is_no_new_budget() {
    let mut world = World::new("default: allow\nbudget: { calls: { team_daily: 2 } }\n");
    assert_eq!(world.effect("agent:x", "one"), Effect::Allow);
    assert_eq!(world.effect("agent:x", "two"), Effect::Allow);
    for team in ["three", ""] {
        let judged = world.acts("agent:x", team);
        assert_eq!(
            (judged.decision.effect, judged.decision.rule.as_str()),
            (Effect::Deny, "budget.calls.team_daily")
        );
        assert!(judged.decision.reason.contains("by this agent alone"), "{}", judged.decision.reason);
    }
    // The team's limit holds for all of it, too.
    assert_eq!(world.effect("agent:y", "one"), Effect::Allow);
    assert_eq!(world.effect("agent:z", "one"), Effect::Deny);
}
