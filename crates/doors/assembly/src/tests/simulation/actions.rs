//! Random actions of agents.

use proctor_core::random::SeededRandomness;
use proctor_wire::assembly::proto::policy::v1::action_context::Action as Context;
use proctor_wire::assembly::proto::policy::v1::{CheckActionRequest, FileOpContext};

use super::super::{Agent, llm, tool};

/// Models, and billionths of a dollar for a token of the prompt and of the completion.
const MODELS: [(&str, i64, i64); 3] =
    [("gpt-4o", 5_000, 15_000), ("claude-3-5-sonnet", 3_000, 15_000), ("mystery", 15_000, 75_000)];

/// Kind of action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum What {
    Search,
    Forbidden,
    Plain,
    Secret,
    Deploy(u64),
    Think { model: usize, tokens: i32 },
    Read,
    Write { system: bool },
}

impl What {
    /// Calls to models do not say what they ask.
    pub(super) fn can_loop(self) -> bool {
        !matches!(self, What::Think { .. })
    }

    pub(super) fn random(random: &SeededRandomness) -> What {
        match random.below(18) {
            0..3 => What::Search,
            3 => What::Forbidden,
            4 => What::Plain,
            5 => What::Secret,
            6..11 => What::Deploy(random.below(2)),
            11..16 => What::Think {
                model: usize::try_from(random.below(MODELS.len() as u64)).unwrap(),
                tokens: 1 + i32::try_from(random.below(1500)).unwrap(),
            },
            16 => What::Read,
            _ => What::Write { system: random.below(2) == 0 },
        }
    }

    fn context(self) -> Context {
        let file = |operation: &str, path: &str| {
            Context::FileOp(FileOpContext {
                operation: operation.into(),
                path: path.into(),
                is_sensitive_path: false,
            })
        };
        match self {
            What::Search => tool("search", r#"{"q":"weather"}"#),
            What::Forbidden => tool("forbidden", "{}"),
            What::Plain => tool("list", r#"{"n":1}"#),
            What::Secret => tool("send", r#"{"key":"sk-a1B2c3D4e5F6g7H8i9J0"}"#),
            What::Deploy(number) => tool("deploy", &format!(r#"{{"to":{number}}}"#)),
            What::Think { model, tokens } => llm(MODELS[model].0, tokens),
            What::Read => file("read", "/etc/hosts"),
            What::Write { system: true } => file("write", "/etc/hosts"),
            What::Write { system: false } => file("write", "/home/me/notes"),
        }
    }

    /// Estimated cost.
    pub(super) fn estimate(self) -> i64 {
        match self {
            What::Think { model, tokens } => MODELS[model].1 * i64::from(tokens),
            _ => 0,
        }
    }

    /// The model that it calls; another action is reported as if it had called some.
    pub(super) fn model(self) -> usize {
        if let What::Think { model, .. } = self { model } else { 0 }
    }
}

pub(super) fn model_name(model: usize) -> String {
    MODELS[model].0.to_owned()
}

pub(super) fn actual_cost(model: usize, prompt: i32, completion: i32) -> i64 {
    MODELS[model].1 * i64::from(prompt) + MODELS[model].2 * i64::from(completion)
}

/// An action that an agent asks about.
#[derive(Debug, Clone)]
pub(super) struct Ask {
    pub who: usize,
    pub what: What,
    pub trace: String,
    pub span: String,
}

impl Ask {
    pub(super) fn random(random: &SeededRandomness, who: usize) -> Ask {
        let trace = identifier(random, 16);
        Ask { who, what: What::random(random), trace, span: identifier(random, 8) }
    }

    pub(super) fn request(&self, agent: &Agent) -> CheckActionRequest {
        CheckActionRequest {
            trace_id: self.trace.clone(),
            span_id: self.span.clone(),
            ..agent.asking(self.what.context())
        }
    }
}

/// An identifier of so many bytes, in one of the forms that are usual.
fn identifier(random: &SeededRandomness, bytes: usize) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    match random.below(3) {
        0 => (0..bytes).map(|_| format!("{:02x}", random.below(256))).collect(),
        1 => (0..bytes * 4 / 3)
            .map(|_| char::from(LETTERS[usize::try_from(random.below(64)).unwrap()]))
            .collect(),
        _ => format!("job-{}", random.below(1_000_000)),
    }
}
