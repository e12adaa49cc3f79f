//! Records for people: which ones, and how they look.

use proctor_core::id::SessionId;
use proctor_core::json::Json;
use proctor_core::record::{Envelope, RecordKind};
use proctor_core::time::Timestamp;
use proctor_ledger::Reader;
use proctor_ledger::reader::{BodyState, Record};
use proctor_ledger::store::Filter;

use super::Context;
use crate::access::{Access, COMMAND};
use crate::cli::FilterArgs;
use crate::failure::Failure;
use crate::output;
use proctor_engine::owner;
use proctor_engine::state_dir::StateDir;

/// The owner of the state directory, for commands that write: this process, or the one that it talks to.
pub struct Owner {
    access: Access,
    state: StateDir,
}

impl Owner {
    /// Becomes the owner of a ledger that is there, or connects to its owner. None is made: an order to a ledger that nobody uses would stop
    /// nothing.
    pub fn open(context: &Context) -> Result<Owner, Failure> {
        drop(proctor_engine::access::open_reader(&context.config.engine.state)?);
        Owner::open_or_make(context)
    }

    /// [`Owner::open`], which creates a ledger if there is none.
    pub fn open_or_make(context: &Context) -> Result<Owner, Failure> {
        let access = Access::open(&context.config, COMMAND)?;
        Ok(Owner { access, state: StateDir::new(&context.config.engine.state) })
    }

    /// Carries out a command.
    pub fn command(&mut self, command: &Json) -> Result<Json, Failure> {
        match &mut self.access {
            Access::Relay(relay) => Ok(relay.command(command)?),
            // The gate's own command: the engine knows no door.
            Access::Owner(own) if output::member(command, "op") == "check" => {
                Ok(proctor_door_gate::check(&own.engine, command))
            }
            Access::Owner(own) => Ok(owner::run(command, &self.state, &own.engine)?),
        }
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        if let Access::Owner(crate::access::Owner { engine, .. }) = &self.access {
            engine.finish();
        }
    }
}

/// Carries out a single command.
pub fn command(context: &Context, command: &Json) -> Result<Json, Failure> {
    Owner::open(context)?.command(command)
}

/// The filter that the arguments describe.
pub fn filter(reader: &Reader, arguments: &FilterArgs) -> Result<Filter, Failure> {
    let moment = |text: &Option<String>| match text {
        None => Ok(None),
        Some(text) => Timestamp::parse(text).map(Some).ok_or_else(|| {
            Failure::from(format!("`{text}` is not a moment: write it like 2026-11-15T20:45:00Z"))
        }),
    };
    let kinds = match &arguments.kind {
        None => Vec::new(),
        Some(word) => vec![word.parse::<RecordKind>().map_err(|()| {
            let known = RecordKind::ALL.map(RecordKind::word);
            match proctor_core::nearest(word, &known) {
                Some(near) => Failure::from(format!("unknown kind `{word}`; did you mean `{near}`?")),
                None => Failure::from(format!("unknown kind `{word}`; known are {}", known.join(", "))),
            }
        })?],
    };
    let session = match &arguments.session {
        None => None,
        Some(text) => Some(proctor_engine::traces::find_session(reader, text)?),
    };
    let seqs = (arguments.from.is_some() || arguments.to.is_some())
        .then(|| arguments.from.unwrap_or(0)..arguments.to.unwrap_or(u64::MAX));
    Ok(Filter {
        seqs,
        session,
        principal: arguments.principal.clone(),
        agent: arguments.of_agent.clone(),
        kinds,
        approval: None,
        since: moment(&arguments.since)?,
        until: moment(&arguments.until)?,
    })
}

/// The sequence that a text names: a sequence, or a record's id.
pub fn sequence(reader: &Reader, text: &str) -> Result<u64, Failure> {
    if let Ok(sequence) = text.parse::<u64>() {
        return Ok(sequence);
    }
    let id = text
        .parse()
        .map_err(|_| Failure::from(format!("`{text}` is neither a sequence nor a record's id")))?;
    let found = reader.by_id(&id).map_err(|error| Failure::from(error.to_string()))?;
    found.ok_or_else(|| Failure::from(format!("there is no record with the id {id}")))
}

