//! The agents that are registered, and who is stopped: a fold over records of kind `agent`.
//!
//! The record's `principal` is the agent that it is about, `code` what happened, `rule` why, `name` the cause or the operation:
//!
//! * `registered`: it has `registration`, with the digest of its token. A known principal stays suspended or killed.
//! * `token`: `registration.token` replaces its token; nothing else of the registration changes.
//! * `deregistered`: its token is void; its children are stopped. Stops, lineage and team stay, for the case that it registers again.
//! * `forgotten`: everything about it is dropped.
//! * `suspended` and `resumed`: `name` is the cause (`operator`, `budget`, `anomaly`). Resuming with the cause `operator` ends all
//!   causes and a kill, and an agent whose parent is gone does not follow that parent any more.
//! * `killed`: stopped until an operator resumes it.
//! * `offline`, `online`: heartbeats stopped, or came again.
//! * `told`: it has heard of the policy whose digest is in `policy`.
//! * `op_paused`, `op_resumed`, `op_terminated`: `name` is the operation: `trace:span`, `agent:ID` or `*`. A terminated one stays so.
//!
//! The number of entries is bounded. At the bound, agents that have deregistered, are not stopped and started nobody that is
//! known make it, the oldest first; a registration that finds none is not taken in, and so its token is no one's.

mod agent;
mod index;
mod operations;

use std::collections::BTreeMap;
use std::sync::Arc;

use proctor_core::digest::Digest;
use proctor_core::json::Json;
use proctor_core::record::{Envelope, claimed};

use super::row::{Row, quoted, unquote};
use crate::question::{AgentStatus, Stop};
use index::Index;
use operations::Operations;

pub use agent::AgentInfo;

pub(super) const FOLD: &str = "registry";

/// Maximum of ancestors that are examined. An agent with more is stopped, because the state of the others is unknown.
const MAX_ANCESTORS: usize = 64;

/// Maximum of ancestors that pay for an agent. No agent registers with more above it.
const MAX_PAYERS: usize = 10;

/// Bounds of the registry.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    /// Agents that registered; and as many principals that did not and are stopped, and as many stopped `agent:ID`.
    agents: usize,
    /// Stopped operations of the form `trace:span`.
    operations: usize,
}

const BOUNDS: Bounds = Bounds { agents: 100_000, operations: 10_000 };

/// All agents, and stopped operations.
#[derive(Debug)]
pub struct Registry {
    bounds: Bounds,
    agents: BTreeMap<Arc<str>, AgentInfo>,
    index: Index,
    operations: Operations,
}

impl Default for Registry {
    fn default() -> Registry {
        Registry::with_bounds(BOUNDS)
    }
}

impl Registry {
    fn with_bounds(bounds: Bounds) -> Registry {
        Registry {
            bounds,
            agents: BTreeMap::new(),
            index: Index::default(),
            operations: Operations::default(),
        }
    }

    pub(super) fn apply(&mut self, seq: u64, envelope: &Envelope, rows: &mut Vec<Row>) {
        if let Some(change) = envelope.code.strip_prefix("op_") {
            self.operations.apply(self.bounds, change, &envelope.name, rows);
        } else if !envelope.principal.is_empty() {
            self.apply_to_agent(seq, envelope, rows);
        }
    }

    fn apply_to_agent(&mut self, seq: u64, envelope: &Envelope, rows: &mut Vec<Row>) {
        let before = self.agents.get(envelope.principal.as_str());
        let parent_is_gone = before.is_some_and(|agent| self.is_parent_gone(agent));
        let mut after = agent::after(before, seq, envelope, parent_is_gone);
        // A token that is somebody's already stays with that one.
        if let Some(registration) = after.as_mut().and_then(|agent| agent.registration.as_mut())
            && let Some(token) = registration.token
            && self.by_token(&token).is_some_and(|holder| holder.principal != envelope.principal)
        {
            registration.token = None;
        }
        if before == after.as_ref() {
            return;
        }
        let had_registration = before.is_some_and(|agent| agent.registration.is_some());
        let is_known = before.is_some();
        let has_room = match &after {
            None => true,
            Some(agent) if agent.registration.is_some() => had_registration || self.evict(rows),
            Some(_) => is_known || self.agents.len() - self.index.registered() < self.bounds.agents,
        };
        if has_room {
            self.put(&envelope.principal, after, rows);
        }
    }

