//! A record together with what its body says, read leniently: what an erased body would say is left out.

use proctor_core::decision::{Decision, Effect};
use proctor_core::digest::Digest;
use proctor_core::json::Json;
use proctor_core::record::{Envelope, RecordKind};
use proctor_ledger::Reader;
use proctor_ledger::reader::{BodyState, Record};
use proctor_policy::body::decision_from_json;

/// A record and its body.
#[derive(Debug)]
pub(crate) struct Subject {
    /// Its envelope.
    pub envelope: Envelope,
    /// Its body; null if there is none, or not any more. A retraction has that of the record it takes back.
    pub body: Json,
    /// The record that it is about, if it links to one.
    pub linked: Option<Box<Subject>>,
}

impl Subject {
    /// Reads what belongs to a record.
    pub(crate) fn read(reader: &Reader, record: &Record) -> Result<Subject, String> {
        let envelope = record.envelope.clone();
        let body = body(reader, record.seq)?;
        let mut subject = Subject { envelope, body, linked: None };
        let links =
            matches!(subject.envelope.kind, RecordKind::Alarm | RecordKind::Approval | RecordKind::Retracted);
        // A record only speaks of earlier ones.
        let first = subject.envelope.links.first().copied().filter(|link| links && *link < record.seq);
        if let Some(link) = first {
            let envelope = reader.envelope(link).map_err(|error| error.to_string())?;
            let body = self::body(reader, link)?;
            if subject.envelope.kind == RecordKind::Retracted {
                subject.body = body.clone();
            }
            subject.linked = Some(Box::new(Subject { envelope, body, linked: None }));
        }
        Ok(subject)
    }

    /// The decision, from the body of a decision.
    pub(crate) fn decision(&self) -> Option<Decision> {
        decision_from_json(self.body.get("decision")?)
    }

    /// A member of the action that was decided on.
    pub(crate) fn action(&self, name: &str) -> Option<&Json> {
        self.body.get("read_set")?.get("action")?.get(name)
    }

    /// A text of the action that was decided on; empty if there is none.
    pub(crate) fn action_text(&self, name: &str) -> &str {
        self.action(name).and_then(Json::as_str).unwrap_or_default()
    }

    /// What the door noted with the action: trace, span, caller, …; empty if there is none.
    pub(crate) fn metadata(&self, name: &str) -> String {
        let member = |metadata: &Json| metadata.get(name).and_then(Json::as_str).map(str::to_owned);
        let direct = self.action("metadata").and_then(member);
        let deep = || member(&Json::parse(self.action_text("metadata_text").as_bytes()).ok()?);
        direct.or_else(deep).unwrap_or_default()
    }

    /// The action's arguments as JSON text, without secrets, or else what it says instead of arguments.
    pub(crate) fn arguments(&self) -> Option<String> {
        let wrapped = |text: &Json| Json::object().with("text", text.clone()).to_string();
        for (name, deep) in [("args", "args_text"), ("result", "result_text")] {
            if let Some(value) = self.action(name) {
                return Some(value.to_string());
            }
            if let Some(value) = self.action(deep) {
                // It is JSON as text, unless a secret was cut across its signs.
                let text = value.as_str().filter(|text| Json::parse(text.as_bytes()).is_ok());
                return Some(text.map_or_else(|| wrapped(value), str::to_owned));
            }
        }
        ["command", "text", "url", "path", "host", "model"]
            .iter()
            .find_map(|name| self.action(name))
            .map(wrapped)
    }

    /// The kinds of secrets that were found in the action.
    pub(crate) fn finding_kinds(&self) -> Vec<&str> {
        let findings = self.body.get("read_set").and_then(|set| set.get("findings")).and_then(Json::as_array);
        let findings = findings.unwrap_or_default().iter();
        findings.filter_map(|finding| finding.as_array()?.first()?.as_str()).collect()
    }

    /// What the action is called: its name, else its tool.
    pub(crate) fn action_name(&self) -> &str {
        let envelope = &self.envelope;
        [self.action_text("name"), self.action_text("tool"), &envelope.name, &envelope.tool]
            .into_iter()
            .find(|name| !name.is_empty())
            .unwrap_or_default()
    }

    /// The type of the action in the words of Agent Assembly, as the door noted it or as the action's kind tells.
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

    /// The digest of the policy in force, as documents are named in the log.
    pub(crate) fn policy_doc(&self) -> Option<String> {
        self.envelope.policy.map(|digest| format!("sha256:{digest}"))
    }
}

/// The types of actions in Agent Assembly, by number.
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

/// A decision in the words of Agent Assembly: number and name. A deferred action is denied there.
pub(crate) const fn assembly_decision(effect: Effect) -> (u8, &'static str) {
    match effect {
        Effect::Allow => (1, "ALLOW"),
        Effect::Deny | Effect::Defer => (2, "DENY"),
        Effect::Ask => (3, "PENDING"),
        Effect::Redact | Effect::Modify => (4, "REDACT"),
    }
}

/// The first sixteen bytes of a text's SHA-256; zeros for an empty text.
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

fn body(reader: &Reader, seq: u64) -> Result<Json, String> {
    Ok(match reader.body(seq).map_err(|error| error.to_string())? {
        BodyState::Present { bytes, .. } => Json::parse(&bytes).unwrap_or(Json::Null),
        BodyState::Erased | BodyState::None => Json::Null,
    })
}
