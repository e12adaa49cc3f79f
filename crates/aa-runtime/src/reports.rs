//! What agents report, kept until the gateway has it: in memory, and in a file if one is configured.

mod buffer;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use proctor_clients::assembly::client::{Client, ClientError, Code, event_size};
use proctor_wire::assembly::proto::audit::v1::{AuditEvent, ReportEventsRequest};
use proctor_wire::assembly::proto::common::v1::AgentId;
use tokio::sync::Notify;
use tokio::time::Instant;

pub(crate) use self::buffer::Buffer;

use super::holder::Holders;
use super::talk::{Trouble, say};

/// How many bytes may wait in memory, and how many go at once.
const MAX_BYTES: usize = 64 * 1024 * 1024;
const BATCH_BYTES: usize = 3 * 1024 * 1024;
/// How long to wait after a failure, at first and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// How many events wait, and when they go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How many events may wait in memory.
    pub events: usize,
    /// A batch goes when it has this many events,
    pub batch: usize,
    /// or is this old.
    pub age: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { events: 10_000, batch: 100, age: Duration::from_millis(100) }
    }
}

/// A queue of events. Of too many in memory the oldest is dropped; of too many in the file the newest is. Both is said.
#[derive(Debug)]
pub(crate) struct Reports {
    queue: Mutex<Queue>,
    limits: Limits,
    /// Whom the token belongs to that reports are sent with.
    holders: Arc<Holders>,
    news: Notify,
    not_filed: Trouble,
}

#[derive(Debug, Default)]
struct Queue {
    events: VecDeque<Kept>,
    bytes: usize,
    /// What events take in the file that are in the gateway's hands or wait for another try.
    on_their_way: VecDeque<u64>,
    dropped: u64,
    /// Holds all events that the gateway has not taken, and those alone that are too many for the memory.
    buffer: Option<Buffer>,
    /// Set at the end: until when events are delivered.
    until: Option<Instant>,
}

#[derive(Debug)]
struct Kept {
    event: AuditEvent,
    size: usize,
    /// What it takes in the file.
    on_file: u64,
}

impl Reports {
    /// Nothing but what an earlier program has left in the file.
    pub(crate) fn new(limits: Limits, holders: Arc<Holders>, buffer: Option<Buffer>) -> Reports {
        Reports {
            queue: Mutex::new(Queue { buffer, ..Queue::default() }),
            limits,
            holders,
            news: Notify::new(),
            not_filed: Trouble::default(),
        }
    }

    /// Takes an event.
    pub(crate) fn push(&self, event: AuditEvent) {
        let filed = self.queue().push(event, self.limits.events);
        match filed {
            Ok(true) => self.not_filed.ended("events are written to the buffer again"),
            Ok(false) => {}
            Err(problem) => {
                self.not_filed.began(|| format!("an event is not written to the buffer: {problem}"));
            }
        }
        self.news.notify_one();
    }

    /// No more events come. What is there is delivered until then.
    pub(crate) fn close(&self, until: Instant) {
        self.queue().until = Some(until);
        self.news.notify_one();
    }

    /// What became of the events that the gateway has not taken, if there are any.
    pub(crate) fn undelivered(&self) -> Option<String> {
        let queue = self.queue();
        let left = queue.waiting().saturating_add(queue.on_their_way.len());
        (left > 0).then(|| match &queue.buffer {
            Some(buffer) => format!("{left} events wait in {} for the next start", buffer.path().display()),
            None => format!("{left} events were not delivered"),
        })
    }

    /// Delivers for as long as events come, and then what is left.
    pub(crate) async fn deliver(self: Arc<Self>, client: Client) {
        let trouble = Trouble::default();
        while self.wait_for_batch().await {
            self.say_dropped();
            let batch = self.take_batch();
            self.deliver_batch(&client, batch, &trouble).await;
        }
        self.say_dropped();
    }

    /// True once a batch should go; false at the end.
    async fn wait_for_batch(&self) -> bool {
        let mut due = None;
        loop {
            let news = self.news.notified();
            {
                let queue = self.queue();
                match (queue.waiting(), queue.until) {
                    (0, Some(_)) => return false,
                    (1.., Some(_)) => return true,
                    (full, None) if full >= self.limits.batch => return true,
                    (0, None) => {}
                    (1.., None) => due = due.or_else(|| Some(Instant::now() + self.limits.age)),
                }
            }
            match due {
                None => news.await,
                Some(due) => {
                    if tokio::time::timeout_at(due, news).await.is_err() {
                        return true;
                    }
                }
            }
        }
    }

    fn take_batch(&self) -> Vec<AuditEvent> {
        let mut queue = self.queue();
        if let Err(problem) = queue.read_again(self.limits.batch) {
            say(&format!("events in the buffer cannot be read: {problem}"));
        }
        let (mut batch, mut bytes) = (Vec::new(), 0_usize);
        while let Some(next) = queue.events.front() {
            let is_full = batch.len() >= self.limits.batch
                || (!batch.is_empty() && bytes.saturating_add(next.size) > BATCH_BYTES);
            if is_full {
                break;
            }
            let Some(Kept { event, size, on_file }) = queue.events.pop_front() else { break };
            bytes = bytes.saturating_add(size);
            queue.bytes = queue.bytes.saturating_sub(size);
            queue.on_their_way.push_back(on_file);
            batch.push(event);
        }
        batch
    }

