//! Recording of batches: with a state directory, each is one observation with the redacted trace and its verdicts.

use std::sync::Mutex;

use proctor_assert::{Assertion, Status, Trace};
use proctor_core::json::Json;
use proctor_core::session::Caller;
use serde_json::value::RawValue;

use super::evaluate::Batch;
use super::plugins::AcceptedResult;
use proctor_engine::access::{Access, AccessError, RelayError, open_reader};
use proctor_engine::settings::Settings as EngineSettings;
use proctor_engine::traces::{SessionError, find_session, read_trace};
use proctor_engine::{EngineError, Report, Spent};
use proctor_policy::truncated::drop_partial_words;

/// Error of recording a batch or a plugin's result.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// No state directory is named.
    #[error("there is no state directory")]
    NoState,
    /// The session cannot be found or read.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The state directory cannot be opened.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// The owner of the state directory did not record it.
    #[error(transparent)]
    Relay(#[from] RelayError),
    /// The engine did not record it.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A panic left the connection to the ledger unusable.
    #[error("the ledger cannot be reached")]
    Unreachable,
    /// The process that owns the state directory does not answer.
    #[error("the owner does not answer")]
    NotAnswering,
}

/// Opens the state directory: as its owner, or through it.
pub type OpenAccess = Box<dyn Fn() -> Result<Access, AccessError> + Send + Sync>;

/// Writes batches and plugin results to the ledger, if a state directory is named.
pub struct Recorder {
    target: Option<Target>,
}

struct Target {
    settings: EngineSettings,
    caller: Caller,
    /// Opens the directory again when its owner has ended.
    reopen: OpenAccess,
    access: Mutex<Access>,
}

impl Recorder {
    /// A recorder that records nothing.
    pub const NOWHERE: Recorder = Recorder { target: None };

    /// A recorder that writes to the state directory of `settings`, as `caller`.
    pub fn new(settings: EngineSettings, caller: Caller, access: Access, reopen: OpenAccess) -> Recorder {
        Recorder { target: Some(Target { settings, caller, reopen, access: Mutex::new(access) }) }
    }

    /// The state directory, if there is one.
    pub fn state(&self) -> Option<&std::path::Path> {
        self.target.as_ref().map(|target| target.settings.state.as_path())
    }

    /// Reads a recorded session as the text of a trace.
    pub fn stored_trace(&self, text: &str) -> Result<String, RecordError> {
        let target = self.target.as_ref().ok_or(RecordError::NoState)?;
        let reader = open_reader(&target.settings.state).map_err(SessionError::from)?;
        let id = find_session(&reader, text)?;
        Ok(read_trace(&reader, id)?.to_json().to_string())
    }

