//! Tools endpoint of a run, as the runner needs it. The implementation decides on calls and records them.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use proctor_core::json::Json;
use tokio::sync::mpsc;

use crate::secrets::Secrets;
use crate::suite::TestCase;

/// Calls that a run may make: as many as the protocol's limit of steps allows ten times over.
pub const MAX_CALLS: usize = 10_000;

/// A source of tools endpoints, one for each run.
pub trait ToolEndpoints: Send + Sync {
    /// Opens the endpoint of a run on a listener of this machine.
    fn open<'a>(
        &'a self,
        listener: TcpListener,
        run: EndpointRun<'a>,
    ) -> BoxFuture<'a, Result<Box<dyn ToolEndpoint>, EndpointError>>;
}

/// Settings of a run's endpoint.
pub struct EndpointRun<'r> {
    /// Task id of the run.
    pub task_id: &'r str,
    /// Name of the agent.
    pub agent: &'r str,
    /// The test: its mock tools, allowed tools and approvals.
    pub test: &'r TestCase,
    /// Time limit of one call.
    pub call_timeout: Duration,
    /// Secrets that no record may hold.
    pub secrets: &'r Arc<Secrets>,
    /// Receiver of calls that have ended; there is room for [`MAX_CALLS`].
    pub calls: mpsc::Sender<ToolCall>,
}

/// The open endpoint of a run.
pub trait ToolEndpoint: Send {
    /// The `tools_endpoint` of the run's request.
    fn url(&self) -> &str;

    /// Tools that the endpoint has. A call of one of them that the endpoint did not see was not made.
    fn served(&self) -> ServedTools;

    /// Takes no further calls, waits for those in flight, and returns when they are on record.
    fn finish(self: Box<Self>) -> BoxFuture<'static, ()>;
}

/// Tools that an endpoint has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServedTools {
    /// The tools of these names.
    Named(BTreeSet<String>),
    /// Every tool: a server does not list what it has.
    Any,
}

impl Default for ServedTools {
    fn default() -> ServedTools {
        ServedTools::Named(BTreeSet::new())
    }
}

impl ServedTools {
    /// Whether the endpoint has a tool of that name.
    pub fn contains(&self, tool: &str) -> bool {
        match self {
            ServedTools::Named(names) => names.contains(tool),
            ServedTools::Any => true,
        }
    }

    /// Whether the endpoint has no tool.
    pub fn is_empty(&self) -> bool {
        matches!(self, ServedTools::Named(names) if names.is_empty())
    }
}

/// Error of opening an endpoint. The run is not started.
#[derive(Debug, thiserror::Error)]
#[error("the tools endpoint cannot be opened: {0}")]
pub struct EndpointError(#[source] pub Box<dyn std::error::Error + Send + Sync>);

/// A call that the endpoint has answered, with secrets cut.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// Name of the tool.
    pub tool: String,
    /// Arguments, as the agent sent them.
    pub input: Json,
    /// Output; null if there is none.
    pub output: Json,
    /// Reason of a refusal or failure.
    pub error: Option<String>,
    /// End of the call.
    pub status: ToolCallStatus,
    /// Time from request to reply.
    pub duration: Duration,
    /// Names of the secrets that the agent sent with the call.
    pub emitted: Vec<String>,
}

/// Ends of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolCallStatus {
    /// The tool succeeded.
    Success,
    /// The tool failed.
    Failed,
    /// The endpoint has no such tool.
    Unknown,
    /// The policy or its approver did not let it through.
    Refused,
    /// The tool is outside of the test's allowed tools.
    NotAllowed,
    /// The call is malformed, or belongs to another run.
    Invalid,
}

impl ToolCallStatus {
    /// Whether no tool was reached: the call was refused before.
    pub fn is_rejected(self) -> bool {
        match self {
            ToolCallStatus::Success | ToolCallStatus::Failed => false,
            ToolCallStatus::Unknown
            | ToolCallStatus::Refused
            | ToolCallStatus::NotAllowed
            | ToolCallStatus::Invalid => true,
        }
    }
}

/// A call and its place among the events of the run.
#[derive(Debug, Clone, PartialEq)]
pub struct PlacedCall {
    /// Number of events that came before it.
    pub after_events: usize,
    /// The call.
    pub call: ToolCall,
}

