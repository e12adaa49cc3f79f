//! `proctor gate`: actions in on stdin, recorded decisions out on stdout.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use proctor_core::digest::Digest;
use proctor_core::json::Json;
use proctor_core::session::Caller;
use proctor_net::lines::{self, Line, MAX_MESSAGE};

use super::Context;
use crate::access::{Access, GATE, Owner};
use crate::failure::{Failure, OK, Outcome};
use proctor_door_gate::InFlightBytes;
use proctor_door_gate::PendingAnswer;
use proctor_engine::access::{Relay, local_caller};
use proctor_engine::policy_watch;
use proctor_engine::{Answer, Engine};

/// Answers that may wait to be written.
const WAITING_ANSWERS: usize = 1024;

pub(super) fn run(context: &Context) -> Outcome {
    let config = &context.config;
    let caller = local_caller(
        rustix::process::getuid().as_raw(),
        &config.engine.agent,
        &config.engine.team,
        &config.engine.org,
    );
    let access = open(context)?;
    let engine: Arc<Mutex<Option<Arc<Engine>>>> = Arc::default();
    if let Backend::Own(own) = &access {
        remember(&engine, own);
    }
    let stream = Arc::new(Stream::default());
    stop_on_signals(&engine, &stream, config.engine.answer)
        .map_err(|error| Failure::from(error.to_string()))?;
    let (sender, receiver) = sync_channel(WAITING_ANSWERS);
    std::thread::scope(|scope| {
        let stream = &stream;
        scope.spawn(move || {
            write_answers(&receiver, stream);
            // Both tell the reader that nobody answers any more.
            drop(receiver);
            stream.in_flight.release_all();
        });
        read_lines(context, &caller, access, &engine, &sender, stream);
        drop(sender);
    });
    drain(&engine);
    Ok(OK)
}

/// State shared by the reader and the writer of the stream.
#[derive(Default)]
struct Stream {
    in_flight: InFlightBytes,
    /// The program is about to end: nothing more is decided.
    stopping: AtomicBool,
}

/// Decider: this process, or the owner that it relays to.
enum Backend {
    Own(Arc<Engine>),
    Relay(Arc<Connection>),
}

/// A connection to the owner that several answers are expected on.
struct Connection {
    stream: Mutex<UnixStream>,
    answers: Mutex<BufReader<UnixStream>>,
    broken: AtomicBool,
}

enum Ticket {
    Own(Arc<Engine>, Box<PendingAnswer>),
    Relayed(Arc<Connection>, Option<Json>),
    Ready(String),
}

fn open(context: &Context) -> Result<Backend, Failure> {
    match Access::open(&context.config, GATE)? {
        Access::Owner(Owner { engine, .. }) => {
            for weakening in engine.policy().weakenings() {
                log::info!("weaker than closed: {weakening}");
            }
            if let Some(path) = &context.config.engine.policy {
                policy_watch::start(path, &engine, crate::allocator::give_back);
            }
            Ok(Backend::Own(engine))
        }
        Access::Relay(Relay { stream, answers }) => {
            log::info!("another process owns the state directory: relaying to it, its policy decides");
            // The owner answers within its own time; one that does not is as good as gone.
            let most = context.config.engine.answer + std::time::Duration::from_secs(2);
            answers.get_ref().set_read_timeout(Some(most)).map_err(|error| error.to_string())?;
            Ok(Backend::Relay(Arc::new(Connection {
                stream: Mutex::new(stream),
                answers: Mutex::new(answers),
                broken: AtomicBool::new(false),
            })))
        }
    }
}

fn read_lines(
    context: &Context,
    caller: &Caller,
    mut backend: Backend,
    engine: &Arc<Mutex<Option<Arc<Engine>>>>,
    sender: &SyncSender<(Ticket, usize)>,
    stream: &Stream,
) {
    let mut input = std::io::stdin().lock();
    loop {
        let line = match lines::read(&mut input, MAX_MESSAGE) {
            Ok(Some(Line::Text(line))) if line.iter().all(u8::is_ascii_whitespace) => continue,
            Ok(Some(line)) => line,
            Ok(None) => return,
            Err(error) => {
                log::info!("reading stdin ended: {error}");
                return;
            }
        };
        let bytes = match &line {
            Line::Text(line) => line.len(),
            Line::TooLong(_) => 0,
        };
        stream.in_flight.acquire(bytes);
        if stream.stopping.load(Ordering::SeqCst) {
            return;
        }
        if let Backend::Relay(connection) = &backend
            && connection.broken.load(Ordering::SeqCst)
        {
            // The owner died: until somebody owns the directory again, everything is denied.
            match open(context) {
                Ok(reopened) => {
                    if let Backend::Own(own) = &reopened {
                        remember(engine, own);
                    }
                    backend = reopened;
                }
                Err(failure) => log::info!("{}", failure.lines.join("; ")),
            }
        }
        let ticket = match &backend {
            Backend::Own(own) => Ticket::Own(Arc::clone(own), Box::new(own_due(own, caller, &line))),
            Backend::Relay(connection) => relay(connection, &line),
        };
        if sender.send((ticket, bytes)).is_err() {
            return;
        }
    }
}

