use std::cell::RefCell;

use proctor_core::digest::Digest;
use proctor_core::id::{ApprovalId, SessionId};
use proctor_core::session::Caller;
use proctor_facts::Facts;
use proptest::prelude::*;

use super::*;
use crate::evaluate::evaluate;
use crate::policy::Source;
use crate::question::{AgentStatus, Question};

/// An account that has spent so much, and what it was asked.
#[derive(Default)]
struct Purse {
    spent: Option<Decimal>,
    is_observed: bool,
    asked: RefCell<Vec<Question>>,
}

impl Purse {
    fn with(spent: &str) -> Purse {
        Purse { spent: spent.parse().ok(), ..Purse::default() }
    }
}

impl AnswerSource for Purse {
    fn answer(&self, question: &Question) -> Option<Answer> {
        self.asked.borrow_mut().push(question.clone());
        match question {
            Question::Spent(..) => self.spent.map(Answer::Amount),
            Question::AgentStatus(_) => {
                let status = AgentStatus { observe: self.is_observed, ..AgentStatus::default() };
                Some(Answer::AgentStatus(Some(Box::new(status))))
            }
            _ => None,
        }
    }
}

fn policy(document: &str) -> Policy {
    Policy::compile(vec![Source::document("p", document)]).unwrap()
}

fn input(team: &str, cost: &str) -> Input {
    Input {
        facts: Facts { cost_usd: cost.parse().unwrap(), ..Facts::default() },
        findings: Vec::new(),
        caller: Caller { principal: "alice".to_owned(), team: team.to_owned(), org: String::new() },
        agent: String::new(),
        session: SessionId::from_bytes([1; 16]),
        digest: Digest::of(b""),
        now: Timestamp::from_micros(1_768_086_123_456_789),
        fresh_approval: ApprovalId::from_bytes([3; 16]),
    }
}

fn usd(value: &str) -> Amount {
    Amount { unit: "usd".to_owned(), value: value.parse().unwrap(), limit: None }
}

fn crossed(spent: &str, added: &str) -> Option<u32> {
    let policy = policy("default: allow\nbudget: {daily_limit_usd: 10}\n");
    let found = crossings(&policy, &input("", "0"), &Purse::with(spent), &[usd(added)]);
    assert!(found.len() <= 1);
    found.first().map(|crossing| crossing.percent)
}

#[test]
fn the_highest_share_that_is_crossed_is_named() {
    for (spent, added, percent) in [
        ("0", "7.99", None),
        ("0", "8", Some(80)),
        ("7.99", "0.01", Some(80)),
        ("8", "1.49", None),
        ("8", "1.5", Some(95)),
        ("7", "2.9", Some(95)),
        ("9.5", "0.49", None),
        ("9.5", "0.5", Some(100)),
        ("0", "12", Some(100)),
        ("10", "5", None),
        ("9", "0", None),
    ] {
        assert_eq!(crossed(spent, added), percent, "{spent} + {added}");
    }
}

#[test]
fn a_crossing_says_what_was_spent_of_what_since_when() {
    let policy = policy("default: allow\nbudget: {team_daily_limit_usd: 10, window: 1h}\n");
    let input = input("red", "0");
    let found = crossings(&policy, &input, &Purse::with("7"), &[usd("1"), usd("0.25")]);
    let expected = Crossing {
        key: "team_daily_limit_usd".to_owned(),
        account: Account::Team,
        above: None,
        unit: Unit::Usd,
        percent: 80,
        spent: "8.25".parse().unwrap(),
        limit: "10".parse().unwrap(),
        window_start: input.now.plus_micros(-3_600_000_000),
    };
    assert_eq!(found, [expected]);
}

