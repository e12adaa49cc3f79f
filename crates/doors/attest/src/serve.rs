//! Line protocol over a pair of streams: concurrent evaluation, with one reply for each request in the order of requests.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::sync::{Condvar, Mutex};

use memchr::memmem;
use proctor_wire::attest::MAX_LINE;
use proctor_wire::attest::rpc::{Code, Refusal, number_at_the_beginning, read, refuse, repaired};

use super::{AttestDoor, Reply};

/// Limit of worker threads beside the reading thread.
const MAX_WORKERS: usize = 16;

/// Requests longer than this go to a worker thread if another request is already buffered.
const LONG_REQUEST: usize = 64 * 1024;

/// Ready replies are written once they have more bytes than this.
const FLUSH_BYTES: usize = 64 * 1024;

/// Backpressure: reading stops while out-of-order replies have more bytes than this.
const MAX_WAITING_BYTES: usize = 16 * 1024 * 1024;

/// Serves requests until the input ends, the session is over, or the output fails; returns whether all replies were written.
pub fn serve(door: &AttestDoor, input: impl Read, output: impl Write + Send) -> bool {
    let replies = Replies::new(output);
    let mut lines = Lines::new(input);
    let mut number = 0;
    std::thread::scope(|scope| {
        loop {
            let reply = match lines.next() {
                Next::End => break,
                Next::TooLong(beginning) => {
                    Reply { lines: refuse(number_at_the_beginning(&beginning), &too_long()), last: false }
                }
                Next::Line => {
                    let line = lines.line();
                    let busy = replies.is_busy();
                    let use_worker = is_slow(line) || (line.len() > LONG_REQUEST && lines.has_more());
                    // The method is parsed only where it matters.
                    let batch = (busy || use_worker) && is_batch(line);
                    // Dynamic thresholds read the history, which must hold the results of earlier requests.
                    if busy && (!batch || memmem::find(line, b"dynamic").is_some()) {
                        replies.wait_for_all();
                    }
                    if use_worker && batch {
                        let line = line.to_vec();
                        let replies = &replies;
                        replies.begin();
                        let work = move || {
                            let reply = door.answer(&repaired(&line));
                            replies.put(number, reply.lines, true);
                            replies.end();
                        };
                        if std::thread::Builder::new().spawn_scoped(scope, work).is_ok() {
                            number += 1;
                            continue;
                        }
                        // No thread could be started: evaluate on this one.
                        replies.end();
                    }
                    let line: Cow<'_, str> = repaired(lines.line());
                    door.answer(&line)
                }
            };
            let last = reply.last;
            replies.put(number, reply.lines, last || !lines.has_more());
            number += 1;
            if last || replies.failed() {
                break;
            }
        }
        replies.wait_for_all();
    });
    replies.finish()
}

fn too_long() -> Refusal {
    let detail =
        format!("a line may have {MAX_LINE} bytes; a session on record can be named instead of sent");
    Refusal::new(Code::InvalidRequest, "the request is too long", detail)
}

/// Whether a request may run concurrently; others wait until all earlier ones are done. The line is parsed, because a method's name may also
/// occur in the text of another request.
fn is_batch(line: &[u8]) -> bool {
    let batches = ["evaluate_batch", "generate_user_message"];
    batches.iter().any(|method| memmem::find(line, method.as_bytes()).is_some())
        && read(&repaired(line)).is_ok_and(|request| batches.contains(&request.method.as_ref()))
}

/// Whether a request may call a model.
fn is_slow(line: &[u8]) -> bool {
    ["llm_judge", "\"embedding\"", "generate_user_message"]
        .iter()
        .any(|word| memmem::find(line, word.as_bytes()).is_some())
}

/// Reorder buffer: accepts replies in any order and writes them in the order of requests.
struct Replies<W> {
    inner: Mutex<Inner<W>>,
    changed: Condvar,
}

struct Inner<W> {
    output: W,
    next: u64,
    waiting: BTreeMap<u64, Vec<u8>>,
    waiting_bytes: usize,
    ready: Vec<u8>,
    workers: usize,
    failed: bool,
}

