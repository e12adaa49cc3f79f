//! Lines in, lines out: one reply for each request, in their order, whatever is worked on at the same time.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::sync::{Condvar, Mutex};

use memchr::memmem;
use proctor_wire::attest::MAX_LINE;
use proctor_wire::attest::rpc::{Code, Refusal, number_at_the_beginning, read, refuse, repaired};

use super::{AttestDoor, Reply};

/// Requests that are worked on beside the reading thread at a time.
const BESIDE: usize = 16;

/// A request longer than this is worked on beside the reading thread, if more wait behind it.
const LONG: usize = 64 * 1024;

/// Replies that wait for their turn: more than this and reading stops.
const WAITING_BYTES: usize = 16 * 1024 * 1024;

/// Reads requests until there are no more, or the session is over, or nobody reads the replies; says whether it ended well.
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
                    let beside = is_slow(line) || (line.len() > LONG && lines.has_more());
                    // Which method it is matters only then.
                    let batch = (busy || beside) && is_batch(line);
                    // History that is asked for must hold what came before.
                    if busy && (!batch || memmem::find(line, b"dynamic").is_some()) {
                        replies.wait_for_all();
                    }
                    if beside && batch {
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
                        // No thread is to be had: here, then.
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

/// Whether a request only evaluates: others wait until everything before them is done. A method's name may also stand in the text of
/// another request, so the line is read.
fn is_batch(line: &[u8]) -> bool {
    let batches = ["evaluate_batch", "generate_user_message"];
    batches.iter().any(|method| memmem::find(line, method.as_bytes()).is_some())
        && read(&repaired(line)).is_ok_and(|request| batches.contains(&request.method.as_ref()))
}

/// Whether a request may have to wait for a model.
fn is_slow(line: &[u8]) -> bool {
    ["llm_judge", "\"embedding\"", "generate_user_message"]
        .iter()
        .any(|word| memmem::find(line, word.as_bytes()).is_some())
}

/// Replies, put in any order and written in theirs.
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
    beside: usize,
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
            beside: 0,
            failed: false,
        };
        Replies { inner: Mutex::new(inner), changed: Condvar::new() }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner<W>> {
        // A thread that panicked while writing leaves nothing half done that the next could break.
        self.inner.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Whether requests are being worked on beside the reading thread.
    fn is_busy(&self) -> bool {
        self.lock().beside > 0
    }

    /// Waits for a place beside the reading thread. What is ready goes out first: it need not wait for the work that begins.
    fn begin(&self) {
        let mut inner = self.lock();
        inner.write();
        while inner.beside >= BESIDE {
            inner = self.changed.wait(inner).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
        inner.beside += 1;
    }

    fn end(&self) {
        self.lock().beside -= 1;
        self.changed.notify_all();
    }

    fn wait_for_all(&self) {
        let mut inner = self.lock();
        while inner.beside > 0 {
            inner = self.changed.wait(inner).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
    }

    /// Gives a reply its place; writes what is ready if nothing more is about to come.
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
            // Whoever is in front is being worked on, and will make room.
            while inner.waiting_bytes > WAITING_BYTES && inner.beside > 0 && !inner.failed && !write {
                inner = self.changed.wait(inner).unwrap_or_else(std::sync::PoisonError::into_inner);
            }
        }
        if write || inner.ready.len() > LONG {
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
    /// Where the current line begins and ends, and where the next begins.
    begin: usize,
    end: usize,
    next: usize,
    /// How much of the buffer is filled.
    filled: usize,
    over: bool,
}

enum Next {
    /// There is a line.
    Line,
    /// There was one that is too long; its beginning.
    TooLong(Vec<u8>),
    /// There are no more.
    End,
}

/// What is asked of the system at a time.
const CHUNK: usize = 64 * 1024;

/// A line of which this much is there gets room for the longest.
const LONG_LINE: usize = 256 * 1024;

/// A buffer larger than this is given back when it is not needed any more.
const KEPT: usize = 1024 * 1024;

impl<R: Read> Lines<R> {
    fn new(input: R) -> Lines<R> {
        Lines { input, buffer: Vec::new(), begin: 0, end: 0, next: 0, filled: 0, over: false }
    }

    fn line(&self) -> &[u8] {
        self.buffer.get(self.begin..self.end).unwrap_or_default()
    }

    /// Whether another whole line is there already.
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
            looked -= self.make_room();
            self.fill();
        }
    }

    /// Moves the line that is being read to the front; says by how much.
    fn make_room(&mut self) -> usize {
        let moved = self.begin;
        if moved > 0 {
            self.buffer.copy_within(self.begin..self.filled, 0);
            self.filled -= moved;
            self.begin = 0;
            self.next = 0;
            if self.buffer.len() > KEPT && self.filled < CHUNK {
                self.buffer.truncate(CHUNK);
                self.buffer.shrink_to_fit();
            }
        }
        if self.buffer.len() - self.filled < CHUNK / 2 {
            self.grow();
        }
        moved
    }

    /// A little more room; for a line that turns out long, all that a line may need at once: memory that is asked for as zeros is not
    /// there until it is written to, and nothing long is ever copied.
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

    /// Reads to the end of a line that is too long, keeping nothing of it.
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

    /// Gives a text in pieces of the given length.
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
