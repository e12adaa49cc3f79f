//! Validation of registrations, and their registry events.

use proctor_core::digest::Digest;
use proctor_core::json::Json;
use proctor_core::record::Registration;
use proctor_policy::state::{AgentInfo, Registry};
use proctor_wire::assembly::did;
use proctor_wire::assembly::proto::agent::v1::RegisterRequest;
use proctor_wire::assembly::proto::common::v1::{AgentId, EnforcementMode, RiskTier};
use tonic::Status;

use super::DOOR;
use super::identity::principal;
use super::keys::Keys;
use proctor_engine::{AgentEvent, Engine, EngineError};

/// Depth limit of the agent tree.
pub(super) const MAX_DEPTH: u32 = 10;

/// Proof of possession of the agent's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Proof {
    /// Verified.
    Given,
    /// The agent has no key.
    None,
}

/// Refusal of a registration.
#[derive(Debug)]
pub(super) struct Refusal(pub Status);

impl From<EngineError> for Refusal {
    fn from(problem: EngineError) -> Refusal {
        Refusal(super::unavailable(problem))
    }
}

impl From<Status> for Refusal {
    fn from(status: Status) -> Refusal {
        Refusal(status)
    }
}

/// Computes the registry events of a registration.
pub(super) fn events(
    engine: &Engine,
    registry: &Registry,
    keys: &mut Keys,
    request: &RegisterRequest,
    id: &AgentId,
    proof: Proof,
    (token, policy): (Digest, Digest),
) -> Result<Vec<AgentEvent>, Refusal> {
    let principal = principal(engine, id);
    let known = registry.get(&principal).filter(|agent| agent.registration.is_some());
    if let Some(agent) = registry.get(&principal)
        && let Some(reason) = &agent.killed
    {
        let text = format!("this agent was killed: {reason}; an operator can resume it");
        return Err(Status::permission_denied(text).into());
    }
    let mut event = AgentEvent {
        principal,
        agent: id.agent_id.clone(),
        team: id.team_id.clone(),
        org: id.org_id.clone(),
        code: "registered",
        policy: Some(policy),
        door: DOOR,
        body: Some(told(request)),
        ..AgentEvent::default()
    };
    let fresh = Registration {
        token: Some(token),
        name: request.name.clone(),
        risk: risk(request.risk_tier),
        observe: request.enforcement_mode == i32::from(EnforcementMode::Observe),
        max_child_depth: request.max_child_depth,
        reason: request.delegation_reason.clone().unwrap_or_default(),
        tool: request.spawned_by_tool.clone().unwrap_or_default(),
        ..Registration::default()
    };
    event.registration = Some(Box::new(match known {
        Some(agent) => again(engine, agent, id, proof, fresh, &mut event)?,
        None => below_parent(engine, registry, keys, request, id, fresh)?,
    }));
    Ok(vec![event])
}

/// Handles a repeated registration: with a proof the agent gets a new token and keeps the rest of its state.
fn again(
    engine: &Engine,
    agent: &AgentInfo,
    id: &AgentId,
    proof: Proof,
    fresh: Registration,
    event: &mut AgentEvent,
) -> Result<Registration, Refusal> {
    let own = agent.registration.clone().unwrap_or_default();
    if !agent.is_deregistered && proof == Proof::None {
        return Err(Status::already_exists("this agent is registered; it has to deregister first").into());
    }
    if !engine.stands_for(&agent.team, &id.team_id) || !engine.stands_for(&agent.org, &id.org_id) {
        let text = format!(
            "this agent is registered in team `{}` of organisation `{}`; an operator can deregister it",
            agent.team, agent.org
        );
        return Err(Status::failed_precondition(text).into());
    }
    if agent.is_deregistered {
        // It comes back where it was: leaving must not free anybody of those above it.
        return Ok(Registration { parent: own.parent, depth: own.depth, ..fresh });
    }
    event.code = "token";
    Ok(Registration { token: fresh.token, ..own })
}

fn below_parent(
    engine: &Engine,
    registry: &Registry,
    keys: &mut Keys,
    request: &RegisterRequest,
    id: &AgentId,
    fresh: Registration,
) -> Result<Registration, Refusal> {
    let Some(named) = request.parent_agent_id.as_deref().filter(|parent| !parent.is_empty()) else {
        return Ok(fresh);
    };
    if named == id.agent_id {
        return Err(Status::invalid_argument("an agent cannot be its own parent").into());
    }
    let parent = find(engine, registry, keys, named, id)
        .filter(|agent| agent.registration.is_some() && !agent.is_deregistered)
        .ok_or_else(|| Status::invalid_argument(format!("parent agent `{named}` is not registered")))?;
    if let Some(stop) = registry.stop(&parent.principal) {
        let text = format!("the parent agent may do nothing now: {}", stop.reason);
        return Err(Status::failed_precondition(text).into());
    }
    let depth_of = |agent: &AgentInfo| agent.registration.as_ref().map_or(0, |own| own.depth);
    let depth = depth_of(parent).saturating_add(1);
    if depth >= MAX_DEPTH {
        let text = format!("agents stand at most {} below the first one", MAX_DEPTH - 1);
        return Err(Status::invalid_argument(text).into());
    }
    for above in registry.lineage(&parent.principal) {
        let most = above.registration.as_ref().and_then(|own| own.max_child_depth);
        if most.is_some_and(|most| depth.saturating_sub(depth_of(above)) > most) {
            let text = format!(
                "agent `{}` allows {} generations below it (`max_child_depth`)",
                above.agent,
                most.unwrap_or_default()
            );
            return Err(Status::invalid_argument(text).into());
        }
    }
    Ok(Registration { parent: parent.principal.clone(), depth, ..fresh })
}

/// Finds an agent by identifier, registry key, or principal, preferring agents of the same team.
pub(super) fn find<'a>(
    engine: &Engine,
    registry: &'a Registry,
    keys: &mut Keys,
    named: &str,
    beside: &AgentId,
) -> Option<&'a AgentInfo> {
    if did::decode(named).is_ok() {
        return registry.get(&format!("agent:{named}"));
    }
    let neighbour = AgentId { agent_id: named.to_owned(), ..beside.clone() };
    registry
        .get(&principal(engine, &neighbour))
        .or_else(|| registry.get(named))
        .or_else(|| keys.holder(registry, named))
}

fn risk(tier: i32) -> String {
    match RiskTier::try_from(tier) {
        Ok(RiskTier::Low) => "low",
        Ok(RiskTier::Medium) => "medium",
        Ok(RiskTier::High) => "high",
        Ok(RiskTier::Critical) => "critical",
        _ => "",
    }
    .to_owned()
}

/// Collects the agent's self-description, bounded in size.
fn told(request: &RegisterRequest) -> Json {
    const MOST: usize = 1000;
    let texts =
        |texts: &[String]| texts.iter().take(MOST).map(|text| Json::from(text.as_str())).collect::<Vec<_>>();
    let metadata = request.metadata.iter().take(MOST);
    Json::object()
        .with("framework", request.framework.as_str())
        .with("version", request.version.as_str())
        .with("tools", texts(&request.tool_names))
        .with(
            "metadata",
            Json::Object(metadata.map(|(name, value)| (name.clone(), Json::from(value.as_str()))).collect()),
        )
}
