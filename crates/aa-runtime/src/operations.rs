//! Operations that the gateway has paused or terminated.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use futures_util::{Stream, StreamExt};
use proctor_clients::assembly::client::{Client, ClientError};
use proctor_clients::assembly::runtime::deny;
use proctor_wire::assembly::proto::policy::v1::{
    CheckActionRequest, CheckActionResponse, OpControlMessage, OpControlSignal, OpControlSubscribeRequest,
};
use tokio::time::Instant;

use super::outage_log::OutageLog;
use super::token_owner::TokenOwnerWatch;

/// Limit of stopped operations. Beyond it every query is denied, because a stop that cannot be stored must not be ignored.
const MAX_OPERATIONS: usize = 65_536;
/// Length limit of an operation id, in bytes.
const MAX_NAME: usize = 4096;
/// Initial and maximum backoff after a lost stream.
const MIN_BACKOFF: Duration = Duration::from_millis(100);
const MAX_BACKOFF: Duration = Duration::from_secs(5);

/// End of the snapshot with which a stream begins. The protocol has no marker for it, so it ends after this much silence, and at the latest
/// after `MAX_SNAPSHOT`.
const QUIET: Duration = Duration::from_secs(2);
const MAX_SNAPSHOT: Duration = Duration::from_secs(30);

/// Operation id that matches every query.
const ALL: &str = "*";
/// Prefix of operation ids that name an agent.
const AGENT: &str = "agent:";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    Paused,
    Terminated,
}

/// Stopped operations, kept up to date from the operation control stream.
#[derive(Debug)]
pub(crate) struct Operations {
    /// Operation ids of this agent: `agent:` and each of its names.
    own: Vec<String>,
    stopped: RwLock<Stopped>,
}

#[derive(Debug, Default)]
struct Stopped {
    /// State of each operation, and the number of the stream that last reported it.
    operations: HashMap<String, (Stop, u64)>,
    /// Number of the current stream.
    stream: u64,
    /// Whether the limit was exceeded, so that every query is denied.
    everything: bool,
}

impl Operations {
    /// No stopped operations, for the agent with these names.
    pub(crate) fn new(names: Vec<String>) -> Operations {
        let own = names.into_iter().map(|name| agent_key(&name)).collect();
        Operations { own, stopped: RwLock::default() }
    }

    /// Denial of a query, if its operation is stopped.
    pub(crate) fn denial(&self, operation: &Operation) -> Option<CheckActionResponse> {
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
            .filter_map(|key| stopped.operations.get(key).map(|(stop, _)| *stop))
            .collect();
        if found.contains(&Stop::Terminated) {
            return Some(deny("operation.terminated", "operation is terminated"));
        }
        (!found.is_empty()).then(|| deny("operation.paused", "operation is paused"))
    }

    /// Applies a control message. A termination is permanent.
    fn apply(&self, message: OpControlMessage) {
        let signal = message.signal();
        let mut stopped = self.stopped.write().unwrap_or_else(PoisonError::into_inner);
        let Stopped { operations, stream, everything } = &mut *stopped;
        let key = message.op_id;
        let is_new = signal != OpControlSignal::Resume && !operations.contains_key(&key);
        if is_new && (operations.len() >= MAX_OPERATIONS || key.len() > MAX_NAME) {
            *everything = true;
            return;
        }
        match signal {
            OpControlSignal::Pause => {
                operations.entry(key).or_insert((Stop::Paused, *stream)).1 = *stream;
            }
            OpControlSignal::Resume => {
                if operations.get(&key).is_some_and(|(stop, _)| *stop == Stop::Paused) {
                    operations.remove(&key);
                }
            }
            OpControlSignal::Terminate => {
                operations.insert(key, (Stop::Terminated, *stream));
            }
            OpControlSignal::Unspecified => {}
        }
    }

