use std::sync::Arc;

use proctor_core::action::{Action, ActionKind};
use proctor_core::digest::Digest;
use proctor_core::id::{ApprovalId, RecordId, SessionId};
use proctor_core::record::{Envelope, RecordKind, Registration};

use super::*;
use crate::body::{Derivation, rederive};
use crate::budgets::is_spent;
use crate::judge::{Judgement, Request, judge};
use crate::policy::Source;
use crate::prepare::prepare;
use crate::state::State;

const NOW: i64 = 1_763_239_507_123_456;

/// A root, two children, and one that belongs to nobody.
struct Family {
    policy: Arc<Policy>,
    state: State,
    next: u64,
}

impl Family {
    fn new(documents: &[&str]) -> Family {
        let sources = documents.iter().enumerate();
        let sources = sources.map(|(place, text)| Source::document(&format!("{place}.yaml"), text));
        let policy = Policy::compile(sources.collect()).unwrap_or_else(|problems| panic!("{problems:?}"));
        let mut family = Family { policy: Arc::new(policy), state: State::new(), next: 0 };
        for (principal, team, parent) in
            [("root", "red", ""), ("left", "blue", "root"), ("right", "red", "root"), ("stranger", "red", "")]
        {
            let registration = Registration { parent: parent.to_owned(), ..Registration::default() };
            let time = Timestamp::from_micros(NOW);
            family.apply(&Envelope {
                code: "registered".to_owned(),
                principal: principal.to_owned(),
                team: team.to_owned(),
                registration: Some(Box::new(registration)),
                ..Envelope::new(RecordId::from_bytes([3; 16]), time, RecordKind::Agent)
            });
        }
        family
    }

    fn apply(&mut self, envelope: &Envelope) {
        self.state.apply(self.next, envelope);
        self.next += 1;
    }

    /// An action, which is on record then, and can be derived again.
    fn acts(&mut self, principal: &str) -> Judgement {
        self.acts_as(principal, ActionKind::ToolCall, 9)
    }

    /// The action of a kind and a digest, whose approval has the same number.
    fn acts_as(&mut self, principal: &str, kind: ActionKind, number: u8) -> Judgement {
        let info = self.state.registry().get(principal).unwrap();
        let (caller, action) = (info.caller(), Action { name: "Bash".to_owned(), kind, ..Action::default() });
        let request = Request {
            action: &action,
            prepared: prepare(&self.policy, &action, None),
            caller: &caller,
            agent: principal,
            session: SessionId::from_bytes([7; 16]),
            digest: Digest::of(&[number]),
            now: Timestamp::from_micros(NOW),
            record: RecordId::from_bytes([1; 16]),
            fresh_approval: ApprovalId::from_bytes([number; 16]),
        };
        let view = self.state.view(&caller, request.session, request.digest, request.now);
        let judgement = judge(&self.policy, request, &view);
        for past in [None, Some(&self.state)] {
            let mut policies = |_| Some(Arc::clone(&self.policy));
            let derived = rederive(&judgement.envelope, Some(&judgement.body), &mut policies, past);
            assert_eq!(derived, Derivation::Same);
        }
        self.apply(&judgement.envelope);
        judgement
    }

    fn outcome(&mut self, principal: &str) -> (Effect, String, String) {
        let decision = self.acts(principal).decision;
        (decision.effect, decision.rule, decision.reason)
    }
}

#[test]
fn an_ask_uses_up_the_rate_and_its_grant_is_free() {
    let rule =
        "rules: [{ id: q, when: 'true', then: ask }]\ntools: { shell: { allow: true, limit_per_hour: 2 } }\n";
    let other = "default: ask\nrules: []\ntools: { '*': { allow: true, limit_per_hour: 2 } }\n";
    let mut family = Family::new(&[rule, other]);
    let mut ask = |number: u8| {
        let judgement = family.acts_as("stranger", ActionKind::ToolCall, number);
        let rates = judgement.envelope.amounts.iter().filter(|amount| amount.unit == "rate").count();
        (judgement.decision.effect, rates)
    };
    assert_eq!(ask(1), (Effect::Ask, 1));
    assert_eq!(ask(1), (Effect::Ask, 0), "waiting is free");
    assert_eq!(ask(2), (Effect::Ask, 1));
    assert_eq!(ask(3), (Effect::Deny, 0), "asking is what the limit is for");
    let hour = 3_600_000_000;
    family.apply(&Envelope {
        principal: "boss".to_owned(),
        approval: Some(ApprovalId::from_bytes([1; 16])),
        code: "allow".to_owned(),
        expires: Some(Timestamp::from_micros(NOW + hour)),
        ..Envelope::new(RecordId::from_bytes([4; 16]), Timestamp::from_micros(NOW), RecordKind::Approval)
    });
    let used = family.acts_as("stranger", ActionKind::ToolCall, 1);
    assert_eq!(used.decision.effect, Effect::Allow, "{}", used.decision.reason);
    assert!(used.envelope.amounts.iter().all(|amount| amount.unit != "rate"), "{:?}", used.envelope.amounts);
}

