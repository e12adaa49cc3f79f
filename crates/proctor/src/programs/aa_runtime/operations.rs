//! What was paused or terminated from outside.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use proctor_net::assembly::client::Client;
use proctor_net::assembly::runtime::deny;
use proctor_wire::assembly::proto::policy::v1::{
    CheckActionRequest, CheckActionResponse, OpControlMessage, OpControlSignal, OpControlSubscribeRequest,
};

use super::talk::{Trouble, say};

/// How many operations can be stopped at once. Beyond it everything is: one that cannot be remembered must not go on.
const MAX_OPERATIONS: usize = 65_536;
/// The longest name of one.
const MAX_NAME: usize = 4096;
/// How long to wait after a lost stream, at first and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Everybody.
const ALL: &str = "*";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    Paused,
    Terminated,
}

/// The operations that must not go on.
#[derive(Debug)]
pub struct Operations {
    /// `agent:` and the names of this agent.
    own: Vec<String>,
    stopped: RwLock<Stopped>,
}

#[derive(Debug, Default)]
struct Stopped {
    operations: HashMap<String, Stop>,
    /// More were stopped than can be remembered.
    everything: bool,
}

impl Operations {
    /// None yet, for the agent of these names.
    pub fn new(names: Vec<String>) -> Operations {
        let own = names.into_iter().map(|name| agent_key(&name)).collect();
        Operations { own, stopped: RwLock::default() }
    }

    /// The denial of a query whose operation was stopped.
    pub fn denial(&self, operation: &Operation) -> Option<CheckActionResponse> {
        let stopped = self.stopped.read().unwrap_or_else(PoisonError::into_inner);
        if stopped.everything {
            let reason = "more operations are stopped than this runtime can remember: restart it";
            return Some(deny("operation.overflow", reason));
        }
        if stopped.operations.is_empty() {
            return None;
        }
        let keys = std::iter::once(ALL)
            .chain(self.own.iter().map(String::as_str))
            .chain([operation.agent.as_str(), operation.span.as_str()]);
        let found: Vec<Stop> = keys
            .filter(|key| !key.is_empty())
            .filter_map(|key| stopped.operations.get(key).copied())
            .collect();
        if found.contains(&Stop::Terminated) {
            return Some(deny("operation.terminated", "operation is terminated"));
        }
        (!found.is_empty()).then(|| deny("operation.paused", "operation is paused"))
    }

    /// Does what a message says. Terminated is for ever.
    fn obey(&self, message: OpControlMessage) {
        let signal = message.signal();
        let mut stopped = self.stopped.write().unwrap_or_else(PoisonError::into_inner);
        let Stopped { operations, everything } = &mut *stopped;
        let key = message.op_id;
        let is_new = signal != OpControlSignal::Resume && !operations.contains_key(&key);
        if is_new && (operations.len() >= MAX_OPERATIONS || key.len() > MAX_NAME) {
            *everything = true;
            return;
        }
        match signal {
            OpControlSignal::Pause => {
                operations.entry(key).or_insert(Stop::Paused);
            }
            OpControlSignal::Resume => {
                if operations.get(&key) == Some(&Stop::Paused) {
                    operations.remove(&key);
                }
            }
            OpControlSignal::Terminate => {
                operations.insert(key, Stop::Terminated);
            }
            OpControlSignal::Unspecified => {}
        }
    }

    /// Listens for ever. What is stopped stays so while nothing can be heard.
    pub async fn follow(self: Arc<Self>, client: Client, request: OpControlSubscribeRequest) {
        let trouble = Trouble::default();
        let mut pause = FIRST_PAUSE;
        loop {
            let ended = match client.op_control_stream(request.clone()).await {
                Err(error) => error.to_string(),
                Ok(mut messages) => {
                    trouble.ended("commands to operations are heard again");
                    loop {
                        match messages.next().await {
                            Ok(Some(message)) => {
                                pause = FIRST_PAUSE;
                                // Said when it is done: whoever reads it may rely on it.
                                let said =
                                    format!("operation `{}`: {:?}", shown(&message.op_id), message.signal());
                                self.obey(message);
                                say(&said);
                            }
                            Ok(None) => break "the gateway ended the stream".to_owned(),
                            Err(error) => break error.to_string(),
                        }
                    }
                }
            };
            trouble
                .began(|| format!("commands to operations are not heard, what is stopped stays so: {ended}"));
            tokio::time::sleep(pause).await;
            pause = pause.saturating_mul(2).min(LONGEST_PAUSE);
        }
    }
}

