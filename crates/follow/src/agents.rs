//! Agent lineage and status at a position in the ledger, folded from agent records.
//!
//! The fold stops at the record that is being passed on, unlike the engine's registry: a line that is written again after a
//! restart has the same bytes as the first time, whatever happened to the agent later.

use std::collections::HashMap;

use proctor_core::record::{Envelope, RecordKind};
use proctor_ledger::store::{Filter, Order};
use proctor_ledger::{ReadError, Reader};

/// Most agents in the fold; lines of further agents have no lineage.
const MAX_AGENTS: usize = 200_000;

/// Most causes of suspension for one agent.
const MAX_CAUSES: usize = 16;

/// Most generations on the way to the root agent; also ends cycles.
const MAX_DEPTH: usize = 64;

/// Agents by principal.
#[derive(Debug, Default)]
pub(crate) struct Agents(HashMap<String, Agent>);

#[derive(Debug, Default, Clone)]
struct Agent {
    /// Agent id as claimed.
    id: String,
    team: String,
    org: String,
    is_registered: bool,
    parent: String,
    depth: u32,
    reason: String,
    tool: String,
    is_deregistered: bool,
    is_forgotten: bool,
    is_killed: bool,
    is_offline: bool,
    suspended: Vec<String>,
}

/// Ancestry of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Lineage {
    /// Key text of the root agent; the agent's own if it has no parent.
    pub root: String,
    /// Key text of the parent agent.
    pub parent: Option<String>,
    /// Number of ancestors.
    pub depth: u32,
    /// Reason of the delegation.
    pub reason: Option<String>,
    /// Tool that spawned the agent.
    pub tool: Option<String>,
}

/// Status transition of an agent, as words (old, new); the old one is empty for a new agent.
pub(crate) type StatusChange = (&'static str, &'static str);

impl Agents {
    /// Folds the agent records before `end`.
    pub(crate) fn before(reader: &Reader, end: u64) -> Result<Agents, ReadError> {
        let mut agents = Agents::default();
        let filter = Filter { kinds: vec![RecordKind::Agent], seqs: Some(0..end), ..Filter::default() };
        for record in reader.records(filter, Order::Ascending) {
            agents.apply(&record?.envelope);
        }
        Ok(agents)
    }

    /// Applies a record; returns the status transition, if there is one.
    pub(crate) fn apply(&mut self, envelope: &Envelope) -> Option<StatusChange> {
        let principal = envelope.principal.as_str();
        if envelope.kind != RecordKind::Agent || principal.is_empty() || envelope.code.starts_with("op_") {
            return None;
        }
        if envelope.code == "forgotten" {
            let old = self.0.get(principal).map_or("", Agent::status);
            // The identity stays, so that the lineage of child agents does not change.
            if let Some(agent) = self.0.get_mut(principal) {
                *agent = Agent {
                    id: std::mem::take(&mut agent.id),
                    team: std::mem::take(&mut agent.team),
                    org: std::mem::take(&mut agent.org),
                    parent: std::mem::take(&mut agent.parent),
                    is_forgotten: true,
                    ..Agent::default()
                };
            }
            return (old != "deregistered").then_some((old, "deregistered"));
        }
        if !self.0.contains_key(principal) && self.0.len() >= MAX_AGENTS {
            return None;
        }
        let old = self.0.get(principal).map_or("", Agent::status);
        let agent = self.0.entry(principal.to_owned()).or_default();
        agent.apply(envelope);
        let new = agent.status();
        (old != new).then_some((old, new))
    }

    /// Status transition that applying a record would return.
    pub(crate) fn would_change(&self, envelope: &Envelope) -> Option<StatusChange> {
        let known = self.0.get_key_value(&envelope.principal);
        let mut alone =
            Agents(known.map(|(name, agent)| (name.clone(), agent.clone())).into_iter().collect());
        alone.apply(envelope)
    }

    /// Lineage of a registered agent.
    pub(crate) fn lineage(&self, principal: &str) -> Option<Lineage> {
        let agent = self.0.get(principal).filter(|agent| agent.is_registered)?;
        let mut root = agent;
        let mut root_name = agent.key_text();
        for _ in 0..MAX_DEPTH {
            if root.parent.is_empty() {
                break;
            }
            // An unknown parent keeps the name that the registration gives.
            root_name = root.parent.clone();
            let Some(parent) = self.0.get(root.parent.as_str()) else { break };
            root = parent;
            root_name = parent.key_text();
        }
        let parent = (!agent.parent.is_empty())
            .then(|| self.0.get(&agent.parent).map_or_else(|| agent.parent.clone(), Agent::key_text));
        let filled = |text: &String| (!text.is_empty()).then(|| text.clone());
        Some(Lineage {
            root: root_name,
            parent,
            depth: agent.depth,
            reason: filled(&agent.reason),
            tool: filled(&agent.tool),
        })
    }
}

impl Agent {
    /// `org/team/agent`, the text whose hash is the registry's key.
    fn key_text(&self) -> String {
        format!("{}/{}/{}", self.org, self.team, self.id)
    }

