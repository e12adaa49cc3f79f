//! The agents that are registered, and who is stopped: a fold over records of kind `agent`.
//!
//! The record's `principal` is the agent that it is about, `code` what happened, `rule` why, `name` the cause or the operation:
//!
//! * `registered`: it has `registration`, with the digest of its token. A principal that is known keeps its marks (suspended, killed).
//! * `token`: `registration.token` replaces its token; nothing else of the registration changes.
//! * `deregistered`: its token is void; whoever it started is stopped. Marks, lineage and team stay, for the case that it registers again.
//! * `forgotten`: everything about it is dropped.
//! * `suspended` and `resumed`: `name` is the cause (`operator`, `budget`, `anomaly`). Resuming with the cause `operator` ends all
//!   causes and a kill, and an agent whose parent is gone does not follow that parent any more.
//! * `killed`: stopped until an operator resumes it.
//! * `offline`, `online`: heartbeats stopped, or came again.
//! * `told`: it has heard of the policy whose digest is in `policy`.
//! * `op_paused`, `op_resumed`, `op_terminated`: `name` is the operation: `trace:span`, `agent:ID` or `*`. A terminated one stays so.

use proctor_core::digest::Digest;
use proctor_core::json::Json;
use proctor_core::record::{Envelope, Registration};
use proctor_core::time::Timestamp;

use super::row::Row;
use crate::question::{Standing, Stop};

pub(super) const FOLD: &str = "registry";

/// What is known of one agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentInfo {
    /// Who it is.
    pub principal: String,
    /// Its identifier, as it gave it.
    pub agent: String,
    /// Its team.
    pub team: String,
    /// Its organisation.
    pub org: String,
    /// What it registered with; `None`: it never did, and is only here because it is stopped.
    pub registration: Option<Registration>,
    /// When it registered first.
    pub registered_at: Timestamp,
    /// The sequence of that record.
    pub registered_seq: u64,
    /// Whether it has deregistered.
    pub is_deregistered: bool,
    /// Whether its heartbeats have stopped.
    pub is_offline: bool,
    /// Causes of its own suspension, with reasons, in order.
    pub suspended: Vec<(String, String)>,
    /// Why it was killed, if it was.
    pub killed: Option<String>,
    /// Whether it goes on without a parent that is gone.
    pub is_adrift: bool,
    /// The policy that it has heard of.
    pub told: Option<Digest>,
    /// What it was last ordered: `suspended`, `resumed` or `killed`, and why.
    pub last_order: Option<(String, String)>,
}

/// All agents, and stopped operations.
#[derive(Debug, Default)]
pub struct Registry {}

impl Registry {
    pub(super) fn apply(&mut self, seq: u64, envelope: &Envelope, rows: &mut Vec<Row>) {
        let _ = (seq, envelope, rows);
    }

    /// One agent.
    pub fn get(&self, principal: &str) -> Option<&AgentInfo> {
        let _ = principal;
        None
    }

    /// The agent whose token has this digest; deregistered ones have none.
    pub fn by_token(&self, token: &Digest) -> Option<&AgentInfo> {
        let _ = token;
        None
    }

    /// All agents, by principal.
    pub fn list(&self) -> impl Iterator<Item = &AgentInfo> {
        std::iter::empty()
    }

    /// Those that it has started, by principal.
    pub fn children(&self, principal: &str) -> impl Iterator<Item = &AgentInfo> {
        let _ = principal;
        std::iter::empty()
    }

    /// The agent itself, the one that started it, and so on up.
    pub fn lineage(&self, principal: &str) -> Vec<&AgentInfo> {
        let _ = principal;
        Vec::new()
    }

    /// Why an agent is stopped, if it is: by itself or by one above it.
    pub fn stop(&self, principal: &str) -> Option<Stop> {
        let _ = principal;
        None
    }

    /// Operations that are paused or terminated: the operation, and whether it is terminated.
    pub fn operations(&self) -> impl Iterator<Item = (&str, bool)> {
        std::iter::empty()
    }

    pub(super) fn standing(&self, principal: &str, team: &str, operation: &str) -> Option<Standing> {
        let _ = (principal, team, operation);
        None
    }

    pub(super) fn rows(&self, rows: &mut Vec<Row>) {
        let _ = rows;
    }

    pub(super) fn load(&mut self, key: &str, value: &Json) -> Option<()> {
        let _ = (key, value);
        Some(())
    }

    pub(super) fn finish_load(&mut self) {}
}