/// The names under which a query's operation may have been stopped; empty ones match nothing.
#[derive(Debug, Default)]
pub struct Operation {
    agent: String,
    span: String,
}

impl Operation {
    /// Of a query.
    pub fn of(request: &CheckActionRequest) -> Operation {
        let agent = request.agent_id.as_ref().map_or("", |agent| agent.agent_id.as_str());
        Operation {
            agent: if agent.is_empty() { String::new() } else { agent_key(agent) },
            span: if request.trace_id.is_empty() {
                String::new()
            } else {
                format!("{}:{}", request.trace_id, request.span_id)
            },
        }
    }
}

fn agent_key(name: &str) -> String {
    format!("agent:{name}")
}

fn shown(name: &str) -> String {
    crate::output::shown(name, 120)
}

#[cfg(test)]
mod tests {
    use proctor_wire::assembly::proto::common::v1::AgentId;

    use super::*;

    fn told(operations: &Operations, op_id: &str, signal: OpControlSignal) {
        operations.obey(OpControlMessage { op_id: op_id.into(), signal: signal.into(), sequence: 0 });
    }

    fn rule(operations: &Operations, trace_id: &str, span_id: &str) -> Option<String> {
        let agent_id = Some(AgentId { agent_id: "did".into(), ..Default::default() });
        let request = CheckActionRequest {
            trace_id: trace_id.into(),
            span_id: span_id.into(),
            agent_id,
            ..Default::default()
        };
        operations.denial(&Operation::of(&request)).map(|answer| answer.policy_rule)
    }

    #[test]
    fn every_kind_of_name_stops_and_a_resume_lifts_only_a_pause() {
        use OpControlSignal::{Pause, Resume, Terminate};
        for key in ["*", "agent:a", "agent:did", "t:s"] {
            let operations = Operations::new(vec!["a".into()]);
            assert_eq!(rule(&operations, "t", "s"), None);
            told(&operations, key, Pause);
            assert_eq!(rule(&operations, "t", "s").as_deref(), Some("operation.paused"), "{key}");
            told(&operations, key, Resume);
            assert_eq!(rule(&operations, "t", "s"), None, "{key}");
            told(&operations, key, Terminate);
            told(&operations, key, Pause);
            told(&operations, key, Resume);
            assert_eq!(rule(&operations, "t", "s").as_deref(), Some("operation.terminated"), "{key}");
        }
        let operations = Operations::new(vec!["a".into()]);
        for key in ["agent:b", "t:other", "other:s", ":s", ":", "", "t", "agent:"] {
            told(&operations, key, Pause);
        }
        assert_eq!(rule(&operations, "t", "s"), None);
        assert_eq!(rule(&operations, "", "s"), None);
    }

    #[test]
    fn what_cannot_be_remembered_stops_everything() {
        let operations = Operations::new(vec!["a".into()]);
        told(&operations, &"x".repeat(MAX_NAME + 1), OpControlSignal::Resume);
        assert_eq!(rule(&operations, "t", "s"), None);
        told(&operations, &"x".repeat(MAX_NAME + 1), OpControlSignal::Pause);
        assert_eq!(rule(&operations, "t", "s").as_deref(), Some("operation.overflow"));
        let operations = Operations::new(vec!["a".into()]);
        for index in 0..=MAX_OPERATIONS {
            told(&operations, &format!("t:{index}"), OpControlSignal::Pause);
        }
        told(&operations, "*", OpControlSignal::Resume);
        assert_eq!(rule(&operations, "u", "s").as_deref(), Some("operation.overflow"));
    }
}
