//! The gate's door: one JSON message a line in, one answer a line out, in order. Standard input and the owner's socket both come here.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use proctor_core::action::Action;
use proctor_core::json::Json;
use proctor_core::session::Caller;
use proctor_net::lines::{self, Line, MAX_MESSAGE};
use rust_decimal::Decimal;

use proctor_engine::access::local_caller;
use proctor_engine::in_flight::Room;
use proctor_engine::owner::RelayedDoor;
use proctor_engine::{Ending, Engine, Outcome, Proposal, Report, Spent, Undelivered};

/// Answers that may wait to be written; when they do not get away, reading stops.
const WAITING_ANSWERS: usize = 1024;

/// An answer that is due.
pub enum Due {
    /// Once it is on record.
    Decision(Box<Undelivered>, Option<Json>),
    /// Now.
    Ready(Json),
}

/// Serves one stream of lines until it ends. Gives the number of answers written.
pub fn serve(
    engine: &Arc<Engine>,
    caller: &Caller,
    door: &str,
    input: impl BufRead,
    output: impl Write + Send,
) -> u64 {
    let (sender, receiver) = sync_channel::<(Due, usize)>(WAITING_ANSWERS);
    let room = Room::default();
    std::thread::scope(|scope| {
        let room = &room;
        let writer = scope.spawn(move || {
            let written = write_answers(engine, &receiver, output, room);
            // Both tell the reader that nobody answers any more.
            drop(receiver);
            room.open_wide();
            written
        });
        read_lines(engine, caller, door, input, &sender, room);
        drop(sender);
        writer.join().unwrap_or(0)
    })
}

fn read_lines(
    engine: &Engine,
    caller: &Caller,
    door: &str,
    mut input: impl BufRead,
    sender: &SyncSender<(Due, usize)>,
    room: &Room,
) {
    loop {
        let mut bytes = 0;
        let due = match lines::read(&mut input, MAX_MESSAGE) {
            Ok(Some(Line::Text(line))) if line.iter().all(u8::is_ascii_whitespace) => continue,
            Ok(Some(Line::Text(line))) => {
                bytes = line.len();
                room.take(bytes);
                take(engine, caller, door, &line)
            }
            Ok(Some(Line::TooLong(length))) => {
                let reason = format!("a line of {length} bytes is over the limit of {MAX_MESSAGE}");
                Due::Ready(engine.refuse_malformed(caller, door, &reason).to_json())
            }
            Ok(None) => return,
            Err(error) => {
                log::warn!("reading ended: {error}");
                return;
            }
        };
        // The writer is gone when nobody reads the answers any more: then nothing more is decided.
        if sender.send((due, bytes)).is_err() {
            return;
        }
    }
}

fn write_answers(engine: &Engine, receiver: &Receiver<(Due, usize)>, output: impl Write, room: &Room) -> u64 {
    let mut output = std::io::BufWriter::new(output);
    let mut written = 0;
    let mut next = receiver.recv().ok();
    while let Some((due, bytes)) = next {
        let line = finish(engine, due);
        if writeln!(output, "{line}").is_err() {
            return written;
        }
        room.give_back(bytes);
        written += 1;
        next = match receiver.try_recv() {
            Ok(due) => Some(due),
            // Nothing else is due: the reader of answers must not wait for the next one.
            Err(_) => {
                if output.flush().is_err() {
                    return written;
                }
                receiver.recv().ok()
            }
        };
    }
    let _ = output.flush();
    written
}

/// The gate as the owner serves it to relays.
pub struct RelayedGate(pub Arc<Engine>);

impl RelayedDoor for RelayedGate {
    fn mode(&self) -> &'static str {
        "gate"
    }

    fn serve(&self, caller: Caller, input: BufReader<UnixStream>, output: UnixStream) {
        serve(&self.0, &caller, "gate", input, output);
    }

    fn command(&self, name: &str, command: &Json) -> Option<Json> {
        (name == "check").then(|| check(&self.0, command))
    }
}

/// Decides the single action of a `check` command, as the local user.
pub fn check(engine: &Engine, command: &Json) -> Json {
    let text = |name: &str| command.get(name).and_then(Json::as_str).unwrap_or_default();
    let uid = rustix::process::getuid().as_raw();
    let caller = local_caller(uid, text("agent"), text("team"), text("org"));
    finish(engine, take(engine, &caller, "check", text("line").as_bytes()))
}

/// Waits for what is due.
pub fn finish(engine: &Engine, due: Due) -> Json {
    match due {
        Due::Ready(answer) => answer,
        Due::Decision(undelivered, reference) => {
            let answer = engine.deliver(*undelivered).to_json();
            with_reference(answer, reference)
        }
    }
}

/// Reads one message and takes the decision on it.
pub fn take(engine: &Engine, caller: &Caller, door: &str, line: &[u8]) -> Due {
    match read_message(line, door) {
        Ok(message) => match message.content {
            Content::Action(action) => {
                let proposal = Proposal {
                    action: *action,
                    caller: caller.clone(),
                    agent: message.agent,
                    session: message.session,
                };
                Due::Decision(Box::new(engine.submit(proposal)), message.reference)
            }
            Content::Report(report) => {
                let answer = match engine.report(caller, &message.agent, &message.session, door, report) {
                    Ok(receipt) => Json::object().with("recorded", true).with("seq", receipt.seq()),
                    Err(problem) => Json::object().with("recorded", false).with("error", problem.to_string()),
                };
                Due::Ready(with_reference(answer, message.reference))
            }
        },
        Err(problem) => Due::Ready(engine.refuse_malformed(caller, door, &problem).to_json()),
    }
}