    /// Tries until the gateway takes the batch or refuses it for good. Of a batch that is refused its events are tried one by one: one
    /// that cannot be taken must not take the others with it.
    async fn deliver_batch(&self, client: &Client, batch: Vec<AuditEvent>, trouble: &Trouble) {
        let mut parts = VecDeque::from([batch]);
        let mut pause = FIRST_PAUSE;
        while let Some(events) = parts.pop_front() {
            let holder = self.holders.now();
            let signed = signed(holder.clone(), &events);
            match client.report_events(ReportEventsRequest { events: signed }).await {
                Ok(_) => {
                    pause = FIRST_PAUSE;
                    trouble.ended("reports are taken by the gateway again");
                    self.settled(events.len());
                }
                Err(error) if may_pass(&error) => {
                    trouble.began(|| format!("reports wait for the gateway: {error}"));
                    parts.push_front(events);
                    if !self.pause(pause).await {
                        // The end came first; what is left is counted as it is.
                        return std::future::pending().await;
                    }
                    pause = pause.saturating_mul(2).min(LONGEST_PAUSE);
                }
                // The token was another one's by the time that they were sent.
                Err(_) if self.holders.now() != holder => parts.push_front(events),
                Err(error) if events.len() == 1 => {
                    say(&format!("an event was dropped: {error}"));
                    self.settled(1);
                }
                Err(_) => parts.extend(events.into_iter().map(|event| vec![event])),
            }
        }
    }

    /// The oldest so many events are the gateway's, or nobody's: batches and their parts go in order.
    fn settled(&self, count: usize) {
        if let Err(problem) = self.queue().settled(count) {
            self.not_filed.began(|| format!("the buffer cannot be shortened: {problem}"));
        }
    }

    /// Waits; false if the time of delivering is over.
    async fn pause(&self, pause: Duration) -> bool {
        let until = self.queue().until;
        if until.is_some_and(|until| Instant::now() + pause >= until) {
            return false;
        }
        tokio::time::sleep(pause).await;
        true
    }

    fn say_dropped(&self) {
        let dropped = std::mem::take(&mut self.queue().dropped);
        if dropped > 0 {
            say(&format!(
                "{dropped} events were dropped, the oldest first: the gateway does not take them in time"
            ));
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Events under the name of the token's holder: SDKs put a name of their own on events, and a gateway takes only those of the holder. The
/// name that they claim stays as a label.
fn signed(holder: Option<AgentId>, events: &[AuditEvent]) -> Vec<AuditEvent> {
    let mut events = events.to_vec();
    let Some(holder) = holder else { return events };
    for event in events.iter_mut().filter(|event| event.agent_id.as_ref() != Some(&holder)) {
        let claimed = event.agent_id.replace(holder.clone()).unwrap_or_default().agent_id;
        if !claimed.is_empty() && claimed != holder.agent_id {
            event.labels.insert("claimed_agent_id".to_owned(), claimed);
        }
    }
    events
}

impl Queue {
    /// Keeps an event. True: it is in the file, too.
    fn push(&mut self, event: AuditEvent, max: usize) -> Result<bool, String> {
        let size = size(&event);
        let is_full = self.events.len() >= max || self.bytes.saturating_add(size) > MAX_BYTES;
        let Some(buffer) = &mut self.buffer else {
            self.keep(Kept { event, size, on_file: 0 });
            while self.events.len() > max || self.bytes > MAX_BYTES {
                let Some(oldest) = self.events.pop_front() else { break };
                self.bytes = self.bytes.saturating_sub(oldest.size);
                self.dropped = self.dropped.saturating_add(1);
            }
            return Ok(false);
        };
        // Behind those that are in the file only it must be one of them.
        let in_memory = !is_full && buffer.unread() == 0;
        let filed = buffer.append(&event, in_memory);
        if in_memory {
            self.keep(Kept { event, size, on_file: *filed.as_ref().unwrap_or(&0) });
        } else if filed.is_err() {
            self.dropped = self.dropped.saturating_add(1);
        }
        filed.map(|_| true)
    }

    fn keep(&mut self, kept: Kept) {
        self.bytes = self.bytes.saturating_add(kept.size);
        self.events.push_back(kept);
    }

    /// Takes up to so many events from the file, if there are none in memory: those come first.
    fn read_again(&mut self, max: usize) -> Result<(), String> {
        let Some(buffer) = self.buffer.as_mut().filter(|_| self.events.is_empty()) else { return Ok(()) };
        let mut bytes = 0_usize;
        let mut read = Vec::new();
        let mut outcome = Ok(());
        while read.len() < max && bytes <= BATCH_BYTES {
            match buffer.next() {
                Ok(None) => break,
                Ok(Some((event, on_file))) => {
                    let size = size(&event);
                    bytes = bytes.saturating_add(size);
                    read.push(Kept { event, size, on_file });
                }
                Err(problem) => {
                    outcome = Err(problem);
                    break;
                }
            }
        }
        for kept in read {
            self.keep(kept);
        }
        outcome
    }

    /// How many events wait.
    fn waiting(&self) -> usize {
        self.events.len().saturating_add(self.buffer.as_ref().map_or(0, Buffer::unread))
    }

    /// The oldest so many on their way have arrived.
    fn settled(&mut self, count: usize) -> Result<(), String> {
        let count = count.min(self.on_their_way.len());
        let bytes = self.on_their_way.drain(..count).fold(0, u64::saturating_add);
        match &mut self.buffer {
            Some(buffer) if bytes > 0 => buffer.acknowledge(bytes),
            _ => Ok(()),
        }
    }
}

/// A token that is not known may become known: agents register again.
fn may_pass(error: &ClientError) -> bool {
    error.may_pass() || error.code() == Some(Code::Unauthenticated)
}

/// About what an event takes: its bytes on the wire, and the space around them.
fn size(event: &AuditEvent) -> usize {
    const AROUND: usize = 512;
    event_size(event).saturating_add(AROUND)
}

#[cfg(test)]
mod tests;