    /// Starts a new stream number; a stream begins with a snapshot of what is stopped.
    fn opened(&self) {
        let mut stopped = self.stopped.write().unwrap_or_else(PoisonError::into_inner);
        stopped.stream = stopped.stream.saturating_add(1);
    }

    /// Ends the snapshot: removes pauses of earlier streams that it did not repeat, because they were lifted while disconnected. Pauses of
    /// other agents than the token's owner stay, because a stream does not report them. Returns the removed ids.
    fn end_snapshot(&self, holder: &str) -> Vec<String> {
        let mut stopped = self.stopped.write().unwrap_or_else(PoisonError::into_inner);
        let Stopped { operations, stream, .. } = &mut *stopped;
        let holder = agent_key(holder);
        let is_reported = |key: &String| !key.starts_with(AGENT) || *key == holder || self.own.contains(key);
        let is_lifted = |key: &String, (stop, said): (Stop, u64)| {
            stop == Stop::Paused && said != *stream && is_reported(key)
        };
        operations.extract_if(|key, entry| is_lifted(key, *entry)).map(|(key, _)| key).collect()
    }

    /// Background task: follows the operation control stream, as soon as the token's owner is known. Stops stay in force while disconnected.
    pub(crate) async fn follow(self: Arc<Self>, client: Client, mut holder: TokenOwnerWatch) {
        let outage = OutageLog::default();
        let mut pause = MIN_BACKOFF;
        loop {
            let Some(agent) = holder.known().await else { return };
            let name = agent.agent_id.clone();
            let request = OpControlSubscribeRequest { agent_id: Some(agent) };
            let ended = match client.op_control_stream(request).await {
                Err(error) => error.to_string(),
                Ok(messages) => {
                    outage.recovered("commands to operations are heard again");
                    tokio::select! {
                        ended = self.apply_stream(messages, &name, &mut pause) => ended,
                        () = holder.changed() => continue,
                    }
                }
            };
            outage.failed(|| {
                format!("commands to operations are not heard, what is stopped stays so: {ended}")
            });
            tokio::time::sleep(pause).await;
            pause = pause.saturating_mul(2).min(MAX_BACKOFF);
        }
    }

    /// Applies the messages of a stream until it ends, and returns the reason.
    async fn apply_stream(
        &self,
        messages: impl Stream<Item = Result<OpControlMessage, ClientError>>,
        holder: &str,
        pause: &mut Duration,
    ) -> String {
        let mut messages = std::pin::pin!(messages);
        self.opened();
        let latest = Instant::now() + MAX_SNAPSHOT;
        let mut settles = Some(Instant::now() + QUIET);
        loop {
            let settled = async {
                match settles {
                    Some(settles) => tokio::time::sleep_until(settles.min(latest)).await,
                    None => std::future::pending().await,
                }
            };
            let message = tokio::select! {
                biased;
                message = messages.next() => message,
                () = settled => {
                    settles = None;
                    for operation in self.end_snapshot(holder) {
                        log::info!("operation `{}`: no longer paused", shown(&operation));
                    }
                    continue;
                }
            };
            match message {
                Some(Ok(message)) => {
                    *pause = MIN_BACKOFF;
                    settles = settles.map(|_| Instant::now() + QUIET);
                    // Logged after it is applied, so that readers of the log can rely on it.
                    let line = format!("operation `{}`: {:?}", shown(&message.op_id), message.signal());
                    self.apply(message);
                    log::info!("{line}");
                }
                None => return "the gateway ended the stream".to_owned(),
                Some(Err(error)) => return error.to_string(),
            }
        }
    }
}

/// Operation ids under which a query's operation can be stopped; empty ones match nothing.
#[derive(Debug, Default)]
pub(crate) struct Operation {
    agent: String,
    span: String,
}

impl Operation {
    /// Derives the ids from a query.
    pub(crate) fn of(request: &CheckActionRequest) -> Operation {
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
    format!("{AGENT}{name}")
}

fn shown(name: &str) -> String {
    proctor_core::printable::shown(name, 120)
}

#[cfg(test)]
mod tests {
    use proctor_wire::assembly::proto::common::v1::AgentId;

