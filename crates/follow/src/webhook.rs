//! Events to a URL: each at least once and in order, for as long as it takes.

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
use proctor_ledger::Reader;
use proctor_ledger::reader::Record;
use zeroize::Zeroizing;

use super::agents::Agents;
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

    /// Its name in settings and events.
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

    /// Those that are sent if nothing else is said: all but decisions.
    pub fn usual() -> BTreeSet<EventKind> {
        EventKind::ALL.into_iter().filter(|kind| *kind != EventKind::AuditAction).collect()
    }
}

impl FromStr for EventKind {
    type Err = String;

    fn from_str(word: &str) -> Result<EventKind, String> {
        EventKind::ALL.into_iter().find(|kind| kind.word() == word).ok_or_else(|| {
            let words: Vec<&str> = EventKind::ALL.iter().map(|kind| kind.word()).collect();
            let shown: String = word.chars().take(80).collect();
            format!("`{shown}` is not an event: there are {}", words.join(", "))
        })
    }
}

/// Where events go, and which.
#[derive(Clone)]
pub struct WebhookSettings {
    /// Where they are posted to.
    pub url: String,
    /// What they are signed with.
    pub secret: Option<Zeroizing<String>>,
    /// Which are sent.
    pub events: BTreeSet<EventKind>,
}

impl fmt::Debug for WebhookSettings {
    /// Without the secret and without the URL, which may hold one.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let signed = self.secret.is_some();
        out.debug_struct("WebhookSettings")
            .field("signed", &signed)
            .field("events", &self.events)
            .finish_non_exhaustive()
    }
}

/// How long things may take, and who tells the time.
struct Timing {
    /// The first pause after a failure; each further one is twice as long.
    first: Duration,
    /// The longest.
    longest: Duration,
    /// The longest pause that a receiver may ask for.
    asked: Duration,
    /// How long one try may take.
    attempt: Duration,
    /// Shortens a pause by chance, so that many senders do not come back at once.
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
            jitter: Box::new(by_chance),
            clock: Arc::new(SystemClock),
        }
    }
}

/// Between half and all of a pause.
fn by_chance(pause: Duration) -> Duration {
    let mut byte = [0u8];
    SystemRandomness.fill(&mut byte);
    let [chance] = byte;
    pause.mul_f64(0.5 + f64::from(chance) / 510.0)
}

/// Sends events to a URL.
pub struct WebhookFollower;

impl WebhookFollower {
    /// Goes on behind the last event that was delivered; the first time, with what is recorded from now on.
    /// `state` is the state directory.
    pub fn start(settings: WebhookSettings, reader: Reader, state: &Path) -> Result<Handle, String> {
        start(settings, reader, state, Timing::usual())
    }
}

fn start(settings: WebhookSettings, reader: Reader, state: &Path, timing: Timing) -> Result<Handle, String> {
    let sender = Sender::new(&settings, timing.attempt, Arc::clone(&timing.clock))?;
    let position = Position::open(state, &reader)?;
    let agents = Agents::before(&reader, position.next())?;
    let courier = Courier { wanted: settings.events, sender, reader, position, agents, timing, refused: 0 };
    Handle::spawn("webhook", move |stop| courier.run(stop))
}

struct Courier {
    wanted: BTreeSet<EventKind>,
    sender: Sender,
    reader: Reader,
    position: Position,
    agents: Agents,
    timing: Timing,
    /// Events that the receiver did not want.
    refused: u64,
}

/// Why a round ended early.
enum Interruption {
    /// The time to drain is over.
    Over,
    /// The ledger could not be read.
    Unread(String),
}

impl Courier {
    fn run(mut self, stop: &Stop) -> Result<(), String> {
        let mut said = false;
        loop {
            let was_asked = stop.is_asked();
            match self.round(stop) {
                Ok(true) => {
                    self.position.keep();
                    return Ok(());
                }
                Ok(false) => said = false,
                Err(Interruption::Over) => {
                    self.position.keep();
                    let next = self.position.next();
                    return Err(format!(
                        "not everything was delivered: the next start goes on at record {next}"
                    ));
                }
                Err(Interruption::Unread(problem)) => {
                    if !std::mem::replace(&mut said, true) {
                        log::warn!("the webhook waits: {problem}");
                    }
                    stop.pause(self.timing.longest, was_asked);
                }
            }
        }
    }

    /// Delivers what is there and what comes soon. True if there will be no more.
    fn round(&mut self, stop: &Stop) -> Result<bool, Interruption> {
        if stop.is_over() {
            return Err(Interruption::Over);
        }
        let mut round = Round::new(&self.reader, self.position.next(), stop);
        let unread = |error: proctor_ledger::ReadError| Interruption::Unread(error.to_string());
        while let Some(page) = round.follow.next_page().map_err(unread)? {
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
        // Only now: a record that is read again after an error meets the agents as they were before it.
        self.agents.apply(&record.envelope);
        self.position.passed(record.seq, !events.is_empty());
        Ok(())
    }

    /// Tries until the event is delivered or refused for good.
    fn deliver(&mut self, event: &Event, stop: &Stop) -> Result<(), Interruption> {
        let mut pause = self.timing.first;
        let mut said: Option<String> = None;
        loop {
            let was_asked = stop.is_asked();
            // A receiver that never answers must not hold up the end.
            match self.sender.send(event, &|| stop.is_over()) {
                Reply::Delivered => {
                    if said.is_some() {
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
                    if said.as_ref() != Some(&why) {
                        log::warn!("the webhook waits: {why}");
                        said = Some(why);
                    }
                    let wait =
                        wait.map_or_else(|| (self.timing.jitter)(pause), |wait| wait.min(self.timing.asked));
                    if !stop.pause(wait, was_asked) {
                        return Err(Interruption::Over);
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

/// When the position was written last.
fn is_due(written: Instant) -> bool {
    written.elapsed() >= Duration::from_secs(1)
}
