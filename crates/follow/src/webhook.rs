//! Webhook: delivers events to a URL at least once and in order, with unlimited retries.

mod events;
mod position;
mod send;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use proctor_core::random::Randomness;
use proctor_core::time::Clock;
use proctor_ledger::reader::Record;
use proctor_ledger::{ReadError, Reader};
use zeroize::Zeroizing;

use super::agents::Agents;
use super::error::{FinishError, StartError, UnknownEvent};
use super::{Handle, Round, Stop};
use events::Event;
use position::Position;
use proctor_system::{SystemClock, SystemRandomness};
use send::{Reply, Sender};

/// The kinds of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EventKind {
    /// A person is asked for the first time.
    ApprovalRequested,
    /// A threshold of a budget is passed.
    BudgetThresholdHit,
    /// An agent became active, suspended, offline, killed or deregistered.
    AgentStatusChanged,
    /// An alarm.
    AlertTriggered,
    /// An alarm about secrets.
    DataLeak,
    /// A decision.
    AuditAction,
}

impl EventKind {
    /// All kinds.
    pub const ALL: [EventKind; 6] = [
        EventKind::ApprovalRequested,
        EventKind::BudgetThresholdHit,
        EventKind::AgentStatusChanged,
        EventKind::AlertTriggered,
        EventKind::DataLeak,
        EventKind::AuditAction,
    ];

    /// Name in settings and events.
    pub const fn word(self) -> &'static str {
        match self {
            EventKind::ApprovalRequested => "approval.requested",
            EventKind::BudgetThresholdHit => "budget.threshold_hit",
            EventKind::AgentStatusChanged => "agent.status_changed",
            EventKind::AlertTriggered => "alert.triggered",
            EventKind::DataLeak => "data.leak",
            EventKind::AuditAction => "audit.action",
        }
    }

    /// Default kinds: all but decisions.
    pub fn usual() -> BTreeSet<EventKind> {
        EventKind::ALL.into_iter().filter(|kind| *kind != EventKind::AuditAction).collect()
    }
}

impl FromStr for EventKind {
    type Err = UnknownEvent;

    fn from_str(word: &str) -> Result<EventKind, UnknownEvent> {
        EventKind::ALL.into_iter().find(|kind| kind.word() == word).ok_or_else(|| {
            let known = EventKind::ALL.iter().map(|kind| kind.word()).collect();
            UnknownEvent { word: word.chars().take(80).collect(), known }
        })
    }
}

/// Receiver, signing secret and kinds of events.
#[derive(Clone)]
pub struct WebhookSettings {
    /// URL of the receiver.
    pub url: String,
    /// Key of the HMAC signature.
    pub secret: Option<Zeroizing<String>>,
    /// Kinds that are sent.
    pub events: BTreeSet<EventKind>,
}

impl fmt::Debug for WebhookSettings {
    /// Redacts the secret, and the URL, which may hold one.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let signed = self.secret.is_some();
        out.debug_struct("WebhookSettings")
            .field("signed", &signed)
            .field("events", &self.events)
            .finish_non_exhaustive()
    }
}

/// Backoff, timeouts and clock.
struct Timing {
    /// First backoff after a failure; doubles with each further one.
    first: Duration,
    /// Longest backoff.
    longest: Duration,
    /// Longest `Retry-After` that is honoured.
    asked: Duration,
    /// Timeout of one attempt.
    attempt: Duration,
    /// Shortens a backoff at random, so that many senders do not retry at once.
    jitter: Box<dyn Fn(Duration) -> Duration + Send>,
    clock: Arc<dyn Clock>,
}

impl Timing {
    fn usual() -> Timing {
        Timing {
            first: Duration::from_secs(1),
            longest: Duration::from_secs(60),
            asked: Duration::from_secs(5 * 60),
            attempt: Duration::from_secs(10),
            jitter: Box::new(jittered),
            clock: Arc::new(SystemClock),
        }
    }
}

/// A random duration between half of `pause` and all of it.
fn jittered(pause: Duration) -> Duration {
    let mut byte = [0u8];
    SystemRandomness.fill(&mut byte);
    let [chance] = byte;
    pause.mul_f64(0.5 + f64::from(chance) / 510.0)
}

/// Follower that posts events to a URL.
pub struct WebhookFollower;

impl WebhookFollower {
    /// Resumes after the last delivered event; the first start begins at the ledger's end. `state` is the state directory.
    pub fn start(settings: WebhookSettings, reader: Reader, state: &Path) -> Result<Handle, StartError> {
        start(settings, reader, state, Timing::usual())
    }
}

