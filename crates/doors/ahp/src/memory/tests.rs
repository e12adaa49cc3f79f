use proctor_clients::ahp::{Fact, MemoryRecallDecision};
use proctor_core::action::Action;
use proctor_core::json::Json;

use super::super::context::fixture::{Fixture, caller};
use super::*;
use proctor_engine::{Ending, Outcome, Proposal, Report, Spent};

const OWN: &str = r#"
version: "1"
default: allow
rules:
  - id: history-is-kept
    when: action.commands.exists(c, c.startsWith("git push"))
    then: deny
    reason: History is not rewritten.
"#;

fn with_all_sessions() -> String {
    format!("{OWN}advice:\n  memory: {{sessions: principal, max_results: 5}}\n")
}

fn said(fixture: &Fixture, principal: &str, session: &str, code: &str, payload: &str) {
    let data = Json::object().with("payload", Json::parse(payload.as_bytes()).unwrap());
    let report =
        Report::Observation { code: code.to_owned(), data, alarms: Vec::new(), spent: Spent::default() };
    fixture.door.engine().report(&caller(principal), "agent", session, "ahp", report).unwrap();
}

fn summary(text: &str) -> String {
    Json::object().with("action_type", "edit").with("action_summary", text).to_string()
}

fn proposed(fixture: &Fixture, principal: &str, session: &str, command: &str, report: Option<&str>) {
    let action = Action {
        name: "bash".to_owned(),
        args: Json::object().with("command", command),
        door: "ahp".to_owned(),
        ..Action::default()
    };
    let proposal = Proposal {
        action,
        caller: caller(principal),
        agent: "agent".to_owned(),
        session: session.to_owned(),
    };
    let engine = fixture.door.engine();
    let answer = engine.deliver(engine.submit(proposal));
    let (decision, _) = answer.record().unwrap();
    if let Some(output) = report {
        let result = Json::object().with("result", Json::object().with("output", output));
        let outcome = Outcome {
            decision,
            sequence: None,
            ending: Ending::Ok,
            result,
            tokens: None,
            cost_usd: None,
            binding: None,
        };
        engine.report(&caller(principal), "agent", session, "ahp", Report::Outcome(outcome)).unwrap();
    }
}

fn facts(decision: MemoryRecallDecision) -> Vec<Fact> {
    match decision {
        MemoryRecallDecision::Allow { injected_facts, .. } => injected_facts,
        MemoryRecallDecision::Block { reason, .. } => panic!("{reason}"),
    }
}

fn contents(decision: MemoryRecallDecision) -> Vec<String> {
    facts(decision).into_iter().map(|fact| fact.content).collect()
}

