//! The stream of `proctor gate`: lines of stdin are decided by this process or relayed to the owner, answers go to stdout in order.

use std::io::{BufRead, ErrorKind, Write};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use proctor_core::json::Json;
use proctor_core::session::Caller;
use proctor_engine::Engine;
use proctor_engine::access::Relay;
use proctor_engine::relayed::OwnDenies;
use proctor_net::lines::{self, Line, MAX_MESSAGE};

use crate::relay::{Connection, denied};
use crate::{InFlightBytes, PendingAnswer, WAITING_ANSWERS, decide_line, refuse_overlong, wait_for_answer};

/// Pause after the first failed attempt to reach an owner; it doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(200);

/// The longest such pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Time for telling an owner of denies after the last answer.
const LAST_WORD: Duration = Duration::from_secs(1);

/// Decider of a stream: this process, or the owner that it relays to.
pub enum Decider {
    /// The engine of this process.
    Own(Arc<Engine>),
    /// A connection to the owner.
    Relay(Relay),
    /// Nobody: another process owns the directory and could not be reached, for this reason. Lines are denied until it can be.
    Unreached(String),
}

/// End of a stream.
#[derive(Debug, PartialEq, Eq)]
pub enum Ending {
    /// A signal ended it.
    Signal(i32),
    /// Reading or writing failed.
    Failed(String),
    /// The input ended, or nobody reads the answers any more. The number is of denies that no record stands for.
    Input(u64),
}

/// State directory that could not be opened again, as its owner or through the owner; the reason is for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unopened(pub String);

/// A stream of lines and its answers, shared by its reader, its writer and the handler of signals.
pub struct Stream {
    caller: Caller,
    /// Time limit of an answer.
    answer: Duration,
    in_flight: InFlightBytes,
    /// The signal that ends the stream, after which nothing more is decided; 0 if none came.
    signal: AtomicI32,
    /// The first error of stdin or stdout, other than a reader that went away.
    problem: Mutex<Option<String>>,
    /// The engine, if this process owns the state directory.
    engine: Mutex<Option<Arc<Engine>>>,
    /// Denies that the next owner is told of.
    denies: Mutex<OwnDenies>,
}

enum Backend {
    Own(Arc<Engine>),
    Relay(Arc<Connection>),
    Unreached,
}

enum Ticket {
    Own(Arc<Engine>, Box<PendingAnswer>),
    /// A line that was sent, and the time that finding an owner for it took.
    Relayed(Arc<Connection>, Option<Json>, Duration),
    Denied(String, Option<Json>),
}

/// The search for an owner after the last one broke off.
#[derive(Default)]
struct Search {
    not_before: Option<Instant>,
    pause: Duration,
    problem: String,
    /// Time that the search for the present owner took; the next line's limit includes it.
    spent: Duration,
}

impl Stream {
    /// A stream of a caller, each of whose lines is answered within `answer`.
    pub fn new(caller: Caller, answer: Duration) -> Stream {
        Stream {
            caller,
            answer,
            in_flight: InFlightBytes::default(),
            signal: AtomicI32::new(0),
            problem: Mutex::default(),
            engine: Mutex::default(),
            denies: Mutex::default(),
        }
    }