/// The record as JSON: the envelope as it is proven, with its sequence; and its body.
pub fn record_json(reader: &Reader, record: &Record, with_body: bool) -> Json {
    let mut out = Json::object().with("seq", record.seq);
    if let Ok(Json::Object(members)) = Json::parse(&record.leaf) {
        for (name, member) in members {
            match name.as_str() {
                // The body's own member is its content; the digest stands beside it.
                "body" => out.push("body_digest", member),
                _ => out.push(&name, member),
            }
        }
    }
    if with_body {
        match reader.body(record.seq) {
            Ok(BodyState::Present { bytes, .. }) => match Json::parse(&bytes) {
                Ok(body) => out.push("body", body),
                Err(_) => out.push("body", String::from_utf8_lossy(&bytes).into_owned()),
            },
            Ok(BodyState::Erased) => out.push("erased", true),
            Ok(BodyState::None) | Err(_) => {}
        }
    }
    out
}

/// One line about a record. Columns have a fixed width: how many lines follow is not known.
pub fn line(record: &Record) -> String {
    let session = session_text(record.envelope.session);
    format!("{}  {session:<36}  {}", start(record), summary(&record.envelope))
}

/// The same without the session.
pub fn line_of_session(record: &Record) -> String {
    format!("{}  {}", start(record), summary(&record.envelope))
}

fn start(record: &Record) -> String {
    let envelope = &record.envelope;
    let time = output::dim(&clock_time(envelope.time));
    format!("{:>8}  {time}  {:<11}", record.seq, envelope.kind.word())
}

fn summary(envelope: &Envelope) -> String {
    let shown = |text: &str| output::shown(text, 80);
    match envelope.kind {
        RecordKind::Decision => {
            let effect = envelope.decision.map_or_else(String::new, output::effect);
            let name = if envelope.name.is_empty() { &envelope.tool } else { &envelope.name };
            format!("{effect} {}  {}", shown(name), output::dim(&shown(&envelope.rule)))
        }
        RecordKind::Approval => {
            let id = envelope.approval.map_or_else(String::new, |id| id.to_string());
            format!("{} {id} by {}", shown(&envelope.code), shown(&envelope.principal))
        }
        RecordKind::Policy => {
            let digest = envelope.policy.map_or_else(String::new, |digest| digest.to_string());
            format!("{} {digest}", shown(&envelope.code))
        }
        RecordKind::Erasure
        | RecordKind::Retracted
        | RecordKind::Outcome
        | RecordKind::Settlement
        | RecordKind::Alarm => {
            let what = format!("{} {}", shown(&envelope.code), shown(&envelope.tool));
            match envelope.links.first() {
                Some(link) => format!("{}  {}", what.trim(), output::dim(&format!("record {link}"))),
                None => what.trim().to_owned(),
            }
        }
        RecordKind::Agent => {
            let who = if envelope.agent.is_empty() { &envelope.principal } else { &envelope.agent };
            format!("{} {}", shown(&envelope.code), shown(who)).trim().to_owned()
        }
        RecordKind::Run => format!("{} {}", shown(&envelope.code), shown(&envelope.name)).trim().to_owned(),
        RecordKind::Observation | RecordKind::Gap | RecordKind::Session => shown(&envelope.code),
    }
}

/// Date and time to the millisecond.
pub fn clock_time(time: Timestamp) -> String {
    let text = time.to_string();
    match text.get(..23) {
        Some(short) => short.replace('T', " "),
        None => text,
    }
}

/// A session's id in lists.
pub fn session_text(session: Option<SessionId>) -> String {
    session.map_or_else(|| "-".to_owned(), |session| session.to_string())
}
