//! What agents report, kept until the gateway has it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use proctor_net::assembly::client::{Client, ClientError, Code, event_size};
use proctor_wire::assembly::proto::audit::v1::{AuditEvent, ReportEventsRequest};
use proctor_wire::assembly::proto::common::v1::AgentId;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::talk::{Trouble, say};

/// How many events may wait, and how many bytes they may have together.
const MAX_EVENTS: usize = 10_000;
const MAX_BYTES: usize = 64 * 1024 * 1024;
/// A batch goes when it is this large, or this old.
const BATCH_EVENTS: usize = 100;
const BATCH_BYTES: usize = 3 * 1024 * 1024;
const BATCH_AGE: Duration = Duration::from_millis(100);
/// How long to wait after a failure, at first and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// A queue of events; of too many the oldest is dropped, and that is said.
#[derive(Debug, Default)]
pub struct Reports {
    queue: Mutex<Queue>,
    /// Whom the token belongs to that reports are sent with.
    holder: Mutex<Option<AgentId>>,
    news: Notify,
}

#[derive(Debug, Default)]
struct Queue {
    events: VecDeque<(AuditEvent, usize)>,
    bytes: usize,
    /// How many events are in the gateway's hands or wait for another try.
    on_their_way: usize,
    dropped: u64,
    /// Set at the end: until when events are delivered.
    until: Option<Instant>,
}

impl Reports {
    /// Nothing yet.
    pub fn new() -> Reports {
        Reports::default()
    }

    /// Says whom the token belongs to. SDKs put a name of their own on events; a gateway takes only those of the token's holder.
    pub fn set_holder(&self, holder: AgentId) {
        *self.holder.lock().unwrap_or_else(PoisonError::into_inner) = Some(holder);
    }

