//! Recorded sessions as traces: actions let through or reported as done become steps, in ledger order.

use proctor_core::action::ActionKind;
use proctor_core::decision::Effect;
use proctor_core::id::SessionId;
use proctor_core::json::Json;
use proctor_core::record::{Amount, Envelope, RUN_ENDED, RecordKind};
use proctor_core::time::Timestamp;
use proctor_core::trace::{Step, StepKind, Trace};
use proctor_ledger::reader::BodyState;
use proctor_ledger::store::{Field, Filter, Order};
use proctor_ledger::{ReadError, Reader};

/// Error of finding or reading a session.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// The ledger cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// No session has this name.
    #[error("there is no session `{0}`: `proctor session list` shows them")]
    Unknown(String),
    /// Several sessions have this name.
    #[error("`{named}` can be several sessions: {candidates}; use one of these ids")]
    Ambiguous {
        /// The name as given.
        named: String,
        /// Identifiers of some of these sessions.
        candidates: String,
    },
    /// The session has no records.
    #[error("there is no session `{0}`: `proctor session list` shows them")]
    NoRecords(SessionId),
}

/// Finds the session that a text names: its id, a unique prefix of it, or the claimed id when only one session has it.
pub fn find_session(reader: &Reader, text: &str) -> Result<SessionId, SessionError> {
    // The name of a session may look like an identifier, too: that of a test run is its task id.
    if let Ok(id) = text.parse::<SessionId>() {
        let filter = Filter { session: Some(id), ..Filter::default() };
        if reader.records(filter, Order::Ascending).next().transpose()?.is_some() {
            return Ok(id);
        }
    }
    let mut found: Vec<SessionId> = Vec::new();
    if text.len() >= 4 && text.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-') {
        let ids = reader.values(Field::Session, text, 3)?;
        found.extend(ids.iter().filter_map(|id| id.parse::<SessionId>().ok()));
    }
    if found.is_empty() {
        let filter = Filter { kinds: vec![RecordKind::Session], ..Filter::default() };
        for record in reader.records(filter, Order::Ascending) {
            let envelope = record?.envelope;
            if envelope.code == proctor_core::record::claimed(text)
                && let Some(session) = envelope.session
            {
                found.push(session);
            }
        }
    }
    match found.as_slice() {
        [] => Err(SessionError::Unknown(text.to_owned())),
        [one] => Ok(*one),
        several => {
            let ids: Vec<String> = several.iter().take(5).map(ToString::to_string).collect();
            Err(SessionError::Ambiguous { named: text.to_owned(), candidates: ids.join(", ") })
        }
    }
}

/// Reads a session as a trace.
pub fn read_trace(reader: &Reader, session: SessionId) -> Result<Trace, SessionError> {
    let mut trace = Trace::new(session);
    let filter = Filter { session: Some(session), ..Filter::default() };
    for record in reader.records(filter, Order::Ascending) {
        let record = record?;
        let body = match reader.body(record.seq) {
            Ok(BodyState::Present { bytes, .. }) => Json::parse(&bytes).unwrap_or_default(),
            _ => Json::Null,
        };
        let envelope = &record.envelope;
        trace.times = Some((trace.times.map_or(envelope.time, |(first, _)| first), envelope.time));
        if trace.agent.is_empty() {
            trace.agent.clone_from(&envelope.agent);
        }
        match envelope.kind {
            RecordKind::Decision => add_decision(&mut trace, record.seq, &body, envelope),
            RecordKind::Settlement => spend(&mut trace, &envelope.amounts, false),
            RecordKind::Retracted => {
                for link in &envelope.links {
                    if let Ok(at) = trace.steps.binary_search_by_key(link, |step| step.sequence) {
                        trace.steps.remove(at);
                        spend(&mut trace, &reader.envelope(*link)?.amounts, true);
                    }
                }
            }
            RecordKind::Outcome => add_outcome(&mut trace, &body, envelope),
            RecordKind::Observation if envelope.code == "response" => {
                let data = body.get("data");
                let text = data.and_then(|data| data.as_str().or_else(|| data.get("text")?.as_str()));
                trace.output = text.unwrap_or_default().to_owned();
            }
            RecordKind::Run => add_run_part(&mut trace, record.seq, &body, envelope),
            _ => {}
        }
    }
    match trace.times {
        Some(_) => Ok(trace),
        None => Err(SessionError::NoRecords(session)),
    }
}

/// Adds amounts to what the session used, or takes them away again.
fn spend(trace: &mut Trace, amounts: &[Amount], back: bool) {
    for amount in amounts {
        let sum = match amount.unit.as_str() {
            "tokens" => &mut trace.tokens,
            "usd" => &mut trace.cost_usd,
            _ => continue,
        };
        let value = if back { -amount.value } else { amount.value };
        *sum = Some(sum.unwrap_or_default().saturating_add(value));
    }
}