    use super::*;

    fn told(operations: &Operations, op_id: &str, signal: OpControlSignal) {
        operations.apply(OpControlMessage { op_id: op_id.into(), signal: signal.into(), sequence: 0 });
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

    fn message(op_id: &str, signal: OpControlSignal) -> OpControlMessage {
        OpControlMessage { op_id: op_id.into(), signal: signal.into(), sequence: 0 }
    }

    /// Applies these messages, and then waits for so long without any.
    async fn hear(operations: &Operations, messages: Vec<OpControlMessage>, silence: Duration) {
        let messages = futures_util::stream::iter(messages).map(Ok).chain(futures_util::stream::pending());
        let mut pause = Duration::default();
        let listening = operations.apply_stream(messages, "did", &mut pause);
        assert!(tokio::time::timeout(silence, listening).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_that_was_lifted_while_nobody_listened_ends() {
        use OpControlSignal::{Pause, Terminate};
        let operations = Operations::new(vec!["a".into()]);
        let paused = |trace: &str| rule(&operations, trace, "s");
        let all = || vec![message("t:s", Pause), message("u:s", Pause), message("v:s", Terminate)];
        hear(&operations, all(), QUIET * 3).await;
        for trace in ["t", "u"] {
            assert_eq!(paused(trace).as_deref(), Some("operation.paused"));
        }
        // Until the opening is over nothing goes on, and a stream that breaks off within it changes nothing.
        hear(&operations, Vec::new(), QUIET / 2).await;
        let short = || hear(&operations, vec![message("t:s", Pause)], QUIET * 9 / 10);
        short().await;
        for trace in ["t", "u"] {
            assert_eq!(paused(trace).as_deref(), Some("operation.paused"));
        }
        hear(&operations, vec![message("t:s", Pause)], QUIET + Duration::from_millis(1)).await;
        assert_eq!(paused("t").as_deref(), Some("operation.paused"));
        assert_eq!(paused("u"), None);
        // Terminated is for ever, whatever a gateway has forgotten.
        assert_eq!(paused("v").as_deref(), Some("operation.terminated"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_lifts_no_pause_of_another_agent_than_its_own() {
        let operations = Operations::new(vec!["a".into()]);
        let agents = ["agent:a", "agent:did", "agent:other"];
        let all = agents.map(|agent| message(agent, OpControlSignal::Pause));
        hear(&operations, all.into(), QUIET * 2).await;
        hear(&operations, Vec::new(), QUIET * 2).await;
        let stopped = operations.stopped.read().unwrap();
        assert_eq!(stopped.operations.keys().collect::<Vec<_>>(), ["agent:other"]);
    }

    #[tokio::test(start_paused = true)]
    async fn an_opening_that_does_not_end_is_ended() {
        let operations = Operations::new(vec!["a".into()]);
        hear(&operations, vec![message("t:s", OpControlSignal::Pause)], QUIET * 2).await;
        let chatter = futures_util::stream::unfold((), |()| async {
            tokio::time::sleep(QUIET / 2).await;
            Some((Ok(message("other:s", OpControlSignal::Pause)), ()))
        });
        let mut pause = Duration::default();
        let listening = operations.apply_stream(chatter, "did", &mut pause);
        let mut listening = std::pin::pin!(listening);
        let almost = MAX_SNAPSHOT * 99 / 100;
        assert!(tokio::time::timeout(almost, listening.as_mut()).await.is_err());
        assert_eq!(rule(&operations, "t", "s").as_deref(), Some("operation.paused"));
        assert!(tokio::time::timeout(QUIET / 2, listening.as_mut()).await.is_err());
        assert_eq!(rule(&operations, "t", "s"), None);
        assert_eq!(rule(&operations, "other", "s").as_deref(), Some("operation.paused"));
    }
}
