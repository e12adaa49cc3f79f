//! Operators' orders to agents and operations: name resolution, the record, and the notice to subscribers.

use proctor_core::digest::Digest;
use proctor_core::hex;
use proctor_core::json::Json;
use proctor_core::record::claimed;
use proctor_ledger::store::{Filter, Order as RecordOrder};
use proctor_policy::scan::identifier;
use proctor_policy::state::{AgentInfo, Registry};

use crate::{AgentEvent, Engine, EngineError};

/// Error of an order.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OrderError {
    /// No agent has this name.
    #[error("no agent is called `{0}`: `proctor agent list` shows all")]
    UnknownAgent(String),
    /// Several agents have this name.
    #[error("`{named}` can be `{first}` or `{second}`: use more of the name")]
    Ambiguous {
        /// The name as given.
        named: String,
        /// The principal of one of them.
        first: String,
        /// The principal of another.
        second: String,
    },
    /// The order is unknown.
    #[error("unknown order `{0}`")]
    UnknownOrder(String),
    /// The text names no operation.
    #[error("`{0}` is not an operation: it is `TRACE:SPAN`, `agent:ID` or `*`")]
    NotAnOperation(String),
    /// A terminated operation cannot be resumed.
    #[error("`{0}` was terminated, and stays so")]
    Terminated(String),
    /// The operation is not paused.
    #[error("`{0}` is not paused: `proctor op list` shows what is")]
    NotPaused(String),
    /// The engine did not record the order.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// An operator's order to an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Stop for now.
    Suspend,
    /// Resume: ends all causes and a kill.
    Resume,
    /// Stop for good, until resumed.
    Kill,
    /// Forget the agent.
    Deregister,
}

impl Order {
    const ALL: [Order; 4] = [Order::Suspend, Order::Resume, Order::Kill, Order::Deregister];

    /// The word of the command.
    pub const fn word(self) -> &'static str {
        match self {
            Order::Suspend => "suspend",
            Order::Resume => "resume",
            Order::Kill => "kill",
            Order::Deregister => "deregister",
        }
    }

    /// The order of that word.
    pub fn from_word(word: &str) -> Option<Order> {
        Order::ALL.into_iter().find(|order| order.word() == word)
    }

    const fn code(self) -> &'static str {
        match self {
            Order::Suspend => "suspended",
            Order::Resume => "resumed",
            Order::Kill => "killed",
            Order::Deregister => "forgotten",
        }
    }
}

/// An agent's identifier as records hold it: itself, or, if it looks like a secret, a text that stands for it alone. A public key is no
/// secret, although it looks like one. What records hold stays as it is.
pub fn agent_text(agent: &str) -> String {
    if proctor_wire::assembly::did::decode(agent).is_ok() {
        return agent.to_owned();
    }
    claimed(&identifier(agent))
}

/// The registry's key of an agent: the first sixteen bytes of a SHA-256 over organisation, team and identifier.
pub fn registry_key(org: &str, team: &str, agent: &str) -> [u8; 16] {
    let digest = *Digest::of(format!("{org}/{team}/{agent}").as_bytes()).as_bytes();
    let mut key = [0; 16];
    key.iter_mut().zip(digest).for_each(|(to, from)| *to = from);
    key
}

/// The registry's key of an agent, in hexadecimal.
pub fn key_of(agent: &AgentInfo) -> String {
    hex::encode(registry_key(&agent.org, &agent.team, &agent.agent))
}

/// The status of an agent as one word, the strongest cause first.
pub fn status(registry: &Registry, agent: &AgentInfo) -> &'static str {
    if agent.killed.is_some() {
        "killed"
    } else if !agent.suspended.is_empty() {
        "suspended"
    } else if agent.is_deregistered {
        "deregistered"
    } else if registry.stop(&agent.principal).is_some() {
        "stopped"
    } else if agent.is_offline {
        "offline"
    } else {
        "active"
    }
}

/// An agent by principal, identifier, key or name; or by the beginning of one of the first two, if only one agent has it.
pub fn find<'a>(registry: &'a Registry, named: &str) -> Result<&'a AgentInfo, OrderError> {
    match found(registry, named)? {
        Some(agent) => Ok(agent),
        None => Err(OrderError::UnknownAgent(named.to_owned())),
    }
}

/// The agent of a name; none if there is no such agent. The error is a name that several have.
fn found<'a>(registry: &'a Registry, named: &str) -> Result<Option<&'a AgentInfo>, OrderError> {
    if let Some(agent) = registry.get(named).or_else(|| registry.get(&format!("agent:{named}"))) {
        return Ok(Some(agent));
    }
    let recorded = agent_text(named);
    let is_named = |agent: &&AgentInfo| {
        agent.agent == named
            || agent.agent == recorded
            || agent.registration.as_ref().is_some_and(|own| own.name == named)
            || key_of(agent) == named
    };
    let begins = |agent: &&AgentInfo| {
        !named.is_empty() && (agent.principal.starts_with(named) || agent.agent.starts_with(named))
    };
    let named_so: Vec<&AgentInfo> = registry.list().filter(is_named).collect();
    let candidates = if named_so.is_empty() { registry.list().filter(begins).collect() } else { named_so };
    match candidates.as_slice() {
        [one] => Ok(Some(one)),
        [] => Ok(None),
        [one, other, ..] => Err(OrderError::Ambiguous {
            named: named.to_owned(),
            first: one.principal.clone(),
            second: other.principal.clone(),
        }),
    }
}

