//! Record with its body and its linked record, loaded leniently: members of an erased body are absent.

use proctor_core::decision::{Decision, Effect};
use proctor_core::digest::Digest;
use proctor_core::json::Json;
use proctor_core::record::{Envelope, RecordKind};
use proctor_ledger::reader::{BodyState, Record};
use proctor_ledger::{ReadError, Reader};
use proctor_policy::body::decision_from_json;

/// Record with its body, and the record that it links to.
#[derive(Debug)]
pub(crate) struct LoadedRecord {
    pub envelope: Envelope,
    /// Body; null if there is none or it was erased. A retraction has the body of the retracted record.
    pub body: Json,
    /// First linked record, for alarms, approvals and retractions.
    pub linked: Option<Box<LoadedRecord>>,
}

impl LoadedRecord {
    /// Loads a record's body, and its linked record.
    pub(crate) fn read(reader: &Reader, record: &Record) -> Result<LoadedRecord, ReadError> {
        let envelope = record.envelope.clone();
        let body = body(reader, record.seq)?;
        let mut loaded = LoadedRecord { envelope, body, linked: None };
        let links =
            matches!(loaded.envelope.kind, RecordKind::Alarm | RecordKind::Approval | RecordKind::Retracted);
        // Links point backwards only; a forward link is ignored.
        let first = loaded.envelope.links.first().copied().filter(|link| links && *link < record.seq);
        if let Some(link) = first {
            let envelope = reader.envelope(link)?;
            let body = self::body(reader, link)?;
            if loaded.envelope.kind == RecordKind::Retracted {
                loaded.body = body.clone();
            }
            loaded.linked = Some(Box::new(LoadedRecord { envelope, body, linked: None }));
        }
        Ok(loaded)
    }

    /// Decision of a decision record's body.
    pub(crate) fn decision(&self) -> Option<Decision> {
        decision_from_json(self.body.get("decision")?)
    }

    /// Member of the action that was decided on.
    pub(crate) fn action(&self, name: &str) -> Option<&Json> {
        self.body.get("read_set")?.get("action")?.get(name)
    }

    /// String member of the action that was decided on; empty if there is none.
    pub(crate) fn action_text(&self, name: &str) -> &str {
        self.action(name).and_then(Json::as_str).unwrap_or_default()
    }

    /// Metadata that the door attached to the action (trace, span, caller, …); empty if there is none.
    pub(crate) fn metadata(&self, name: &str) -> String {
        let member = |metadata: &Json| metadata.get(name).and_then(Json::as_str).map(str::to_owned);
        let direct = self.action("metadata").and_then(member);
        let deep = || member(&Json::parse(self.action_text("metadata_text").as_bytes()).ok()?);
        direct.or_else(deep).unwrap_or_default()
    }

    /// Redacted arguments of the action as JSON text, else its result, command, text or target.
    pub(crate) fn arguments(&self) -> Option<String> {
        let wrapped = |text: &Json| Json::object().with("text", text.clone()).to_string();
        for (name, deep) in [("args", "args_text"), ("result", "result_text")] {
            if let Some(value) = self.action(name) {
                return Some(value.to_string());
            }
            if let Some(value) = self.action(deep) {
                // The text is JSON, unless redaction removed part of its syntax.
                let text = value.as_str().filter(|text| Json::parse(text.as_bytes()).is_ok());
                return Some(text.map_or_else(|| wrapped(value), str::to_owned));
            }
        }
        ["command", "text", "url", "path", "host", "model"]
            .iter()
            .find_map(|name| self.action(name))
            .map(wrapped)
    }

    /// Kinds of the secrets that were found in the action.
    pub(crate) fn finding_kinds(&self) -> Vec<&str> {
        let findings = self.body.get("read_set").and_then(|set| set.get("findings")).and_then(Json::as_array);
        let findings = findings.unwrap_or_default().iter();
        findings.filter_map(|finding| finding.as_array()?.first()?.as_str()).collect()
    }

    /// Name of the action, else of its tool.
    pub(crate) fn action_name(&self) -> &str {
        let envelope = &self.envelope;
        [self.action_text("name"), self.action_text("tool"), &envelope.name, &envelope.tool]
            .into_iter()
            .find(|name| !name.is_empty())
            .unwrap_or_default()
    }

    /// Agent Assembly's action type: from the door's metadata, else from the action's kind.
    pub(crate) fn action_type(&self) -> &'static str {
        let noted = self.metadata("action_type");
        ACTION_TYPES.into_iter().find(|word| *word == noted).unwrap_or_else(|| {
            match self.action_text("kind") {
                "llm_call" => "LLM_CALL",
                "tool_call" => "TOOL_CALL",
                "file_operation" => "FILE_OPERATION",
                "network_call" => "NETWORK_CALL",
                "process_exec" => "PROCESS_EXEC",
                "agent_spawn" => "AGENT_SPAWN",
                "tool_result" => "TOOL_RESULT",
                _ => "ACTION_UNSPECIFIED",
            }
        })
    }

    /// Digest of the policy in force, in the log's form for document ids.
    pub(crate) fn policy_doc(&self) -> Option<String> {
        self.envelope.policy.map(|digest| format!("sha256:{digest}"))
    }
}

/// Agent Assembly's action types, by number.
pub(crate) const ACTION_TYPES: [&str; 8] = [
    "ACTION_UNSPECIFIED",
    "LLM_CALL",
    "TOOL_CALL",
    "FILE_OPERATION",
    "NETWORK_CALL",
    "PROCESS_EXEC",
    "AGENT_SPAWN",
    "TOOL_RESULT",
];

/// Agent Assembly's number and name of a decision. Defer maps to deny.
pub(crate) const fn assembly_decision(effect: Effect) -> (u8, &'static str) {
    match effect {
        Effect::Allow => (1, "ALLOW"),
        Effect::Deny | Effect::Defer => (2, "DENY"),
        Effect::Ask => (3, "PENDING"),
        Effect::Redact | Effect::Modify => (4, "REDACT"),
    }
}

/// First sixteen bytes of a text's SHA-256; zeros for an empty text.
pub(crate) fn short_hash(text: &str) -> [u8; 16] {
    let mut short = [0; 16];
    if !text.is_empty() {
        let digest = Digest::of(text.as_bytes());
        for (to, from) in short.iter_mut().zip(digest.as_bytes()) {
            *to = *from;
        }
    }
    short
}

pub(crate) use proctor_core::hex::encode as hex;

fn body(reader: &Reader, seq: u64) -> Result<Json, ReadError> {
    Ok(match reader.body(seq)? {
        BodyState::Present { bytes, .. } => Json::parse(&bytes).unwrap_or(Json::Null),
        BodyState::Erased | BodyState::None => Json::Null,
    })
}