    fn is_parent_gone(&self, agent: &AgentInfo) -> bool {
        !agent.parent().is_empty() && self.get(agent.parent()).is_none_or(|parent| !parent.is_registered())
    }

    /// Evicts agents until one more can be registered; false if none can be dropped.
    fn evict(&mut self, rows: &mut Vec<Row>) -> bool {
        while self.index.registered() >= self.bounds.agents {
            let Some(principal) = self.index.oldest_droppable() else { return false };
            self.put(&principal, None, rows);
        }
        true
    }

    fn put(&mut self, principal: &str, after: Option<AgentInfo>, rows: &mut Vec<Row>) {
        let before = self.agents.remove_entry(principal);
        let key = before.as_ref().map_or_else(|| Arc::from(principal), |(key, _)| Arc::clone(key));
        if let Some((key, before)) = &before {
            self.index.remove(key, before);
        }
        match after {
            Some(after) => {
                rows.push(after.row());
                self.index.add(&key, &after);
                self.agents.insert(Arc::clone(&key), after);
            }
            None => rows.push(Row::delete(FOLD, &quoted(principal))),
        }
        self.review(&key);
        // One that has lost its last child may have become one that can be dropped, and the other way round.
        let parent = |agent: &AgentInfo| Arc::<str>::from(agent.parent());
        let parents = [before.as_ref().map(|(_, agent)| parent(agent)), self.get(principal).map(parent)];
        for parent in parents.iter().flatten().filter(|parent| !parent.is_empty()) {
            self.review(parent);
        }
    }

    fn review(&mut self, principal: &Arc<str>) {
        if let Some(agent) = self.agents.get(principal) {
            self.index.review(principal, agent);
        }
    }

    /// Agent by its principal.
    pub fn get(&self, principal: &str) -> Option<&AgentInfo> {
        self.agents.get(principal)
    }

    /// The agent whose token has this digest; deregistered ones have none.
    pub fn by_token(&self, token: &Digest) -> Option<&AgentInfo> {
        self.get(self.index.holder(token)?)
    }

    /// All agents, by principal.
    pub fn list(&self) -> impl Iterator<Item = &AgentInfo> {
        self.agents.values()
    }

    /// Children of an agent, by principal.
    pub fn children(&self, principal: &str) -> impl Iterator<Item = &AgentInfo> {
        self.index.children(principal).filter_map(|child| self.get(child))
    }

    /// Number of registered agents in a team; an empty name is no team.
    pub fn team_agents(&self, team: &str) -> u64 {
        self.index.team(team)
    }

    /// The agent itself, the one that started it, and so on up.
    pub fn lineage(&self, principal: &str) -> Vec<&AgentInfo> {
        let mut lineage: Vec<&AgentInfo> = Vec::new();
        let mut next = self.get(principal);
        while let Some(agent) = next {
            let is_known = lineage.iter().any(|below| below.principal == agent.principal);
            if is_known || lineage.len() > MAX_ANCESTORS {
                break;
            }
            lineage.push(agent);
            next = self.get(agent.parent());
        }
        lineage
    }

    /// The agents above one that pay for what it does, the nearest first. One that goes on without a parent that is gone has none.
    /// `before`: only those that were there and above it before that record. Who is above somebody stays so until one of them is
    /// forgotten, so everybody between has to have been there too.
    pub(super) fn payers(&self, principal: &str, before: Option<u64>) -> Vec<&AgentInfo> {
        let was_there = |agent: &&AgentInfo| {
            agent.registration.is_some() && before.is_none_or(|seq| agent.registered_seq < seq)
        };
        let mut payers: Vec<&AgentInfo> = Vec::new();
        let mut next = self.get(principal).filter(was_there);
        while let Some(below) = next.filter(|below| !below.is_adrift) {
            let Some(above) = self.get(below.parent()).filter(was_there) else { break };
            let is_known =
                above.principal == principal || payers.iter().any(|one| one.principal == above.principal);
            if is_known || payers.len() >= MAX_PAYERS {
                break;
            }
            payers.push(above);
            next = Some(above);
        }
        payers
    }

