//! Index of agents by registry key.

use std::collections::HashMap;

use proctor_policy::state::{AgentInfo, Registry};
use proctor_wire::assembly::proto::common::v1::AgentId;

use super::identity::principal;
use proctor_engine::Engine;
use proctor_engine::orders::registry_key;

/// Size at which the index is rebuilt, since keys of removed agents stay in it.
const MAX_KEYS: usize = 250_000;

/// Principals by key. Every registration is added, so an absent key is not registered.
#[derive(Debug, Default)]
pub(super) struct Keys {
    principals: HashMap<[u8; 16], String>,
    is_built: bool,
}

impl Keys {
    /// Adds an agent that is about to register.
    pub(super) fn add(&mut self, engine: &Engine, id: &AgentId) {
        // An index that is not built yet will be built from the registry, which then contains the agent.
        if self.is_built {
            self.principals
                .insert(registry_key(&id.org_id, &id.team_id, &id.agent_id), principal(engine, id));
            self.is_built = self.principals.len() < MAX_KEYS;
        }
    }

    /// Looks up an agent by its hexadecimal key.
    pub(super) fn holder<'a>(&mut self, registry: &'a Registry, named: &str) -> Option<&'a AgentInfo> {
        let key = bytes(named)?;
        let key_of = |agent: &AgentInfo| registry_key(&agent.org, &agent.team, &agent.agent);
        if !self.is_built {
            let registered = registry.list().filter(|agent| agent.registration.is_some());
            self.principals = registered.map(|agent| (key_of(agent), agent.principal.clone())).collect();
            self.is_built = true;
        }
        let agent = registry.get(self.principals.get(&key)?)?;
        // The agent may have registered in another team since, which changes its key.
        (key_of(agent) == key).then_some(agent)
    }
}

/// Decodes sixteen bytes from hexadecimal.
fn bytes(digits: &str) -> Option<[u8; 16]> {
    let mut bytes = [0; 16];
    proctor_core::hex::decode_to_slice(digits, &mut bytes).ok()?;
    Some(bytes)
}
