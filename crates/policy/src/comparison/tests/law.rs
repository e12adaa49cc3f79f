//! The law of the comparison: without a weaker change, no decision is weaker.

use proctor_core::action::{Action, ActionKind};
use proctor_core::id::{ApprovalId, RecordId, SessionId};
use proctor_core::json::Json;
use proctor_core::session::Caller;
use proctor_core::time::Timestamp;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::strategy::ValueTree as _;

use super::*;
use crate::judge::{Request, judge};
use crate::policy::Source;
use crate::prepare::prepare;
use crate::state::State;

/// Lines of a document. Several of the same key are several choices: the writer takes the last.
type Lines = Vec<(String, String)>;

const CONDITIONS: [&str; 8] = [
    "true",
    "action.tool == \"shell\"",
    "action.tool == \"network\"",
    "action.tool == \"file_read\"",
    "action.command.contains(\"rm\")",
    "action.hosts.size() > 0",
    "agent.team == \"red\"",
    "action.writes.size() > 0",
];

fn rule() -> impl Strategy<Value = String> {
    let effects = &["allow", "deny", "ask", "defer", "redact", "modify, set: { /args/x: 1 }"];
    let more = &["", "", "", ", taint: [seen]", ", approvers: [ann]"];
    (select(&CONDITIONS[..]), select(&effects[..]), select(&more[..])).prop_map(|(when, then, more)| {
        let more = if more.contains("approvers") && then != "ask" { "" } else { more };
        format!("  - {{ id: RULE, when: '{when}', then: {then}{more} }}\n")
    })
}

/// A key of a document and its value.
fn part() -> impl Strategy<Value = (String, String)> {
    let line = |key: &'static str, values: &'static [&'static str]| {
        select(values).prop_map(move |value| (key.to_owned(), value.to_owned())).boxed()
    };
    prop_oneof![
        line("default", &["deny", "ask", "allow"]),
        line(
            "network",
            &[
                "{ allowlist: [] }",
                "{ allowlist: [a.example] }",
                "{ allowlist: [a.example, b.example] }",
                "{ allowlist: ['*'] }"
            ]
        ),
        line(
            "capabilities",
            &[
                "{ deny: [terminal_exec] }",
                "{ deny: [file_write] }",
                "{ allow: [file_read] }",
                "{ allow: [file_read, terminal_exec] }",
                "{ allow: [file_read], deny: [network_outbound] }",
            ]
        ),
        line(
            "budget",
            &[
                "{ calls: { daily: 0 } }",
                "{ calls: { daily: 5 } }",
                "{ daily_limit_usd: 1 }",
                "{ calls: { daily: 0 }, action_on_exceed: suspend }",
                "{ calls: { daily: 5, team_daily: 0 } }",
            ]
        ),
        line(
            "schedule",
            &[
                "{ active_hours: { start: '08:00', end: '18:00', timezone: UTC } }",
                "{ active_hours: { start: '09:00', end: '12:00', timezone: UTC } }",
                "{ active_hours: { start: '22:00', end: '04:00', timezone: UTC } }",
            ]
        ),
        line(
            "data",
            &[
                "{ credential_action: block }",
                "{ credential_action: alert_only }",
                "{ sensitive_patterns: ['s3cr.t'] }"
            ]
        ),
        line(
            "anomalies",
            &[
                "{ loops: { count: 1, then: ask } }",
                "{ loops: { count: 1, then: deny } }",
                "{ loops: { count: 9, then: deny } }",
                "{ unknown_hosts: { then: deny } }",
                "{ unknown_hosts: { then: ask }, loops: off }",
                "{ leaks: { findings: 1, then: ask } }",
            ]
        ),
        line(
            "tools",
            &[
                "{ '*': { allow: true } }",
                "{ '*': { allow: false } }",
                "{ Bash: { allow: false } }",
                "{ Bash: { allow: true }, '*': { allow: false } }",
                "{ Bash: { allow: true, limit_per_hour: 0 } }",
                "{ Bash: { allow: true, limit_per_hour: 5 }, sh: { allow: false } }",
                "{ sh: { allow: false }, Bash: { allow: true } }",
                "{ Bash: { allow: true, requires_approval_if: 'command contains rm' } }",
                "{ sh: { allow: true, requires_approval_if: 'command contains rm' }, Bash: { allow: true } }",
            ]
        ),
        line("approval_timeout_secs", &["60", "600"]),
        line("scope", &["team:red", "tool:Bash", "global"]),
    ]
}

