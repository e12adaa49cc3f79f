//! Records: what the ledger holds. The envelope is the leaf of the Merkle tree; the body is stored beside it and can be erased.

mod leaf;

use std::fmt;
use std::str::FromStr;

use rust_decimal::Decimal;

use crate::decision::Effect;
use crate::digest::Digest;
use crate::id::{ApprovalId, RecordId, SessionId};
use crate::time::Timestamp;

pub use leaf::{LeafError, LeafView};

/// The most bytes a leaf may have: entry bundles write its length in sixteen bits.
pub const MAX_LEAF: usize = 65_535;

/// The most bytes of a claimed text that an envelope holds; the rest is represented by a digest.
pub const MAX_CLAIMED: usize = 256;

/// Code of the record of kind `run` that ends a test run.
pub const RUN_ENDED: &str = "ended";

/// Kind of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RecordKind {
    /// An action and the decision on it.
    Decision,
    /// Outcome of an action.
    Outcome,
    /// Message of an agent that proposes no action.
    Observation,
    /// A person's decision on an approval.
    Approval,
    /// Alarm: an irregularity that a person should look at.
    Alarm,
    /// A policy came into force, was refused, or is weaker than closed.
    Policy,
    /// The difference between an estimate and the reported actual.
    Settlement,
    /// A body was erased.
    Erasure,
    /// Answers that were given without a record.
    Gap,
    /// A decision that was recorded after its caller had been told deny.
    Retracted,
    /// A session began.
    Session,
    /// Change in an agent's registration or status: registered, suspended, offline, …
    Agent,
    /// Part of a test run: its start, events of the agent, its end, results of tests.
    Run,
}

impl RecordKind {
    /// All kinds.
    pub const ALL: [RecordKind; 13] = [
        RecordKind::Decision,
        RecordKind::Outcome,
        RecordKind::Observation,
        RecordKind::Approval,
        RecordKind::Alarm,
        RecordKind::Policy,
        RecordKind::Settlement,
        RecordKind::Erasure,
        RecordKind::Gap,
        RecordKind::Retracted,
        RecordKind::Session,
        RecordKind::Agent,
        RecordKind::Run,
    ];

    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            RecordKind::Decision => "decision",
            RecordKind::Outcome => "outcome",
            RecordKind::Observation => "observation",
            RecordKind::Approval => "approval",
            RecordKind::Alarm => "alarm",
            RecordKind::Policy => "policy",
            RecordKind::Settlement => "settlement",
            RecordKind::Erasure => "erasure",
            RecordKind::Gap => "gap",
            RecordKind::Retracted => "retracted",
            RecordKind::Session => "session",
            RecordKind::Agent => "agent",
            RecordKind::Run => "run",
        }
    }
}

impl fmt::Display for RecordKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.word())
    }
}

impl FromStr for RecordKind {
    type Err = ();

    fn from_str(word: &str) -> Result<RecordKind, ()> {
        RecordKind::ALL.into_iter().find(|kind| kind.word() == word).ok_or(())
    }
}

/// An amount with its unit: `usd`, `tokens`, `calls`, or `rate` (one call against an hourly limit).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Amount {
    /// The unit.
    pub unit: String,
    /// The amount; a settlement may be negative.
    pub value: Decimal,
    /// Limit an hour that was in force for `rate`; the bucket refills by it.
    pub limit: Option<u32>,
}

/// Registration of an agent, carried by the record of kind `agent` that registers it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Registration {
    /// The digest of its credential token; the token itself is never written.
    pub token: Option<Digest>,
    /// Display name.
    pub name: String,
    /// Risk tier: `low`, `medium`, `high`, `critical`, or empty.
    pub risk: String,
    /// The principal that started the agent; empty if none did.
    pub parent: String,
    /// Number of agents between it and the root.
    pub depth: u32,
    /// Maximum of generations below the agent.
    pub max_child_depth: Option<u32>,
    /// Whether it asked to be only observed.
    pub observe: bool,
    /// Reason for which it was started.
    pub reason: String,
    /// The tool that started it.
    pub tool: String,
}