    /// Records a batch.
    pub fn batch(
        &self,
        trace: &Trace<'_>,
        raw: Option<&RawValue>,
        assertions: &[Assertion<'_>],
        batch: &Batch,
        simulated: bool,
    ) -> Result<(), RecordError> {
        let Some(target) = &self.target else { return Ok(()) };
        let verdicts: Vec<Json> = batch
            .found
            .iter()
            .filter_map(|found| {
                let assertion = assertions.get(found.index)?;
                let status = match found.verdict.status {
                    Status::Error => "error",
                    other => other.word(),
                };
                Some(
                    Json::object()
                        .with("assertion_id", assertion.assertion_id.as_str())
                        .with("type", assertion.kind.as_str())
                        .with("spec", assertion.spec.map_or(Json::Null, |spec| as_json(spec.get())))
                        .with("status", status)
                        .with("score", format!("{}", found.verdict.score))
                        .with("explanation", drop_partial_words(&found.verdict.explanation)),
                )
            })
            .collect();
        let not_run: Vec<Json> = batch
            .not_run
            .iter()
            .filter_map(|index| Some(Json::from(assertions.get(*index)?.assertion_id.as_str())))
            .collect();
        let mut data =
            Json::object().with("trace_id", trace.head.trace_id.as_str()).with("verdicts", verdicts);
        if !not_run.is_empty() {
            data.push("not_run", not_run);
        }
        if simulated {
            data.push("simulated", true);
        }
        if let Some(raw) = raw {
            data.push("trace", as_json(raw.get()));
        }
        target.record(&trace.head.agent_id, trace.head.trace_id.trim(), "verdicts", data)
    }

    /// Records a plugin's result.
    pub fn plugin(&self, accepted: &AcceptedResult) -> Result<(), RecordError> {
        let Some(target) = &self.target else { return Ok(()) };
        let data = Json::object()
            .with("trace_id", accepted.trace_id.as_str())
            .with("assertion_id", accepted.assertion_id.as_str())
            .with("plugin", accepted.plugin.as_str())
            .with("status", accepted.status)
            .with("score", format!("{}", accepted.score))
            .with("explanation", accepted.explanation.as_str());
        target.record(&accepted.agent, &accepted.trace_id, "plugin_verdict", data)
    }
}

/// Parses JSON of a client; text that our parser rejects (duplicate names, too deep) is recorded as a string.
fn as_json(text: &str) -> Json {
    Json::parse(text.as_bytes()).unwrap_or_else(|_| Json::from(unescape_strings(text)))
}

/// Replaces the escape sequences of JSON strings by their characters, so that redaction also finds secrets that are written with escapes.
fn unescape_strings(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, from)) = rest.find('"').and_then(|at| rest.split_at_checked(at)) {
        out.push_str(before);
        let mut strings = serde_json::Deserializer::from_str(from).into_iter::<String>();
        let Some(Ok(string)) = strings.next() else {
            // It is JSON, so each quote outside a string begins one.
            rest = from;
            break;
        };
        out.push('"');
        out.push_str(&string);
        out.push('"');
        rest = from.get(strings.byte_offset()..).unwrap_or_default();
    }
    out.push_str(rest);
    out
}

impl Target {
    fn record(&self, agent: &str, session: &str, code: &str, data: Json) -> Result<(), RecordError> {
        let settings = &self.settings;
        let agent = if agent.is_empty() { &settings.agent } else { agent };
        let mut access = self.access.lock().map_err(|_| RecordError::Unreachable)?;
        if let Access::Relay(relay) = &mut *access {
            let command = Json::object()
                .with("op", "observe")
                .with("agent", agent)
                .with("as", settings.agent.as_str())
                .with("team", self.caller.team.as_str())
                .with("org", self.caller.org.as_str())
                .with("session", session)
                .with("door", "attest")
                .with("code", code)
                .with("data", data.clone());
            if relay.command(&command).is_ok() {
                return Ok(());
            }
            // The owner may have ended: another process owns the directory now, or this one becomes the owner.
            *access = (self.reopen)()?;
            if let Access::Relay(relay) = &mut *access {
                relay.command(&command)?;
                return Ok(());
            }
        }
        match &*access {
            Access::Owner(engine) => {
                let report = Report::Observation {
                    code: code.to_owned(),
                    data,
                    alarms: Vec::new(),
                    spent: Spent::default(),
                };
                engine.report(&self.caller, agent, session, "attest", report)?;
                Ok(())
            }
            Access::Relay(_) => Err(RecordError::NotAnswering),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_our_reader_refuses_is_kept_as_what_it_says() {
        assert_eq!(as_json(r#"{"a":"\u0041"}"#), Json::object().with("a", "A"));
        let twice = r#"{"a":1,"a":{"k\u0041":"\u0041\n\"x\\"},"b":[]}"#;
        assert_eq!(as_json(twice), Json::from("{\"a\":1,\"a\":{\"kA\":\"A\n\"x\\\"},\"b\":[]}"));
        assert_eq!(unescape_strings("no strings"), "no strings");
        assert_eq!(unescape_strings(r#"{"torn"#), r#"{"torn"#);
    }
}