fn add_outcome(trace: &mut Trace, body: &Json, envelope: &Envelope) {
    let of = envelope.links.first().copied().unwrap_or_default();
    // Steps stand in the order of their sequences.
    let at = match trace.steps.binary_search_by_key(&of, |step| step.sequence) {
        Ok(at) => at,
        Err(at) if member(body, "binding") == crate::SIMULATED_APPROVAL => {
            let asked = |action: &Json| action.get("sequence").and_then(Json::as_u64) == Some(of);
            let Some(index) = trace.denied.iter().position(asked) else { return };
            let action = trace.denied.remove(index);
            trace.steps.insert(at, step(of, &action, action.get("args").cloned(), envelope.time));
            at
        }
        Err(_) => return,
    };
    let Some(step) = trace.steps.get_mut(at) else { return };
    step.ended = Some(envelope.time);
    let Some(result) = body.get("result") else { return };
    if step.kind == StepKind::LlmCall
        && let Some(text) = response_text(result)
    {
        text.clone_into(&mut trace.output);
    }
    step.result = result.clone();
}

/// The text of a model's response, in any of the members that agents use.
fn response_text(result: &Json) -> Option<&str> {
    ["response_text", "response", "text", "content"].iter().find_map(|name| result.get(name)?.as_str())
}

fn add_decision(trace: &mut Trace, sequence: u64, body: &Json, envelope: &Envelope) {
    let action = body.pointer("/read_set/action").cloned().unwrap_or_default();
    if !envelope.decision.is_some_and(Effect::lets_through) {
        trace.denied.push(action.with("sequence", sequence));
        return;
    }
    spend(trace, &envelope.amounts, false);
    let mut holder = Json::object().with("args", action.get("args").cloned().unwrap_or_default());
    for change in body.pointer("/decision/changes").and_then(Json::as_array).unwrap_or_default() {
        let replacement = change.get("replacement").cloned().unwrap_or_default();
        proctor_policy::json_path::put(member(change, "path"), &mut holder, replacement);
    }
    trace.steps.push(step(sequence, &action, holder.get("args").cloned(), envelope.time));
}

/// Adds a part of a test run: tool calls that the agent reported and no endpoint saw, the output, and what it used.
fn add_run_part(trace: &mut Trace, sequence: u64, body: &Json, envelope: &Envelope) {
    let Some(data) = body.get("data") else { return };
    let at_endpoint = data.get("at_endpoint").and_then(Json::as_array).unwrap_or_default();
    let is_seen = |index: usize| at_endpoint.iter().any(|seen| seen.as_u64() == u64::try_from(index).ok());
    let events = data.get("events").and_then(Json::as_array).unwrap_or_default();
    for (_, event) in events.iter().enumerate().filter(|(index, _)| !is_seen(*index)) {
        let payload = event.get("payload").unwrap_or(&Json::Null);
        let (kind, name) = match member(event, "event_type") {
            "tool_call" => (StepKind::ToolCall, member(payload, "tool")),
            "llm_request" => (StepKind::LlmCall, member(payload, "model")),
            _ => continue,
        };
        let args = payload.get("input").or_else(|| payload.get("args"));
        trace.steps.push(Step {
            sequence,
            kind,
            name: if name.is_empty() { "action".to_owned() } else { name.to_owned() },
            alias: String::new(),
            args: args.cloned().unwrap_or_default(),
            result: payload.get("output").cloned().unwrap_or_default(),
            started: envelope.time,
            ended: Some(envelope.time),
        });
    }
    if envelope.code == RUN_ENDED {
        member(data, "output").clone_into(&mut trace.output);
        let measures = data.get("measures").unwrap_or(&Json::Null);
        let number = |name: &str| match measures.get(name) {
            Some(Json::Number(literal)) => rust_decimal::Decimal::from_str_exact(literal)
                .or_else(|_| rust_decimal::Decimal::from_scientific(literal))
                .ok(),
            _ => None,
        };
        trace.tokens = trace.tokens.or(number("tokens"));
        trace.cost_usd = trace.cost_usd.or(number("cost_usd"));
    }
}

/// The step that an action is, with the arguments that it was done with.
fn step(sequence: u64, action: &Json, args: Option<Json>, started: Timestamp) -> Step {
    let kind = match member(action, "kind").parse() {
        Ok(ActionKind::LlmCall) => StepKind::LlmCall,
        Ok(ActionKind::AgentSpawn) => StepKind::AgentCall,
        _ => StepKind::ToolCall,
    };
    // A step has a name, whatever the action did not say.
    let named = ["tool", "name", "model", "kind"].iter().map(|name| member(action, name));
    let name = named.into_iter().find(|name| !name.trim().is_empty()).unwrap_or("action");
    let alias = Some(member(action, "name")).filter(|alias| *alias != name).unwrap_or_default();
    Step {
        sequence,
        kind,
        name: name.to_owned(),
        alias: alias.to_owned(),
        args: args.unwrap_or_default(),
        result: Json::Null,
        started,
        ended: None,
    }
}

fn member<'a>(value: &'a Json, name: &str) -> &'a str {
    value.get(name).and_then(Json::as_str).unwrap_or_default()
}
