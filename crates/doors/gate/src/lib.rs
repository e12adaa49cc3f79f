//! The gate: newline-delimited JSON, one message per line in, one answer per line out, in order. Serves standard input and the owner's
//! socket.

mod in_flight;
mod message;
mod relay;
mod stream;

use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use proctor_core::decision::Effect;
use proctor_core::json::Json;
use proctor_core::session::Caller;
use proctor_net::budget;
use proctor_net::lines::{self, Line, MAX_MESSAGE};

use proctor_engine::access::{TEST_RUNS, local_caller};
use proctor_engine::owner::RelayedDoor;
use proctor_engine::relayed::RelayConnection;
use proctor_engine::{Engine, Proposal, Undelivered};

pub use in_flight::InFlightBytes;
pub use message::{Content, Message, MessageError, read_message};
pub use stream::{Decider, Ending, Stream, Unopened};

/// Bound of the queue between reader and writer. A full queue stops the reader, so a client that does not read its answers is not served
/// further.
const WAITING_ANSWERS: usize = 1024;

/// Answer to one line, queued in order of arrival.
pub enum PendingAnswer {
    /// Decision that is sent once its record is committed, with the caller's `ref`.
    Decision(Box<Undelivered>, Option<Json>),
    /// Answer that needs no further commit.
    Ready(Json),
}

/// Serves one stream of lines until its end. Returns the number of answers written.
pub fn serve(
    engine: &Arc<Engine>,
    caller: &Caller,
    door: &str,
    input: impl BufRead,
    output: impl Write + Send,
) -> u64 {
    serve_for(engine, caller, door, None, input, output)
}

/// [`serve`] for a relay, whose decisions are noted with its connection.
fn serve_for(
    engine: &Arc<Engine>,
    caller: &Caller,
    door: &str,
    relay: Option<&RelayConnection>,
    input: impl BufRead,
    output: impl Write + Send,
) -> u64 {
    let (sender, receiver) = sync_channel::<(PendingAnswer, usize)>(WAITING_ANSWERS);
    let in_flight = InFlightBytes::default();
    std::thread::scope(|scope| {
        let in_flight = &in_flight;
        let writer = scope.spawn(move || {
            let written = write_answers(engine, relay, &receiver, output, in_flight);
            // Either unblocks the reader: the closed channel on its next send, the open quota while it waits for memory.
            drop(receiver);
            in_flight.release_all();
            written
        });
        read_lines(engine, caller, (door, relay), input, &sender, in_flight);
        drop(sender);
        writer.join().unwrap_or(0)
    })
}

fn read_lines(
    engine: &Engine,
    caller: &Caller,
    (door, relay): (&str, Option<&RelayConnection>),
    mut input: impl BufRead,
    sender: &SyncSender<(PendingAnswer, usize)>,
    in_flight: &InFlightBytes,
) {
    loop {
        let mut bytes = 0;
        let answer = match lines::read_within(&mut input, MAX_MESSAGE, budget::unfinished()) {
            Ok(Some(Line::Text(line))) if line.iter().all(u8::is_ascii_whitespace) => continue,
            Ok(Some(Line::Text(line))) => {
                bytes = line.len();
                in_flight.acquire(bytes);
                if relay.is_some_and(RelayConnection::is_abandoned) {
                    return;
                }
                match relay.and_then(|_| relay::overlong(&line)) {
                    Some(length) => refuse_overlong(engine, caller, door, length),
                    None => decide_within(engine, caller, door, &line, relay.and_then(|relay| relay.answer)),
                }
            }
            Ok(Some(Line::TooLong(length))) => refuse_overlong(engine, caller, door, length),
            Ok(None) => return,
            // A relay that is silent between two lines: sockets have a read timeout.
            Err(error) if error.kind() == ErrorKind::WouldBlock && (relay.is_some() || door == TEST_RUNS) => {
                continue;
            }
            Err(error) => {
                log::warn!("reading ended: {error}");
                return;
            }
        };
        // The writer is gone when nobody reads the answers any more: then nothing more is decided.
        if sender.send((answer, bytes)).is_err() {
            return;
        }
    }
}

fn write_answers(
    engine: &Engine,
    relay: Option<&RelayConnection>,
    receiver: &Receiver<(PendingAnswer, usize)>,
    output: impl Write,
    in_flight: &InFlightBytes,
) -> u64 {
    let mut output = std::io::BufWriter::new(output);
    let mut written = 0;
    let mut is_broken = false;
    let mut next = receiver.recv().ok();
    while let Some((answer, bytes)) = next {
        let (line, decided) = delivered(engine, answer);
        if let Some(relay) = relay {
            // An owner that is ending can count no deny: the relay denies by itself, and tells the next owner.
            if engine.ledger().is_closed() && line.get("recorded").and_then(Json::as_bool) == Some(false) {
                return written;
            }
            relay.sending(engine, decided);
        }
        is_broken = is_broken || writeln!(output, "{line}").is_err();
        // Decisions for a relay that is gone are still noted with its connection, so that they can be retracted when it says so.
        if is_broken && relay.is_none() {
            return written;
        }
        in_flight.release(bytes);
        written += u64::from(!is_broken);
        next = match receiver.try_recv() {
            Ok(answer) => Some(answer),
            // The queue is empty: flush, so that the client does not wait for the next answer.
            Err(_) => {
                is_broken = is_broken || output.flush().is_err();
                if is_broken && relay.is_none() {
                    return written;
                }
                receiver.recv().ok()
            }
        };
    }
    let _ = output.flush();
    written
}