#[test]
fn what_happened_is_recalled_by_words_and_by_kind() {
    let fixture = Fixture::new(OWN, &[]);
    said(&fixture, "p", "s", "success", &summary("renamed the codec module"));
    said(&fixture, "p", "s", "error", r#"{"error_type":"io","error_message":"disk full"}"#);
    proposed(&fixture, "p", "s", "cargo test codec", Some("3 passed"));
    proposed(&fixture, "p", "s", "git push --force", None);

    let ask = |query: &str, kind: &str| contents(fixture.recall("p", "s", query, kind, 10));
    let denied = "`shell` was denied by rule `history-is-kept`: History is not rewritten. (git push --force)";
    assert_eq!(
        ask("", "episodic"),
        [
            denied,
            "`shell` succeeded (cargo test codec): 3 passed",
            "error io: disk full",
            "edit: renamed the codec module",
        ]
    );
    assert_eq!(
        ask("the codec", ""),
        ["`shell` succeeded (cargo test codec): 3 passed", "edit: renamed the codec module"]
    );
    assert_eq!(ask("", "semantic"), ["edit: renamed the codec module"]);
    assert_eq!(ask("", "procedural"), [denied, "`shell` succeeded (cargo test codec): 3 passed"]);
    assert_eq!(ask("push history", "")[0], denied);
    assert_eq!(ask("zebra", ""), Vec::<String>::new());
    let found = facts(fixture.recall("p", "s", "disk", "", 10));
    assert!(
        found[0].source.starts_with("record ") && (0.0..=1.0).contains(&found[0].confidence),
        "{found:?}"
    );
}

#[test]
fn nobody_is_told_what_another_principal_did() {
    let fixture = Fixture::new(&with_all_sessions(), &[]);
    said(&fixture, "p", "s", "success", &summary("mine"));
    said(&fixture, "q", "s", "success", &summary("theirs"));
    said(&fixture, "", "s", "success", &summary("nameless"));
    assert_eq!(contents(fixture.recall("p", "s", "", "", 10)), ["edit: mine"]);
    assert_eq!(contents(fixture.recall("q", "s", "theirs mine", "", 10)), ["edit: theirs"]);
    assert_eq!(contents(fixture.recall("x", "s", "mine", "", 10)), Vec::<String>::new());
    assert_eq!(contents(fixture.recall("", "other", "", "", 10)), Vec::<String>::new());
}

#[test]
fn other_sessions_are_recalled_only_where_advice_says_so() {
    for (policy, expected) in [(OWN.to_owned(), 1), (with_all_sessions(), 2)] {
        let fixture = Fixture::new(&policy, &[]);
        said(&fixture, "p", "one", "success", &summary("first"));
        said(&fixture, "p", "two", "success", &summary("second"));
        assert_eq!(contents(fixture.recall("p", "two", "", "", 10)).len(), expected);
        assert_eq!(
            contents(fixture.recall("p", "unknown", "", "", 10)).len(),
            if expected == 2 { 2 } else { 0 }
        );
    }
}

#[test]
fn answers_are_bounded_distinct_and_without_secrets() {
    let fixture = Fixture::new(&with_all_sessions(), &[]);
    for number in 0..8 {
        said(&fixture, "p", "s", "success", &summary(&format!("step {number}")));
    }
    assert_eq!(contents(fixture.recall("p", "s", "", "", 100)).len(), 5);
    assert_eq!(contents(fixture.recall("p", "s", "", "", 2)), ["edit: step 7", "edit: step 6"]);
    assert_eq!(contents(fixture.recall("p", "s", "", "", 0)).len(), 0);
    for _ in 0..3 {
        said(&fixture, "p", "t", "success", &summary("the same"));
    }
    assert_eq!(contents(fixture.recall("p", "t", "same", "", 10)), ["edit: the same"]);
    let long = "word ".repeat(2000);
    said(&fixture, "p", "s", "success", &summary(&long));
    assert!(contents(fixture.recall("p", "s", "word", "", 1))[0].len() <= MAX_FACT_BYTES);
    let secret = "sk-proj-Zq8vTn3Lw5Rk1Yp7Xc2Mb9Dh4Jf6Gs0AaEeUuIiOo";
    said(&fixture, "p", "s", "success", &summary(&format!("set the endpoint to {secret}")));
    let found = contents(fixture.recall("p", "s", "endpoint", "", 10));
    assert!(found[0].contains("endpoint") && !found[0].contains("Zq8vTn3"), "{found:?}");
}

#[test]
fn what_was_erased_is_forgotten() {
    let fixture = Fixture::new(OWN, &[]);
    said(&fixture, "p", "s", "success", &summary("to be forgotten"));
    let found = facts(fixture.recall("p", "s", "forgotten", "", 10));
    let sequence: u64 = found[0].source.strip_prefix("record ").unwrap().parse().unwrap();
    fixture.door.engine().erase(sequence, "someone", "asked for").unwrap();
    assert_eq!(contents(fixture.recall("p", "s", "forgotten", "", 10)), Vec::<String>::new());
}

#[test]
fn advice_can_refuse_all_memory() {
    let fixture = Fixture::new(&format!("{OWN}advice:\n  memory: {{allow: false, reason: not here}}\n"), &[]);
    match fixture.recall("p", "s", "", "", 10) {
        MemoryRecallDecision::Block { reason, .. } => assert_eq!(reason, "not here"),
        MemoryRecallDecision::Allow { .. } => panic!("allowed"),
    }
}