#[derive(Debug, Clone)]
struct Drawn {
    parts: Lines,
    rules: Vec<String>,
}

fn drawn() -> impl Strategy<Value = Drawn> {
    (prop::collection::vec(part(), 0..4), prop::collection::vec(rule(), 0..4))
        .prop_map(|(parts, rules)| Drawn { parts, rules })
}

fn text(drawn: &Drawn) -> String {
    let mut text = "version: \"1\"\n".to_owned();
    for (number, (key, value)) in drawn.parts.iter().enumerate() {
        if !drawn.parts.iter().skip(number + 1).any(|(later, _)| later == key) {
            text.push_str(&format!("{key}: {value}\n"));
        }
    }
    if !drawn.rules.is_empty() {
        text.push_str("rules:\n");
        for (number, rule) in drawn.rules.iter().enumerate() {
            text.push_str(&rule.replace("RULE", &format!("r{number}")));
        }
    }
    text
}

/// A step from one policy to the next.
#[derive(Debug, Clone)]
enum Step {
    Put((String, String)),
    Drop(Index),
    Add(Index, String),
    Remove(Index),
    Replace(Index, String),
    Restrict(Index),
    AddDocument(Drawn),
    RemoveDocument(Index),
}

fn step() -> impl Strategy<Value = Step> {
    let index = any::<Index>;
    prop_oneof![
        part().prop_map(Step::Put),
        index().prop_map(Step::Drop),
        (index(), rule()).prop_map(|(at, rule)| Step::Add(at, rule)),
        index().prop_map(Step::Remove),
        (index(), rule()).prop_map(|(at, rule)| Step::Replace(at, rule)),
        index().prop_map(Step::Restrict),
        drawn().prop_map(Step::AddDocument),
        index().prop_map(Step::RemoveDocument),
    ]
}

fn apply(step: &Step, documents: &mut Vec<Drawn>, at: Index) {
    let count = documents.len();
    match step {
        Step::AddDocument(drawn) if count < 3 => documents.push(drawn.clone()),
        Step::RemoveDocument(index) if count > 1 => drop(documents.remove(index.index(count))),
        _ => {}
    }
    let count = documents.len();
    let Drawn { parts, rules } = &mut documents[at.index(count)];
    match step {
        Step::Put(part) => parts.push(part.clone()),
        Step::Drop(index) if !parts.is_empty() => {
            let key = parts[index.index(parts.len())].0.clone();
            parts.retain(|(name, _)| *name != key);
        }
        Step::Add(index, rule) => rules.insert(index.index(rules.len() + 1), rule.clone()),
        Step::Remove(index) if !rules.is_empty() => drop(rules.remove(index.index(rules.len()))),
        Step::Replace(index, rule) if !rules.is_empty() => {
            let place = index.index(rules.len());
            rules[place].clone_from(rule);
        }
        Step::Restrict(index) if !rules.is_empty() => {
            let place = index.index(rules.len());
            rules[place] =
                rules[place].replace("then: allow", "then: ask").replace("then: defer", "then: deny");
        }
        _ => {}
    }
}

fn compiled(documents: &[Drawn]) -> Option<Policy> {
    let sources = documents
        .iter()
        .enumerate()
        .map(|(number, drawn)| Source::document(&format!("{number}.yaml"), &text(drawn)));
    Policy::compile(sources.collect()).ok()
}

