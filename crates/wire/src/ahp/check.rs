//! Validation of AHP requests and notifications, in the order that the protocol prescribes.

use proctor_core::json::{Json, ShapeError};
use serde::de::DeserializeOwned;

use super::rpc::{INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, RpcError, UNSUPPORTED_VERSION};
use super::{
    AhpEvent, ConfirmationEvent, ContextPerceptionEvent, EventType, HandshakeRequest, IdleEvent,
    IntentDetectionEvent, MemoryRecallEvent, MessageError, PROTOCOL_VERSION, PlanningEvent, QueryRequest,
    RateLimitEvent, ReasoningEvent, RunLifecycleEvent, TaskListEvent, VerificationEvent, method,
};

/// The limits that a harness enforces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Events at most this deep; none: any depth.
    pub max_depth: Option<u32>,
    /// Maximum of events in a batch; none for any number.
    pub batch_size: Option<u64>,
    /// Whether events may lack `timestamp` and `depth`.
    pub lenient: bool,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { max_depth: Some(10), batch_size: Some(100), lenient: false }
    }
}

/// A request that keeps the rules.
#[derive(Debug, Clone, PartialEq)]
pub enum Call {
    /// `ahp/handshake`
    Handshake(HandshakeRequest),
    /// `ahp/event`
    Event(Box<AhpEvent>, Box<Question>),
    /// `ahp/query`
    Query(QueryRequest),
    /// `ahp/batch`
    Batch(Vec<Entry>),
}

/// The question of a blocking event, with its payload decoded.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "each is the kind of event")]
pub enum Question {
    /// A generic event, with a free payload.
    Generic,
    Idle(IdleEvent),
    ContextPerception(ContextPerceptionEvent),
    MemoryRecall(MemoryRecallEvent),
    Planning(PlanningEvent),
    Reasoning(ReasoningEvent),
    RateLimit(RateLimitEvent),
    Confirmation(ConfirmationEvent),
    IntentDetection(IntentDetectionEvent),
}

/// An event of a batch, or one that was sent as a notification.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The event.
    pub event: AhpEvent,
    /// The decoded payload, if that is a durable contract.
    pub contract: Option<Contract>,
}

/// A durable contract.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "each is the kind of event")]
pub enum Contract {
    RunLifecycle(RunLifecycleEvent),
    TaskList(TaskListEvent),
    Verification(VerificationEvent),
}

impl Contract {
    /// The run that it is about.
    pub fn run_id(&self) -> &str {
        match self {
            Contract::RunLifecycle(event) => &event.run_id,
            Contract::TaskList(event) => &event.run_id,
            Contract::Verification(event) => &event.run_id,
        }
    }

    /// The session that it says the run belongs to.
    pub fn session_id(&self) -> &str {
        match self {
            Contract::RunLifecycle(event) => &event.session_id,
            Contract::TaskList(event) => &event.session_id,
            Contract::Verification(event) => &event.session_id,
        }
    }

    /// Time of the update; any text.
    pub fn updated_at(&self) -> &str {
        match self {
            Contract::RunLifecycle(event) => &event.updated_at,
            Contract::TaskList(event) => &event.updated_at,
            Contract::Verification(event) => &event.updated_at,
        }
    }
}

/// Checks a request.
pub fn request(name: &str, params: Json, limits: &Limits) -> Result<Call, RpcError> {
    match name {
        method::HANDSHAKE => handshake(&params).map(Call::Handshake),
        method::EVENT => event(params, limits),
        method::QUERY => query(params).map(Call::Query),
        method::BATCH => batch(params, limits).map(Call::Batch),
        _ => Err(RpcError::new(METHOD_NOT_FOUND, "Method not found")),
    }
}

/// Checks a notification. Only events mean anything as one; everything else is ignored.
pub fn notification(name: &str, params: Json, limits: &Limits) -> Result<Option<Entry>, RpcError> {
    if name != method::EVENT {
        return Ok(None);
    }
    let failed = |refusal: EventRefusal| RpcError::new(INTERNAL_ERROR, format!("Handler error: {refusal}"));
    let event =
        AhpEvent::from_json(params, limits.lenient).map_err(|error| failed(EventRefusal::Message(error)))?;
    let contract = check_event(&event, limits).map_err(failed)?;
    if event.event_type.is_blocking() {
        return Err(failed(EventRefusal::Blocking(event.event_type)));
    }
    Ok(Some(Entry { event, contract }))
}

fn handshake(params: &Json) -> Result<HandshakeRequest, RpcError> {
    let request: HandshakeRequest =
        params.read().map_err(|error| invalid_params(&MessageError::Shape(error)))?;
    if is_compatible(&request.protocol_version) {
        Ok(request)
    } else {
        Err(RpcError::new(
            UNSUPPORTED_VERSION,
            format!("Unsupported protocol version: {}", request.protocol_version),
        ))
    }
}

/// Whether a version has our major version: the text before the first dot.
pub fn is_compatible(version: &str) -> bool {
    let major = |text: &str| text.split('.').next().map(str::to_owned);
    major(version) == major(PROTOCOL_VERSION)
}

fn event(params: Json, limits: &Limits) -> Result<Call, RpcError> {
    let event = AhpEvent::from_json(params, limits.lenient).map_err(|error| invalid_params(&error))?;
    check_event(&event, limits)
        .map_err(|problem| RpcError::new(INVALID_PARAMS, format!("Invalid event: {problem}")))?;
    if !event.event_type.is_blocking() {
        return Err(RpcError::new(
            INVALID_PARAMS,
            format!("Fire-and-forget event {} must be sent as a notification", event.event_type),
        ));
    }
    let question = question(&event).map_err(|problem| {
        RpcError::new(INTERNAL_ERROR, format!("Handler error: Serialization error: {problem}"))
    })?;
    Ok(Call::Event(Box::new(event), Box::new(question)))
}