impl<W: Write> Replies<W> {
    fn new(output: W) -> Replies<W> {
        let inner = Inner {
            output,
            next: 0,
            waiting: BTreeMap::new(),
            waiting_bytes: 0,
            ready: Vec::new(),
            workers: 0,
            failed: false,
        };
        Replies { inner: Mutex::new(inner), changed: Condvar::new() }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner<W>> {
        // A panic while writing leaves no inconsistent state behind.
        self.inner.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Whether worker threads are running.
    fn is_busy(&self) -> bool {
        self.lock().workers > 0
    }

    /// Waits for a free worker. Replies that are ready are written first, so that they do not wait for the new request.
    fn begin(&self) {
        let mut inner = self.lock();
        inner.write();
        while inner.workers >= MAX_WORKERS {
            inner = self.changed.wait(inner).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
        inner.workers += 1;
    }

    fn end(&self) {
        self.lock().workers -= 1;
        self.changed.notify_all();
    }

    fn wait_for_all(&self) {
        let mut inner = self.lock();
        while inner.workers > 0 {
            inner = self.changed.wait(inner).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
    }

    /// Inserts a reply; with `write`, or with enough bytes ready, writes the ready ones.
    fn put(&self, number: u64, lines: Vec<u8>, write: bool) {
        let mut inner = self.lock();
        if number == inner.next {
            inner.next += 1;
            inner.ready.extend_from_slice(&lines);
            while let Some(lines) = {
                let next = inner.next;
                inner.waiting.remove(&next)
            } {
                inner.next += 1;
                inner.waiting_bytes -= lines.len();
                inner.ready.extend_from_slice(&lines);
            }
        } else {
            inner.waiting_bytes += lines.len();
            inner.waiting.insert(number, lines);
            // An earlier request is still running, and its reply will drain the queue.
            while inner.waiting_bytes > MAX_WAITING_BYTES && inner.workers > 0 && !inner.failed && !write {
                inner = self.changed.wait(inner).unwrap_or_else(std::sync::PoisonError::into_inner);
            }
        }
        if write || inner.ready.len() > FLUSH_BYTES {
            inner.write();
        }
    }

    fn failed(&self) -> bool {
        self.lock().failed
    }

    fn finish(&self) -> bool {
        let mut inner = self.lock();
        inner.write();
        !inner.failed
    }
}

impl<W: Write> Inner<W> {
    fn write(&mut self) {
        if self.ready.is_empty() {
            return;
        }
        if !self.failed && (self.output.write_all(&self.ready).is_err() || self.output.flush().is_err()) {
            self.failed = true;
        }
        self.ready.clear();
    }
}

/// Lines of bounded length, read with as few calls as the sender's writes allow.
struct Lines<R> {
    input: R,
    buffer: Vec<u8>,
    /// Offsets of the current line's start and end, and of the next line.
    begin: usize,
    end: usize,
    next: usize,
    /// Number of bytes read into the buffer.
    filled: usize,
    over: bool,
}

enum Next {
    /// A complete line.
    Line,
    /// Beginning of a line over the limit, which was skipped.
    TooLong(Vec<u8>),
    /// End of input.
    End,
}

/// Size of one read, in bytes.
const CHUNK: usize = 64 * 1024;

/// Line length, in bytes, at which the buffer grows to the longest line at once.
const LONG_LINE: usize = 256 * 1024;

/// A larger buffer is shrunk when its long line is done.
const MAX_IDLE_BUFFER: usize = 1024 * 1024;

impl<R: Read> Lines<R> {
    fn new(input: R) -> Lines<R> {
        Lines { input, buffer: Vec::new(), begin: 0, end: 0, next: 0, filled: 0, over: false }
    }

    fn line(&self) -> &[u8] {
        self.buffer.get(self.begin..self.end).unwrap_or_default()
    }

    /// Whether another complete line is buffered.
    fn has_more(&self) -> bool {
        memchr::memchr(b'\n', self.buffer.get(self.next..self.filled).unwrap_or_default()).is_some()
    }

    fn next(&mut self) -> Next {
        self.begin = self.next;
        let mut looked = self.begin;
        loop {
            let fresh = self.buffer.get(looked..self.filled).unwrap_or_default();
            if let Some(at) = memchr::memchr(b'\n', fresh) {
                self.end = looked + at;
                self.next = self.end + 1;
                if self.end - self.begin > MAX_LINE {
                    return Next::TooLong(self.beginning());
                }
                return Next::Line;
            }
            looked = self.filled;
            if self.over {
                self.end = self.filled;
                self.next = self.filled;
                return if self.begin == self.end { Next::End } else { Next::Line };
            }
            if self.filled - self.begin > MAX_LINE {
                return self.skip();
            }
            looked -= self.compact();
            self.fill();
        }
    }

    /// Moves the current line to the front of the buffer, and returns by how many bytes.
    fn compact(&mut self) -> usize {
        let moved = self.begin;
        if moved > 0 {
            self.buffer.copy_within(self.begin..self.filled, 0);
            self.filled -= moved;
            self.begin = 0;
            self.next = 0;
            if self.buffer.len() > MAX_IDLE_BUFFER && self.filled < CHUNK {
                self.buffer.truncate(CHUNK);
                self.buffer.shrink_to_fit();
            }
        }
        if self.buffer.len() - self.filled < CHUNK / 2 {
            self.grow();
        }
        moved
    }

    /// Grows the buffer: by a little, or for a long line to the maximum at once. Zeroed memory is not committed until it is written, and long
    /// lines are never copied.
    fn grow(&mut self) {
        let wanted = if self.filled < LONG_LINE { self.filled + 2 * CHUNK } else { MAX_LINE + 2 * CHUNK };
        let mut larger = vec![0; wanted.max(self.buffer.len())];
        if let (Some(to), Some(from)) = (larger.get_mut(..self.filled), self.buffer.get(..self.filled)) {
            to.copy_from_slice(from);
        }
        self.buffer = larger;
    }

    fn fill(&mut self) {
        let room = self.buffer.get_mut(self.filled..).unwrap_or_default();
        match self.input.read(room) {
            Ok(0) => self.over = true,
            Ok(count) => self.filled += count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            // A stream that cannot be read has ended.
            Err(_) => self.over = true,
        }
    }

    fn beginning(&self) -> Vec<u8> {
        let line = self.buffer.get(self.begin..self.filled).unwrap_or_default();
        line.get(..line.len().min(1024)).unwrap_or_default().to_vec()
    }

    /// Discards input up to the end of a line over the limit.
    fn skip(&mut self) -> Next {
        let beginning = self.beginning();
        self.buffer = vec![0; CHUNK];
        (self.begin, self.next, self.filled) = (0, 0, 0);
        loop {
            self.filled = 0;
            self.fill();
            let fresh = self.buffer.get(..self.filled).unwrap_or_default();
            if let Some(at) = memchr::memchr(b'\n', fresh) {
                self.next = at + 1;
                break;
            }
            if self.over {
                self.next = self.filled;
                break;
            }
        }
        Next::TooLong(beginning)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reader that returns a text in pieces of the given length.
    struct Pieces<'a>(&'a [u8], usize);

    impl Read for Pieces<'_> {
        fn read(&mut self, room: &mut [u8]) -> std::io::Result<usize> {
            let count = self.1.min(self.0.len()).min(room.len());
            let (now, later) = self.0.split_at(count);
            room[..count].copy_from_slice(now);
            self.0 = later;
            Ok(count)
        }
    }

    fn lines(text: &[u8], piece: usize) -> Vec<String> {
        let mut lines = Lines::new(Pieces(text, piece));
        let mut found = Vec::new();
        loop {
            match lines.next() {
                Next::End => return found,
                Next::TooLong(beginning) => {
                    found.push(format!("too long: {}", String::from_utf8_lossy(&beginning[..4])));
                }
                Next::Line => found.push(String::from_utf8_lossy(lines.line()).into_owned()),
            }
        }
    }

    #[test]
    fn lines_come_out_as_they_went_in_whatever_the_pieces() {
        let text = b"one\n\ntwo\r\nlast";
        for piece in [1, 2, 3, 7, 100] {
            assert_eq!(lines(text, piece), ["one", "", "two\r", "last"], "{piece}");
        }
        assert!(lines(b"", 1).is_empty());
        assert_eq!(lines(b"\n", 1), [""]);
    }

    #[test]
    fn the_longest_line_is_read_and_one_more_byte_is_skipped() {
        let longest = vec![b'x'; MAX_LINE];
        let mut text = longest.clone();
        text.extend(b"\nnext\nyyyyy");
        text.extend(&longest);
        text.extend(b"\nafter\nzzzzz");
        text.extend(&longest);
        let found = lines(&text, 100_000);
        assert_eq!(found.len(), 5);
        assert_eq!(found[0].len(), MAX_LINE);
        assert_eq!(found[1..], ["next", "too long: yyyy", "after", "too long: zzzz"]);
    }

    #[test]
    fn replies_keep_the_order_of_requests() {
        let replies = Replies::new(Vec::new());
        replies.put(2, b"c".to_vec(), true);
        replies.put(1, b"b".to_vec(), true);
        assert!(replies.lock().output.is_empty());
        replies.put(0, b"a".to_vec(), true);
        replies.put(3, b"d".to_vec(), false);
        assert!(replies.finish());
        assert_eq!(replies.lock().output, b"abcd");
    }
}
