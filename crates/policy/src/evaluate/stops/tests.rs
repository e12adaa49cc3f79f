use std::sync::Arc;

use proctor_core::action::Action;
use proctor_core::decision::{ApprovalRef, Change};
use proctor_core::digest::Digest;
use proctor_core::id::{ApprovalId, RecordId, SessionId};
use proctor_core::json::Json;
use proctor_core::record::{Envelope, RecordKind, Registration};
use proctor_core::session::Caller;
use proctor_core::time::Timestamp;

use super::*;
use crate::body::{Derivation, rederive};
use crate::document::Located;
use crate::judge::{Judgement, Request};
use crate::policy::{Policy, Source};
use crate::prepare::prepare;
use crate::question::{Answer, Question};
use crate::state::State;

const HOUR: i64 = 3_600_000_000;
const NOW: i64 = 1_763_239_507_123_456;

fn policy(text: &str) -> Policy {
    let source = Source::document("policy.yaml", text);
    Policy::compile(vec![source]).unwrap_or_else(|problems| panic!("{problems:?}"))
}

fn caller(principal: &str) -> Caller {
    Caller { principal: principal.to_owned(), team: "red".to_owned(), org: "acme".to_owned() }
}

fn record(code: &str, principal: &str, name: &str) -> Envelope {
    Envelope {
        code: code.to_owned(),
        principal: principal.to_owned(),
        agent: principal.to_owned(),
        team: "red".to_owned(),
        name: name.to_owned(),
        rule: "because".to_owned(),
        ..Envelope::new(
            RecordId::from_bytes([3; 16]),
            Timestamp::from_micros(NOW - 2 * HOUR),
            RecordKind::Agent,
        )
    }
}

fn registered(principal: &str, parent: &str, risk: &str) -> Envelope {
    let registration = Registration {
        parent: parent.to_owned(),
        depth: u32::from(!parent.is_empty()),
        risk: risk.to_owned(),
        ..Registration::default()
    };
    Envelope { registration: Some(Box::new(registration)), ..record("registered", principal, "") }
}

fn state(records: &[Envelope]) -> State {
    let mut state = State::new();
    for (seq, record) in records.iter().enumerate() {
        state.apply(seq as u64, record);
    }
    state
}

/// The root and its child, which acts.
fn family(more: &[Envelope]) -> State {
    let mut records = vec![registered("root", "", "critical"), registered("bot", "root", "low")];
    records.extend_from_slice(more);
    state(&records)
}

fn action() -> Action {
    let metadata = Json::object().with("trace_id", "t1").with("span_id", "s1");
    Action { name: "Bash".to_owned(), metadata, ..Action::default() }
}

/// The judgement, which must also be derivable again, with and without its past.
fn judged(policy: &Arc<Policy>, state: &State, principal: &str) -> Judgement {
    let (caller, action) = (caller(principal), action());
    let request = Request {
        action: &action,
        prepared: prepare(policy, &action, None),
        caller: &caller,
        agent: "the-agent",
        session: SessionId::from_bytes([7; 16]),
        digest: Digest::of(b"action"),
        now: Timestamp::from_micros(NOW),
        record: RecordId::from_bytes([1; 16]),
        fresh_approval: ApprovalId::from_bytes([9; 16]),
    };
    let (session, digest, now) = (request.session, request.digest, request.now);
    let judgement = crate::judge::judge(policy, request, &state.view(&caller, session, digest, now));
    for past in [None, Some(state)] {
        let mut policies = |_| Some(Arc::clone(policy));
        let derived = rederive(&judgement.envelope, Some(&judgement.body), &mut policies, past);
        assert_eq!(derived, Derivation::Same);
    }
    judgement
}

fn decided(text: &str, state: &State, principal: &str) -> (Effect, String, String) {
    let decision = judged(&Arc::new(policy(text)), state, principal).decision;
    (decision.effect, decision.rule, decision.reason)
}

fn denied(rule: &str, reason: &str) -> (Effect, String, String) {
    (Effect::Deny, rule.to_owned(), reason.to_owned())
}