    /// Stop of an agent, if any: its own or that of an ancestor.
    pub fn stop(&self, principal: &str) -> Option<Stop> {
        let agent = self.get(principal)?;
        agent.own_stop().or_else(|| self.stop_above(agent))
    }

    fn stop_above(&self, agent: &AgentInfo) -> Option<Stop> {
        let stopped = |reason: String| Some(Stop { rule: "agent.parent_stopped".to_owned(), reason });
        let mut below = agent;
        for _ in 0..MAX_ANCESTORS {
            if below.is_adrift || below.parent().is_empty() {
                return None;
            }
            let name = below.parent();
            let Some(above) = self.get(name) else {
                return stopped(format!("the agent `{name}` above it is not registered any more"));
            };
            if let Some(stop) = above.own_stop() {
                return stopped(format!("the agent `{name}` above it is stopped: {}", stop.reason));
            }
            if above.registration.is_none() {
                return stopped(format!("the agent `{name}` above it is not registered any more"));
            }
            below = above;
        }
        stopped(format!("more than {MAX_ANCESTORS} agents stand above it"))
    }

    /// Operations that are paused or terminated: the operation, and whether it is terminated.
    pub fn operations(&self) -> impl Iterator<Item = (&str, bool)> {
        self.operations.list()
    }

    pub(super) fn status(&self, principal: &str, team: &str, operation: &str) -> Option<AgentStatus> {
        let agent = self.get(principal);
        let stop = self.stop(principal).or_else(|| self.operation_stop(principal, agent, operation));
        let team_agents = self.team_agents(team);
        let Some(agent) = agent else {
            let nothing_is_known = stop.is_none() && team_agents == 0;
            return (!nothing_is_known).then(|| AgentStatus { stop, team_agents, ..AgentStatus::default() });
        };
        let registration = agent.registration.as_ref();
        let parent = self.get(agent.parent()).and_then(|parent| parent.registration.as_ref());
        Some(AgentStatus {
            stop,
            risk: registration.map(|own| own.risk.clone()).unwrap_or_default(),
            parent: agent.parent().to_owned(),
            parent_risk: parent.map(|parent| parent.risk.clone()).unwrap_or_default(),
            depth: registration.map_or(0, |own| own.depth),
            children: self.index.live_children(principal),
            registered_at: agent.is_registered().then_some(agent.registered_at),
            observe: registration.is_some_and(|own| own.observe),
            team_agents,
            name: registration.filter(|own| own.observe).map(|own| own.name.clone()).unwrap_or_default(),
            above: self.payers(principal, None).into_iter().map(AgentInfo::caller).collect(),
        })
    }

    fn operation_stop(&self, principal: &str, agent: Option<&AgentInfo>, operation: &str) -> Option<Stop> {
        if self.operations.is_empty() {
            return None;
        }
        let by_agent = agent.map(|agent| claimed(&format!("agent:{}", agent.agent))).unwrap_or_default();
        let by_principal = claimed(&format!("agent:{principal}"));
        // Principals of registered agents begin with `agent:` themselves.
        let as_it_is = if principal.starts_with("agent:") { principal } else { "" };
        self.operations.stop(&["*", &by_agent, as_it_is, &by_principal, operation])
    }

    pub(super) fn rows(&self, rows: &mut Vec<Row>) {
        rows.extend(self.agents.values().map(AgentInfo::row));
        self.operations.rows(rows);
    }

    pub(super) fn load(&mut self, key: &str, value: &Json) -> Option<()> {
        if !key.starts_with('"') {
            return self.operations.load(key, value);
        }
        let (principal, rest) = unquote(key)?;
        let agent = AgentInfo::load(&principal, value)?;
        let is_whole = rest.is_empty() && !principal.is_empty();
        (is_whole && self.agents.insert(principal.into(), agent).is_none()).then_some(())
    }

    pub(super) fn finish_load(&mut self) {
        self.index = Index::default();
        for (principal, agent) in &self.agents {
            self.index.add(principal, agent);
        }
        // Only now is known who has children.
        for (principal, agent) in &self.agents {
            self.index.review(principal, agent);
        }
    }
}

#[cfg(test)]
mod tests;
