//! What was paused or terminated from outside.

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

use super::holder::Holder;
use super::talk::{Trouble, say};

/// How many operations can be stopped at once. Beyond it everything is: one that cannot be remembered must not go on.
const MAX_OPERATIONS: usize = 65_536;
/// The longest name of one.
const MAX_NAME: usize = 4096;
/// How long to wait after a lost stream, at first and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// A gateway says first what is stopped, and nothing marks the end of that: it is over when nothing was said for so long, and at the latest
/// after so long.
const QUIET: Duration = Duration::from_secs(2);
const LONGEST_OPENING: Duration = Duration::from_secs(30);

/// Everybody.
const ALL: &str = "*";
/// What stands before the name of an agent.
const AGENT: &str = "agent:";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    Paused,
    Terminated,
}

/// The operations that must not go on.
#[derive(Debug)]
pub(crate) struct Operations {
    /// `agent:` and the names of this agent.
    own: Vec<String>,
    stopped: RwLock<Stopped>,
}

#[derive(Debug, Default)]
struct Stopped {
    /// What was done to each, and the number of the stream that said so last.
    operations: HashMap<String, (Stop, u64)>,
    /// The number of the stream that is listened to.
    stream: u64,
    /// More were stopped than can be remembered.
    everything: bool,
}

impl Operations {
    /// None yet, for the agent of these names.
    pub(crate) fn new(names: Vec<String>) -> Operations {
        let own = names.into_iter().map(|name| agent_key(&name)).collect();
        Operations { own, stopped: RwLock::default() }
    }

    /// The denial of a query whose operation was stopped.
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

    /// Does what a message says. Terminated is for ever.
    fn obey(&self, message: OpControlMessage) {
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

    /// A stream has opened: it says first what is stopped.
    fn opened(&self) {
        let mut stopped = self.stopped.write().unwrap_or_else(PoisonError::into_inner);
        stopped.stream = stopped.stream.saturating_add(1);
    }

    /// The stream has said what is stopped: pauses of earlier streams that it did not repeat were lifted while nobody listened. Of another
    /// agent than its holder it says nothing.
    fn settle(&self, holder: &str) -> Vec<String> {
        let mut stopped = self.stopped.write().unwrap_or_else(PoisonError::into_inner);
        let Stopped { operations, stream, .. } = &mut *stopped;
        let holder = agent_key(holder);
        let is_said = |key: &String| !key.starts_with(AGENT) || *key == holder || self.own.contains(key);
        let is_lifted =
            |key: &String, (stop, said): (Stop, u64)| stop == Stop::Paused && said != *stream && is_said(key);
        operations.extract_if(|key, entry| is_lifted(key, *entry)).map(|(key, _)| key).collect()
    }

    /// Listens for ever, as soon as it is known who holds the token. What is stopped stays so while nothing can be heard.
    pub(crate) async fn follow(self: Arc<Self>, client: Client, mut holder: Holder) {
        let trouble = Trouble::default();
        let mut pause = FIRST_PAUSE;
        loop {
            let Some(agent) = holder.known().await else { return };
            let name = agent.agent_id.clone();
            let request = OpControlSubscribeRequest { agent_id: Some(agent) };
            let ended = match client.op_control_stream(request).await {
                Err(error) => error.to_string(),
                Ok(messages) => {
                    trouble.ended("commands to operations are heard again");
                    tokio::select! {
                        ended = self.hear(messages, &name, &mut pause) => ended,
                        () = holder.changed() => continue,
                    }
                }
            };
            trouble
                .began(|| format!("commands to operations are not heard, what is stopped stays so: {ended}"));
            tokio::time::sleep(pause).await;
            pause = pause.saturating_mul(2).min(LONGEST_PAUSE);
        }
    }

    /// Obeys the stream of an agent until it ends; gives the reason.
    async fn hear(
        &self,
        messages: impl Stream<Item = Result<OpControlMessage, ClientError>>,
        holder: &str,
        pause: &mut Duration,
    ) -> String {
        let mut messages = std::pin::pin!(messages);
        self.opened();
        let latest = Instant::now() + LONGEST_OPENING;
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
                    for operation in self.settle(holder) {
                        say(&format!("operation `{}`: no longer paused", shown(&operation)));
                    }
                    continue;
                }
            };
            match message {
                Some(Ok(message)) => {
                    *pause = FIRST_PAUSE;
                    settles = settles.map(|_| Instant::now() + QUIET);
                    // Said when it is done: whoever reads it may rely on it.
                    let said = format!("operation `{}`: {:?}", shown(&message.op_id), message.signal());
                    self.obey(message);
                    say(&said);
                }
                None => return "the gateway ended the stream".to_owned(),
                Some(Err(error)) => return error.to_string(),
            }
        }
    }
}

/// The names under which a query's operation may have been stopped; empty ones match nothing.
#[derive(Debug, Default)]
pub(crate) struct Operation {
    agent: String,
    span: String,
}

impl Operation {
    /// Of a query.
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

    fn message(op_id: &str, signal: OpControlSignal) -> OpControlMessage {
        OpControlMessage { op_id: op_id.into(), signal: signal.into(), sequence: 0 }
    }

    /// Hears these, and then nothing for so long.
    async fn hear(operations: &Operations, messages: Vec<OpControlMessage>, silence: Duration) {
        let messages = futures_util::stream::iter(messages).map(Ok).chain(futures_util::stream::pending());
        let mut pause = Duration::default();
        let listening = operations.hear(messages, "did", &mut pause);
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
        let listening = operations.hear(chatter, "did", &mut pause);
        let mut listening = std::pin::pin!(listening);
        let almost = LONGEST_OPENING * 99 / 100;
        assert!(tokio::time::timeout(almost, listening.as_mut()).await.is_err());
        assert_eq!(rule(&operations, "t", "s").as_deref(), Some("operation.paused"));
        assert!(tokio::time::timeout(QUIET / 2, listening.as_mut()).await.is_err());
        assert_eq!(rule(&operations, "t", "s"), None);
        assert_eq!(rule(&operations, "other", "s").as_deref(), Some("operation.paused"));
    }
}
