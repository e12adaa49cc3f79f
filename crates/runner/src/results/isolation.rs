//! Protections of a suite's runs, as reports name them.

use proctor_core::json::Json;
use proctor_sandbox::{Protections, Standing};

use crate::agent::{Agent, AgentSpec};

/// Protections of the runs of a suite.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Isolation {
    /// Whether somebody else runs the agent, where no protection reaches it.
    pub is_outside: bool,
    /// The protections of the processes that Proctor starts.
    pub protections: Vec<ProtectionState>,
}

/// State of one protection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProtectionState {
    /// Name of the protection.
    pub name: String,
    /// State.
    pub state: State,
}

/// Kinds of states.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// Held by these features, strongest first.
    Held(Vec<String>),
    /// Not asked for.
    Waived,
    /// Held by nothing, for this reason.
    Missing(String),
}

impl Isolation {
    /// The protections of a sandbox for an agent.
    pub fn of(protections: &Protections, agent: &Agent) -> Isolation {
        let state = |standing: &Standing| match standing {
            Standing::Held { by } => State::Held(by.iter().map(ToString::to_string).collect()),
            Standing::Waived => State::Waived,
            Standing::Missing { reason } => State::Missing(reason.clone()),
        };
        let protections = protections.iter().map(|(protection, standing)| ProtectionState {
            name: protection.to_string(),
            state: state(standing),
        });
        Isolation {
            is_outside: matches!(agent.spec, AgentSpec::Remote(_)),
            protections: protections.collect(),
        }
    }

    /// The protections as JSON, as they stand in the document of a result.
    pub fn to_json(&self) -> Json {
        let protection = |protection: &ProtectionState| {
            let json = Json::object().with("protection", protection.name.as_str());
            match &protection.state {
                State::Held(by) => json
                    .with("state", "held")
                    .with("by", by.iter().map(|by| Json::from(by.as_str())).collect::<Vec<_>>()),
                State::Waived => json.with("state", "waived"),
                State::Missing(reason) => json.with("state", "missing").with("reason", reason.as_str()),
            }
        };
        Json::object()
            .with("agent_is_outside", self.is_outside)
            .with("protections", self.protections.iter().map(protection).collect::<Vec<_>>())
    }
}

impl std::fmt::Display for State {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            State::Held(by) => out.write_str(&by.join(", ")),
            State::Waived => out.write_str("not asked for"),
            State::Missing(reason) => write!(out, "missing: {reason}"),
        }
    }
}
