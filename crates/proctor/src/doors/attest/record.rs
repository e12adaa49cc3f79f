//! Batches on record: with a state directory, each is one record with the redacted trace and its verdicts.

use std::sync::Mutex;

use proctor_assert::{Assertion, Status, Trace};
use proctor_core::json::Json;
use proctor_core::session::Caller;
use serde_json::value::RawValue;

use super::evaluate::Batch;
use super::plugins::AcceptedResult;
use crate::access::{Access, Mode, Owner, Relay, open_reader};
use crate::commands::session;
use crate::config::Config;
use crate::engine::{Report, Spent};
use crate::torn::without_torn_words;

/// Where batches are recorded.
pub struct Recorder {
    place: Option<Place>,
}

struct Place {
    config: Config,
    caller: Caller,
    writer: Mutex<Writer>,
}

enum Writer {
    Owner(Box<Owner>),
    Relay(Relay),
}

impl From<Access> for Writer {
    fn from(access: Access) -> Writer {
        match access {
            Access::Owner(owner) => Writer::Owner(Box::new(owner)),
            Access::Relay(relay) => Writer::Relay(relay),
        }
    }
}

impl Recorder {
    /// Nothing is recorded.
    pub const NOWHERE: Recorder = Recorder { place: None };

    /// Records go to the state directory that `config` names.
    pub fn new(config: &Config, access: Access) -> Recorder {
        let place = Place {
            config: config.clone(),
            caller: config.ahp.this_user.clone(),
            writer: Mutex::new(Writer::from(access)),
        };
        Recorder { place: Some(place) }
    }

    /// The state directory, if there is one.
    pub fn state(&self) -> Option<&std::path::Path> {
        self.place.as_ref().map(|place| place.config.state.as_path())
    }

    /// A session of the ledger as the text of a trace.
    pub fn stored_trace(&self, text: &str) -> Result<String, String> {
        let place = self.place.as_ref().ok_or("there is no state directory")?;
        let said = |failure: crate::failure::Failure| failure.lines.join("; ");
        let reader = open_reader(&place.config.state).map_err(said)?;
        let id = session::find(&reader, text).map_err(said)?;
        Ok(session::read_trace(&reader, id).map_err(said)?.to_json().to_string())
    }

    /// Records a batch.
    pub fn batch(
        &self,
        trace: &Trace<'_>,
        raw: Option<&RawValue>,
        assertions: &[Assertion<'_>],
        batch: &Batch,
        simulated: bool,
    ) -> Result<(), String> {
        let Some(place) = &self.place else { return Ok(()) };
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
                        .with("explanation", without_torn_words(&found.verdict.explanation)),
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
        place.record(&trace.head.agent_id, trace.head.trace_id.trim(), "verdicts", data)
    }

    /// Records a plugin's result.
    pub fn plugin(&self, accepted: &AcceptedResult) -> Result<(), String> {
        let Some(place) = &self.place else { return Ok(()) };
        let data = Json::object()
            .with("trace_id", accepted.trace_id.as_str())
            .with("assertion_id", accepted.assertion_id.as_str())
            .with("plugin", accepted.plugin.as_str())
            .with("status", accepted.status)
            .with("score", format!("{}", accepted.score))
            .with("explanation", accepted.explanation.as_str());
        place.record(&accepted.agent, &accepted.trace_id, "plugin_verdict", data)
    }
}

/// Other people's JSON; what our reader refuses (names twice, too deep) is kept as text.
fn as_json(text: &str) -> Json {
    Json::parse(text.as_bytes()).unwrap_or_else(|_| Json::from(without_escapes(text)))
}

/// The text with what its strings say instead of how they are written: a secret that is written in escapes is one all the same, and
/// must be found.
fn without_escapes(text: &str) -> String {
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

impl Place {
    fn record(&self, agent: &str, session: &str, code: &str, data: Json) -> Result<(), String> {
        let agent = if agent.is_empty() { &self.config.agent } else { agent };
        let mut writer = self.writer.lock().map_err(|_| "the ledger cannot be reached".to_owned())?;
        if let Writer::Relay(relay) = &mut *writer {
            let command = Json::object()
                .with("op", "observe")
                .with("agent", agent)
                .with("as", self.config.agent.as_str())
                .with("team", self.caller.team.as_str())
                .with("org", self.caller.org.as_str())
                .with("session", session)
                .with("door", "attest")
                .with("code", code)
                .with("data", data.clone());
            if relay.command(&command).is_ok() {
                return Ok(());
            }
            // The owner may have ended: somebody else is it now, or this process becomes it.
            let said = |failure: crate::failure::Failure| failure.lines.join("; ");
            *writer = Writer::from(Access::open(&self.config, Mode::Command).map_err(said)?);
            if let Writer::Relay(relay) = &mut *writer {
                return relay.command(&command).map(|_| ()).map_err(said);
            }
        }
        match &*writer {
            Writer::Owner(owner) => {
                let report = Report::Observation {
                    code: code.to_owned(),
                    data,
                    alarms: Vec::new(),
                    spent: Spent::default(),
                };
                owner.engine.report(&self.caller, agent, session, "attest", report).map(|_| ())
            }
            Writer::Relay(_) => Err("the owner does not answer".to_owned()),
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
        assert_eq!(without_escapes("no strings"), "no strings");
        assert_eq!(without_escapes(r#"{"torn"#), r#"{"torn"#);
    }
}