/// Gate that the owner of the state directory serves to relaying processes.
pub struct RelayedGate(pub Arc<Engine>);

impl RelayedDoor for RelayedGate {
    fn mode(&self) -> &'static str {
        "gate"
    }

    fn serve(&self, caller: Caller, input: BufReader<UnixStream>, output: UnixStream) {
        serve(&self.0, &caller, "gate", input, output);
    }

    fn serve_relay(
        &self,
        connection: &RelayConnection,
        caller: Caller,
        input: BufReader<UnixStream>,
        output: UnixStream,
    ) {
        bound_reading(&input);
        serve_for(&self.0, &caller, "gate", Some(connection), input, output);
    }

    fn command(&self, name: &str, command: &Json) -> Option<Json> {
        (name == "check").then(|| check(&self.0, command))
    }
}

/// Lines of test runs that the owner of the state directory serves to a process that runs a suite.
pub struct RelayedRuns(pub Arc<Engine>);

impl RelayedDoor for RelayedRuns {
    fn mode(&self) -> &'static str {
        TEST_RUNS
    }

    fn serve(&self, caller: Caller, input: BufReader<UnixStream>, output: UnixStream) {
        bound_reading(&input);
        serve(&self.0, &caller, TEST_RUNS, input, output);
    }
}

/// Gives a relay a time to finish a line. Between lines it may be silent for as long as it likes.
fn bound_reading(input: &BufReader<UnixStream>) {
    // Fails for a duration of zero only.
    let _ = input.get_ref().set_read_timeout(Some(budget::UNFINISHED_TIME));
}

/// Decides the single action of a `check` command, as the local user.
pub fn check(engine: &Engine, command: &Json) -> Json {
    let text = |name: &str| command.get(name).and_then(Json::as_str).unwrap_or_default();
    let uid = rustix::process::getuid().as_raw();
    let caller = local_caller(uid, text("agent"), text("team"), text("org"));
    wait_for_answer(engine, decide_line(engine, &caller, "check", text("line").as_bytes()))
}

/// Blocks until the record of a pending answer is committed.
pub fn wait_for_answer(engine: &Engine, answer: PendingAnswer) -> Json {
    delivered(engine, answer).0
}

/// The answer once its record is committed, and the sequence of that record if it is a decision other than deny.
fn delivered(engine: &Engine, answer: PendingAnswer) -> (Json, Option<u64>) {
    match answer {
        PendingAnswer::Ready(answer) => (answer, None),
        PendingAnswer::Decision(undelivered, reference) => {
            let answer = engine.deliver(*undelivered);
            let decided = answer.record().filter(|_| answer.decision().effect != Effect::Deny);
            (with_reference(answer.to_json(), reference), decided.map(|(_, sequence)| sequence))
        }
    }
}

/// Records and refuses a line that is over the limit.
fn refuse_overlong(engine: &Engine, caller: &Caller, door: &str, length: u64) -> PendingAnswer {
    let reason = format!("a line of {length} bytes is over the limit of {MAX_MESSAGE}");
    PendingAnswer::Ready(engine.refuse_malformed(caller, door, &reason).to_json())
}

/// Parses one line and submits it to the engine; a malformed line is recorded and refused.
pub fn decide_line(engine: &Engine, caller: &Caller, door: &str, line: &[u8]) -> PendingAnswer {
    decide_within(engine, caller, door, line, None)
}

/// [`decide_line`] for a caller that may wait less long than others do.
fn decide_within(
    engine: &Engine,
    caller: &Caller,
    door: &str,
    line: &[u8],
    most: Option<Duration>,
) -> PendingAnswer {
    match read_message(line, door) {
        Ok(message) => match message.content {
            Content::Action(action) => {
                let proposal = Proposal {
                    action: *action,
                    caller: caller.clone(),
                    agent: message.agent,
                    session: message.session,
                };
                let undelivered = match most {
                    Some(most) => engine.submit_within(proposal, most),
                    None => engine.submit(proposal),
                };
                PendingAnswer::Decision(Box::new(undelivered), message.reference)
            }
            Content::Report(report) => {
                let answer = match engine.report(caller, &message.agent, &message.session, door, report) {
                    Ok(receipt) => Json::object().with("recorded", true).with("seq", receipt.seq()),
                    Err(problem) => Json::object().with("recorded", false).with("error", problem.to_string()),
                };
                PendingAnswer::Ready(with_reference(answer, message.reference))
            }
        },
        Err(problem) => {
            PendingAnswer::Ready(engine.refuse_malformed(caller, door, &problem.to_string()).to_json())
        }
    }
}

/// Prepends the caller's `ref` to an answer.
pub fn with_reference(answer: Json, reference: Option<Json>) -> Json {
    match (answer, reference) {
        (Json::Object(mut members), Some(reference)) => {
            members.insert(0, ("ref".to_owned(), reference));
            Json::Object(members)
        }
        (answer, _) => answer,
    }
}
