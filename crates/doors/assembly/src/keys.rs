//! Agents by their key in the registry.

use std::collections::HashMap;

use proctor_policy::state::{AgentInfo, Registry};
use proctor_wire::assembly::proto::common::v1::AgentId;

use super::identity::principal;
use proctor_engine::orders::registry_key;

/// Beyond this it is made anew: keys of agents that are gone stay in it.
const MOST: usize = 250_000;

/// Principals by key. Every registration is noted, so what is not here is not registered.
#[derive(Debug, Default)]
pub(super) struct Keys {
    principals: HashMap<[u8; 16], String>,
    is_made: bool,
}

impl Keys {
    /// An agent registers, perhaps.
    pub(super) fn note(&mut self, id: &AgentId) {
        // Until it is made there is nothing to add to: it will be made of the registry.
        if self.is_made {
            self.principals.insert(registry_key(&id.org_id, &id.team_id, &id.agent_id), principal(id));
            self.is_made = self.principals.len() < MOST;
        }
    }

    /// The agent whose key this is, in hexadecimal.
    pub(super) fn holder<'a>(&mut self, registry: &'a Registry, named: &str) -> Option<&'a AgentInfo> {
        let key = bytes(named)?;
        let key_of = |agent: &AgentInfo| registry_key(&agent.org, &agent.team, &agent.agent);
        if !self.is_made {
            let registered = registry.list().filter(|agent| agent.registration.is_some());
            self.principals = registered.map(|agent| (key_of(agent), agent.principal.clone())).collect();
            self.is_made = true;
        }
        let agent = registry.get(self.principals.get(&key)?)?;
        // It may have come back in another team since.
        (key_of(agent) == key).then_some(agent)
    }
}

/// Sixteen bytes from their digits.
fn bytes(digits: &str) -> Option<[u8; 16]> {
    let mut bytes = [0; 16];
    proctor_core::hex::decode_to_slice(digits, &mut bytes).ok()?;
    Some(bytes)
}