/// The answer with the caller's own reference in front.
pub fn with_reference(answer: Json, reference: Option<Json>) -> Json {
    match (answer, reference) {
        (Json::Object(mut members), Some(reference)) => {
            members.insert(0, ("ref".to_owned(), reference));
            Json::Object(members)
        }
        (answer, _) => answer,
    }
}

struct Message {
    agent: String,
    session: String,
    reference: Option<Json>,
    content: Content,
}

enum Content {
    Action(Box<Action>),
    Report(Report),
}

/// A message is an action with `session`, `agent` and `ref` beside its own members, or has `outcome` or `observation`.
fn read_message(line: &[u8], door: &str) -> Result<Message, String> {
    let value = Json::parse(line).map_err(|error| format!("not JSON: {error}"))?;
    let Json::Object(members) = value else { return Err("a line holds one JSON object".to_owned()) };
    let mut message = Message {
        agent: String::new(),
        session: String::new(),
        reference: None,
        content: Content::Action(Box::default()),
    };
    let mut action = Vec::new();
    let mut report = None;
    for (name, member) in members {
        match name.as_str() {
            "session" => message.session = text(&name, &member)?,
            "agent" => message.agent = text(&name, &member)?,
            "ref" => message.reference = Some(member),
            "door" => return Err("`door` is not for the caller to say".to_owned()),
            "outcome" => report = Some(read_outcome(&member)?),
            "observation" => report = Some(read_observation(&member)?),
            _ => action.push((name, member)),
        }
    }
    message.content = match report {
        Some(_) if !action.is_empty() => {
            return Err("an action cannot be sent together with `outcome` or `observation`".to_owned());
        }
        Some(report) => Content::Report(report),
        None => {
            let mut action = Action::from_json(&Json::Object(action)).map_err(|problems| {
                problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
            })?;
            door.clone_into(&mut action.door);
            Content::Action(Box::new(action))
        }
    };
    Ok(message)
}

fn text(name: &str, value: &Json) -> Result<String, String> {
    value
        .as_str()
        .map(str::to_owned)
        .ok_or_else(|| format!("`{name}` is a string, this is {}", value.type_name()))
}

fn read_outcome(value: &Json) -> Result<Report, String> {
    known_members(value, "outcome", &["decision_id", "ok", "result", "tokens", "cost_usd"])?;
    let decision = value.get("decision_id").and_then(Json::as_str).and_then(|id| id.parse().ok());
    let amount =
        |literal: &str| Decimal::from_str_exact(literal).ok().filter(|amount| !amount.is_sign_negative());
    let cost_usd = match value.get("cost_usd") {
        None => None,
        Some(Json::Number(literal)) => Some(amount(literal).ok_or("`outcome.cost_usd` is not an amount")?),
        Some(Json::String(literal)) => Some(amount(literal).ok_or("`outcome.cost_usd` is not an amount")?),
        Some(_) => return Err("`outcome.cost_usd` is not an amount".to_owned()),
    };
    let tokens = match value.get("tokens") {
        None => None,
        Some(tokens) => Some(tokens.as_u64().ok_or("`outcome.tokens` is not a number of tokens")?),
    };
    let ok = value.get("ok").map_or(Some(true), Json::as_bool).ok_or("`outcome.ok` is true or false")?;
    Ok(Report::Outcome(Outcome {
        decision: decision.ok_or("`outcome.decision_id` is the `decision_id` of an answer")?,
        sequence: None,
        ending: if ok { Ending::Ok } else { Ending::Failed },
        result: value.get("result").cloned().unwrap_or_default(),
        tokens,
        cost_usd,
        binding: None,
    }))
}

fn read_observation(value: &Json) -> Result<Report, String> {
    known_members(value, "observation", &["code", "data"])?;
    let code =
        value.get("code").and_then(Json::as_str).ok_or("`observation.code` says what kind of thing it is")?;
    Ok(Report::Observation {
        code: code.to_owned(),
        data: value.get("data").cloned().unwrap_or_default(),
        alarms: Vec::new(),
        spent: Spent::default(),
    })
}

fn known_members(value: &Json, what: &str, known: &[&str]) -> Result<(), String> {
    let members = value.as_object().ok_or_else(|| format!("`{what}` is an object"))?;
    match members.iter().find(|(name, _)| !known.contains(&name.as_str())) {
        None => Ok(()),
        Some((name, _)) => Err(match proctor_core::nearest(name, known) {
            Some(near) => format!("unknown member `{what}.{name}`: did you mean `{near}`?"),
            None => format!("unknown member `{what}.{name}`: known are {}", known.join(", ")),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(line: &str) -> String {
        read_message(line.as_bytes(), "gate").err().unwrap()
    }

    #[test]
    fn messages_are_read_strictly() {
        let message = read_message(
            br#"{"tool":"bash","args":{"command":"ls"},"session":"s","agent":"a","ref":7}"#,
            "gate",
        )
        .unwrap();
        assert_eq!(
            (message.session.as_str(), message.agent.as_str(), message.reference),
            ("s", "a", Some(Json::from(7u8)))
        );
        let Content::Action(action) = message.content else { panic!("an action") };
        assert_eq!(action.door, "gate");
        assert!(problem("[1]").contains("one JSON object"));
        assert!(problem("{").contains("not JSON"));
        assert!(problem(r#"{"tool":"x","outcome":{"decision_id":"y"}}"#).contains("decision_id"));
        assert!(problem(r#"{"outcome":{"decison_id":"y"}}"#).contains("did you mean `decision_id`"));
        assert!(problem(r#"{"tool":1}"#).contains("expected a string"));
        assert!(problem(r#"{"observation":{"data":1}}"#).contains("code"));
    }
}
