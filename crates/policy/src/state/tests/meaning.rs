//! Meaning of single records.

use super::*;
use crate::question::{ApprovalState, ApprovalView, Estimate};
use crate::state::Closing;

fn opened(micros: i64, id: u64) -> Envelope {
    Envelope {
        approval: Some(approval(id)),
        expires: Some(at(micros + 5 * MINUTE)),
        agent: "claude".to_owned(),
        rule: "ask-first".to_owned(),
        ..decision(Effect::Ask, micros, "shell")
    }
}

fn carrying(effect: Effect, micros: i64, id: u64) -> Envelope {
    Envelope { approval: Some(approval(id)), ..decision(effect, micros, "shell") }
}

fn open_state(state: &State, micros: i64) -> Option<ApprovalState> {
    match ask(state, micros, &Question::Approval) {
        Some(Answer::Approval(view)) => view.map(|view| view.state),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_approval_is_asked_granted_and_used_once() {
    let mut state = applied(&[opened(0, 1), carrying(Effect::Ask, SECOND, 1)]);
    assert_eq!(open_state(&state, SECOND), Some(ApprovalState::Waiting));
    let grant = Envelope { expires: Some(at(HOUR)), ..person(2 * SECOND, approval(1), "allow") };
    state.apply(2, &grant);
    state.apply(3, &person(3 * SECOND, approval(1), "deny"));
    let view = ApprovalView {
        id: approval(1),
        expires: at(HOUR),
        state: ApprovalState::Granted { by: "boss".to_owned() },
        estimate: Estimate::default(),
    };
    assert_eq!(ask(&state, 3 * SECOND, &Question::Approval), Some(Answer::Approval(Some(view))));
    let info = state.approval(approval(1)).unwrap();
    assert_eq!((&*info.principal, info.agent.as_str(), info.tool.as_str()), ("alice", "claude", "shell"));
    assert_eq!((info.asked_at, info.seq_of_ask, info.rule.as_str()), (at(0), 0, "ask-first"));
    // Somebody else's decision, and one on another action, leave it alone.
    state.apply(4, &Envelope { principal: "mallory".to_owned(), ..carrying(Effect::Allow, 4 * SECOND, 1) });
    state.apply(5, &Envelope { action: Some(digest(9)), ..carrying(Effect::Allow, 4 * SECOND, 1) });
    assert!(open_state(&state, 5 * SECOND).is_some());
    state.apply(6, &carrying(Effect::Allow, 6 * SECOND, 1));
    assert_eq!(open_state(&state, 7 * SECOND), None);
    let closed = state.approvals().next().unwrap().closed;
    assert_eq!(closed, Some((Closing::Used, at(6 * SECOND), 6)));
}

#[test]
fn a_refusal_is_told_once() {
    let mut state = applied(&[opened(0, 1), person(SECOND, approval(1), "deny")]);
    let refused = ApprovalState::Refused { by: "boss".to_owned(), reason: "because".to_owned() };
    assert_eq!(open_state(&state, SECOND), Some(refused));
    state.apply(2, &carrying(Effect::Deny, 2 * SECOND, 1));
    assert_eq!(open_state(&state, 2 * SECOND), None);
    state.apply(3, &opened(3 * SECOND, 2));
    assert_eq!(open_state(&state, 3 * SECOND), Some(ApprovalState::Waiting));
}

#[test]
fn a_person_cannot_approve_their_own_action_nor_an_expired_one() {
    let mut state = applied(&[opened(0, 1)]);
    state.apply(1, &Envelope { principal: "alice".to_owned(), ..person(SECOND, approval(1), "allow") });
    state.apply(2, &person(5 * MINUTE, approval(1), "allow"));
    state.apply(3, &person(SECOND, approval(1), "perhaps"));
    assert_eq!(open_state(&state, 6 * MINUTE), Some(ApprovalState::Waiting));
    let info = state.approval(approval(1)).unwrap();
    assert!(info.is_waiting(at(SECOND)) && !info.is_waiting(at(5 * MINUTE)));
}

#[test]
fn asking_under_a_new_identifier_replaces_the_old_one() {
    let state = applied(&[opened(0, 1), person(1, approval(1), "allow"), opened(SECOND, 2)]);
    assert_eq!(open_state(&state, SECOND), Some(ApprovalState::Waiting));
    assert_eq!(state.approval(approval(1)).unwrap().closed.map(|closed| closed.0), Some(Closing::Replaced));
}

fn charged(micros: i64, usd: &str) -> Envelope {
    Envelope { amounts: vec![amount("usd", usd)], ..decision(Effect::Allow, micros, "llm_call") }
}

fn settled(micros: i64, usd: &str, links: &[u64]) -> Envelope {
    Envelope {
        principal: "alice".to_owned(),
        amounts: vec![amount("usd", usd)],
        links: links.to_vec(),
        ..envelope(RecordKind::Settlement, micros)
    }
}

#[test]
fn no_window_counts_less_than_was_spent_in_it() {
    let records =
        [charged(0, "5"), settled(HOUR, "-4", &[0]), charged(2 * HOUR, "7"), settled(3 * HOUR, "2", &[2])];
    let state = applied(&records);
    assert_eq!(ask(&state, 4 * HOUR, &spent(Unit::Usd, 0)), Some(dollars("10")));
    // What was given back does not make room where it was not taken.
    assert_eq!(ask(&state, 4 * HOUR, &spent(Unit::Usd, 30 * MINUTE)), Some(dollars("9")));
    // What was more counts when it became known.
    assert_eq!(ask(&state, 4 * HOUR, &spent(Unit::Usd, 3 * HOUR)), Some(dollars("2")));
}

#[test]
fn what_is_given_back_is_never_more_than_was_taken() {
    let state =
        applied(&[charged(0, "5"), charged(HOUR, "3"), settled(HOUR, "-40", &[0]), settled(HOUR, "-1", &[])]);
    assert_eq!(ask(&state, HOUR, &spent(Unit::Usd, 0)), Some(dollars("3")));
    assert_eq!(ask(&state, HOUR, &spent(Unit::Usd, HOUR)), Some(dollars("3")));
    // A report that binds to no decision is billed in full.
    let state = applied(&[settled(0, "1.25", &[])]);
    assert_eq!(ask(&state, 0, &spent(Unit::Usd, 0)), Some(dollars("1.25")));
}

#[test]
fn a_moment_within_a_bucket_counts_the_whole_bucket() {
    let mut state = applied(&[charged(0, "5")]);
    // START is 3.46 seconds into its minute; a later moment in that minute still counts it.
    assert_eq!(ask(&state, HOUR, &spent(Unit::Usd, 30 * SECOND)), Some(dollars("5")));
    assert_eq!(ask(&state, HOUR, &spent(Unit::Usd, MINUTE)), Some(dollars("0")));
    // After 25 hours it is a quarter of an hour.
    state.apply(1, &charged(26 * HOUR, "1"));
    assert_eq!(ask(&state, 26 * HOUR, &spent(Unit::Usd, MINUTE)), Some(dollars("6")));
    assert_eq!(ask(&state, 26 * HOUR, &spent(Unit::Usd, 15 * MINUTE)), Some(dollars("1")));
    // A settlement still finds its way.
    state.apply(2, &settled(26 * HOUR, "-2", &[0]));
    assert_eq!(ask(&state, 26 * HOUR, &spent(Unit::Usd, 0)), Some(dollars("4")));
}

#[test]
fn spending_is_known_for_33_days_and_no_longer() {
    let state = applied(&[charged(0, "5")]);
    assert_eq!(ask(&state, 33 * DAY, &spent(Unit::Usd, 0)), Some(dollars("5")));
    assert_eq!(ask(&state, 33 * DAY + MINUTE, &spent(Unit::Usd, 0)), None);
}

#[test]
fn accounts_are_principal_team_and_organisation() {
    let other = Envelope {
        principal: "bob".to_owned(),
        team: "red".to_owned(),
        org: "acme".to_owned(),
        ..charged(0, "1")
    };
    let state = applied(&[charged(0, "2"), other]);
    let spent = |account: Account| ask(&state, 1, &Question::Spent(account, Unit::Usd, at(0)));
    assert_eq!(spent(Account::Agent), Some(dollars("2")));
    assert_eq!(spent(Account::Team), Some(dollars("1")));
    assert_eq!(spent(Account::Org), Some(dollars("1")));
    // A deny charges nothing, whatever it carries.
    let state = applied(&[Envelope { decision: Some(Effect::Deny), ..charged(0, "2") }]);
    assert_eq!(ask(&state, 1, &Question::Spent(Account::Agent, Unit::Usd, at(0))), Some(dollars("0")));
}

#[test]
fn a_rate_drains_evenly_and_each_limit_has_its_own_bucket() {
    let call = |micros| Envelope { amounts: vec![rate(2)], ..decision(Effect::Allow, micros, "shell") };
    let state = applied(&[call(0), call(0)]);
    let level =
        |micros, tool: &str, limit| ask(&state, micros, &Question::Rate(tool.to_owned(), limit)).unwrap();
    assert_eq!(level(0, "shell", 2), Answer::Level(2_000_000));
    assert_eq!(level(15 * MINUTE, "shell", 2), Answer::Level(1_500_000));
    assert_eq!(level(1, "shell", 2), Answer::Level(2_000_000));
    assert_eq!(level(HOUR, "shell", 2), Answer::Level(0));
    assert_eq!(level(0, "shell", 3), Answer::Level(0));
    assert_eq!(level(0, "fetch", 2), Answer::Level(0));
}

#[test]
fn marks_come_from_what_was_let_through_and_from_other_records() {
    let marking =
        |effect, name: &str| Envelope { taints: vec![name.to_owned()], ..decision(effect, 0, "shell") };
    let observation = Envelope {
        session: Some(session(0)),
        principal: "alice".to_owned(),
        taints: vec!["seen".to_owned()],
        ..envelope(RecordKind::Observation, 0)
    };
    let state = applied(&[marking(Effect::Allow, "allowed"), marking(Effect::Deny, "denied"), observation]);
    for scope in [Scope::Session, Scope::Agent] {
        let tainted = |name: &str| ask(&state, 1, &Question::Tainted(scope, name.to_owned()));
        assert_eq!(tainted("allowed"), Some(Answer::Truth(true)));
        assert_eq!(tainted("denied"), Some(Answer::Truth(false)));
        assert_eq!(tainted("seen"), Some(Answer::Truth(true)));
    }
}

#[test]
fn long_names_are_found_as_they_were_recorded() {
    use proctor_core::record::claimed;
    let long = "x".repeat(1000);
    let record = Envelope { principal: claimed(&long), ..decision(Effect::Allow, 0, &claimed(&long)) };
    let state = applied(&[record]);
    let caller = Caller { principal: long.clone(), ..Caller::default() };
    let view = state.view(&caller, session(0), digest(0), at(1));
    assert_eq!(view.answer(&called(Scope::Agent, &long)), Some(Answer::Count(1)));
    assert_eq!(view.answer(&called(Scope::Session, "xx*")), Some(Answer::Count(1)));
}

#[test]
fn sessions_are_listed_with_their_counts() {
    let alarm = Envelope { session: Some(session(0)), ..envelope(RecordKind::Alarm, 5) };
    let began = Envelope {
        session: Some(session(1)),
        agent: "claude".to_owned(),
        ..envelope(RecordKind::Session, 7)
    };
    let state = applied(&[decision(Effect::Allow, 1, "a"), decision(Effect::Defer, 2, "a"), alarm, began]);
    let first = state.session(session(0)).unwrap();
    assert_eq!((first.let_through, first.deferred, first.alarms), (1, 1, 1));
    assert_eq!((first.first, first.last), (at(1), at(5)));
    assert_eq!(state.session(session(1)).unwrap().agent, "claude");
    assert_eq!(state.sessions().count(), 2);
}
