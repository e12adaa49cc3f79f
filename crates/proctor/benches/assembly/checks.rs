//! Checks that agents send. No two checks are the same, and every one of them is allowed.

use std::sync::atomic::{AtomicU64, Ordering};

use proctor_wire::assembly::proto::common::v1::{ActionType, AgentId};
use proctor_wire::assembly::proto::policy::v1::action_context::Action;
use proctor_wire::assembly::proto::policy::v1::{ActionContext, CheckActionRequest, ToolCallContext};

/// Checks of one trace.
const TRACE: u64 = 100;

/// The checks of one agent.
pub struct Checks {
    agent: AgentId,
    token: String,
    asked: AtomicU64,
}

impl Checks {
    /// Of this agent, with this token.
    pub fn new(agent: AgentId, token: String) -> Checks {
        Checks { agent, token, asked: AtomicU64::new(0) }
    }

    /// The same, from the first one on.
    pub fn renumbered(&self) -> Checks {
        Checks::new(self.agent.clone(), self.token.clone())
    }

    /// The next one: a search in a small project.
    pub fn next(&self) -> CheckActionRequest {
        let number = self.asked.fetch_add(1, Ordering::Relaxed);
        let call = ToolCallContext {
            tool_name: "grep".to_owned(),
            tool_source: "builtin".to_owned(),
            args_json: format!("{{\"pattern\":\"order-{number}\",\"path\":\"/tmp/orders\",\"case\":true}}")
                .into_bytes(),
            target_url: String::new(),
        };
        CheckActionRequest {
            agent_id: Some(self.agent.clone()),
            credential_token: self.token.clone(),
            trace_id: format!("trace-{}", number / TRACE),
            span_id: format!("span-{number}"),
            action_type: ActionType::ToolCall.into(),
            context: Some(ActionContext { action: Some(Action::ToolCall(call)) }),
            caller_agent_id: None,
        }
    }

    /// Number of checks.
    pub fn asked(&self) -> u64 {
        self.asked.load(Ordering::Relaxed)
    }
}