    fn apply(&mut self, envelope: &Envelope) {
        if !envelope.agent.is_empty() {
            self.id.clone_from(&envelope.agent);
            self.team.clone_from(&envelope.team);
            self.org.clone_from(&envelope.org);
        }
        let cause = envelope.name.as_str();
        match envelope.code.as_str() {
            "registered" => {
                self.is_registered = true;
                self.is_forgotten = false;
                self.is_deregistered = false;
                self.is_offline = false;
                let registration = envelope.registration.as_deref().cloned().unwrap_or_default();
                self.parent = registration.parent;
                self.depth = registration.depth;
                self.reason = registration.reason;
                self.tool = registration.tool;
            }
            "deregistered" => self.is_deregistered = true,
            "killed" => self.is_killed = true,
            "offline" => self.is_offline = true,
            "online" => self.is_offline = false,
            "suspended" if self.suspended.len() < MAX_CAUSES && !self.is_suspended_by(cause) => {
                self.suspended.push(cause.to_owned());
            }
            "resumed" if cause == "operator" => {
                self.suspended.clear();
                self.is_killed = false;
            }
            "resumed" => self.suspended.retain(|known| known != cause),
            _ => {}
        }
    }

    fn is_suspended_by(&self, cause: &str) -> bool {
        self.suspended.iter().any(|known| known == cause)
    }

    fn status(&self) -> &'static str {
        if self.is_forgotten {
            ""
        } else if self.is_deregistered {
            "deregistered"
        } else if self.is_killed {
            "killed"
        } else if !self.suspended.is_empty() {
            "suspended"
        } else if self.is_offline {
            "offline"
        } else {
            "active"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proctor_core::id::RecordId;
    use proctor_core::record::Registration;
    use proctor_core::time::Timestamp;

    fn record(principal: &str, code: &str, cause: &str) -> Envelope {
        let mut envelope =
            Envelope::new(RecordId::from_bytes([1; 16]), Timestamp::from_micros(0), RecordKind::Agent);
        envelope.principal = principal.to_owned();
        envelope.agent = format!("id-{principal}");
        envelope.code = code.to_owned();
        envelope.name = cause.to_owned();
        envelope
    }

    fn registered(principal: &str, parent: &str, depth: u32) -> Envelope {
        let mut envelope = record(principal, "registered", "");
        let registration = Registration { parent: parent.to_owned(), depth, ..Registration::default() };
        envelope.registration = Some(Box::new(registration));
        envelope
    }

    #[test]
    fn statuses_change_as_the_registry_says() {
        let mut agents = Agents::default();
        let mut told = |code: &str, cause: &str| agents.apply(&record("a", code, cause));
        assert_eq!(told("registered", ""), Some(("", "active")));
        assert_eq!(told("token", ""), None);
        assert_eq!(told("offline", ""), Some(("active", "offline")));
        assert_eq!(told("suspended", "budget"), Some(("offline", "suspended")));
        assert_eq!(told("suspended", "anomaly"), None);
        assert_eq!(told("resumed", "budget"), None, "the other cause holds");
        assert_eq!(told("killed", ""), Some(("suspended", "killed")));
        assert_eq!(told("online", ""), None);
        assert_eq!(told("deregistered", ""), Some(("killed", "deregistered")));
        assert_eq!(told("registered", ""), Some(("deregistered", "killed")), "marks stay");
        assert_eq!(told("resumed", "operator"), Some(("killed", "active")), "an operator ends all");
        assert_eq!(told("op_paused", "*"), None);
        assert_eq!(told("forgotten", ""), Some(("active", "deregistered")));
        assert_eq!(told("registered", ""), Some(("", "active")), "nothing is left of it");
    }

    #[test]
    fn lineages_lead_to_the_first_agent() {
        let mut agents = Agents::default();
        for envelope in [registered("a", "", 0), registered("b", "a", 1), registered("c", "b", 2)] {
            agents.apply(&envelope);
        }
        let lineage = agents.lineage("c").unwrap();
        assert_eq!(
            (lineage.root.as_str(), lineage.parent.as_deref(), lineage.depth),
            ("//id-a", Some("//id-b"), 2)
        );
        assert_eq!(agents.lineage("a").unwrap().root, "//id-a");
        assert_eq!(agents.lineage("a").unwrap().parent, None);
        assert_eq!(agents.lineage("nobody"), None);
        agents.apply(&record("a", "forgotten", ""));
        assert_eq!(agents.lineage("c").unwrap(), lineage, "nothing changes for those that it started");
        assert_eq!(agents.lineage("a"), None, "itself it is not registered any more");
        agents.apply(&record("stopped", "suspended", "operator"));
        assert_eq!(agents.lineage("stopped"), None, "it never registered");
    }

    #[test]
    fn agents_that_started_each_other_end_the_search() {
        let mut agents = Agents::default();
        agents.apply(&registered("a", "b", 1));
        agents.apply(&registered("b", "a", 1));
        assert!(agents.lineage("a").is_some());
    }
}