    /// Events under the name of the token's holder; the name that they claim stays as a label.
    fn signed(&self, events: &[AuditEvent]) -> Vec<AuditEvent> {
        let holder = self.holder.lock().unwrap_or_else(PoisonError::into_inner).clone();
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

    /// Takes an event.
    pub fn push(&self, event: AuditEvent) {
        let size = size(&event);
        let mut queue = self.queue();
        queue.events.push_back((event, size));
        queue.bytes = queue.bytes.saturating_add(size);
        while queue.events.len() > MAX_EVENTS || queue.bytes > MAX_BYTES {
            let Some((_, size)) = queue.events.pop_front() else { break };
            queue.bytes = queue.bytes.saturating_sub(size);
            queue.dropped = queue.dropped.saturating_add(1);
        }
        drop(queue);
        self.news.notify_one();
    }

    /// No more events come. What is there is delivered until then.
    pub fn close(&self, until: Instant) {
        self.queue().until = Some(until);
        self.news.notify_one();
    }

    /// How many events the gateway has not taken.
    pub fn undelivered(&self) -> Option<usize> {
        let queue = self.queue();
        let left = queue.events.len().saturating_add(queue.on_their_way);
        (left > 0).then_some(left)
    }

    /// Delivers for as long as events come, and then what is left.
    pub async fn deliver(self: Arc<Self>, client: Client) {
        let trouble = Trouble::default();
        while self.wait_for_batch().await {
            self.say_dropped();
            let batch = self.take_batch();
            self.deliver_batch(&client, batch, &trouble).await;
            self.queue().on_their_way = 0;
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
                match (queue.events.len(), queue.until) {
                    (0, Some(_)) => return false,
                    (1.., Some(_)) | (BATCH_EVENTS.., None) => return true,
                    (0, None) => {}
                    (1.., None) => due = due.or_else(|| Some(Instant::now() + BATCH_AGE)),
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
        let (mut batch, mut bytes) = (Vec::new(), 0_usize);
        while let Some((_, size)) = queue.events.front() {
            let size = *size;
            if batch.len() >= BATCH_EVENTS || (!batch.is_empty() && bytes.saturating_add(size) > BATCH_BYTES)
            {
                break;
            }
            let Some((event, _)) = queue.events.pop_front() else { break };
            bytes = bytes.saturating_add(size);
            queue.bytes = queue.bytes.saturating_sub(size);
            batch.push(event);
        }
        queue.on_their_way = batch.len();
        batch
    }

    /// Tries until the gateway takes the batch or refuses it for good. Of a batch that is refused its events are tried one by one: one
    /// that cannot be taken must not take the others with it.
    async fn deliver_batch(&self, client: &Client, batch: Vec<AuditEvent>, trouble: &Trouble) {
        let mut parts = VecDeque::from([batch]);
        let mut pause = FIRST_PAUSE;
        while let Some(events) = parts.pop_front() {
            match client.report_events(ReportEventsRequest { events: self.signed(&events) }).await {
                Ok(_) => {
                    pause = FIRST_PAUSE;
                    trouble.ended("reports are taken by the gateway again");
                    let mut queue = self.queue();
                    queue.on_their_way = queue.on_their_way.saturating_sub(events.len());
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
                Err(error) if events.len() == 1 => {
                    say(&format!("an event was dropped: {error}"));
                    let mut queue = self.queue();
                    queue.on_their_way = queue.on_their_way.saturating_sub(1);
                }
                Err(_) => parts.extend(events.into_iter().map(|event| vec![event])),
            }
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
mod tests {
    use super::*;

    fn event(index: usize) -> AuditEvent {
        AuditEvent { event_id: index.to_string(), ..Default::default() }
    }

    #[test]
    fn events_go_under_the_name_of_the_tokens_holder() {
        let named = |name: &str| AgentId { agent_id: name.to_owned(), ..AgentId::default() };
        let reports = Reports::new();
        let event = AuditEvent { agent_id: Some(named("mine")), ..AuditEvent::default() };
        assert_eq!(reports.signed(std::slice::from_ref(&event)), std::slice::from_ref(&event));
        reports.set_holder(named("did:key:z"));
        let signed = reports.signed(std::slice::from_ref(&event)).pop().unwrap();
        assert_eq!(signed.agent_id, Some(named("did:key:z")));
        assert_eq!(signed.labels.get("claimed_agent_id").map(String::as_str), Some("mine"));
    }

    #[test]
    fn of_too_many_the_oldest_are_dropped() {
        let reports = Reports::new();
        for index in 0..MAX_EVENTS + 3 {
            reports.push(event(index));
        }
        assert_eq!(reports.queue().dropped, 3);
        assert_eq!(reports.undelivered(), Some(MAX_EVENTS));
        assert_eq!(reports.take_batch().first().unwrap().event_id, "3");
        let large = AuditEvent { event_id: "x".repeat(MAX_BYTES / 2), ..Default::default() };
        for _ in 0..3 {
            reports.push(large.clone());
        }
        assert!(reports.queue().bytes <= MAX_BYTES);
        assert_eq!(reports.queue().events.len(), 1);
    }

    #[test]
    fn a_batch_fits_into_a_message_and_one_alone_is_one() {
        let reports = Reports::new();
        let large = AuditEvent { event_id: "x".repeat(BATCH_BYTES), ..Default::default() };
        reports.push(large);
        for index in 0..=BATCH_EVENTS {
            reports.push(event(index));
        }
        assert_eq!(reports.take_batch().len(), 1);
        assert_eq!(reports.take_batch().len(), BATCH_EVENTS);
        assert_eq!(reports.take_batch().len(), 1);
        assert!(reports.take_batch().is_empty());
        assert_eq!(reports.queue().bytes, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_batch_goes_when_it_is_full_or_old_and_the_end_comes_last() {
        let reports = Reports::new();
        reports.push(event(0));
        let began = Instant::now();
        assert!(reports.wait_for_batch().await);
        assert_eq!(began.elapsed(), BATCH_AGE);
        for index in 0..BATCH_EVENTS {
            reports.push(event(index));
        }
        assert!(reports.wait_for_batch().await);
        assert_eq!(began.elapsed(), BATCH_AGE);
        reports.close(Instant::now());
        assert!(reports.wait_for_batch().await);
        while !reports.take_batch().is_empty() {}
        assert!(!reports.wait_for_batch().await);
    }
}