#[test]
fn only_accounts_that_the_caller_has_and_units_that_are_added_are_asked_about() {
    let policy = policy(
        "default: allow\nbudget: {daily_limit_usd: 1, team_daily_limit_usd: 1, org_daily_limit_usd: 1, tokens: {daily: 1}, action_on_exceed: suspend}\n",
    );
    let answers = Purse::with("0");
    crossings(&policy, &input("", "0"), &answers, &[usd("1")]);
    assert!(matches!(
        answers.asked.borrow()[..],
        [Question::AgentStatus(_), Question::Spent(Account::Agent, Unit::Usd, _)]
    ));
    let answers = Purse::with("0");
    assert!(!is_spent(&policy, &input("red", "0"), &answers));
    let asked = answers.asked.borrow();
    assert_eq!(asked.len(), 4);
    assert!(asked.iter().all(|question| !matches!(question, Question::Spent(Account::Org, ..))));
}

#[test]
fn only_a_budget_that_suspends_is_spent() {
    let suspends = policy("default: allow\nbudget: {daily_limit_usd: 10, action_on_exceed: suspend}\n");
    let denies = policy("default: allow\nbudget: {daily_limit_usd: 10}\n");
    let input = input("", "0");
    for (spent, expected) in [("9.99", false), ("10", true), ("11", true)] {
        assert_eq!(is_spent(&suspends, &input, &Purse::with(spent)), expected, "{spent}");
        assert!(!is_spent(&denies, &input, &Purse::with(spent)));
    }
    assert!(is_spent(&suspends, &input, &Purse::default()), "what is not known is not open");
}

#[test]
fn a_decision_tells_crossings_and_whoever_is_over_the_limit_is_suspended() {
    let suspends = policy("default: allow\nbudget: {daily_limit_usd: 10, action_on_exceed: suspend}\n");
    let denies = policy("default: allow\nbudget: {daily_limit_usd: 10}\n");
    let input = input("", "3");
    let evaluation = evaluate(&suspends, &input, &Purse::with("7.5"));
    assert_eq!(evaluation.crossings.iter().map(|crossing| crossing.percent).collect::<Vec<_>>(), [100]);
    assert_eq!(evaluation.suspend, None);
    let evaluation = evaluate(&suspends, &input, &Purse::with("10"));
    let reason = "daily budget exceeded: 10 of 10 usd spent".to_owned();
    assert_eq!((evaluation.suspend, evaluation.crossings), (Some(("budget", reason)), Vec::new()));
    assert_eq!(evaluate(&denies, &input, &Purse::with("10")).suspend, None);
    assert_eq!(evaluate(&suspends, &input, &Purse::default()).suspend, None, "denied for not being known");
}

#[test]
fn who_is_only_observed_is_charged_and_not_suspended() {
    let policy = policy(
        "default: deny\nobserve: [alice]\nbudget: {daily_limit_usd: 10, action_on_exceed: suspend}\nrules: [{id: a, then: allow}]\n",
    );
    let observed = Purse { is_observed: true, ..Purse::with("10") };
    let evaluation = evaluate(&policy, &input("", "3"), &observed);
    assert!(evaluation.decision.shadow.is_some() && evaluation.decision.effect.lets_through());
    assert!(evaluation.amounts.contains(&usd("3")));
    assert_eq!(evaluation.suspend, None);
    let other = Purse { is_observed: false, ..Purse::with("10") };
    let evaluation = evaluate(&policy, &input("", "3"), &other);
    assert!(evaluation.amounts.is_empty() && evaluation.suspend.is_some());
}

proptest! {
    #[test]
    fn each_share_is_crossed_by_one_action_at_most(costs in prop::collection::vec(0u32..600, 1..30), most in 1u32..3000) {
        let policy = policy(&format!("default: allow\nbudget: {{daily_limit_usd: {most}.5}}\n"));
        let input = input("", "0");
        let mut spent = Decimal::ZERO;
        let mut named = Vec::new();
        for cost in costs {
            let purse = Purse { spent: Some(spent), ..Purse::default() };
            let found = crossings(&policy, &input, &purse, &[usd(&cost.to_string())]);
            named.extend(found.iter().map(|crossing| crossing.percent));
            spent += Decimal::from(cost);
        }
        prop_assert!(named.is_sorted_by(|earlier, later| earlier < later));
        let limit = Decimal::from(most) + Decimal::new(5, 1);
        prop_assert_eq!(named.last() == Some(&100), spent >= limit);
        prop_assert_eq!(!named.is_empty(), spent >= limit * Decimal::new(8, 1));
    }
}