const OPEN: &str = "version: \"1\"\ndefault: allow\n";
const FORBIDDING: &str =
    "version: \"1\"\nrules:\n  - { id: no-shell, when: 'action.tool == \"shell\"', then: deny }\n";

#[test]
fn whoever_is_stopped_is_denied_whatever_the_policy_says() {
    assert_eq!(decided(OPEN, &family(&[]), "bot").0, Effect::Allow);
    assert_eq!(decided(OPEN, &State::new(), "bot").0, Effect::Allow);
    let suspended = family(&[record("suspended", "bot", "operator")]);
    let expected = denied("agent.suspended", "agent is suspended (operator): because");
    assert_eq!(decided(OPEN, &suspended, "bot"), expected);
    // It comes before what the policy denies.
    assert_eq!(decided(FORBIDDING, &suspended, "bot"), expected);
    let stranger = state(&[record("killed", "bot", "operator")]);
    assert_eq!(decided(OPEN, &stranger, "bot"), denied("agent.killed", "agent is killed: because"));
    let above = family(&[record("deregistered", "root", "")]);
    assert_eq!(decided(OPEN, &above, "bot").1, "agent.parent_stopped");
}

#[test]
fn an_operation_is_named_by_its_trace_and_span() {
    let paused = family(&[record("op_paused", "operator", "t1:s1")]);
    let expected = denied("operation.paused", "operation `t1:s1` is paused");
    assert_eq!(decided(OPEN, &paused, "bot"), expected);
    assert_eq!(decided(OPEN, &paused, "stranger"), expected);
    assert_eq!(decided(OPEN, &family(&[record("op_paused", "operator", "t1:s2")]), "bot").0, Effect::Allow);
    let all = state(&[record("op_terminated", "operator", "*")]);
    assert_eq!(decided(OPEN, &all, "stranger").1, "operation.terminated");
}

#[test]
fn the_registry_is_asked_once() {
    let text = "version: \"1\"\ndefault: deny\ntools:\n  Bash:\n    allow: true\n    requires_approval_if: 'agent.depth > 3 OR agent.children_count > 0'\nrules:\n  - { id: low, when: 'agent.risk_tier == \"low\" && agent.depth == 1', then: allow }\n";
    let judgement = judged(&Arc::new(policy(text)), &family(&[]), "bot");
    assert_eq!(judgement.decision.effect, Effect::Allow);
    let body = String::from_utf8(judgement.body).unwrap();
    assert_eq!(body.matches("[\"standing\",\"t1:s1\"").count(), 1, "{body}");
}

#[test]
fn a_standing_that_does_not_follow_from_the_past_is_found_out() {
    let policy = Arc::new(policy(OPEN));
    let judgement = judged(&policy, &family(&[]), "bot");
    let past = family(&[record("suspended", "bot", "operator")]);
    let mut policies = |_| Some(Arc::clone(&policy));
    let derived = rederive(&judgement.envelope, Some(&judgement.body), &mut policies, Some(&past));
    assert!(matches!(derived, Derivation::Different(_)), "{derived:?}");
}

/// An answer source without a registry.
struct Silent;

impl AnswerSource for Silent {
    fn answer(&self, question: &Question) -> Option<Answer> {
        match question {
            Question::AgentStatus(_) => None,
            _ => State::new()
                .view(
                    &caller("bot"),
                    SessionId::from_bytes([7; 16]),
                    Digest::of(b""),
                    Timestamp::from_micros(NOW),
                )
                .answer(question),
        }
    }
}

fn input() -> Input {
    let action = action();
    let prepared = prepare(&policy(OPEN), &action, None);
    Input {
        facts: prepared.facts,
        findings: prepared.findings,
        caller: caller("bot"),
        agent: "the-agent".to_owned(),
        session: SessionId::from_bytes([7; 16]),
        digest: Digest::of(b"action"),
        now: Timestamp::from_micros(NOW),
        fresh_approval: ApprovalId::from_bytes([9; 16]),
    }
}

