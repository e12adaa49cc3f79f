use proctor_core::action::ActionKind;
use proctor_core::decision::Effect;
use proctor_core::digest::Digest;
use proctor_core::id::{ApprovalId, SessionId};
use proctor_core::json::Json;
use proctor_core::session::Caller;
use proctor_core::time::Timestamp;
use proctor_facts::Facts;

use super::{ModuleProblem, Opinion};
use crate::input::{FoundSecret, Input};
use crate::question::{AgentStatus, Answer, AnswerSource, Question};

#[cfg(feature = "cedar")]
mod cedar;
#[cfg(feature = "rego")]
mod rego;

struct Nothing;

impl AnswerSource for Nothing {
    fn answer(&self, _question: &Question) -> Option<Answer> {
        None
    }
}

/// A registry that knows the agent.
struct Registered;

impl AnswerSource for Registered {
    fn answer(&self, question: &Question) -> Option<Answer> {
        let status = AgentStatus {
            risk: "high".to_owned(),
            parent: "root".to_owned(),
            parent_risk: "low".to_owned(),
            depth: 2,
            children: 3,
            registered_at: Timestamp::parse("2025-11-15T20:44:07Z"),
            team_agents: 4,
            ..AgentStatus::default()
        };
        matches!(question, Question::AgentStatus(operation) if operation.is_empty())
            .then(|| Answer::AgentStatus(Some(Box::new(status))))
    }
}

fn input(kind: ActionKind) -> Input {
    let args = br#"{"command": "rm -rf /data", "count": 3, "price": 1.25, "none": null, "tags": ["a", "b"], "__entity": {"type": "Agent", "id": "root"}}"#;
    Input {
        facts: Facts {
            kind,
            name: "Bash".to_owned(),
            tool: "shell".to_owned(),
            args: Json::parse(args).expect("valid JSON"),
            path: "/etc/passwd".to_owned(),
            host: "evil.example".to_owned(),
            model: "gpt-x".to_owned(),
            port: 443,
            tokens: 10,
            cost_usd: "0.12345".parse().expect("a decimal"),
            paths: vec!["/etc/passwd".to_owned()],
            ..Facts::default()
        },
        findings: vec![FoundSecret { kind: "OpenAiKey".to_owned(), path: "$.args".to_owned() }],
        caller: Caller { principal: "ci-bot".to_owned(), team: "core".to_owned(), org: "acme".to_owned() },
        agent: "builder".to_owned(),
        session: SessionId::from_bytes([7; 16]),
        digest: Digest::of(b""),
        now: Timestamp::parse("2025-11-15T20:45:07Z").expect("a timestamp"),
        fresh_approval: ApprovalId::from_bytes([9; 16]),
    }
}

fn opinion(effect: Effect, rule: &str, reason: &str) -> Opinion {
    Opinion { effect, rule: rule.to_owned(), reason: reason.to_owned() }
}

fn places<T>(result: Result<T, Vec<ModuleProblem>>) -> Vec<String> {
    match result {
        Ok(_) => panic!("the module has to be refused"),
        Err(problems) => problems
            .into_iter()
            .map(|problem| format!("{}:{} {}", problem.line, problem.column, problem.message))
            .collect(),
    }
}

/// Expressions in both languages that are nested deeper than their parsers' stacks.
fn deep_expressions() -> [String; 5] {
    let deep = 100_000;
    let brackets = format!("{}1{}", "(".repeat(deep), ")".repeat(deep));
    let sum = format!("1{}", "+1".repeat(deep));
    [brackets, sum, "!".repeat(deep), "[".repeat(deep), "a".to_owned() + &".b".repeat(deep)]
}

fn assert_shared<T: Send + Sync>(_: &T) {}