/// Proven part of a record: the leaf of the Merkle tree is its canonical JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Envelope {
    /// The record's own identifier.
    pub id: RecordId,
    /// Creation time.
    pub time: Timestamp,
    /// Kind.
    pub kind: RecordKind,
    /// The session it belongs to.
    pub session: Option<SessionId>,
    /// Authenticated principal that acted. Empty for records of the ledger itself.
    pub principal: String,
    /// The agent, as claimed.
    pub agent: String,
    /// The principal's team.
    pub team: String,
    /// The principal's organisation.
    pub org: String,
    /// The door that received it.
    pub door: String,
    /// The canonical tool.
    pub tool: String,
    /// The tool's name as sent, where it differs.
    pub name: String,
    /// The decision.
    pub decision: Option<Effect>,
    /// The rule that decided.
    pub rule: String,
    /// Taints that the record sets on the session.
    pub taints: Vec<String>,
    /// Amounts that it reserves or settles.
    pub amounts: Vec<Amount>,
    /// The keyed digest of the action.
    pub action: Option<Digest>,
    /// The approval concerned.
    pub approval: Option<ApprovalId>,
    /// Expiry of the approval.
    pub expires: Option<Timestamp>,
    /// Outcome, alarm or event code.
    pub code: String,
    /// A key that is unique in the ledger.
    pub once: Option<String>,
    /// Sequences of earlier records that this one is about.
    pub links: Vec<u64>,
    /// Digest of the policy in force.
    pub policy: Option<Digest>,
    /// SHA-256 over salt and body.
    pub body: Option<Digest>,
    /// Registration, on records that register an agent.
    pub registration: Option<Box<Registration>>,
}

impl Envelope {
    /// An envelope with nothing but identifier, time and kind.
    pub fn new(id: RecordId, time: Timestamp, kind: RecordKind) -> Envelope {
        Envelope {
            id,
            time,
            kind,
            session: None,
            principal: String::new(),
            agent: String::new(),
            team: String::new(),
            org: String::new(),
            door: String::new(),
            tool: String::new(),
            name: String::new(),
            decision: None,
            rule: String::new(),
            taints: Vec::new(),
            amounts: Vec::new(),
            action: None,
            approval: None,
            expires: None,
            code: String::new(),
            once: None,
            links: Vec::new(),
            policy: None,
            body: None,
            registration: None,
        }
    }

    /// The leaf: RFC 8785 JSON, at most [`MAX_LEAF`] bytes. Claimed texts are expected to be cut already ([`claimed`]).
    pub fn to_leaf(&self) -> Result<Vec<u8>, LeafError> {
        leaf::encode(self)
    }

    /// Reads a leaf. Only the canonical form is accepted, so that one record has one leaf.
    pub fn from_leaf(leaf: &[u8]) -> Result<Envelope, LeafError> {
        LeafView::parse(leaf).map(Envelope::from)
    }
}

/// The digest of a body as envelopes carry it: over salt and stored bytes.
pub fn body_digest(salt: &[u8; 32], body: &[u8]) -> Digest {
    Digest::of_parts(&[salt, body])
}

/// A claimed text as an envelope holds it: whole up to [`MAX_CLAIMED`] bytes, else cut there and followed by its digest.
///
/// ```
/// use proctor_core::record::claimed;
/// assert_eq!(claimed("short"), "short");
/// assert!(claimed(&"x".repeat(1000)).len() < 340);
/// assert_ne!(claimed(&"x".repeat(1000)), claimed(&"x".repeat(1001)));
/// ```
pub fn claimed(text: &str) -> String {
    if text.len() <= MAX_CLAIMED {
        return text.to_owned();
    }
    let mut end = MAX_CLAIMED;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}…#{}", text.get(..end).unwrap_or_default(), Digest::of(text.as_bytes()))
}

#[cfg(test)]
mod tests;