fn query(params: Json) -> Result<QueryRequest, RpcError> {
    let Json::Object(members) = params else {
        return Err(invalid_params(&MessageError::not_an_object("a query", &params)));
    };
    let (mut session_id, mut agent_id, mut query_type, mut payload) = (None, None, None, None);
    for (name, member) in members {
        match (name.as_str(), member) {
            ("payload", member) => payload = Some(member),
            ("session_id", Json::String(text)) => session_id = Some(text),
            ("agent_id", Json::String(text)) => agent_id = Some(text),
            ("query_type", Json::String(text)) => query_type = Some(text),
            ("session_id", other) => return Err(not_a_string("session_id", &other)),
            ("agent_id", other) => return Err(not_a_string("agent_id", &other)),
            ("query_type", other) => return Err(not_a_string("query_type", &other)),
            _ => {}
        }
    }
    let missing = |name| invalid_params(&MessageError::Missing(name));
    Ok(QueryRequest {
        session_id: session_id.ok_or_else(|| missing("session_id"))?,
        agent_id: agent_id.ok_or_else(|| missing("agent_id"))?,
        query_type: query_type.ok_or_else(|| missing("query_type"))?,
        payload: payload.ok_or_else(|| missing("payload"))?,
    })
}

/// Checks the whole batch before any of its events is processed.
fn batch(params: Json, limits: &Limits) -> Result<Vec<Entry>, RpcError> {
    let Json::Object(members) = params else {
        return Err(invalid_params(&MessageError::not_an_object("a batch", &params)));
    };
    let events = match members.into_iter().find(|(name, _)| name == "events") {
        Some((_, Json::Array(events))) => events,
        Some((_, other)) => {
            return Err(invalid_params(&MessageError::member_type("events", "an array", &other)));
        }
        None => return Err(invalid_params(&MessageError::Missing("events"))),
    };
    let count = events.len() as u64;
    let mut read = Vec::new();
    for (index, event) in events.into_iter().enumerate() {
        let event = AhpEvent::from_json(event, limits.lenient)
            .map_err(|error| invalid_params(&MessageError::item("events", index, error)))?;
        read.push(event);
    }
    if let Some(limit) = limits.batch_size.filter(|limit| count > *limit) {
        return Err(RpcError::new(
            INVALID_PARAMS,
            format!("Batch size {count} exceeds configured limit {limit}"),
        ));
    }
    let mut entries = Vec::with_capacity(read.len());
    for event in read {
        let contract = check_event(&event, limits)
            .map_err(|problem| RpcError::new(INVALID_PARAMS, format!("Invalid event: {problem}")))?;
        if !event.event_type.is_batchable() {
            return Err(RpcError::new(
                INVALID_PARAMS,
                format!(
                    "Event type {} cannot be batched because it does not return a generic Decision",
                    event.event_type
                ),
            ));
        }
        entries.push(Entry { event, contract });
    }
    Ok(entries)
}

/// Error in an event. The texts are part of replies on the wire.
#[derive(Debug, thiserror::Error)]
enum EventRefusal {
    #[error("Serialization error: {0}")]
    Message(MessageError),
    #[error("Serialization error: {0}")]
    Payload(ShapeError),
    #[error("Protocol error: Event depth {depth} exceeds configured max depth {limit}")]
    Depth { depth: u32, limit: u32 },
    #[error("Protocol error: Blocking event {0} must be sent as a request")]
    Blocking(EventType),
}

/// Checks an event's depth, and decodes its payload if that is a durable contract.
fn check_event(event: &AhpEvent, limits: &Limits) -> Result<Option<Contract>, EventRefusal> {
    fn read<T: DeserializeOwned>(event: &AhpEvent) -> Result<T, EventRefusal> {
        event.payload.read().map_err(EventRefusal::Payload)
    }
    if let Some(limit) = limits.max_depth.filter(|limit| event.depth > *limit) {
        return Err(EventRefusal::Depth { depth: event.depth, limit });
    }
    Ok(match event.event_type {
        EventType::RunLifecycle => Some(Contract::RunLifecycle(read(event)?)),
        EventType::TaskList => Some(Contract::TaskList(read(event)?)),
        EventType::Verification => Some(Contract::Verification(read(event)?)),
        _ => None,
    })
}

fn question(event: &AhpEvent) -> Result<Question, ShapeError> {
    fn read<T: DeserializeOwned>(event: &AhpEvent) -> Result<T, ShapeError> {
        event.payload.read()
    }
    Ok(match event.event_type {
        EventType::Idle => Question::Idle(read(event)?),
        EventType::ContextPerception => Question::ContextPerception(read(event)?),
        EventType::MemoryRecall => Question::MemoryRecall(read(event)?),
        EventType::Planning => Question::Planning(read(event)?),
        EventType::Reasoning => Question::Reasoning(read(event)?),
        EventType::RateLimit => Question::RateLimit(read(event)?),
        EventType::Confirmation => Question::Confirmation(read(event)?),
        EventType::IntentDetection => Question::IntentDetection(read(event)?),
        _ => Question::Generic,
    })
}

fn not_a_string(member: &'static str, found: &Json) -> RpcError {
    invalid_params(&MessageError::member_type(member, "a string", found))
}

fn invalid_params(error: &MessageError) -> RpcError {
    RpcError::new(INVALID_PARAMS, format!("Invalid params: {error}"))
}