    /// Serves the stream until its end. `first` was found in the time `spent`, which the first answer's limit includes. `open` finds an
    /// owner again when one broke off, at most until the moment given.
    pub fn serve(
        &self,
        (first, spent): (Decider, Duration),
        open: impl Fn(Instant, &OwnDenies) -> Result<Decider, Unopened>,
        input: impl BufRead,
        output: impl Write + Send,
    ) -> Ending {
        let (sender, receiver) = sync_channel(WAITING_ANSWERS);
        std::thread::scope(|scope| {
            scope.spawn(move || {
                self.write_answers(&receiver, output);
                // Both tell the reader that nobody answers any more.
                drop(receiver);
                self.in_flight.release_all();
            });
            let mut search = Search { spent, ..Search::default() };
            if let Decider::Unreached(problem) = &first {
                search.failed(problem.clone());
            }
            match self.backend(first) {
                Ok(backend) => self.read_lines(backend, search, &open, input, &sender),
                Err(error) => self.failed("owner", &error),
            }
            drop(sender);
        });
        let untold = self.tell_of_denies(&open);
        let unrecorded = self.drain();
        let signal = self.signal.load(Ordering::SeqCst);
        if signal != 0 {
            return Ending::Signal(signal);
        }
        match self.problem.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(problem) => Ending::Failed(problem),
            None => Ending::Input(untold + unrecorded),
        }
    }

    /// Ends the stream for a signal: no further line is decided, decided ones are recorded and answered.
    pub fn stop(&self, signal: i32) {
        self.signal.store(signal, Ordering::SeqCst);
        self.in_flight.wait_until_empty(self.answer.min(Duration::from_secs(5)));
        self.drain();
    }

    fn is_stopped(&self) -> bool {
        self.signal.load(Ordering::SeqCst) != 0
    }

    fn failed(&self, name: &str, error: &std::io::Error) {
        if error.kind() != ErrorKind::BrokenPipe {
            let mut problem = self.problem.lock().unwrap_or_else(PoisonError::into_inner);
            problem.get_or_insert_with(|| format!("{name}: {error}"));
        }
    }

    fn backend(&self, decider: Decider) -> std::io::Result<Backend> {
        match decider {
            Decider::Own(engine) => {
                *self.engine.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&engine));
                Ok(Backend::Own(engine))
            }
            Decider::Relay(relay) => Ok(Backend::Relay(Arc::new(Connection::new(relay, self.answer)?))),
            Decider::Unreached(_) => Ok(Backend::Unreached),
        }
    }

    /// Ends the engine of this process, if it has one; whoever comes second waits. Returns the number of denies that no record stands for.
    fn drain(&self) -> u64 {
        let engine = self.engine.lock().unwrap_or_else(PoisonError::into_inner);
        engine.as_ref().map_or(0, |engine| engine.finish())
    }

    fn read_lines(
        &self,
        mut backend: Backend,
        mut search: Search,
        open: &impl Fn(Instant, &OwnDenies) -> Result<Decider, Unopened>,
        mut input: impl BufRead,
        sender: &SyncSender<(Ticket, usize)>,
    ) {
        loop {
            let line = match lines::read(&mut input, MAX_MESSAGE) {
                Ok(Some(Line::Text(line))) if line.iter().all(u8::is_ascii_whitespace) => continue,
                Ok(Some(line)) => line,
                Ok(None) => return,
                Err(error) => return self.failed("stdin", &error),
            };
            let bytes = match &line {
                Line::Text(line) => line.len(),
                Line::TooLong(_) => 0,
            };
            self.in_flight.acquire(bytes);
            if self.is_stopped() {
                return;
            }
            if let Some(found) = self.reopen(&backend, &mut search, open) {
                backend = found;
            }
            let ticket = match &backend {
                Backend::Own(engine) => {
                    let pending = match &line {
                        Line::Text(line) => decide_line(engine, &self.caller, "gate", line),
                        Line::TooLong(length) => refuse_overlong(engine, &self.caller, "gate", *length),
                    };
                    Ticket::Own(Arc::clone(engine), Box::new(pending))
                }
                Backend::Relay(connection) => relay(connection, &line, &search),
                Backend::Unreached => Ticket::Denied(search.problem.clone(), reference(&line)),
            };
            search.spent = Duration::ZERO;
            if sender.send((ticket, bytes)).is_err() {
                return;
            }
        }
    }

    /// Searches an owner in place of one that broke off; until there is one, everything is denied.
    fn reopen(
        &self,
        backend: &Backend,
        search: &mut Search,
        open: &impl Fn(Instant, &OwnDenies) -> Result<Decider, Unopened>,
    ) -> Option<Backend> {
        let connection = match backend {
            Backend::Own(_) => return None,
            Backend::Relay(connection) if !connection.is_broken() => return None,
            Backend::Relay(connection) => Some(connection),
            Backend::Unreached => None,
        };
        let now = Instant::now();
        if search.not_before.is_some_and(|moment| now < moment) {
            return None;
        }
        let mut denies = self.denies.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(connection) = connection {
            denies.abandoned = Some(connection.abandon());
        }
        let told = denies.clone();
        drop(denies);
        let found = open(now + self.answer, &told)
            .and_then(|decider| self.backend(decider).map_err(|error| Unopened(error.to_string())));
        match found {
            Ok(backend) => {
                *search = Search { spent: now.elapsed(), ..Search::default() };
                let mut denies = self.denies.lock().unwrap_or_else(PoisonError::into_inner);
                denies.count = denies.count.saturating_sub(told.count);
                denies.abandoned = None;
                Some(backend)
            }
            Err(Unopened(problem)) => {
                if search.problem != problem {
                    log::info!("{problem}");
                }
                search.failed(problem);
                None
            }
        }
    }

    /// Tells the owner of the denies that this process answered by itself. Returns the number that nobody could be told of.
    fn tell_of_denies(&self, open: &impl Fn(Instant, &OwnDenies) -> Result<Decider, Unopened>) -> u64 {
        let denies = std::mem::take(&mut *self.denies.lock().unwrap_or_else(PoisonError::into_inner));
        if denies.is_empty() {
            return 0;
        }
        let own = self.engine.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(engine) = own {
            engine.ledger().note_unrecorded_many(denies.count);
            return 0;
        }
        // Callers that wait for this process have their answers already.
        match open(Instant::now() + self.answer.min(LAST_WORD), &denies).map(|decider| self.backend(decider))
        {
            Ok(Ok(Backend::Own(_) | Backend::Relay(_))) => 0,
            Ok(_) => denies.count,
            Err(problem) => {
                log::info!("{problem}");
                denies.count
            }
        }
    }

    fn write_answers(&self, receiver: &Receiver<(Ticket, usize)>, output: impl Write) {
        let mut output = std::io::BufWriter::new(output);
        let mut next = receiver.recv().ok();
        while let Some((ticket, bytes)) = next {
            let line = match ticket {
                Ticket::Own(engine, pending) => wait_for_answer(&engine, *pending).to_string(),
                Ticket::Relayed(connection, reference, spent) => match connection.receive(spent) {
                    Ok(line) => line,
                    Err(missing) => {
                        self.denies
                            .lock()
                            .unwrap_or_else(PoisonError::into_inner)
                            .abandoned
                            .get_or_insert_with(|| connection.abandon());
                        self.deny(&missing.to_string(), reference)
                    }
                },
                Ticket::Denied(reason, reference) => self.deny(&reason, reference),
            };
            if let Err(error) = writeln!(output, "{line}") {
                return self.failed("stdout", &error);
            }
            self.in_flight.release(bytes);
            next = match receiver.try_recv() {
                Ok(ticket) => Some(ticket),
                Err(_) => {
                    if let Err(error) = output.flush() {
                        return self.failed("stdout", &error);
                    }
                    receiver.recv().ok()
                }
            };
        }
        if let Err(error) = output.flush() {
            self.failed("stdout", &error);
        }
    }

    /// A deny of this process's own, which the next owner is told of.
    fn deny(&self, reason: &str, reference: Option<Json>) -> String {
        self.denies.lock().unwrap_or_else(PoisonError::into_inner).count += 1;
        denied(reason, reference)
    }
}

impl Search {
    /// Notes a failed attempt; the next one follows after a pause.
    fn failed(&mut self, problem: String) {
        self.pause = (self.pause * 2).clamp(FIRST_PAUSE, LONGEST_PAUSE);
        self.not_before = Some(Instant::now() + self.pause);
        self.problem = problem;
    }
}

fn relay(connection: &Arc<Connection>, line: &Line, search: &Search) -> Ticket {
    let reference = reference(line);
    if connection.is_broken() && !search.problem.is_empty() {
        return Ticket::Denied(search.problem.clone(), reference);
    }
    match connection.send(line) {
        Ok(()) => Ticket::Relayed(Arc::clone(connection), reference, search.spent),
        Err(missing) => Ticket::Denied(missing.to_string(), reference),
    }
}

/// A line's `ref`. Only needed if the owner does not answer; but then the line is gone.
fn reference(line: &Line) -> Option<Json> {
    match line {
        Line::Text(line) => Json::parse(line).ok().and_then(|line| line.get("ref").cloned()),
        Line::TooLong(_) => None,
    }
}