#[test]
fn without_an_answer_nothing_runs() {
    let decision = super::super::evaluate(&policy(OPEN), &input(), &Silent).decision;
    assert_eq!(decision.effect, Effect::Deny);
    assert_eq!(decision.rule, "registry");
    assert_eq!(decision.reason, "whether this agent is stopped is not known");
}

fn asks(expression: &str, state: &State, principal: &str) -> bool {
    let text = format!(
        "version: \"1\"\ntools:\n  Bash:\n    allow: true\n    requires_approval_if: '{expression}'\n"
    );
    decided(&text, state, principal).0 == Effect::Ask
}

#[test]
fn approval_expressions_know_the_registry() {
    let family = family(&[]);
    for expression in [
        "agent.depth == 1",
        "agent.is_root == false",
        "agent.is_leaf == true",
        "agent.risk_tier == Low",
        "agent.risk_tier < Medium",
        "parent.risk_tier >= High",
        "agent.parent_agent_id == \"root\"",
        "agent.children_count == 0",
        "agent.age == 2h",
        "team.active_agents == 2",
    ] {
        assert!(asks(expression, &family, "bot"), "{expression}");
    }
    for expression in [
        "agent.depth > 1",
        "agent.is_root == true",
        "agent.is_leaf == false",
        "agent.risk_tier > Low",
        "parent.risk_tier < Critical",
        "agent.parent_agent_id == \"bot\"",
        "agent.children_count > 0",
        "agent.age < 1h",
        "team.active_agents > 2",
    ] {
        assert!(!asks(expression, &family, "bot"), "{expression}");
    }
    assert!(asks("agent.children_count == 1 AND agent.is_leaf == false", &family, "root"));
    // Of one that never registered numbers and truths are unknown, which fires; texts and tiers do not match.
    for expression in ["agent.age > 24h", "agent.children_count > 9", "agent.is_leaf == true"] {
        assert!(asks(expression, &family, "stranger"), "{expression}");
    }
    for expression in ["agent.risk_tier >= Low", "parent.risk_tier >= Low", "agent.parent_agent_id != \"x\""]
    {
        assert!(!asks(expression, &family, "stranger"), "{expression}");
    }
    assert!(asks(
        "agent.depth == 0 AND agent.is_root == true AND team.active_agents == 2",
        &family,
        "stranger"
    ));
}

#[test]
fn rules_can_go_by_risk() {
    let text = "version: \"1\"\ndefault: allow\nrules:\n  - { id: risky, when: 'agent.risk_tier == \"critical\" || agent.age < duration(\"1h\")', then: deny }\n";
    assert_eq!(decided(text, &family(&[]), "bot").0, Effect::Allow);
    assert_eq!(decided(text, &family(&[]), "root").1, "risky");
}

fn permitting(pattern: &str) -> Document {
    let observe = vec![Located { value: pattern.to_owned(), at: Position::default() }];
    Document { observe, ..Document::default() }
}

fn observed() -> AgentStatus {
    AgentStatus { observe: true, registered_at: Some(Timestamp::from_micros(0)), ..AgentStatus::default() }
}

fn ask_decision() -> Decision {
    let mut decision = Decision::deny("big-money", "ask the boss", Digest::of(b"policy"));
    decision.effect = Effect::Ask;
    decision.approval =
        Some(ApprovalRef { id: ApprovalId::from_bytes([9; 16]), expires: Timestamp::from_micros(0) });
    decision.approvers = vec!["boss".to_owned()];
    decision.retry_after_ms = Some(5);
    decision.changes = vec![Change { path: "$.args".to_owned(), replacement: Json::Null }];
    decision
}