fn start(
    settings: WebhookSettings,
    reader: Reader,
    state: &Path,
    timing: Timing,
) -> Result<Handle, StartError> {
    let sender = Sender::new(&settings, timing.attempt, Arc::clone(&timing.clock))?;
    let position = Position::open(state, &reader)?;
    let agents = Agents::before(&reader, position.next())?;
    let delivery = Delivery { wanted: settings.events, sender, reader, position, agents, timing, refused: 0 };
    Handle::spawn("webhook", move |stop| delivery.run(stop))
}

/// State of the delivery thread.
struct Delivery {
    wanted: BTreeSet<EventKind>,
    sender: Sender,
    reader: Reader,
    position: Position,
    agents: Agents,
    timing: Timing,
    /// Number of events that the receiver rejected for good.
    refused: u64,
}

/// Early end of a polling round.
enum Interruption {
    /// The drain's deadline has passed.
    Deadline,
    /// The ledger could not be read.
    Unread(ReadError),
}

impl Delivery {
    fn run(mut self, stop: &Stop) -> Result<(), FinishError> {
        let mut is_logged = false;
        loop {
            let was_asked = stop.is_asked();
            match self.round(stop) {
                Ok(true) => {
                    self.position.keep();
                    return Ok(());
                }
                Ok(false) => is_logged = false,
                Err(Interruption::Deadline) => {
                    self.position.keep();
                    return Err(FinishError::Undelivered { next: self.position.next() });
                }
                Err(Interruption::Unread(problem)) => {
                    if !std::mem::replace(&mut is_logged, true) {
                        log::warn!("the webhook waits: {problem}");
                    }
                    stop.pause(self.timing.longest, was_asked);
                }
            }
        }
    }

    /// Delivers the events of one polling round. True after the last round.
    fn round(&mut self, stop: &Stop) -> Result<bool, Interruption> {
        if stop.is_over() {
            return Err(Interruption::Deadline);
        }
        let mut round = Round::new(&self.reader, self.position.next(), stop);
        while let Some(page) = round.follow.next_page().map_err(Interruption::Unread)? {
            for record in &page {
                self.pass_on(record, stop)?;
            }
        }
        Ok(round.is_done(stop))
    }

    fn pass_on(&mut self, record: &Record, stop: &Stop) -> Result<(), Interruption> {
        let events = events::of(record, &self.reader, &self.agents, &self.wanted);
        let events = events.map_err(Interruption::Unread)?;
        for event in &events {
            self.deliver(event, stop)?;
        }
        // Applied after delivery, so that a record that is read again after an error sees the agents' state before it.
        self.agents.apply(&record.envelope);
        self.position.passed(record.seq, !events.is_empty());
        Ok(())
    }

    /// Retries until the event is delivered or rejected for good.
    fn deliver(&mut self, event: &Event, stop: &Stop) -> Result<(), Interruption> {
        let mut pause = self.timing.first;
        let mut logged: Option<String> = None;
        loop {
            let was_asked = stop.is_asked();
            // A receiver that never answers must not delay the stop.
            match self.sender.send(event, &|| stop.is_over()) {
                Reply::Delivered => {
                    if logged.is_some() {
                        log::warn!("the webhook goes on");
                    }
                    return Ok(());
                }
                Reply::Refused(status) => {
                    self.refused = self.refused.saturating_add(1);
                    log::warn!(
                        "the webhook refused event {} with status {status}: it is left out ({} so far)",
                        event.id,
                        self.refused
                    );
                    return Ok(());
                }
                Reply::Failed { why, wait } => {
                    if logged.as_ref() != Some(&why) {
                        log::warn!("the webhook waits: {why}");
                        logged = Some(why);
                    }
                    let wait =
                        wait.map_or_else(|| (self.timing.jitter)(pause), |wait| wait.min(self.timing.asked));
                    if !stop.pause(wait, was_asked) {
                        return Err(Interruption::Deadline);
                    }
                    let begins_draining = !was_asked && stop.is_asked();
                    pause = if begins_draining {
                        self.timing.first
                    } else {
                        pause.saturating_mul(2).min(self.timing.longest)
                    };
                }
            }
        }
    }
}

/// Whether a position written at `written` is old enough to be written again.
fn is_due(written: Instant) -> bool {
    written.elapsed() >= Duration::from_secs(1)
}