fn own_due(engine: &Engine, caller: &Caller, line: &Line) -> PendingAnswer {
    match line {
        Line::Text(line) => proctor_door_gate::decide_line(engine, caller, "gate", line),
        Line::TooLong(length) => {
            let reason = format!("a line of {length} bytes is over the limit of {MAX_MESSAGE}");
            PendingAnswer::Ready(engine.refuse_malformed(caller, "gate", &reason).to_json())
        }
    }
}

fn relay(connection: &Arc<Connection>, line: &Line) -> Ticket {
    let Line::Text(line) = line else {
        return Ticket::Ready(denied(&format!("a line over the limit of {MAX_MESSAGE} bytes"), None));
    };
    // Only needed if the owner does not answer; but then the line is gone.
    let reference = Json::parse(line).ok().and_then(|line| line.get("ref").cloned());
    let mut stream = connection.stream.lock().unwrap_or_else(PoisonError::into_inner);
    let sent = stream.write_all(line).and_then(|()| stream.write_all(b"\n"));
    match sent {
        Ok(()) if !connection.broken.load(Ordering::SeqCst) => {
            Ticket::Relayed(Arc::clone(connection), reference)
        }
        _ => {
            connection.broken.store(true, Ordering::SeqCst);
            Ticket::Ready(denied("the owner of the state directory is gone", reference))
        }
    }
}

/// A deny that no record stands behind.
fn denied(reason: &str, reference: Option<Json>) -> String {
    let reason = format!("not recorded: {reason}");
    let answer = Answer::unrecorded_deny("not-recorded", reason, Digest::from_bytes([0; 32])).to_json();
    proctor_door_gate::with_reference(answer, reference).to_string()
}

fn write_answers(receiver: &Receiver<(Ticket, usize)>, stream: &Stream) {
    let mut output = std::io::BufWriter::new(std::io::stdout().lock());
    let mut next = receiver.recv().ok();
    while let Some((ticket, bytes)) = next {
        let line = match ticket {
            Ticket::Own(engine, due) => proctor_door_gate::wait_for_answer(&engine, *due).to_string(),
            Ticket::Relayed(connection, reference) => relayed_answer(&connection, reference),
            Ticket::Ready(line) => line,
        };
        if writeln!(output, "{line}").is_err() {
            return;
        }
        stream.in_flight.release(bytes);
        next = match receiver.try_recv() {
            Ok(ticket) => Some(ticket),
            Err(_) => {
                if output.flush().is_err() {
                    return;
                }
                receiver.recv().ok()
            }
        };
    }
    let _ = output.flush();
}

fn relayed_answer(connection: &Connection, reference: Option<Json>) -> String {
    let mut answers = connection.answers.lock().unwrap_or_else(PoisonError::into_inner);
    let mut line = String::new();
    if !connection.broken.load(Ordering::SeqCst)
        && matches!(answers.read_line(&mut line), Ok(length) if length > 0 && line.ends_with('\n'))
    {
        return line.trim_end().to_owned();
    }
    // A late answer must not be taken for that of another action: the connection is of no use any more.
    connection.broken.store(true, Ordering::SeqCst);
    let _ = answers.get_ref().shutdown(std::net::Shutdown::Both);
    denied("the owner of the state directory does not answer", reference)
}

fn remember(engine: &Mutex<Option<Arc<Engine>>>, own: &Arc<Engine>) {
    *engine.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(own));
}

fn drain(engine: &Mutex<Option<Arc<Engine>>>) {
    let own = engine.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(own) = own {
        own.finish();
    }
}

/// Handler of SIGINT and SIGTERM: no further line is decided, decided ones are recorded and answered, then the process ends with 130 or
/// 143.
fn stop_on_signals(
    engine: &Arc<Mutex<Option<Arc<Engine>>>>,
    stream: &Arc<Stream>,
    answer: std::time::Duration,
) -> std::io::Result<()> {
    use signal_hook::consts::{SIGINT, SIGTERM};
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM])?;
    let (engine, stream) = (Arc::clone(engine), Arc::clone(stream));
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            if let Some(signal) = signals.forever().next() {
                stream.stopping.store(true, Ordering::SeqCst);
                stream.in_flight.wait_until_empty(answer.min(std::time::Duration::from_secs(5)));
                drain(&engine);
                crate::logging::flush();
                std::process::exit(128 + signal);
            }
        })
        .map(|_| ())
}
