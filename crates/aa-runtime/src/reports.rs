//! Queue of reported events until the gateway acknowledges them: in memory, and in a file if one is configured.

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
pub use self::buffer::OpenBufferError;

use self::buffer::{AcknowledgeError, AppendError, ReadBufferError};
use super::metrics::{EventCount, Metrics};
use super::outage_log::OutageLog;
use super::token_owner::TokenOwner;

/// Byte limits of the queue in memory, and of one batch.
const MAX_BYTES: usize = 32 * 1024 * 1024;
const BATCH_BYTES: usize = 3 * 1024 * 1024;
/// Initial and maximum backoff after a failed delivery.
const MIN_BACKOFF: Duration = Duration::from_millis(100);
const MAX_BACKOFF: Duration = Duration::from_secs(5);

/// Queue length and batching of reported events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Limit of events in memory.
    pub events: usize,
    /// Number of events that completes a batch.
    pub batch: usize,
    /// Age after which an incomplete batch is sent.
    pub age: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { events: 10_000, batch: 100, age: Duration::from_millis(100) }
    }
}

/// The queue and its delivery. A full queue in memory drops its oldest events, a full file the newest; drops are logged.
#[derive(Debug)]
pub(crate) struct Reports {
    queue: Mutex<Queue>,
    limits: Limits,
    /// Owner of the token that reports are sent with.
    owner: Arc<TokenOwner>,
    changed: Notify,
    file_outage: OutageLog,
    metrics: Arc<Metrics>,
}

#[derive(Debug, Default)]
struct Queue {
    events: VecDeque<QueuedEvent>,
    bytes: usize,
    /// Record sizes of events that are being delivered or retried.
    in_flight: VecDeque<u64>,
    dropped: u64,
    /// File of all unacknowledged events; those over the limit in memory are only there.
    buffer: Option<Buffer>,
    /// Deadline of delivery, set at shutdown.
    until: Option<Instant>,
}

#[derive(Debug)]
struct QueuedEvent {
    event: AuditEvent,
    size: usize,
    /// Size of its record in the file; 0 without one.
    on_file: u64,
}

impl Reports {
    /// Starts with the events that an earlier run left in the file.
    pub(crate) fn new(limits: Limits, owner: Arc<TokenOwner>, buffer: Option<Buffer>) -> Reports {
        Reports {
            queue: Mutex::new(Queue { buffer, ..Queue::default() }),
            limits,
            owner,
            changed: Notify::new(),
            file_outage: OutageLog::default(),
            metrics: Arc::default(),
        }
    }

    /// Counts deliveries and losses.
    pub(crate) fn counted_by(self, metrics: Arc<Metrics>) -> Reports {
        Reports { metrics, ..self }
    }

    /// Number of events that are not delivered yet.
    pub(crate) fn waiting(&self) -> usize {
        let queue = self.queue();
        queue.waiting().saturating_add(queue.in_flight.len())
    }

    /// Queues an event.
    pub(crate) fn push(&self, event: AuditEvent) {
        let filed = self.queue().push(event, self.limits.events);
        match filed {
            Ok(true) => self.file_outage.recovered("events are written to the buffer again"),
            Ok(false) => {}
            Err(problem) => {
                self.file_outage.failed(|| format!("an event is not written to the buffer: {problem}"));
            }
        }
        self.changed.notify_one();
    }

    /// Ends the queue: the remaining events are delivered until the deadline.
    pub(crate) fn close(&self, until: Instant) {
        self.queue().until = Some(until);
        self.changed.notify_one();
    }

    /// Log line about undelivered events, if there are any.
    pub(crate) fn undelivered(&self) -> Option<String> {
        let queue = self.queue();
        let left = queue.waiting().saturating_add(queue.in_flight.len());
        (left > 0).then(|| match &queue.buffer {
            Some(buffer) => format!("{left} events wait in {} for the next start", buffer.path().display()),
            None => format!("{left} events were not delivered"),
        })
    }

    /// Background task: delivers batches until the queue is closed and empty.
    pub(crate) async fn deliver(self: Arc<Self>, client: Client) {
        let outage = OutageLog::default();
        while self.wait_for_batch().await {
            self.log_dropped();
            let batch = self.take_batch();
            if !self.deliver_batch(&client, batch, &outage).await {
                break;
            }
        }
        self.log_dropped();
    }

