//! The fixed inputs of the fuzz function.

use proctor_core::action::ActionKind;
use proctor_core::digest::Digest;
use proctor_core::id::{ApprovalId, SessionId};
use proctor_core::json::Json;
use proctor_core::session::Caller;
use proctor_core::time::Timestamp;
use proctor_facts::Facts;

use crate::input::{FoundSecret, Input};
use crate::question::{Answer, Memory, Question};

/// A past in which everything happened once.
pub(super) struct Yes;

impl Memory for Yes {
    fn answer(&self, question: &Question) -> Option<Answer> {
        Some(match question {
            Question::Called(..) | Question::Denied(..) => Answer::Count(1),
            Question::Since(..) => Answer::Micros(Some(1)),
            Question::Tainted(..) => Answer::Truth(true),
            Question::Overflowed(_) => Answer::Truth(false),
            Question::Standing(_) => Answer::Standing(None),
            Question::Spent(..)
            | Question::SpentAbove(..)
            | Question::Rate(..)
            | Question::Approval
            | Question::Repeats(_)
            | Question::Pace => return None,
        })
    }
}

/// An empty action and a full one.
pub(super) fn inputs() -> [Input; 2] {
    let args = Json::object()
        .with("command", "rm -rf /")
        .with("count", 3u32)
        .with("price", Json::Number("1.5".into()))
        .with("items", vec![Json::from("a"), Json::Null, Json::object().with("x", true)]);
    let full = Facts {
        kind: ActionKind::ToolCall,
        name: "Bash".to_owned(),
        tool: "shell".to_owned(),
        args,
        paths: vec!["/etc/passwd".to_owned(), "/tmp/x".to_owned()],
        ..Facts::default()
    };
    [Facts::default(), full].map(|facts| Input {
        facts,
        findings: vec![FoundSecret { kind: "OpenAiKey".to_owned(), path: "$.args".to_owned() }],
        caller: Caller::default(),
        agent: "a".to_owned(),
        session: SessionId::from_bytes([1; 16]),
        digest: Digest::of(b""),
        now: Timestamp::from_micros(1_763_239_507_123_456),
        fresh_approval: ApprovalId::from_bytes([2; 16]),
    })
}
