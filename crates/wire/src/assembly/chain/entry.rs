//! Audit log entries: the hashed bytes, and the JSON line.

use proctor_core::digest::Digest;
use serde::{Deserialize, Serialize};
use serde_json::error::Category;

use super::{EventType, NO_HASH};

/// The longest line that is read or written, without the line break.
pub const MAX_LINE_BYTES: usize = 16 << 20;

/// An entry of the log. Members stand in the order in which lines say them; what is absent is left out of the line and of
/// the hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// The sequence in the log, from 0. A lost entry uses its sequence up.
    pub seq: u64,
    /// Nanoseconds since 1970.
    pub timestamp_ns: u64,
    /// The type of the event.
    pub event_type: EventType,
    /// The agent it is about.
    pub agent_id: [u8; 16],
    /// The session it is part of; zeros if there is none.
    pub session_id: [u8; 16],
    /// The event, as JSON text.
    pub payload: String,
    /// The hash of the entry before, or zeros.
    pub previous_hash: [u8; 32],
    /// The hash that the entry states of itself. [`Entry::hash`] is the one it has.
    pub entry_hash: [u8; 32],
    /// The agent at which the delegation began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root_agent_id: Option<[u8; 16]>,
    /// The agent that delegated to this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_agent_id: Option<[u8; 16]>,
    /// The agent's team.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub team_id: Option<String>,
    /// The agent's organisation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub org_id: Option<String>,
    /// Reason for starting the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delegation_reason: Option<String>,
    /// The tool that started the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spawned_by_tool: Option<String>,
    /// Number of delegations above the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depth: Option<u32>,
    /// Credentials that were found.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub credential_findings: Vec<Finding>,
    /// The action without them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redacted_payload: Option<String>,
    /// The policy document that decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy_doc_id: Option<String>,
    /// The decision, as its caller was told it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision_id: Option<String>,
}

/// A credential that was found. The credential itself is not in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    /// The kind of credential. The hash covers only the label.
    pub kind: String,
    /// Start offset in bytes.
    pub offset: u64,
    /// The label that replaced it, `[REDACTED:<kind>]`.
    pub matched: String,
}

/// Error of parsing an entry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    /// The line is not complete JSON, as after a truncated write.
    #[error("it is not whole JSON: {0}")]
    NotJson(String),
    /// The line is JSON, but not an entry.
    #[error("it is not an entry: {0}")]
    NotAnEntry(String),
    /// The line is longer than any entry.
    #[error("it is longer than {MAX_LINE_BYTES} bytes")]
    TooLong,
}

impl Entry {
    /// An entry without optional members, not yet part of a log: [`super::Chain::seal`] assigns its sequence.
    pub const fn new(
        event_type: EventType,
        timestamp_ns: u64,
        agent_id: [u8; 16],
        session_id: [u8; 16],
        payload: String,
    ) -> Entry {
        Entry {
            seq: 0,
            timestamp_ns,
            event_type,
            agent_id,
            session_id,
            payload,
            previous_hash: NO_HASH,
            entry_hash: NO_HASH,
            root_agent_id: None,
            parent_agent_id: None,
            team_id: None,
            org_id: None,
            delegation_reason: None,
            spawned_by_tool: None,
            depth: None,
            credential_findings: Vec::new(),
            redacted_payload: None,
            policy_doc_id: None,
            decision_id: None,
        }
    }

    /// The hash of everything but the hash that the entry states. Integers are big-endian; the order is not that of lines.
    pub fn hash(&self) -> [u8; 32] {
        let mut bytes = Vec::with_capacity(256 + self.payload.len());
        bytes.extend(self.seq.to_be_bytes());
        bytes.extend(self.timestamp_ns.to_be_bytes());
        bytes.extend(self.event_type.number().to_be_bytes());
        bytes.extend(self.agent_id);
        bytes.extend(self.session_id);
        bytes.extend(self.previous_hash);
        bytes.extend(self.payload.as_bytes());
        bytes.extend(self.root_agent_id.iter().flatten());
        bytes.extend(self.parent_agent_id.iter().flatten());
        push_texts(&mut bytes, [&self.team_id, &self.delegation_reason, &self.spawned_by_tool]);
        bytes.extend(self.depth.iter().flat_map(|depth| depth.to_be_bytes()));
        push_texts(&mut bytes, [&self.org_id]);
        self.push_findings(&mut bytes);
        push_texts(&mut bytes, [&self.policy_doc_id, &self.decision_id]);
        *Digest::of(&bytes).as_bytes()
    }

    fn push_findings(&self, bytes: &mut Vec<u8>) {
        if self.credential_findings.is_empty() && self.redacted_payload.is_none() {
            return;
        }
        push_length(bytes, self.credential_findings.len());
        for finding in &self.credential_findings {
            bytes.extend(finding.offset.to_be_bytes());
            push_text(bytes, &finding.matched);
        }
        bytes.push(u8::from(self.redacted_payload.is_some()));
        push_texts(bytes, [&self.redacted_payload]);
    }

    /// The line that says the entry, without the line break.
    pub fn to_line(&self) -> String {
        // INVARIANT: numbers, texts and lists of them can always be said in JSON.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The entry that a line says, without looking at its hash. A member that is not known is refused: no hash would cover
    /// it.
    pub fn parse(line: impl AsRef<[u8]>) -> Result<Entry, EntryError> {
        let line = line.as_ref();
        if line.len() > MAX_LINE_BYTES {
            return Err(EntryError::TooLong);
        }
        if line.trim_ascii_start().starts_with(b"[") {
            // The parser would take the members in order, without their names.
            return Err(EntryError::NotAnEntry("it is a list".to_owned()));
        }
        serde_json::from_slice(line).map_err(|error| {
            let text = describe(&error);
            match error.classify() {
                Category::Data => EntryError::NotAnEntry(text),
                Category::Syntax | Category::Eof | Category::Io => EntryError::NotJson(text),
            }
        })
    }
}

impl Finding {
    /// A finding with the label of its kind.
    pub fn new(kind: &str, offset: u64) -> Finding {
        Finding { kind: kind.to_owned(), offset, matched: format!("[REDACTED:{kind}]") }
    }

    /// Whether the label, which is hashed, names another kind than the finding, which is not.
    pub fn is_mislabelled(&self) -> bool {
        let named = self.matched.strip_prefix("[REDACTED:").and_then(|rest| rest.strip_suffix(']'));
        named.is_some_and(|named| named != self.kind)
    }
}

fn push_texts<const N: usize>(bytes: &mut Vec<u8>, texts: [&Option<String>; N]) {
    for text in texts.into_iter().flatten() {
        push_text(bytes, text);
    }
}

fn push_text(bytes: &mut Vec<u8>, text: &str) {
    push_length(bytes, text.len());
    bytes.extend(text.as_bytes());
}

fn push_length(bytes: &mut Vec<u8>, length: usize) {
    // Whatever fits in a line is far shorter than this limit.
    bytes.extend(u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes());
}

/// The parser's error, shortened, with its column.
fn describe(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let message = text.rsplit_once(" at line ").map_or(text.as_str(), |(message, _)| message);
    // A list of all names that would do is longer than it helps.
    let message = message.split_once(", expected one of").map_or(message, |(message, _)| message);
    let short: String = message.chars().take(160).collect();
    format!("{short}, at byte {}", error.column())
}
