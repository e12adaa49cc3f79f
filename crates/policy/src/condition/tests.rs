mod differential;
mod loading;
mod table;
mod workspace;

use std::cell::RefCell;

use proctor_core::action::ActionKind;
use proctor_core::digest::Digest;
use proctor_core::id::{ApprovalId, SessionId};
use proctor_core::json::Json;
use proctor_core::session::Caller;
use proctor_core::time::Timestamp;
use proctor_facts::Facts;

use super::*;
use crate::input::FoundSecret;
use crate::question::{AgentStatus, Answer, Question, Scope};

/// A past that remembers what it was asked.
#[derive(Default)]
pub(super) struct Past {
    pub(super) full: bool,
    pub(super) silent: bool,
    pub(super) status: Option<AgentStatus>,
    pub(super) asked: RefCell<Vec<Question>>,
}

impl AnswerSource for Past {
    fn answer(&self, question: &Question) -> Option<Answer> {
        self.asked.borrow_mut().push(question.clone());
        if self.silent {
            return None;
        }
        Some(match question {
            Question::Called(Scope::Session, glob) => Answer::Count(if glob == "read_*" { 3 } else { 0 }),
            Question::Called(Scope::Agent, glob) => Answer::Count(if glob == "deploy" { 7 } else { 0 }),
            Question::Since(_, glob) => Answer::Micros((glob == "read_*").then_some(90_000_000)),
            Question::Denied(_, glob) => Answer::Count(if glob == "shell" { 2 } else { 0 }),
            Question::Tainted(_, mark) => Answer::Truth(mark == "customer_data"),
            Question::Overflowed(_) => Answer::Truth(self.full),
            Question::AgentStatus(_) => Answer::AgentStatus(self.status.clone().map(Box::new)),
            _ => return None,
        })
    }
}

pub(super) fn input() -> Input {
    let args = Json::parse(
        br#"{
            "command": "rm -rf /var/data", "count": 3, "big": 18446744073709551615, "huge": 1e400,
            "price": 2.5, "force": true, "nothing": null, "empty": {},
            "files": ["a.txt", "b.txt"], "nested": {"deep": {"x": 1}}, "mixed": [1, "two", {"three": 3}]
        }"#,
    )
    .expect("valid JSON");
    Input {
        facts: Facts {
            kind: ActionKind::ToolCall,
            name: "Bash".to_owned(),
            tool: "shell".to_owned(),
            args,
            metadata: Json::object().with("source", "ide"),
            path: "/var/data".to_owned(),
            command: "rm -rf /var/data".to_owned(),
            host: "api.example.com".to_owned(),
            port: 443,
            tokens: 1200,
            cost_usd: "0.25".parse().expect("a decimal"),
            cwd: "/home/me".to_owned(),
            depth: 1,
            door: "ahp".to_owned(),
            paths: vec!["/var/data".to_owned(), "/etc/passwd".to_owned()],
            commands: vec!["rm -rf /var/data".to_owned()],
            ..Facts::default()
        },
        findings: vec![FoundSecret { kind: "OpenAiKey".to_owned(), path: "$.args.key".to_owned() }],
        caller: Caller { principal: "ci-bot".to_owned(), team: "core".to_owned(), org: "acme".to_owned() },
        agent: "builder".to_owned(),
        session: SessionId::from_bytes([7; 16]),
        digest: Digest::of(b"action"),
        // A Saturday.
        now: Timestamp::parse("2025-11-15T20:45:07.123456Z").expect("a timestamp"),
        fresh_approval: ApprovalId::from_bytes([9; 16]),
    }
}

pub(super) fn truth(text: &str) -> Truth {
    let condition = Condition::compile(text).unwrap_or_else(|problems| panic!("{text}: {problems:?}"));
    condition.evaluate_alone(&input(), &Past::default())
}

#[test]
fn the_past_is_asked_once_whether_it_can_be_trusted() {
    let past = Past::default();
    let input = input();
    let activation = Activation::new(&input, &past);
    for text in ["session.called(\"read_*\")", "session.count(\"read_*\") > 1"] {
        assert_eq!(Condition::compile(text).unwrap().evaluate(&activation), Truth::True);
    }
    let called = Question::Called(Scope::Session, "read_*".to_owned());
    assert_eq!(*past.asked.borrow(), [Question::Overflowed(Scope::Session), called.clone(), called]);
}