#[test]
fn who_is_only_observed_is_let_through_and_what_it_would_have_got_is_noted() {
    for pattern in ["the-*", "THE-AGENT", "bot", "*"] {
        let mut decision = ask_decision();
        let changed =
            observe(&mut decision, &[&permitting("no"), &permitting(pattern)], &input(), Some(&observed()));
        assert!(changed);
        let expected = Decision {
            effect: Effect::Allow,
            rule: "observe".to_owned(),
            reason: "observed only: would be ASK by `big-money`: ask the boss".to_owned(),
            shadow: Some(Box::new(Shadow {
                effect: Effect::Ask,
                rule: "big-money".to_owned(),
                reason: "ask the boss".to_owned(),
            })),
            changes: Vec::new(),
            approval: None,
            approvers: Vec::new(),
            retry_after_ms: None,
            ..ask_decision()
        };
        assert_eq!(decision, expected);
    }
}

#[test]
fn nobody_is_only_observed_without_asking_the_policy_and_the_agent() {
    let everybody = permitting("*");
    let stopped = AgentStatus {
        stop: Some(crate::question::Stop { rule: "agent.killed".to_owned(), reason: "x".to_owned() }),
        ..observed()
    };
    let not_asked = AgentStatus { observe: false, ..observed() };
    for (document, status) in [
        (&permitting("other"), Some(&observed())),
        (&Document::default(), Some(&observed())),
        (&everybody, Some(&not_asked)),
        (&everybody, Some(&stopped)),
        (&everybody, None),
    ] {
        let mut decision = ask_decision();
        assert!(!observe(&mut decision, &[document], &input(), status));
        assert_eq!(decision, ask_decision());
    }
}

#[test]
fn what_is_allowed_anyway_stays_as_it_is() {
    let mut allowed = Decision { effect: Effect::Allow, ..ask_decision() };
    assert!(!observe(&mut allowed, &[&permitting("*")], &input(), Some(&observed())));
    assert_eq!(allowed, Decision { effect: Effect::Allow, ..ask_decision() });
}

#[test]
fn an_observed_action_is_charged_like_one_that_is_allowed() {
    let mut agent = registered("bot", "", "low");
    agent.registration.as_mut().unwrap().observe = true;
    let state = state(&[agent]);
    let permitted = Arc::new(policy(&format!("{FORBIDDING}observe: [\"bo*\"]\n")));
    let judgement = judged(&permitted, &state, "bot");
    assert_eq!((judgement.decision.effect, judgement.decision.rule.as_str()), (Effect::Allow, "observe"));
    assert!(judgement.envelope.amounts.iter().any(|amount| amount.unit == "calls"));
    let shadow = judgement.decision.shadow.unwrap();
    assert_eq!((shadow.effect, shadow.rule.as_str()), (Effect::Deny, "no-shell"));
    let judgement = judged(&Arc::new(policy(FORBIDDING)), &state, "bot");
    assert_eq!((judgement.decision.effect, judgement.decision.rule.as_str()), (Effect::Deny, "no-shell"));
    assert!(judgement.envelope.amounts.is_empty());
}

#[test]
fn the_name_that_an_agent_registered_with_counts_only_where_the_policy_says_so() {
    let named = |name: &str| {
        let mut agent = registered("agent:key", "", "low");
        let registration = agent.registration.as_mut().unwrap();
        (registration.observe, registration.name) = (true, name.to_owned());
        state(&[agent])
    };
    let permitted = |pattern: &str| format!("{FORBIDDING}observe: [\"{pattern}\"]\n");
    let rule = |pattern: &str, name: &str| decided(&permitted(pattern), &named(name), "agent:key").1;
    assert_eq!(rule("name:trial-*", "trial-7"), "observe");
    assert_eq!(rule("name:trial-*", "other"), "no-shell");
    assert_eq!(rule("name:*", ""), "no-shell");
    // Nobody is observed because it calls itself so.
    assert_eq!(rule("trial-*", "trial-7"), "no-shell");
    assert_eq!(rule("did:key:z6Mk*", "did:key:z6MkOther"), "no-shell");
    assert_eq!(rule("agent:*/bot", "agent:acme/red/bot"), "no-shell");
    assert_eq!(rule("agent:k*", "whatever"), "observe");
}
