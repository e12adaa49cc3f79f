//! Protections of a suite's runs, as reports name them.

use proctor_core::json::Json;
use proctor_sandbox::{Mode, Sandbox, Standing};

use crate::agent::{Agent, AgentSpec};

/// Protections of the runs of a suite.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Isolation {
    /// Whether somebody else runs the agent, where no protection reaches it.
    pub is_outside: bool,
    /// Strength of the sandbox: `auto`, `require` or `off`; empty if it is not known.
    pub sandbox: String,
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
    /// The protections of a sandbox for an agent. `has_listener` says whether agents reach a tools endpoint.
    pub fn of(sandbox: &Sandbox, agent: &Agent, has_listener: bool) -> Isolation {
        let protections =
            if has_listener { sandbox.protections_with_listener() } else { sandbox.protections().clone() };
        let mode = match sandbox.mode() {
            Mode::Auto => "auto",
            Mode::Require => "require",
            Mode::Off => "off",
        };
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
            sandbox: mode.to_owned(),
            protections: protections.collect(),
        }
    }

    /// The protections that did not hold, as lines for people.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if self.is_outside {
            let reason = "Proctor does not start it, so it runs outside of the sandbox";
            lines.push(format!("isolation: none for the agent: {reason}"));
        }
        if self.protections.is_empty() {
            return lines;
        }
        // What held is in the reports; people must see what did not.
        let not_held = self.protections.iter().filter(|held| !matches!(held.state, State::Held(_)));
        let not_held: Vec<String> = not_held.map(|held| format!("  {}: {}", held.name, held.state)).collect();
        if !not_held.is_empty() {
            lines.push(format!("isolation, sandbox {}:", self.sandbox));
            lines.extend(not_held);
        }
        lines
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
            .with("sandbox", self.sandbox.as_str())
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
