//! Secondary indexes of the registry: tokens, children, teams, and agents that can be evicted.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use proctor_core::digest::Digest;

use super::AgentInfo;

#[derive(Debug, Default)]
pub(super) struct Index {
    tokens: HashMap<Digest, Arc<str>>,
    /// Children by the principal that started them, which need not be known itself.
    families: HashMap<Arc<str>, Family>,
    /// Registered agents of each team.
    teams: HashMap<Arc<str>, u64>,
    /// Agents that can be evicted, the oldest first.
    droppable: BTreeSet<(u64, Arc<str>)>,
    /// Agents with a registration, deregistered ones too.
    registered: usize,
}

#[derive(Debug, Default)]
struct Family {
    members: BTreeSet<Arc<str>>,
    /// Agents that are registered now.
    live: u64,
}

impl Index {
    pub(super) fn holder(&self, token: &Digest) -> Option<&str> {
        self.tokens.get(token).map(|holder| &**holder)
    }

    pub(super) fn children(&self, principal: &str) -> impl Iterator<Item = &str> {
        self.families
            .get(principal)
            .into_iter()
            .flat_map(|family| family.members.iter().map(|child| &**child))
    }

    pub(super) fn live_children(&self, principal: &str) -> u64 {
        self.families.get(principal).map_or(0, |family| family.live)
    }

    pub(super) fn team(&self, team: &str) -> u64 {
        self.teams.get(team).copied().unwrap_or(0)
    }

    pub(super) fn registered(&self) -> usize {
        self.registered
    }

    pub(super) fn oldest_droppable(&self) -> Option<Arc<str>> {
        self.droppable.first().map(|(_, principal)| Arc::clone(principal))
    }

    pub(super) fn add(&mut self, principal: &Arc<str>, agent: &AgentInfo) {
        let Some(registration) = &agent.registration else { return };
        self.registered += 1;
        if let Some(token) = registration.token {
            self.tokens.insert(token, Arc::clone(principal));
        }
        if !registration.parent.is_empty() {
            let family = self.families.entry(registration.parent.as_str().into()).or_default();
            family.members.insert(Arc::clone(principal));
            family.live += u64::from(agent.is_registered());
        }
        if agent.is_registered() && !agent.team.is_empty() {
            *self.teams.entry(agent.team.as_str().into()).or_default() += 1;
        }
    }

    /// Removes an agent; the inverse of adding it.
    pub(super) fn remove(&mut self, principal: &Arc<str>, agent: &AgentInfo) {
        self.droppable.remove(&(agent.registered_seq, Arc::clone(principal)));
        let Some(registration) = &agent.registration else { return };
        self.registered = self.registered.saturating_sub(1);
        if let Some(token) = registration.token {
            self.tokens.remove(&token);
        }
        if let Some(family) = self.families.get_mut(registration.parent.as_str()) {
            family.members.remove(principal);
            family.live = family.live.saturating_sub(u64::from(agent.is_registered()));
            if family.members.is_empty() {
                self.families.remove(registration.parent.as_str());
            }
        }
        if agent.is_registered()
            && let Some(count) = self.teams.get_mut(agent.team.as_str())
        {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.teams.remove(agent.team.as_str());
            }
        }
    }

    /// Updates whether an agent can be evicted.
    pub(super) fn review(&mut self, principal: &Arc<str>, agent: &AgentInfo) {
        let entry = (agent.registered_seq, Arc::clone(principal));
        let is_over = agent.registration.is_some() && agent.is_deregistered && !agent.is_marked();
        if is_over && !self.families.contains_key(principal) {
            self.droppable.insert(entry);
        } else {
            self.droppable.remove(&entry);
        }
    }
}