impl ToolCall {
    /// The payload of the `tool_call` event that says the same.
    pub fn to_payload(&self) -> Json {
        let is_ok = self.status == ToolCallStatus::Success;
        let mut payload = Json::object()
            .with("tool", self.tool.as_str())
            .with("input", self.input.clone())
            .with("status", if is_ok { "success" } else { "error" })
            .with("duration_ms", u64::try_from(self.duration.as_millis()).unwrap_or(u64::MAX));
        if !self.output.is_null() {
            payload.push("output", self.output.clone());
        }
        if let Some(error) = &self.error {
            payload.push("error", error.as_str());
        }
        payload
    }
}

/// An event of a run, reported by the agent or seen at the endpoint.
#[derive(Debug, Clone, PartialEq)]
pub struct SeenEvent {
    /// Sequence that the agent gave it.
    pub sequence: Option<u64>,
    /// Type.
    pub event_type: String,
    /// Payload.
    pub payload: Json,
    /// Reason why a tool call fulfils no assertion; calls that must not be made count all the same.
    pub doubt: Option<Doubt>,
}

/// Reasons why a tool call fulfils no assertion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doubt {
    /// The agent reports the call, and the endpoint, which has the tool, did not see it.
    Unseen,
    /// The endpoint refused the call: no tool was reached.
    Rejected,
}

/// Merges reported events with the calls that the endpoint saw. A call that was also reported counts once, as and where the endpoint saw
/// it. `is_served` says whether the endpoint has a tool of that name.
pub fn merge(events: &[Json], calls: &[PlacedCall], is_served: &dyn Fn(&str) -> bool) -> Vec<SeenEvent> {
    let reports = match_reports(events, calls);
    let mut merged: Vec<((usize, Place, usize), SeenEvent)> = Vec::with_capacity(events.len() + calls.len());
    for (index, event) in events.iter().enumerate() {
        if reports.get(index).is_some_and(Option::is_some) {
            continue;
        }
        let payload = event.get("payload").cloned().unwrap_or_default();
        let event_type = event.get("event_type").and_then(Json::as_str).unwrap_or_default().to_owned();
        let sequence = event.get("sequence").and_then(Json::as_u64);
        let tool = payload.get("tool").and_then(Json::as_str).unwrap_or_default();
        let doubt = (event_type == "tool_call" && is_served(tool)).then_some(Doubt::Unseen);
        merged.push(((index, Place::Event, 0), SeenEvent { sequence, event_type, payload, doubt }));
    }
    for (number, placed) in calls.iter().enumerate() {
        let event = SeenEvent {
            sequence: None,
            event_type: "tool_call".to_owned(),
            payload: placed.call.to_payload(),
            doubt: placed.call.status.is_rejected().then_some(Doubt::Rejected),
        };
        merged.push(((placed.after_events, Place::Call, number), event));
    }
    merged.sort_by_key(|(place, _)| *place);
    merged.into_iter().map(|(_, event)| event).collect()
}

/// Order at one place: a call after `n` events stands before the event with index `n`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Call,
    Event,
}

/// For each event the index of the call that it reports. Reports with arguments are matched first: one without fits every call of its tool.
pub(crate) fn match_reports(events: &[Json], calls: &[PlacedCall]) -> Vec<Option<usize>> {
    let mut by_input: HashMap<(&str, String), VecDeque<usize>> = HashMap::new();
    for (index, placed) in calls.iter().enumerate() {
        let key = (placed.call.tool.as_str(), placed.call.input.to_string());
        by_input.entry(key).or_default().push_back(index);
    }
    let mut reports = vec![None; events.len()];
    for (event, report) in events.iter().zip(&mut reports) {
        let Some(payload) = payload(event) else { continue };
        let Some(input) = input(payload) else { continue };
        let Some(tool) = payload.get("tool").and_then(Json::as_str) else { continue };
        *report = by_input.get_mut(&(tool, input.to_string())).and_then(VecDeque::pop_front);
    }
    let mut by_tool: HashMap<&str, BTreeSet<usize>> = HashMap::new();
    for ((tool, _), left) in by_input {
        by_tool.entry(tool).or_default().extend(left);
    }
    for (event, report) in events.iter().zip(&mut reports) {
        let Some(payload) = payload(event) else { continue };
        if report.is_none() && input(payload).is_none() {
            let tool = payload.get("tool").and_then(Json::as_str).unwrap_or_default();
            *report = by_tool.get_mut(tool).and_then(BTreeSet::pop_first);
        }
    }
    reports
}

fn payload(event: &Json) -> Option<&Json> {
    let is_call = event.get("event_type").and_then(Json::as_str) == Some("tool_call");
    event.get("payload").filter(|_| is_call)
}

fn input(payload: &Json) -> Option<&Json> {
    payload.get("input").or_else(|| payload.get("args")).filter(|input| !input.is_null())
}

#[cfg(test)]
mod tests;
