//! Settings of a run's endpoint.

use std::sync::Arc;
use std::time::Duration;

use proctor_core::json::Json;
use proctor_core::session::Caller;

use crate::calls::RecordedCall;

/// Calls that a run may make unless it says otherwise: as many as the limit of steps of the protocol allows ten times over.
const DEFAULT_MAX_CALLS: usize = 10_000;

/// Time limit of one call unless the run says otherwise: that of a whole run by default.
const DEFAULT_CALL_TIMEOUT: Duration = Duration::from_secs(300);

/// Time that calls in flight get when the run ends, unless it says otherwise.
const DEFAULT_GRACE: Duration = Duration::from_secs(5);

/// Callback that removes a run's secrets from a value before it is stored.
pub type SecretCutter = Arc<dyn Fn(Json) -> Json + Send + Sync>;

/// Callback that answers a policy's question on behalf of an approver; none: nobody answers.
pub type Approvals = Arc<dyn Fn(&Question<'_>) -> Option<ApprovalAnswer> + Send + Sync>;

/// Callback for each call, made once when the call has ended. It must not block.
pub type OnCall = Arc<dyn Fn(&RecordedCall) + Send + Sync>;

/// A policy's question whether a call may happen.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// Name of the tool.
    pub tool: &'a str,
    /// Arguments of the call.
    pub input: &'a Json,
    /// The rule that asks.
    pub rule: &'a str,
    /// Reason of the rule.
    pub reason: &'a str,
}

/// The answer to a [`Question`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalAnswer {
    /// Whether the call may happen.
    pub is_approved: bool,
    /// The reason, for records.
    pub reason: String,
}

/// A run of an agent, and the limits of its endpoint.
#[derive(Clone)]
pub struct Run {
    /// Task id of the run; its session's name.
    pub task_id: String,
    /// The run's own principal. A [`crate::Decider::Relay`] has its own: the one of its handshake.
    pub caller: Caller,
    /// Name of the agent, for records.
    pub agent: String,
    /// Names of the tools that the run may call; none: all tools of the backend.
    pub allowed_tools: Option<Vec<String>>,
    /// Calls that the run may make, refused ones included.
    pub max_calls: usize,
    /// Time limit of one call.
    pub call_timeout: Duration,
    /// Time that calls in flight get to end when the run ends; after it they are stopped.
    pub grace: Duration,
    /// Answers to the policy's questions.
    pub approvals: Option<Approvals>,
    /// Observer of the calls.
    pub on_call: Option<OnCall>,
    /// Removes secrets from what is recorded. Tools get the arguments as they were sent.
    pub cut_secrets: Option<SecretCutter>,
}

impl Run {
    /// A run that may call all tools, without approvals, within the default limits.
    pub fn new(task_id: impl Into<String>, caller: Caller, agent: impl Into<String>) -> Run {
        Run {
            task_id: task_id.into(),
            caller,
            agent: agent.into(),
            allowed_tools: None,
            max_calls: DEFAULT_MAX_CALLS,
            call_timeout: DEFAULT_CALL_TIMEOUT,
            grace: DEFAULT_GRACE,
            approvals: None,
            on_call: None,
            cut_secrets: None,
        }
    }

    /// Whether the run may call this tool.
    pub(crate) fn allows(&self, tool: &str) -> bool {
        self.allowed_tools.as_ref().is_none_or(|allowed| allowed.iter().any(|name| name == tool))
    }

    /// A value as it may be recorded.
    pub(crate) fn without_secrets(&self, value: Json) -> Json {
        match &self.cut_secrets {
            Some(cut) => cut(value),
            None => value,
        }
    }

    /// A text as it may be recorded.
    pub(crate) fn text_without_secrets(&self, text: &str) -> String {
        match self.without_secrets(text.into()) {
            Json::String(text) => text,
            // A callback that makes something else of a text leaves nothing that is known to be free of secrets.
            _ => String::new(),
        }
    }
}