    /// Waits until a batch is due; false once the queue is closed and empty.
    async fn wait_for_batch(&self) -> bool {
        let mut due = None;
        loop {
            let changed = self.changed.notified();
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
                None => changed.await,
                Some(due) => {
                    if tokio::time::timeout_at(due, changed).await.is_err() {
                        return true;
                    }
                }
            }
        }
    }

    fn take_batch(&self) -> Vec<AuditEvent> {
        let mut queue = self.queue();
        if let Err(problem) = queue.refill(self.limits.batch) {
            log::info!("events in the buffer cannot be read: {problem}");
        }
        let (mut batch, mut bytes) = (Vec::new(), 0_usize);
        while let Some(next) = queue.events.front() {
            let is_full = batch.len() >= self.limits.batch
                || (!batch.is_empty() && bytes.saturating_add(next.size) > BATCH_BYTES);
            if is_full {
                break;
            }
            let Some(QueuedEvent { event, size, on_file }) = queue.events.pop_front() else { break };
            bytes = bytes.saturating_add(size);
            queue.bytes = queue.bytes.saturating_sub(size);
            queue.in_flight.push_back(on_file);
            batch.push(event);
        }
        batch
    }

    /// Retries a batch until the gateway accepts or permanently rejects it. The events of a rejected batch are sent one by one, so that one
    /// invalid event does not drop the others. False once no attempt can begin before the shutdown deadline; the events stay in flight, and are
    /// counted as undelivered.
    async fn deliver_batch(&self, client: &Client, batch: Vec<AuditEvent>, outage: &OutageLog) -> bool {
        let mut parts = VecDeque::from([batch]);
        let mut pause = MIN_BACKOFF;
        while let Some(events) = parts.pop_front() {
            let holder = self.owner.now();
            let owned = with_owner(holder.clone(), &events);
            match client.report_events(ReportEventsRequest { events: owned }).await {
                Ok(_) => {
                    pause = MIN_BACKOFF;
                    outage.recovered("reports are taken by the gateway again");
                    self.metrics.events(EventCount::Delivered, events.len() as u64);
                    self.acknowledge(events.len());
                }
                Err(error) if may_pass(&error) => {
                    outage.failed(|| format!("reports wait for the gateway: {error}"));
                    parts.push_front(events);
                    if !self.pause(pause).await {
                        return false;
                    }
                    pause = pause.saturating_mul(2).min(MAX_BACKOFF);
                }
                // The token changed owner while the batch was sent: send it again under the new one.
                Err(_) if self.owner.now() != holder => parts.push_front(events),
                Err(error) if events.len() == 1 => {
                    log::info!("an event was dropped: {error}");
                    self.metrics.events(EventCount::Dropped, 1);
                    self.acknowledge(1);
                }
                Err(_) => parts.extend(events.into_iter().map(|event| vec![event])),
            }
        }
        true
    }

    /// Removes the oldest `count` events in flight, delivered or dropped. Batches and their parts are sent in order.
    fn acknowledge(&self, count: usize) {
        if let Err(problem) = self.queue().acknowledge(count) {
            self.file_outage.failed(|| format!("the buffer cannot be shortened: {problem}"));
        }
    }

    /// Sleeps for a backoff; false if it would pass the shutdown deadline.
    async fn pause(&self, pause: Duration) -> bool {
        let until = self.queue().until;
        if until.is_some_and(|until| Instant::now() + pause >= until) {
            return false;
        }
        tokio::time::sleep(pause).await;
        true
    }

    fn log_dropped(&self) {
        let dropped = std::mem::take(&mut self.queue().dropped);
        if dropped > 0 {
            self.metrics.events(EventCount::Dropped, dropped);
            log::info!(
                "{dropped} events were dropped, the oldest first: the gateway does not take them in time"
            );
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Replaces the agent id of events by that of the token's owner, which gateways require; SDKs send ids of their own, which are kept in the
/// label `claimed_agent_id`.
fn with_owner(holder: Option<AgentId>, events: &[AuditEvent]) -> Vec<AuditEvent> {
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
    /// Queues an event; true if it was also written to the file.
    fn push(&mut self, event: AuditEvent, max: usize) -> Result<bool, AppendError> {
        let size = size(&event);
        let is_full = self.events.len() >= max || self.bytes.saturating_add(size) > MAX_BYTES;
        let Some(buffer) = &mut self.buffer else {
            self.keep(QueuedEvent { event, size, on_file: 0 });
            while self.events.len() > max || self.bytes > MAX_BYTES {
                let Some(oldest) = self.events.pop_front() else { break };
                self.bytes = self.bytes.saturating_sub(oldest.size);
                self.dropped = self.dropped.saturating_add(1);
            }
            return Ok(false);
        };
        // Behind events that are only in the file, a new one must go there too, to keep the order.
        let in_memory = !is_full && buffer.unread() == 0;
        let filed = buffer.append(&event, in_memory);
        if in_memory {
            self.keep(QueuedEvent { event, size, on_file: *filed.as_ref().unwrap_or(&0) });
        } else if filed.is_err() {
            self.dropped = self.dropped.saturating_add(1);
        }
        filed.map(|_| true)
    }

    fn keep(&mut self, kept: QueuedEvent) {
        self.bytes = self.bytes.saturating_add(kept.size);
        self.events.push_back(kept);
    }

    /// Reads up to `max` events from the file if the queue in memory, which is older, is empty.
    fn refill(&mut self, max: usize) -> Result<(), ReadBufferError> {
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
                    read.push(QueuedEvent { event, size, on_file });
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

    /// Number of events that are not in flight.
    fn waiting(&self) -> usize {
        self.events.len().saturating_add(self.buffer.as_ref().map_or(0, Buffer::unread))
    }

    /// Removes the oldest `count` events in flight.
    fn acknowledge(&mut self, count: usize) -> Result<(), AcknowledgeError> {
        let count = count.min(self.in_flight.len());
        let bytes = self.in_flight.drain(..count).fold(0, u64::saturating_add);
        match &mut self.buffer {
            Some(buffer) if bytes > 0 => buffer.acknowledge(bytes),
            _ => Ok(()),
        }
    }
}

/// Whether a retry may succeed. An unknown token counts: its agent may register again.
fn may_pass(error: &ClientError) -> bool {
    error.may_pass() || error.code() == Some(Code::Unauthenticated)
}

/// Approximate memory of an event: its encoded size and a constant overhead.
fn size(event: &AuditEvent) -> usize {
    const OVERHEAD: usize = 512;
    event_size(event).saturating_add(OVERHEAD)
}

#[cfg(test)]
mod tests;