fn actions() -> Vec<Action> {
    let command = |name: &str, command: &str| Action {
        name: name.to_owned(),
        args: Json::object().with("command", command).with("x", 0),
        ..Action::default()
    };
    let url = |url: &str| Action {
        name: "WebFetch".to_owned(),
        args: Json::object().with("url", url).with("x", 0),
        ..Action::default()
    };
    let connects = |url: &str| Action {
        kind: ActionKind::NetworkCall,
        url: url.to_owned(),
        args: Json::object().with("x", 0),
        ..Action::default()
    };
    vec![
        command("Bash", "ls"),
        command("sh", "rm -rf x"),
        command("Bash", "curl https://a.example/ > out"),
        command("unheard-of", "rm x"),
        command("Bash", "echo s3cret ann@example.com AKIAIOSFODNN7EXAMPLE"),
        Action {
            name: "Read".to_owned(),
            args: Json::object().with("file_path", "/x").with("x", 0),
            ..Action::default()
        },
        Action {
            name: "Write".to_owned(),
            args: Json::object().with("file_path", "/x").with("x", 0),
            ..Action::default()
        },
        url("https://a.example/"),
        url("https://c.example/"),
        connects("https://a.example/"),
        connects("https://b.example/"),
        Action { name: "unheard-of".to_owned(), args: Json::object().with("x", 0), ..Action::default() },
    ]
}

fn decided(policy: &Policy, action: &Action, team: &str) -> Effect {
    let caller = Caller { principal: "bot".to_owned(), team: team.to_owned(), org: String::new() };
    // Within the active hours of some schedules and outside of others: 10:45 UTC.
    let now = Timestamp::from_micros(1_763_203_507_123_456);
    let request = Request {
        action,
        prepared: prepare(policy, action, None),
        caller: &caller,
        agent: "bot",
        session: SessionId::from_bytes([7; 16]),
        digest: Digest::of(b"action"),
        now,
        record: RecordId::from_bytes([1; 16]),
        fresh_approval: ApprovalId::from_bytes([9; 16]),
    };
    let state = State::new();
    let view = state.view(&caller, request.session, request.digest, now);
    judge(policy, request, &view).decision.effect
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn without_a_weaker_change_no_decision_is_weaker(
        first in prop::collection::vec(drawn(), 1..3),
        steps in prop::collection::vec((step(), any::<Index>()), 1..4),
    ) {
        let mut second = first.clone();
        for (step, at) in &steps {
            apply(step, &mut second, *at);
        }
        let (Some(before), Some(after)) = (compiled(&first), compiled(&second)) else { return Ok(()) };
        prop_assert!(weaker_changes(&before, &before).is_empty());
        if weaker_changes(&before, &after).is_empty() {
            for action in actions() {
                for team in ["", "red"] {
                    let (was, is) = (decided(&before, &action, team), decided(&after, &action, team));
                    prop_assert!(
                        strictness(is) >= strictness(was),
                        "{action:?} of team `{team}` was {was:?} and is {is:?}\n{}\n---\n{}",
                        first.iter().map(text).collect::<Vec<_>>().join("---\n"),
                        second.iter().map(text).collect::<Vec<_>>().join("---\n"),
                    );
                }
            }
        }
    }
}

/// The law would say nothing if every change counted as weaker.
#[test]
fn many_of_the_drawn_changes_do_not_weaken_the_policy() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let pairs = (prop::collection::vec(drawn(), 1..3), prop::collection::vec((step(), any::<Index>()), 1..4));
    let (mut compared, mut kept) = (0, 0);
    for _ in 0..1000 {
        let (first, steps) = pairs.new_tree(&mut runner).unwrap().current();
        let mut second = first.clone();
        for (step, at) in &steps {
            apply(step, &mut second, *at);
        }
        let (Some(before), Some(after)) = (compiled(&first), compiled(&second)) else { continue };
        if before.digest() != after.digest() {
            compared += 1;
            kept += u32::from(weaker_changes(&before, &after).is_empty());
        }
    }
    assert!(compared > 500 && kept > 50, "{kept} of {compared}");
}
