//! The relay's side of a connection to the owner: lines out, answers in, each within a time limit.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use proctor_core::digest::Digest;
use proctor_core::json::Json;
use proctor_engine::Answer;
use proctor_engine::access::{Relay, is_timeout};
use proctor_net::lines::Line;

use crate::with_reference;

/// Time beyond an answer's limit in which the owner's own deny for lack of time may arrive.
const PATIENCE: Duration = Duration::from_millis(300);

/// The shortest wait for an answer, however little of its time is left.
const SHORTEST_WAIT: Duration = Duration::from_millis(20);

/// Beginning of a line that stands for one over the limit, with its length. No line of a caller that begins so is well-formed.
const OVERLONG: &str = "!overlong ";

/// The length that such a line stands for.
pub(crate) fn overlong(line: &[u8]) -> Option<u64> {
    std::str::from_utf8(line).ok()?.strip_prefix(OVERLONG)?.parse().ok()
}

/// A connection to the owner that several answers are expected on.
pub(crate) struct Connection {
    stream: Mutex<UnixStream>,
    answers: Mutex<BufReader<UnixStream>>,
    broken: AtomicBool,
    /// The owner is told which answers arrived: those that are read later do not count.
    closed: AtomicBool,
    id: String,
    /// The number of answers that arrived.
    arrived: AtomicU64,
    limit: Duration,
}

/// Cause for which the relay answers deny by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Missing {
    #[error("the owner of the state directory did not answer within {} ms", .0.as_millis())]
    Timeout(Duration),
    #[error("the owner of the state directory is gone")]
    Gone,
}

impl Connection {
    pub(crate) fn new(relay: Relay, answer: Duration) -> io::Result<Connection> {
        let limit = answer.saturating_add(PATIENCE);
        // An owner that does not read must not hold the relay for longer than one that does not answer.
        relay.stream.set_write_timeout(Some(limit))?;
        Ok(Connection {
            stream: Mutex::new(relay.stream),
            answers: Mutex::new(relay.answers),
            broken: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            id: relay.connection,
            arrived: AtomicU64::new(0),
            limit,
        })
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.broken.load(Ordering::SeqCst)
    }

    /// Ends the connection. Returns its name and the number of answers that arrived on it; no more are taken.
    pub(crate) fn abandon(&self) -> (String, u64) {
        let _answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        self.closed.store(true, Ordering::SeqCst);
        (self.id.clone(), self.arrived.load(Ordering::SeqCst))
    }

    /// Sends a line.
    pub(crate) fn send(&self, line: &Line) -> Result<(), Missing> {
        let mut stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
        let sent = match line {
            Line::Text(line) => stream.write_all(line).and_then(|()| stream.write_all(b"\n")),
            Line::TooLong(length) => stream.write_all(format!("{OVERLONG}{length}\n").as_bytes()),
        };
        match sent {
            Ok(()) if !self.is_broken() => Ok(()),
            Ok(()) => Err(Missing::Gone),
            Err(error) => {
                self.broken.store(true, Ordering::SeqCst);
                // Bytes that have arrived can still be read; then reading ends.
                let _ = stream.shutdown(std::net::Shutdown::Both);
                Err(if is_timeout(&error) { Missing::Timeout(self.limit) } else { Missing::Gone })
            }
        }
    }

    /// Waits for the next answer, for its time limit less what was `spent` on its line before it was sent. A late one must not be taken for that of another action: after an error there are no more.
    pub(crate) fn receive(&self, spent: Duration) -> Result<String, Missing> {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        if self.closed.load(Ordering::SeqCst) {
            return Err(Missing::Gone);
        }
        let until = Instant::now() + self.limit.saturating_sub(spent);
        let mut line = Vec::new();
        let missing = match read_line(&mut answers, &mut line, until) {
            Ok(()) => match String::from_utf8(line) {
                Ok(line) => {
                    self.arrived.fetch_add(1, Ordering::SeqCst);
                    return Ok(line);
                }
                Err(_) => Missing::Gone,
            },
            Err(error) if is_timeout(&error) && !self.is_broken() => Missing::Timeout(self.limit),
            Err(_) => Missing::Gone,
        };
        self.broken.store(true, Ordering::SeqCst);
        let _ = answers.get_ref().shutdown(std::net::Shutdown::Both);
        Err(missing)
    }
}

/// Reads a line without its end. One limit holds for all of it, however many pieces it comes in.
fn read_line(answers: &mut BufReader<UnixStream>, line: &mut Vec<u8>, until: Instant) -> io::Result<()> {
    loop {
        // An answer that has arrived already is taken even if the time is over.
        let left = until.saturating_duration_since(Instant::now()).max(SHORTEST_WAIT);
        answers.get_ref().set_read_timeout(Some(left))?;
        let arrived = match answers.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            arrived => arrived?,
        };
        if arrived.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let (part, used, is_complete) = match arrived.iter().position(|byte| *byte == b'\n') {
            Some(end) => (arrived.get(..end).unwrap_or_default(), end + 1, true),
            None => (arrived, arrived.len(), false),
        };
        line.extend_from_slice(part);
        answers.consume(used);
        if is_complete {
            return Ok(());
        }
        if until <= Instant::now() {
            return Err(io::ErrorKind::TimedOut.into());
        }
    }
}

/// A deny that no record stands behind.
pub(crate) fn denied(reason: &str, reference: Option<Json>) -> String {
    let reason = format!("not recorded: {reason}");
    let answer = Answer::unrecorded_deny("not-recorded", reason, Digest::from_bytes([0; 32])).to_json();
    with_reference(answer, reference).to_string()
}