#[test]
fn the_registry_is_asked_once_and_only_if_something_of_it_is_read() {
    let status = AgentStatus {
        risk: "critical".to_owned(),
        parent: "root".to_owned(),
        parent_risk: "low".to_owned(),
        depth: 4,
        children: 2,
        registered_at: Timestamp::parse("2025-11-15T19:45:07.123456Z"),
        team_agents: 5,
        ..AgentStatus::default()
    };
    let past = Past { status: Some(status), ..Past::default() };
    let mut input = input();
    input.facts.metadata = Json::object().with("trace_id", "t").with("span_id", "s");
    let activation = Activation::new(&input, &past);
    assert_eq!(Condition::compile("agent.team == \"core\"").unwrap().evaluate(&activation), Truth::True);
    assert!(past.asked.borrow().is_empty());
    for text in [
        "agent.risk_tier == \"critical\"",
        "agent.depth == 4 && action.depth == 1",
        "agent.parent == \"root\" && agent.parent_risk_tier in [\"low\", \"medium\"]",
        "agent.children == 2 && agent.team_agents == 5",
        "agent.is_registered && agent.age == duration(\"1h\")",
    ] {
        let condition = Condition::compile(text).unwrap();
        assert!(condition.asks_past());
        assert_eq!(condition.evaluate(&activation), Truth::True, "{text}");
    }
    assert_eq!(*past.asked.borrow(), [Question::AgentStatus("t:s".to_owned())]);
}

#[test]
fn an_agent_that_never_registered_has_empty_members() {
    for text in [
        "!agent.is_registered && agent.risk_tier == \"\" && agent.parent == \"\" && agent.parent_risk_tier == \"\"",
        "agent.depth == 1 && agent.children == 0 && agent.team_agents == 0",
        "agent.age > duration(\"800000h\")",
    ] {
        assert_eq!(truth(text), Truth::True, "{text}");
    }
    let silent = Past { silent: true, ..Past::default() };
    let condition = Condition::compile("agent.risk_tier != \"critical\"").unwrap();
    assert!(matches!(condition.evaluate_alone(&input(), &silent), Truth::Error(_)));
}

#[test]
fn nothing_is_asked_that_is_not_needed() {
    let past = Past::default();
    let condition = Condition::compile("action.tool == \"x\" && session.called(\"read_*\")").unwrap();
    assert_eq!(condition.evaluate_alone(&input(), &past), Truth::False);
    assert!(past.asked.borrow().is_empty());
    assert!(condition.asks_past());
    assert!(!Condition::compile("action.tool == \"x\"").unwrap().asks_past());
}

#[test]
fn a_full_or_silent_memory_is_an_error_unless_something_else_decides() {
    let evaluate = |text: &str, past: &Past| Condition::compile(text).unwrap().evaluate_alone(&input(), past);
    let full = Past { full: true, ..Past::default() };
    assert_eq!(evaluate("session.called(\"x\")", &full), Truth::Error("session memory is full".to_owned()));
    assert_eq!(
        evaluate("agent.called(\"x\")", &full),
        Truth::Error("the memory of this principal is full".to_owned())
    );
    let silent = Past { silent: true, ..Past::default() };
    assert!(matches!(evaluate("!session.tainted(\"x\")", &silent), Truth::Error(_)));
    assert_eq!(evaluate("session.called(\"x\") || action.tool == \"shell\"", &silent), Truth::True);
}

#[test]
fn conditions_can_be_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Condition>();
}

#[test]
fn the_same_input_gives_the_same_answer() {
    let condition = Condition::compile(
        "action.args.exists(k, k == \"price\") && time.now > timestamp(\"2020-01-01T00:00:00Z\")",
    )
    .unwrap();
    for _ in 0..100 {
        assert_eq!(condition.evaluate_alone(&input(), &Past::default()), Truth::True);
    }
}

#[test]
fn evaluation_is_bounded() {
    let mut long = input();
    let many = (0..2000u32).map(Json::from).collect::<Vec<_>>();
    long.facts.args = Json::object().with("many", many).with("text", "x".repeat(60_000));
    let evaluate = |text: &str| Condition::compile(text).unwrap().evaluate_alone(&long, &Past::default());
    let Truth::Error(message) = evaluate("action.args.many.all(x, action.args.many.all(y, x + y >= 0))")
    else {
        panic!("too many steps have to be an error")
    };
    assert!(message.contains("steps"), "{message}");
    let Truth::Error(message) = evaluate("action.args.text + action.args.text == \"\"") else {
        panic!("a text that is too long has to be an error")
    };
    assert!(message.contains("longer than 65536"), "{message}");
    assert!(matches!(
        evaluate("action.args.many.exists(x, action.args.text.contains(\"y\"))"),
        Truth::Error(_)
    ));
    assert!(matches!(
        evaluate("action.args.many.exists(x, action.args.text.matches(\"y$\")) || true"),
        Truth::Error(_)
    ));
    assert_eq!(evaluate("action.args.many.all(x, x >= 0)"), Truth::True);
}