#[test]
fn a_result_is_no_call() {
    let text = "default: allow\ntools: { shell: { allow: true, limit_per_hour: 1 } }\nbudget: { calls: { daily: 1 } }\n";
    let mut family = Family::new(&[text]);
    for number in 1..4 {
        let result = family.acts_as("stranger", ActionKind::ToolResult, number);
        assert_eq!((result.decision.effect, result.envelope.amounts.len()), (Effect::Allow, 0));
    }
    assert_eq!(family.outcome("stranger").0, Effect::Allow);
    assert_eq!(family.outcome("stranger").0, Effect::Deny);
    assert_eq!(family.acts_as("stranger", ActionKind::ToolResult, 5).decision.effect, Effect::Allow);
}

fn denied(key: &str, reason: &str) -> (Effect, String, String) {
    (Effect::Deny, format!("budget.{key}"), reason.to_owned())
}

#[test]
fn an_agent_cannot_spend_more_through_those_it_started() {
    let mut family = Family::new(&["default: allow\nbudget: { calls: { daily: 3 } }\n"]);
    for principal in ["root", "left", "right"] {
        assert_eq!(family.outcome(principal).0, Effect::Allow, "{principal}");
    }
    let above = "daily budget of the agent `root` above it exceeded: 3 of 3 calls spent";
    assert_eq!(family.outcome("left"), denied("calls.daily", above));
    assert_eq!(family.outcome("right"), denied("calls.daily", above));
    assert_eq!(family.outcome("root"), denied("calls.daily", "daily budget exceeded: 3 of 3 calls spent"));
    assert_eq!(family.outcome("stranger").0, Effect::Allow);
}

#[test]
fn limits_of_one_above_are_those_of_the_documents_about_it() {
    let global = "default: allow\n";
    // `left` is in another team than the one that started it.
    for (scope, is_limited) in [("agent:root", true), ("team:red", true), ("team:blue", false)] {
        let limited = format!("scope: {scope}\nbudget: {{ calls: {{ daily: 2 }} }}\n");
        let mut family = Family::new(&[global, &limited]);
        assert_eq!(family.outcome("root").0, Effect::Allow);
        assert_eq!(family.outcome("left").0, Effect::Allow);
        assert_eq!(family.outcome("left").0 == Effect::Deny, is_limited, "{scope}");
    }
}

#[test]
fn budgets_are_asked_about_from_the_agent_up_to_the_organisation() {
    let text = "default: allow\nbudget: { calls: { team_daily: 2, daily: 2 } }\n";
    let mut family = Family::new(&[text]);
    assert_eq!(family.outcome("right").0, Effect::Allow);
    assert_eq!(family.outcome("root").0, Effect::Allow);
    // Its own is open; both the one above and the team have spent theirs.
    assert!(family.outcome("right").2.starts_with("daily budget of the agent `root` above it"));
    assert!(family.outcome("stranger").2.starts_with("team daily budget"));
}

#[test]
fn whoever_runs_into_a_budget_above_is_suspended_as_long_as_it_is_used_up() {
    let text = "default: allow\nbudget: { calls: { daily: 2 }, action_on_exceed: suspend }\n";
    let mut family = Family::new(&[text]);
    assert!(family.acts("left").suspend.is_none());
    let crossings = family.acts("right").crossings;
    let paid: Vec<_> = crossings.iter().map(|it| (it.above.as_deref(), it.percent)).collect();
    assert_eq!(paid, [(Some("root"), 100)]);
    let (cause, reason) = family.acts("left").suspend.unwrap();
    assert_eq!(cause, "budget");
    assert!(reason.contains("`root` above it"), "{reason}");
    let is_spent_for = |principal: &str| {
        let caller = family.state.registry().get(principal).unwrap().caller();
        let input = Input {
            facts: proctor_facts::Facts::default(),
            findings: Vec::new(),
            agent: String::new(),
            session: SessionId::from_bytes([7; 16]),
            digest: Digest::of(b""),
            now: Timestamp::from_micros(NOW),
            fresh_approval: ApprovalId::from_bytes([9; 16]),
            caller: caller.clone(),
        };
        is_spent(&family.policy, &input, &family.state.view(&caller, input.session, input.digest, input.now))
    };
    assert!(is_spent_for("left") && is_spent_for("root"));
    assert!(!is_spent_for("stranger"));
}

#[test]
fn without_an_answer_about_those_above_nothing_runs() {
    struct Forgetful(State);
    impl AnswerSource for Forgetful {
        fn answer(&self, question: &Question) -> Option<Answer> {
            let caller = self.0.registry().get("left")?.caller();
            let (session, digest) = (SessionId::from_bytes([7; 16]), Digest::of(b""));
            let view = self.0.view(&caller, session, digest, Timestamp::from_micros(NOW));
            if matches!(question, Question::SpentAbove(..)) { None } else { view.answer(question) }
        }
    }
    let family = Family::new(&["default: allow\nbudget: { daily_limit_usd: 3 }\n"]);
    let caller = family.state.registry().get("left").unwrap().caller();
    let action = Action { name: "Bash".to_owned(), ..Action::default() };
    let input = Input {
        facts: prepare(&family.policy, &action, None).facts,
        findings: Vec::new(),
        caller,
        agent: String::new(),
        session: SessionId::from_bytes([7; 16]),
        digest: Digest::of(b""),
        now: Timestamp::from_micros(NOW),
        fresh_approval: ApprovalId::from_bytes([9; 16]),
    };
    let decision = super::super::evaluate(&family.policy, &input, &Forgetful(family.state)).decision;
    assert_eq!((decision.effect, decision.reason.as_str()), (Effect::Deny, "the budget is not known"));
}