/// Carries out an order. Returns what is known of the agent then.
pub fn order(engine: &Engine, named: &str, order: Order, reason: &str, by: &str) -> Result<Json, OrderError> {
    // Principals that never registered can be stopped too, by the name that records show.
    let can_be_principal = named.contains(':') || ["local", "anonymous"].contains(&named);
    let is_principal = can_be_principal && is_on_record(engine, &principal_of(named))?;
    let (sequence, principal) = engine.change_agents_now(|registry, _| {
        let mut event = match found(registry, named)? {
            Some(agent) => AgentEvent::about(agent, order.code(), "cli"),
            None if matches!(order, Order::Suspend | Order::Kill) && is_principal => AgentEvent {
                principal: principal_of(named),
                code: order.code(),
                door: "cli",
                ..AgentEvent::default()
            },
            None => return Err(OrderError::UnknownAgent(named.to_owned())),
        };
        event.name = "operator".to_owned();
        event.reason = reason.to_owned();
        event.body = Some(Json::object().with("by", by));
        let principal = event.principal.clone();
        Ok((vec![event], principal))
    })?;
    let status = engine.look_up(|registry| match registry.get(&principal) {
        Some(agent) => status(registry, agent),
        None if order == Order::Resume => "active",
        None => "forgotten",
    })?;
    Ok(Json::object()
        .with("principal", principal)
        .with("status", status)
        .with("seq", sequence.unwrap_or_default()))
}

/// Whether any record is about a principal. An order for a name that nobody has would seem to stop somebody.
fn is_on_record(engine: &Engine, principal: &str) -> Result<bool, EngineError> {
    let filter = Filter { principal: Some(claimed(principal)), ..Filter::default() };
    let first = engine.ledger().reader().records(filter, RecordOrder::Ascending).next();
    Ok(first.transpose()?.is_some())
}

/// Pauses, resumes or terminates an operation: `trace:span`, `agent:ID` or `*`.
pub fn operate(
    engine: &Engine,
    operation: &str,
    word: &str,
    reason: &str,
    by: &str,
) -> Result<Json, OrderError> {
    let code = match word {
        "pause" => "op_paused",
        "resume" => "op_resumed",
        "terminate" => "op_terminated",
        _ => return Err(OrderError::UnknownOrder(word.to_owned())),
    };
    if operation != "*" && (!operation.contains(':') || operation == "agent:") {
        return Err(OrderError::NotAnOperation(operation.to_owned()));
    }
    let (sequence, operation) = engine.change_agents_now(|registry, _| {
        let operation = operation_of(registry, operation)?;
        if word == "resume" {
            let stored = [claimed(&operation), claimed(&identifier(&operation))];
            match registry.operations().find(|(stopped, _)| stored.iter().any(|name| name == stopped)) {
                Some((_, false)) => {}
                Some((_, true)) => return Err(OrderError::Terminated(operation)),
                None => return Err(OrderError::NotPaused(operation)),
            }
        }
        let event = AgentEvent {
            code,
            name: operation.clone(),
            reason: reason.to_owned(),
            door: "cli",
            body: Some(Json::object().with("by", by)),
            ..AgentEvent::default()
        };
        Ok((vec![event], operation))
    })?;
    Ok(Json::object()
        .with("operation", operation)
        .with("order", word)
        .with("seq", sequence.unwrap_or_default()))
}

/// An operation as records name it. `agent:` with any name of one agent is that agent's principal; with what is stopped already, it is that.
fn operation_of(registry: &Registry, named: &str) -> Result<String, OrderError> {
    let Some(agent) = named.strip_prefix("agent:") else { return Ok(named.to_owned()) };
    // What was stopped can be resumed, whatever has become of the agent.
    if registry.operations().any(|(stopped, _)| stopped == named) {
        return Ok(named.to_owned());
    }
    // With the prefix first: it belongs to the principal.
    let agent = match found(registry, named)? {
        Some(agent) => agent,
        None => find(registry, agent)?,
    };
    let principal = agent.principal.as_str();
    Ok(if principal.starts_with("agent:") { principal.to_owned() } else { format!("agent:{principal}") })
}

/// The principal that a name means: an agent's key is its principal's.
fn principal_of(named: &str) -> String {
    if proctor_wire::assembly::did::decode(named).is_ok() {
        format!("agent:{named}")
    } else {
        named.to_owned()
    }
}

#[cfg(test)]
mod tests;
